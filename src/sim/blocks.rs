//! GEMMs of a library beside kernels that hold SMs.
//!
//! The blocks of such a GEMM take its tiles one after another from a common list. Blocks that find no SM
//! begin when others leave theirs, and blocks begin in clusters, of which those that find no place for theirs
//! beside a collective wait as well ([`Scatter`](crate::device::Scatter)). With N tiles of τ each, R blocks
//! that begin at once and L more from u on, it ends at the first t by which all tiles are done:
//!
//! ```text
//! R · ⌊t/τ⌋ + L · ⌊(t − u)/τ⌋ ≥ N
//! ```
//!
//! With a tile for each block nobody takes another's. The r tiles that are left to themselves at the end go on
//! faster where all shared the memory's rate: in r/(R + L) of τ, and no less than a tile's arithmetic.

use super::cost::Cost;
use super::engine::{Engine, Event};
use super::pool::Request;
use super::{SimError, Streams};
use crate::schedule::{Compute, Work};

/// Requests with this bit are for the blocks of a running GEMM that have not begun.
pub(super) const LATE: u32 = 1 << 30;

/// A GEMM whose last blocks wait for SMs.
#[derive(Copy, Clone, Debug)]
pub(super) struct Late {
    /// SMs of its first blocks and of the others, and when the first began [s].
    blocks: (u32, u32),
    since: f64,
    /// Its time is the mean of several orders and stays so.
    mean: bool,
}

/// A GEMM as tiles.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Tiles {
    pub count: u32,
    /// What one takes beside all others, and at least [s].
    pub each: f64,
    pub least: f64,
}

impl Tiles {
    /// When all are done of which `first` blocks take some from the beginning, and `late` more from
    /// `from` on [s].
    pub fn end(self, (first, late): (u32, u32), from: f64) -> f64 {
        let (first, count) = (first.max(1), u64::from(self.count));
        if late == 0 || self.each <= 0.0 {
            return f64::from(self.count.div_ceil(first)) * self.each;
        }
        // Rounds of the first blocks and of the late ones until all tiles are done, in order of time.
        let (mut early, mut after) = (0_u32, 0_u32);
        let one_each = self.count <= first + late;
        loop {
            let next = [
                f64::from(early + 1) * self.each,
                from + f64::from(after + 1) * self.each,
            ];
            // With a tile for each block nobody takes another's.
            let second = next[0] > next[1] || (one_each && early > 0);
            match second {
                true => after += 1,
                false => early += 1,
            }
            let done = u64::from(early) * u64::from(first) + u64::from(after) * u64::from(late);
            if done < count {
                continue;
            }
            let end = next[usize::from(second)];
            let (busy, others) = match second {
                true => (late, f64::from(early) * self.each),
                false => (first, from + f64::from(after) * self.each),
            };
            // Tiles of the last round, and how long these are left to themselves.
            let tiles = busy.min((count + u64::from(busy) - done) as u32);
            let alone = (end - others.max(end - self.each)).max(0.0);
            let share = f64::from(tiles) / f64::from(first + late);
            let slower = (share * self.each).max(self.least).min(self.each) / self.each;
            let all = f64::from(self.count.div_ceil(first + late)) * self.each;
            return (end - alone * (1.0 - slower)).max(all);
        }
    }
}

