//! GEMMs of a library beside kernels that hold SMs.
//!
//! The blocks of such a GEMM take its tiles one after another from a common list ([`Tiles`]). Blocks that
//! find no SM begin when others leave theirs (those of Duet's own products with tiles that nobody else takes), and
//! blocks begin in clusters, of which those that find no place
//! for theirs beside a collective wait as well ([`Scatter`](crate::device::Scatter)).

use smallvec::SmallVec;

use super::cost::Cost;
use super::engine::{Engine, Event};
use super::fluid::TIE;
use super::pool::Request;
use super::tiles::Tiles;
use super::{SimError, Streams};
use crate::schedule::{Compute, Work};

/// What a tile of the last blocks takes, the others having left, of what it takes beside all; as section `held` of
/// calibrations shows (0.78 to 0.94, for tiles that hide the memory little 0.65; `docs/calibration.md`).
const ALONE: f64 = 0.9;
/// Requests with this bit are for the blocks of a running GEMM that have not begun.
pub(super) const LATE: u32 = 1 << 30;

/// When how many blocks leave, in order \[s\].
pub(super) type Leaving = SmallVec<[(f64, u32); 4]>;

/// A GEMM whose last blocks wait for SMs.
#[derive(Copy, Clone, Debug)]
pub(super) struct Late {
    /// SMs of its first blocks and of the others, and when the first began [s].
    blocks: (u32, u32),
    since: f64,
    /// SMs that it lacks: blocks that found no place have theirs.
    lacks: u32,
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
    pub(super) fn most(&self, task: u32, gpu: u32) -> u32 {
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
    pub(super) fn stays(&self, [_, n, k]: [u64; 3]) -> bool {
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
        let begin = self.room(task, gpu, got)?;
        let free = self.kernels.pools[gpu as usize].free();
        let waiting = want - got;
        if begin == got && (waiting == 0 || free >= waiting) {
            return Ok(());
        }
        let late = Late {
            blocks: (begin, want - begin),
            since: now,
            lacks: waiting,
        };
        self.kernels.late.insert(task, late);
        // Never at once: it took all that were free, or those that are free are no place for it, and it waits for
        // any more.
        let placeless = if begin < got { free + 1 } else { 0 };
        let sms = self.costs.device(gpu).sms;
        self.kernels.pools[gpu as usize].request(Request {
            who: task | LATE,
            want: waiting.max(placeless).min(sms),
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
        let (_, alone) = (self.costs).gemm_blocks(gpu, shape, self.most(task, gpu))?;
        let own = match self.stays(shape) {
            _ if self.options.tiling.is_some() => u32::MAX,
            true => 2,
            false => 0,
        };
        let rate = device.rate(self.schedule.operator.dtype);
        let work: f64 = shape.iter().map(|&size| size as f64).product();
        let least = rate.map_or(0.0, |rate| {
            2.0 * work / f64::from(count) / (rate / f64::from(device.sms))
        });
        let each = time / f64::from(count.div_ceil(blocks.max(1)));
        let least = match own {
            u32::MAX => each,
            _ => alone.unwrap_or(least).min(each) * ALONE,
        };
        Ok(Some(Tiles {
            count,
            each,
            least,
            own,
        }))
    }

    /// A GEMM of this cost begins to multiply: blocks leave their SMs once there is no tile for them.
    pub(super) fn before_last_wave(
        &mut self,
        task: u32,
        cost: &Cost,
        now: f64,
    ) -> Result<(), SimError> {
        let held = self.kernels.held(task);
        let late = self.kernels.late.get(&task).copied();
        if held == 0 {
            return Ok(());
        }
        let (time, blocks, first) = match late {
            None => (cost.work / self.alone(cost.bound), held, held),
            Some(Late { blocks, .. }) => {
                let own = self.kernel_cost(task)?;
                let time = own.work / self.alone(own.bound);
                (time, blocks.0 + blocks.1, blocks.0)
            }
        };
        if let Some(tiles) = self.tiles(task, blocks, time)?
            && tiles.count > first
        {
            // Those that wait begin when the first leave, if not before.
            self.leave(
                task,
                tiles.idle((first, blocks - first), f64::INFINITY),
                (now, now),
            );
        }
        Ok(())
    }

    /// Blocks of a GEMM that multiplies since `begun` leave as it says.
    pub(super) fn leave(&mut self, task: u32, mut idle: Leaving, (begun, now): (f64, f64)) {
        idle.iter_mut().for_each(|(at, _)| *at += begun);
        idle.retain(|(at, _)| *at > now);
        for (at, _) in &idle {
            self.events.push(*at, Event::Left(task));
        }
        self.kernels.leaving.insert(task, idle);
    }

    /// Blocks of a GEMM for which there is no tile leave.
    pub fn blocks_left(&mut self, task: u32, now: f64) -> Result<(), SimError> {
        let Some(leaving) = self.kernels.leaving.get_mut(&task) else {
            return Ok(()); // it has ended
        };
        let until = now * (1.0 + TIE);
        let idle = match leaving.first() {
            Some(&(at, idle)) if at <= until => idle,
            _ => return Ok(()), // later, as others came
        };
        leaving.remove(0);
        if let Some(held) = self.kernels.held.get_mut(&task) {
            let sms = idle.min(*held);
            *held -= sms;
            self.hand_on(task, sms, now)?;
        }
        Ok(())
    }

    /// The cost of a GEMM whose own is this, while its last blocks wait.
    pub(super) fn on_first_blocks(&mut self, task: u32, mut cost: Cost) -> Result<Cost, SimError> {
        let Some(&Late { blocks, .. }) = self.kernels.late.get(&task) else {
            return Ok(cost);
        };
        let time = cost.work / self.alone(cost.bound);
        if let Some(tiles) = self.tiles(task, blocks.0 + blocks.1, time)? {
            cost.bound = cost.bound.min(cost.work / tiles.end((blocks.0, 0), 0.0));
        }
        Ok(cost)
    }

    /// Of a GEMM's blocks with an SM each, those that begin beside the collectives on the GPU.
    fn room(&self, task: u32, gpu: u32, got: u32) -> Result<u32, SimError> {
        let scatter = self.costs.device(gpu).scatter;
        let collectives = self.holders(gpu, true);
        if scatter.cluster.is_none() || collectives.is_empty() {
            return Ok(got);
        }
        let held = |task: &u32| self.kernels.held(*task);
        let busy = collectives.iter().map(held).sum();
        Ok(scatter.room(busy, got, self.clustered(task)?))
    }

    /// Blocks of a cluster of a GEMM; 0: not known.
    pub(super) fn clustered(&self, task: u32) -> Result<u32, SimError> {
        let Some(shape) = self.whole_gemm(task) else {
            return Ok(0);
        };
        let gpu = self.costs.gpu(task);
        let (cluster, _) = self.costs.gemm_blocks(gpu, shape, self.most(task, gpu))?;
        Ok(cluster)
    }

    /// The blocks of a GEMM that waited begin on `got` SMs.
    pub fn blocks_follow(&mut self, task: u32, got: u32, now: f64) -> Result<(), SimError> {
        let Some(late) = self.kernels.late.remove(&task) else {
            return Ok(());
        };
        let Late {
            blocks,
            since,
            lacks,
        } = late;
        let taken = got.min(lacks);
        *self.kernels.held.entry(task).or_insert(0) += taken;
        if got > taken {
            self.hand_on(task, got - taken, now)?;
        }
        // One that has not come to its first tile yet begins with all its blocks.
        let Some(&flow) = self.kernels.flows.get(&task) else {
            return Ok(());
        };
        let cost = self.kernel_cost(task)?;
        let time = cost.work / self.alone(cost.bound);
        let begun = since + cost.alpha;
        if let Some(tiles) = self.tiles(task, blocks.0 + blocks.1, time)? {
            let left = begun + tiles.end(blocks, now - begun) - now;
            self.leave(task, tiles.idle(blocks, now - begun), (begun, now));
            if left > 0.0 {
                self.rebound(flow, self.fluid.left(flow, now) / left);
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
