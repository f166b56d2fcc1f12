//! Transfers by copy engine or SMs over one direct path, or within one GPU.

use super::{Engine, SIGNAL, STRETCH};
use crate::schedule::{Mover, TaskId, Work};
use crate::sim::cost::{Cost, Costs};
use crate::sim::machine::Way;
use crate::sim::pool::Request;
use crate::sim::{SimError, Streams};
use crate::timeline::Cause;

/// Copy-engine kinds of a GPU.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::sim) enum EngineKind {
    PeerOut,
    PeerIn,
    HostToDevice,
    DeviceToHost,
}

impl EngineKind {
    /// The engine of GPU `issuer` for a copy from peer `from`: pushed by its sender, or pulled.
    pub const fn peer(issuer: u32, from: u32) -> Self {
        if issuer == from {
            Self::PeerOut
        } else {
            Self::PeerIn
        }
    }
}

impl Engine<'_> {
    /// Takes a copy engine for `unit` (a task or a stretch) or queues for it.
    pub fn take_engine(&mut self, gpu: u32, kind: EngineKind, unit: u32) -> bool {
        let request = Request {
            who: unit,
            want: 1,
            fixed: true,
        };
        self.engines[gpu as usize * 4 + kind as usize]
            .request(request)
            .is_some()
    }

    /// Gives back the copy engine of `unit`, whose copy has ended, and starts whoever is next.
    ///
    /// On a real GPU the queues that use an engine take turns, one copy each, and what a queue does
    /// after its copy, telling others that it has ended, waits for its next turn.
    ///
    /// Says whether the end is still to be told.
    pub fn copied(
        &mut self,
        (gpu, kind): (u32, EngineKind),
        unit: u32,
        by: u32,
        now: f64,
    ) -> Result<bool, SimError> {
        let turns = self.options.streams == Streams::PerGpu;
        let now_or_later = !turns || self.take_engine(gpu, kind, unit | SIGNAL);
        if turns && now_or_later {
            self.engines[gpu as usize * 4 + kind as usize].release(1);
        }
        self.release_engine(gpu, kind, by, now)?;
        Ok(now_or_later)
    }

    /// Gives a copy engine back and starts whoever is next in its queue.
    fn release_engine(
        &mut self,
        gpu: u32,
        kind: EngineKind,
        by: u32,
        now: f64,
    ) -> Result<(), SimError> {
        let place = gpu as usize * 4 + kind as usize;
        self.engine_last[place] = Some((by, now));
        let pool = &mut self.engines[place];
        pool.release(1);
        let Some((unit, _)) = pool.next() else {
            return Ok(());
        };
        if self.options.streams == Streams::PerGpu && unit & SIGNAL != 0 {
            match unit & !SIGNAL {
                stretch if stretch >= STRETCH => self.stretch_tells(stretch - STRETCH, now),
                task => self.tell(task, now),
            }
            return self.release_engine(gpu, kind, by, now);
        }
        if unit >= STRETCH {
            self.begin_stretch(unit - STRETCH, now);
            Ok(())
        } else {
            self.spans[unit as usize].cause = Cause::Resource(TaskId(by));
            self.begin_transfer(unit, now)
        }
    }

    /// Whether everything between GPUs goes through a host, by copy engines whoever was to move it.
    pub fn host_only(&self) -> bool {
        self.topology
            .path
            .host()
            .is_some_and(|(share, _)| share >= 1.0)
    }

    /// Whether `task` is moved by a copy engine, alone or in stretches.
    pub(super) fn by_engine(&self, task: u32) -> bool {
        let Work::Transfer { from, to, mover } = self.schedule.tasks[task as usize].work else {
            return false;
        };
        let engine = match mover {
            Mover::CopyEngine => true,
            Mover::Sm { .. } => self.host_only(),
            Mover::Epilogue | Mover::Loader => false,
        };
        engine
            && self.options.terms.communication
            && self.schedule.bytes(&from) > 0
            && self.costs.gpu_of(&from) != self.costs.gpu_of(&to)
    }

    /// Whether an engine has ended a copy.
    pub fn used(&self, (gpu, kind): (u32, EngineKind)) -> bool {
        self.engine_last[gpu as usize * 4 + kind as usize].is_some()
    }

    /// From `now`, when a copy of `task` could have its engine, to its first byte [s]: `first` where nothing is under
    /// way, `next` right behind another copy.
    ///
    /// The start-up of a copy that a kernel or the start of the run lets go runs beside what the engine still copies, so
    /// it ends `first` after that; a copy that another copy lets go, of its queue or of another GPU, begins `next`
    /// after it (section `relay` of calibrations: a copy handed on between two GPUs takes `event_peer`, the link and
    /// at most 1.5 us). An engine that takes over from another queue begins anew. All are times after ends that
    /// are no sooner where a link is slower, and the latest counts, so a slower link lets nothing begin sooner.
    pub fn engine_start(
        &self,
        (gpu, kind): (u32, EngineKind),
        task: u32,
        (first, next): (f64, f64),
        now: f64,
    ) -> f64 {
        let Some((last, ended)) = self.engine_last[gpu as usize * 4 + kind as usize] else {
            return first;
        };
        let lane = |task: u32| {
            let task = &self.schedule.tasks[task as usize];
            (task.rank, task.lane)
        };
        let own = self.graph.next_in_lane[last as usize] == task || lane(last) == lane(task);
        let since = match own {
            true => self.cold[task as usize],
            false => self.cold[task as usize].max(ended),
        };
        next.max(first - (now - since))
    }

    /// A direct transfer has its engine or its SMs: start-up and latency, then flow.
    pub fn begin_transfer(&mut self, task: u32, now: f64) -> Result<(), SimError> {
        self.start(task, now);
        let alpha = self.transfer_alpha(task, now)?;
        self.begin(task, alpha, now)
    }

    /// Start-up and latency of a transfer that goes by one direct path or within its GPU [s].
    fn transfer_alpha(&mut self, task: u32, now: f64) -> Result<f64, SimError> {
        let Work::Transfer { from, to, mover } = self.schedule.tasks[task as usize].work else {
            return Ok(0.0);
        };
        let (src, dst) = (self.costs.gpu_of(&from), self.costs.gpu_of(&to));
        let gpu = self.costs.gpu(task);
        let first = self.costs.start_up(gpu, mover, false);
        if src == dst {
            return Ok(first);
        }
        let latency = match self.costs.machine.way(src, dst)? {
            Way::Direct(latency) => latency,
            Way::Paths(_) => 0.0, // each stretch has its own
        };
        let start_up = match mover {
            Mover::CopyEngine => {
                let engine = (gpu, EngineKind::peer(gpu, src));
                let next = self.costs.start_up(gpu, mover, true);
                self.engine_start(engine, task, (first, next), now)
            }
            _ => first,
        };
        Ok(start_up + latency)
    }

    /// The cost of a transfer that goes by one direct path or within its GPU.
    pub fn transfer_cost(&mut self, task: u32) -> Result<Cost, SimError> {
        let Work::Transfer { from, to, mover } = self.schedule.tasks[task as usize].work else {
            return Ok(Cost::instant(0.0));
        };
        let bytes = self.schedule.bytes(&from) as f64;
        let (src, dst) = (self.costs.gpu_of(&from), self.costs.gpu_of(&to));
        if src == dst {
            let sms = match mover {
                Mover::Loader => Costs::loader(self.costs.device(src)) as u32,
                _ => self.kernels.held(task),
            };
            return Ok(self.costs.local(src, bytes, sms, &mut self.usages));
        }
        if let Way::Paths(_) = self.costs.machine.way(src, dst)? {
            return Ok(Cost::instant(0.0)); // paths flow as stretches
        }
        let ends = (src, dst, mover);
        Ok(self.costs.direct(task, ends, bytes, &mut self.usages))
    }
}