impl Engine<'_> {
    /// The shape of a GEMM that holds all SMs it uses from start to end.
    pub(super) fn whole_gemm(&self, task: u32) -> Option<[u64; 3]> {
        let terms = self.options.terms;
        let real = self.options.streams == Streams::PerGpu && terms.contention && terms.compute;
        let alone = self.schedule.tasks[task as usize].launch.is_none();
        self.costs.gemm_shape(task).filter(|_| real && alone)
    }

    /// SMs that a GEMM may use.
    fn most(&self, task: u32, gpu: u32) -> u32 {
        match self.schedule.tasks[task as usize].work {
            Work::Compute(id) => match self.schedule.computes[id.index()] {
                Compute::Gemm { sms, .. } if sms > 0 => u32::from(sms),
                _ => self.costs.device(gpu).sms,
            },
            _ => self.costs.device(gpu).sms,
        }
    }

    /// Whether the blocks of a library GEMM stay on their SMs until it ends: those of its fast kernels do, for
    /// which rows must be multiples of 16 bytes.
    fn stays(&self, [_, n, k]: [u64; 3]) -> bool {
        let dtype = self.schedule.operator.dtype;
        crate::device::gemm::library::alignment(dtype, n, k) >= 16
    }

    /// Whether a kernel runs beside what holds the SMs: on real GPUs all but the compute lanes are
    /// served first, and small kernels (sums, copies) find room between the waves of a GEMM whose blocks
    /// come and go. One of a single wave leaves none before it ends, and collectives keep whole SMs.
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
            && !self.stays(shape)
            && self.costs.gemm_tiles(gpu, shape, want)? > want
        {
            self.kernels.waves.insert(task, gpu);
        }
        // What was granted and fits no cluster stays granted, and begins with as many freed SMs.
        let begin = self.room(gpu, got);
        let waiting = match want - got {
            0 => want - begin,
            more => more,
        };
        let mean = self.comes_with(task, (begin, want - begin))?;
        if waiting == 0 || self.kernels.pools[gpu as usize].free() >= waiting {
            return Ok(());
        }
        let late = Late {
            blocks: (begin, want - begin),
            since: now,
            mean,
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

    /// The tiles of a GEMM that takes `time` \[s\] on so many blocks; `None` of another kernel.
    pub(super) fn tiles(
        &self,
        task: u32,
        blocks: u32,
        time: f64,
    ) -> Result<Option<Tiles>, SimError> {
        let Some(shape) = self.whole_gemm(task) else {
            return Ok(None);
        };
        let gpu = self.costs.gpu(task);
        let device = self.costs.device(gpu);
        let count = self
            .costs
            .gemm_tiles(gpu, shape, self.most(task, gpu))?
            .max(1);
        let rate = device.rate(self.schedule.operator.dtype);
        let work: f64 = shape.iter().map(|&size| size as f64).product();
        let least = rate.map_or(0.0, |rate| {
            2.0 * work / f64::from(count) / (rate / f64::from(device.sms))
        });
        Ok(Some(Tiles {
            count,
            each: time / f64::from(count.div_ceil(blocks.max(1))),
            least,
        }))
    }

    /// A GEMM of this cost begins to multiply: blocks without a tile in its last wave leave their SMs before
    /// the others do.
    pub(super) fn before_last_wave(
        &mut self,
        task: u32,
        cost: &Cost,
        now: f64,
    ) -> Result<(), SimError> {
        let blocks = self.kernels.held(task);
        if self.kernels.late.contains_key(&task) || blocks == 0 {
            return Ok(());
        }
        let time = cost.work / self.alone(cost.bound);
        if let Some(tiles) = self.tiles(task, blocks, time)? {
            let idle = tiles.count.next_multiple_of(blocks) - tiles.count;
            if idle > 0 && tiles.count > blocks {
                let at = now + time - tiles.each;
                self.kernels.leaving.insert(task, idle);
                self.events.push(at, Event::Left(task));
            }
        }
        Ok(())
    }

    /// Blocks without a tile in the last wave of a GEMM leave.
    pub fn blocks_left(&mut self, task: u32, now: f64) -> Result<(), SimError> {
        let Some(idle) = self.kernels.leaving.remove(&task) else {
            return Ok(()); // it has ended
        };
        if let Some(held) = self.kernels.held.get_mut(&task) {
            let sms = idle.min(*held);
            *held -= sms;
            self.hand_on(task, sms, now)?;
        }
        Ok(())
    }

    /// The cost of a GEMM whose own is this, while its last blocks wait.
    pub(super) fn on_first_blocks(&mut self, task: u32, mut cost: Cost) -> Result<Cost, SimError> {
        let Some(&Late {
            blocks,
            mean: false,
            ..
        }) = self.kernels.late.get(&task)
        else {
            return Ok(cost);
        };
        let time = cost.work / self.alone(cost.bound);
        if let Some(tiles) = self.tiles(task, blocks.0 + blocks.1, time)? {
            cost.bound = cost.bound.min(cost.work / tiles.end((blocks.0, 0), 0.0));
        }
        Ok(cost)
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
        let Late { blocks, since, .. } = late;
        *self.kernels.held.entry(task).or_insert(0) += got;
        // One that has not come to its first tile yet begins with all its blocks.
        let Some(&flow) = self.kernels.flows.get(&task).filter(|_| !late.mean) else {
            return Ok(());
        };
        let cost = self.kernel_cost(task)?;
        let time = cost.work / self.alone(cost.bound);
        let begun = since + cost.alpha;
        if let Some(tiles) = self.tiles(task, blocks.0 + blocks.1, time)? {
            let left = begun + tiles.end(blocks, now - begun) - now;
            let bound = self.fluid.left(flow, now) / left;
            if left > 0.0 && bound > self.fluid.rate(flow) {
                self.rebound(flow, bound);
            }
        }
        Ok(())
    }

    /// A GEMM has ended: blocks of it that have not begun never will.
    pub fn blocks_done(&mut self, task: u32) {
        self.kernels.leaving.remove(&task);
        if self.kernels.late.remove(&task).is_some() {
            let gpu = self.costs.gpu(task) as usize;
            self.kernels.pools[gpu].cancel(task | LATE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn late_blocks_take_what_is_left() {
        // 512 tiles on 132 blocks: four waves.
        let gemm = Tiles {
            count: 512,
            each: 1.0,
            least: 1.0,
        };
        assert_eq!(gemm.end((132, 0), 0.0), 4.0);
        // 108 do 432 in four; the others do two waves of 24 from 1.4 on and 32 are left for a fifth.
        assert_eq!(gemm.end((108, 24), 1.4), 5.0);
        // With three waves of the others 504, with a fourth 528.
        assert_eq!(gemm.end((108, 24), 0.25), 4.25);
        // They come when all is done.
        assert_eq!(gemm.end((108, 24), 7.0), 5.0);
        // Of 128 tiles that share the memory's rate, 32 by themselves take what their arithmetic takes.
        let shared = Tiles {
            count: 128,
            each: 1.0,
            least: 0.4,
        };
        assert_eq!(shared.end((96, 32), 2.0), 2.4);
        assert_eq!(shared.end((96, 32), 0.5), 1.2);
    }

    proptest! {
        #[test]
        fn more_and_earlier_blocks_never_end_later(
            count in 1u32..3000,
            first in 1u32..132,
            late in 1u32..64,
            from in 0.0..20.0_f64,
        ) {
            let tiles = Tiles { count, each: 1.0, least: 1.0 };
            let end = tiles.end((first, late), from);
            let alone = tiles.end((first, 0), 0.0);
            let all = f64::from(count.div_ceil(first + late));
            prop_assert!(end >= all);
            prop_assert!(end <= alone || count <= first + late);
            prop_assert!(tiles.end((first, late), from + 0.5) >= end);
            prop_assert!(end <= from + all);
        }
    }
}
