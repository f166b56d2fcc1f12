//! Fixed costs: starts, order within a queue, and hand-offs between queues, as the launch mode has
//! them.

use super::Costs;
use crate::schedule::{Mover, Via};
use crate::sim::waits::Signals;
use crate::sim::{LaunchMode, Options, Submission};
use crate::units::Seconds;

/// When the first tasks may begin of a run that was handed over beforehand [s].
pub fn run_start(costs: &crate::device::Costs, options: &Options) -> f64 {
    match (options.submission, options.launch) {
        (Submission::Along, _) => 0.0,
        (Submission::Beforehand, LaunchMode::Graph) => {
            costs.more.run_graph.map_or(0.0, Seconds::get)
        }
        // Every queue awaits the start event first.
        (Submission::Beforehand, LaunchMode::Stream) => costs
            .more
            .run
            .map_or(0.0, |run| run.get() + costs.event.get()),
    }
}

/// What counting shares takes of what a kernel brings, until tiles go on that wait for them [s]. From moments of tiles on
/// two H200 (`gpu run --tile-trace`, AG+GEMM 512, 4096, 8192 in eight slabs, 2026-11-30): tiles whose rows come are fed
/// 4.45 us after they begin, those whose rows are there 1.4 us, of the difference a copy's start, the latency and
/// 256 KiB on the link take 2.25 us. It would be 0.9 us more if B were not on its way meanwhile.
/// Taken for every kernel that brings its rows; one that brings them by a warp of each block beside its tiles (m ≥ 1024), and
/// those for compute capability 8.0, were not traced.
const COUNTED: f64 = 0.8e-6;

impl Costs<'_> {
    /// A cost of graphs where one is stated and the run is a graph.
    fn in_graph(&self, stated: Option<Seconds>) -> Option<Seconds> {
        stated.filter(|_| self.options.launch == LaunchMode::Graph)
    }

    /// From the GPU taking up a kernel to its first instruction [s].
    pub fn kernel_start(&self, gpu: u32) -> f64 {
        let c = &self.device(gpu).costs;
        self.fixed(
            self.in_graph(c.more.graph_kernel_start)
                .unwrap_or(c.kernel_start),
        )
    }

    /// From the end of a task to the start of the next in its queue [s].
    pub fn lane(&self, gpu: u32) -> f64 {
        let c = &self.device(gpu).costs;
        self.fixed(self.in_graph(c.more.graph_lane).unwrap_or(c.lane))
    }

    /// From the end of a task on GPU `here` to a task on `there` knowing of it [s].
    pub fn hand_off(&self, via: Via, here: u32, there: u32) -> f64 {
        let c = &self.device(there).costs;
        let edge = match here == there {
            true => c.more.graph_event,
            false => c.more.graph_event_peer,
        };
        let stated = match via {
            Via::Lane | Via::Launch => return 0.0,
            Via::Event if here == there => c.event,
            Via::Event => c.event_peer,
            Via::StreamFlag if here == there => c.more.flag_local.unwrap_or(c.stream_flag),
            Via::StreamFlag => c.stream_flag,
            Via::KernelFlag => c.kernel_flag,
        };
        self.fixed(self.in_graph(edge).unwrap_or(stated))
    }

    /// From the last bytes of what a kernel brings itself being there to its tiles knowing of it [s].
    pub fn counted(&self) -> f64 {
        self.fixed(Seconds::of(COUNTED))
    }

    /// What the signals `after` a task and those `before` the next take in their queue, all awaited
    /// ones being there [s].
    /// `copy`: whether the task is a copy by a copy engine.
    pub fn signals(&self, gpu: u32, after: Signals, before: Signals, copy: bool) -> f64 {
        if self.options.launch == LaunchMode::Graph {
            return 0.0; // edges
        }
        let more = &self.device(gpu).costs.more;
        let each = |count: u16, stated: Option<Seconds>| {
            f64::from(count) * stated.map_or(0.0, |cost| self.fixed(cost))
        };
        let write = match copy {
            true => more.flag_write_copy.or(more.flag_write),
            false => more.flag_write,
        };
        each(after.records, more.event_record)
            + each(after.flag_writes, write)
            + each(before.event_waits, more.event_wait)
            + each(before.flag_waits, more.flag_wait)
    }

    /// When the first tasks on `gpu` may begin of a run that was handed over beforehand [s].
    pub fn run_start(&self, gpu: u32) -> f64 {
        self.fixed(Seconds::of(run_start(
            &self.device(gpu).costs,
            &self.options,
        )))
    }

    /// As [`Self::start_up`] of a copy engine between a GPU and its host's memory; `further`: of a chunk
    /// that is not the first of its transfer [s].
    pub fn host_start_up(&self, gpu: u32, further: bool) -> f64 {
        let c = &self.device(gpu).costs;
        let first = c.more.host_copy_start;
        let stated = match further {
            true => c.more.host_copy_next.or(first),
            false => first,
        };
        self.fixed(stated.unwrap_or(c.copy_start))
    }

    /// From a mover of `gpu` being told to its first byte, latency of the way not counted; `behind`:
    /// let go by another copy, of its queue or another GPU's [s].
    pub fn start_up(&self, gpu: u32, mover: Mover, behind: bool) -> f64 {
        let c = &self.device(gpu).costs;
        match mover {
            Mover::CopyEngine if behind => self.fixed(c.more.copy_next.unwrap_or(c.copy_start)),
            Mover::CopyEngine => self.fixed(c.copy_start),
            Mover::Epilogue => 0.0,
            Mover::Loader => self.fixed(c.sm_copy_start),
            Mover::Sm { .. } => self.kernel_start(gpu) + self.fixed(c.sm_copy_start),
        }
    }
}
