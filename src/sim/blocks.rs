//! GEMMs of a library beside kernels that hold SMs.
//!
//! Such a GEMM divides its tiles among all its blocks beforehand. Blocks that find no SM begin when
//! others leave theirs, and each takes the whole time T of the GEMM: begun at t on some SMs and at u on
//! the rest it ends at max(t, u) + T, its first blocks leaving at t + T. Blocks begin in clusters, and those
//! that find no place for theirs beside a collective wait as well ([`Scatter`](crate::device::Scatter)).

use super::engine::{Engine, Event};
use super::pool::Request;
use super::{SimError, Streams};
use crate::schedule::Work;

/// Requests with this bit are for the blocks of a running GEMM that have not begun.
pub(super) const LATE: u32 = 1 << 30;

/// A GEMM whose last blocks wait for SMs.
#[derive(Copy, Clone, Debug)]
pub(super) struct Late {
    /// SMs of its first blocks, and when they began [s].
    first: u32,
    since: f64,
    /// Whether the first blocks have ended.
    ended: bool,
}

impl Engine<'_> {
    /// The shape of a GEMM that holds all SMs it uses from start to end.
    pub(super) fn whole_gemm(&self, task: u32) -> Option<[u64; 3]> {
        let terms = self.options.terms;
        let real = self.options.streams == Streams::PerGpu && terms.contention && terms.compute;
        let alone = self.schedule.tasks[task as usize].launch.is_none();
        self.costs.gemm_shape(task).filter(|_| real && alone)
    }

    /// Whether a kernel runs beside what holds the SMs: on real GPUs all but the compute lanes are
    /// served first, and small kernels (sums, copies) find room between the waves of a GEMM. One of a
    /// single wave leaves none before it ends, and collectives keep whole SMs.
    pub(super) fn beside(&self, task: u32) -> bool {
        let t = &self.schedule.tasks[task as usize];
        let small = match t.work {
            Work::Transfer { .. } => true,
            Work::Collective(_) => false,
            Work::Compute(_) => self.costs.gemm_shape(task).is_none(),
        };
        let gpu = self.costs.gpu(task);
        let between = || self.kernels.waves.values().any(|&busy| busy == gpu);
        self.options.streams == Streams::PerGpu && t.lane.0 != 0 && small && between()
    }

    /// A GEMM of `want` blocks begins on `got` SMs.
    pub fn blocks_begin(
        &mut self,
        task: u32,
        (want, got): (u32, u32),
        now: f64,
    ) -> Result<(), SimError> {
        let gpu = self.costs.gpu(task);
        if let Some(shape) = self.whole_gemm(task)
            && self.costs.gemm_tiles(gpu, shape, want)? > want
        {
            self.kernels.waves.insert(task, gpu);
        }
        // What was granted and fits no cluster stays granted, and begins with as many freed SMs.
        let room = match want - got {
            0 => self.room(gpu, got),
            _ => got,
        };
        let waiting = want - room;
        if waiting == 0 || self.kernels.pools[gpu as usize].free() >= waiting {
            return Ok(());
        }
        let late = Late {
            first: room,
            since: now,
            ended: false,
        };
        self.kernels.late.insert(task, late);
        // Never at once: it took all that were free.
        self.kernels.pools[gpu as usize].request(Request {
            who: task | LATE,
            want: waiting,
            fixed: true,
        });
        Ok(())
    }

    /// Of a GEMM's blocks with an SM each, those that begin beside the collectives on the GPU.
    fn room(&self, gpu: u32, got: u32) -> u32 {
        let scatter = self.costs.device(gpu).scatter;
        if scatter.cluster.is_none() {
            return got;
        }
        let collectives = self.holders(gpu, true);
        let busy = collectives
            .iter()
            .map(|task| self.kernels.held(*task))
            .sum();
        match collectives.is_empty() {
            true => got,
            false => scatter.room(busy, got),
        }
    }

    /// The blocks of a GEMM that waited begin on `got` SMs.
    pub fn blocks_follow(&mut self, task: u32, got: u32, now: f64) -> Result<(), SimError> {
        let Some(late) = self.kernels.late.remove(&task) else {
            return Ok(());
        };
        *self.kernels.held.entry(task).or_insert(0) += got;
        let cost = self.kernel_cost(task)?;
        let flowing = self.kernels.flows.remove(&task);
        if let Some(flow) = flowing {
            self.fluid.remove(flow);
            self.slowed.leaves(flow);
        }
        if !late.ended {
            let leave = late.since + cost.alpha + 1.0 / cost.bound;
            self.kernels.leaving.insert(task, late.first);
            self.events.push(leave.max(now), Event::Left(task));
        }
        // One that has not come to its first tile yet begins with all its blocks.
        if (late.ended || flowing.is_some())
            && let Some(flow) = self.flow(&cost, task, now)
        {
            self.kernels.flows(task, flow);
        }
        Ok(())
    }

    /// The first blocks of a GEMM have ended, the others run on.
    pub fn blocks_left(&mut self, task: u32, now: f64) -> Result<(), SimError> {
        match self.kernels.leaving.remove(&task) {
            Some(first) => self.give_back(task, first, now),
            None => Ok(()), // it has ended
        }
    }

    /// Whether blocks of a GEMM whose first ones have ended are still to begin.
    pub fn blocks_wait(&mut self, task: u32, now: f64) -> Result<bool, SimError> {
        let Some(late) = self.kernels.late.get_mut(&task) else {
            return Ok(false);
        };
        late.ended = true;
        let first = late.first;
        self.kernels.flows.remove(&task);
        self.give_back(task, first, now)?;
        Ok(true)
    }

    fn give_back(&mut self, task: u32, sms: u32, now: f64) -> Result<(), SimError> {
        if let Some(held) = self.kernels.held.get_mut(&task) {
            *held = held.saturating_sub(sms);
        }
        self.hand_on(task, sms, now)
    }
}
