//! What each piece of work costs: its fixed start, its amount, its own speed limit, and what it
//! uses of links and memories while it flows.

mod collective;
mod compute;
mod start;

pub(super) use compute::On;
pub(super) use start::run_start;

use super::Options;
use super::fluid::Usage;
use super::machine::Machine;
use crate::device::Device;
use crate::schedule::{Buffer, Mover, Schedule, Slice};
use crate::topology::LinkId;

/// What a flow needs; `usages` are kept apart so that their memory is used again.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Cost {
    /// Start-up and latency before the first byte or tile [s].
    pub alpha: f64,
    /// Amount: bytes, or 1 for a GEMM.
    pub work: f64,
    /// Most work per second by itself.
    pub bound: f64,
    /// Weight of its share: makes shares equal in bytes per second.
    pub weight: f64,
}

impl Cost {
    /// Takes no time after `alpha`.
    pub const fn instant(alpha: f64) -> Self {
        Self {
            alpha,
            work: 0.0,
            bound: f64::INFINITY,
            weight: 1.0,
        }
    }
}

/// The schedule on its machine: answers what a task costs.
#[derive(Debug)]
pub(super) struct Costs<'a> {
    pub schedule: &'a Schedule,
    pub machine: Machine<'a>,
    pub options: Options,
    /// GPU of each buffer: asked for several times per transfer.
    buffer_gpu: Vec<u32>,
}

/// What a loader's warp on an SM has under way of another GPU's memory, by what a block that copies has: 32 threads of
/// 8 accesses and 1024 of 4 (`kernels/gemm.cuh`, `kernels/copy.cu`). Both are bound by how long that memory
/// takes to answer.
const LOADER: f64 = 32.0 * 8.0 / (1024.0 * 4.0);

impl<'a> Costs<'a> {
    pub fn new(schedule: &'a Schedule, machine: Machine<'a>, options: Options) -> Self {
        let gpu = |buffer: &Buffer| schedule.placement[usize::from(buffer.rank.0)];
        Self {
            schedule,
            machine,
            options,
            buffer_gpu: schedule.buffers.iter().map(gpu).collect(),
        }
    }

    /// The GPU of a task's rank.
    pub fn gpu(&self, task: u32) -> u32 {
        let rank = self.schedule.tasks[task as usize].rank;
        self.schedule.placement[rank.0 as usize]
    }

    /// The GPU that holds a slice.
    pub fn gpu_of(&self, slice: &Slice) -> u32 {
        self.buffer_gpu[slice.buffer.index()]
    }

    pub fn device(&self, gpu: u32) -> &'a Device {
        self.machine.topology.device(gpu)
    }

    /// A fixed cost, or nothing when they are switched off.
    pub fn fixed(&self, seconds: crate::units::Seconds) -> f64 {
        if self.options.terms.sync_and_launch {
            seconds.get()
        } else {
            0.0
        }
    }

    /// A transfer over the one direct path last asked for by [`Machine::way`].
    pub fn direct(
        &self,
        task: u32,
        (from, to, mover): (u32, u32, Mover),
        bytes: f64,
        usages: &mut Vec<Usage>,
    ) -> Cost {
        let links = self.machine.recent_links(from);
        self.stretch(
            self.gpu(task),
            links,
            [Some(from), Some(to)],
            mover,
            bytes,
            usages,
        )
    }

    /// The flow over a stretch of links between two memories (`ends`: the GPUs among them), moved
    /// by `issuer`; its α is [`Self::start_up`] and the latency of the links.
    pub fn stretch(
        &self,
        issuer: u32,
        links: &[LinkId],
        ends: [Option<u32>; 2],
        mover: Mover,
        bytes: f64,
        usages: &mut Vec<Usage>,
    ) -> Cost {
        let device = self.device(issuer);
        let (bound, per_byte) = match mover {
            Mover::CopyEngine => (device.peer_copy.get(), 1.0),
            Mover::Loader => (
                device.sm_copy.get() * Self::loader(device),
                1.0 / device.sm_copy_efficiency,
            ),
            // Many SMs store at a time.
            Mover::Epilogue => (f64::INFINITY, 1.0 / device.sm_copy_efficiency),
            Mover::Sm { blocks } => (
                device.sm_copy.get() * f64::from(blocks.max(1)),
                1.0 / device.sm_copy_efficiency,
            ),
        };
        usages.clear();
        self.machine.use_links(links, per_byte, usages);
        for gpu in ends.into_iter().flatten() {
            self.machine.use_memory(gpu, 1.0, usages);
        }
        // What slows a product beside a copy is taken to be the copy's traffic, whose SMs are no others'.
        if matches!(mover, Mover::CopyEngine | Mover::Loader) {
            self.machine.use_beside(ends, usages);
        }
        Cost {
            alpha: 0.0,
            work: bytes,
            bound,
            weight: 1.0,
        }
    }

    /// A copy within one GPU: read and written once in its memory, by a kernel on `sms` SMs.
    pub fn local(&self, gpu: u32, bytes: f64, sms: u32, usages: &mut Vec<Usage>) -> Cost {
        let device = self.device(gpu);
        usages.clear();
        self.machine.use_memory(gpu, 2.0, usages);
        let share = f64::from(sms) / f64::from(Self::local_sms(device));
        Cost {
            alpha: 0.0,
            work: bytes,
            bound: device.local_copy.get() * share.min(1.0),
            weight: 1.0,
        }
    }

    /// Blocks that copy as much at a time as a loader on all SMs of a GPU.
    pub fn loader(device: &Device) -> f64 {
        f64::from(device.sms) * LOADER
    }

    /// SMs that a copy within the GPU's memory takes: an eighth of them moves 2 TB/s on a GPU
    /// whose single SM copies about 130 GB/s in its own memory (assumed).
    pub fn local_sms(device: &Device) -> u32 {
        (device.sms / 8).max(1)
    }
}
