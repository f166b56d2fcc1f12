//! Collectives and GEMMs that find SMs scattered ([`Scatter`](crate::device::Scatter)).
//!
//! With T the time of a collective by itself, α of it before its bytes flow, b a block's share of the
//! rest, and t turns, the last block of a collective that came second ends
//!
//! ```text
//! start + t · B                 B = α + b·(T − α), while the GEMM holds its SMs
//! end of the GEMM + B           if it leaves them earlier, with the collective's last blocks waiting
//! ```
//!
//! whichever is first. The turns are those of the member that has most, and the GEMM is the last of
//! those that members wait for. A GEMM that comes second has its last clusters wait for the
//! collective ([`blocks`](super::blocks)).
//!
//! In streams, where both waited for the end of the same task, the collective comes first on a GPU in a
//! share p of runs, and what is simulated is the mean. A collective that follows a GEMM which leaves its SMs
//! free has one turn only where it is first on all of n GPUs, pⁿ·T + (1 − pⁿ)·t·B; the GEMM ends p·T later, but
//! where its last wave has room for what the late blocks leave.
//!
//! A GEMM on all SMs lets no collective in that comes second before blocks of its own are done, those that
//! have no tile in the last wave first. The collective ends c after both became ready, and where the orders
//! differ among GPUs, which is so in 1 − pⁿ − (1 − p)ⁿ of runs, a GEMM that came second lacks SMs until then.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::cost::Cost;
use super::engine::Engine;
use super::fluid::FlowId;
use super::{LaunchMode, SimError, Streams};
use crate::schedule::{CollectiveId, Work};
use crate::timeline::Cause;

/// A collective whose blocks take turns.
#[derive(Clone, Debug, Default)]
struct Turns {
    /// How many.
    count: u32,
    /// GEMMs between whose blocks it began.
    behind: SmallVec<[u32; 4]>,
    /// Those of them that might have come second.
    racing: SmallVec<[u32; 4]>,
    /// Its mean time where a GEMM on all SMs may come first [s].
    mean: Option<f64>,
    /// Its flow, and what a block takes from its beginning on [s].
    flow: Option<FlowId>,
    block: f64,
}

/// The collectives whose blocks take turns.
#[derive(Debug, Default)]
pub(super) struct Scattered {
    all: FxHashMap<u32, Turns>,
    /// GEMMs that may come second: how often, and how long the collective takes [s].
    later: FxHashMap<u32, (f64, f64)>,
    /// Mean times of GEMMs that may come first [s].
    means: FxHashMap<u32, f64>,
}

impl Scattered {
    /// A collective has ended.
    pub fn ended(&mut self, id: CollectiveId) {
        if !self.all.is_empty() {
            self.all.remove(&(id.index() as u32));
        }
    }
}

impl Engine<'_> {
    /// Steps that hold SMs of a GPU and are GEMMs, or collectives, in order.
    pub fn holders(&self, gpu: u32, collectives: bool) -> SmallVec<[u32; 4]> {
        let mut found: SmallVec<[u32; 4]> = (self.kernels.held.keys().copied())
            .filter(|&step| {
                let Some(task) = self.schedule.tasks.get(step as usize) else {
                    return false;
                };
                let collective = matches!(task.work, Work::Collective(_));
                self.costs.gpu(step) == gpu
                    && collective == collectives
                    && (collective || self.whole_gemm(step).is_some())
            })
            .collect();
        found.sort_unstable();
        found
    }

    /// A member of a collective, this step, has `got` SMs of a GPU.
    pub fn scatters(&mut self, id: CollectiveId, step: u32, (gpu, got): (u32, u32)) {
        let scatter = self.costs.device(gpu).scatter;
        let real = self.options.streams == Streams::PerGpu && self.options.terms.contention;
        if !real || scatter.cluster.is_none() {
            return;
        }
        let behind = self.holders(gpu, false);
        let busy = behind.iter().map(|task| self.kernels.held(*task)).sum();
        let turns = scatter.turns(busy, got);
        if behind.is_empty() || turns < 2 {
            return;
        }
        let cause = self.spans[step as usize].cause;
        let mut racing = SmallVec::<[u32; 4]>::new();
        if self.options.launch == LaunchMode::Stream && matches!(cause, Cause::Task(_)) {
            let alike = |task: &&u32| self.spans[**task as usize].cause == cause;
            racing.extend(behind.iter().filter(alike).copied());
        }
        let all = self.scattered.all.entry(id.index() as u32).or_default();
        all.count = all.count.max(turns);
        all.behind.extend(behind);
        all.racing.extend(racing);
    }

    /// By how much a GEMM ends later whose last blocks begin so much later \[s\].
    fn waves(&self, task: u32, later: f64) -> Result<f64, SimError> {
        let (gpu, blocks) = (self.costs.gpu(task), self.kernels.held(task));
        let Some(shape) = self.whole_gemm(task).filter(|_| blocks > 0) else {
            return Ok(0.0);
        };
        let tiles = self.costs.gemm_tiles(gpu, shape, blocks)?.max(blocks);
        let waves = tiles.div_ceil(blocks);
        let scatter = self.costs.device(gpu).scatter;
        let late = blocks - scatter.room(self.costs.device(gpu).library.sms, blocks);
        match waves * blocks - tiles >= late {
            true => Ok(0.0),
            false => Ok(later),
        }
    }

    /// A GEMM begins whose first and last blocks, so many, do and do not find a place beside the collectives
    /// on its GPU: whether one of them might have come second. Both take their mean times then.
    pub fn comes_with(&mut self, task: u32, blocks: (u32, u32)) -> Result<bool, SimError> {
        let gpu = self.costs.gpu(task);
        let device = self.costs.device(gpu);
        let (scatter, sms) = (device.scatter, device.sms);
        let Some(p) = scatter.first else {
            return Ok(false);
        };
        let others = self.holders(gpu, true);
        let Some(other) = others.into_iter().find(|&other| self.same_end(other, task)) else {
            return Ok(false);
        };
        let Work::Collective(id) = self.schedule.tasks[other as usize].work else {
            return Ok(false);
        };
        let collective = &self.schedule.collectives[id.index()];
        let members = collective.members.len() as i32;
        let cost = self.costs.collective(collective, &mut self.usages)?;
        let flows = cost.work / self.alone(cost.bound);
        let (first, block) = (
            cost.alpha + flows,
            cost.alpha + flows * scatter.share.unwrap_or(1.0),
        );
        let cost = self.kernel_cost(task)?;
        let time = cost.work / self.alone(cost.bound);
        let all = blocks.0 + blocks.1;
        let Some(tiles) = self.tiles(task, all, time)? else {
            return Ok(false);
        };
        let (wanted, free) = (self.kernels.held(other), sms.saturating_sub(all));
        // Blocks that the last wave has no tile for, as far as they leave room for clusters.
        let idle = tiles.count.next_multiple_of(all) - tiles.count;
        let second = if wanted <= free {
            f64::from(scatter.turns(all, wanted)) * block
        } else if idle >= scatter.cluster.unwrap_or(1) {
            time - tiles.each + f64::from(wanted.div_ceil(idle)) * block
        } else {
            time + first
        };
        let second = second.min(time + first);
        // In a graph the orders differ, as good as always on the one pair measured.
        let (none, every) = match self.options.launch {
            LaunchMode::Stream => (p.powi(members), (1.0 - p).powi(members)),
            LaunchMode::Graph => (0.0, 0.0),
        };
        let mixed = 1.0 - none - every;
        let mean =
            none * tiles.end(blocks, first) + mixed * tiles.end(blocks, second) + every * time;
        self.scattered.means.insert(task, mean);
        let turns = self.scattered.all.entry(id.index() as u32).or_default();
        let own = none * first + (1.0 - none) * second;
        turns.mean = Some(turns.mean.map_or(own, |mean| mean.max(own)));
        Ok(true)
    }

    /// All members of a collective have their SMs; `cost` is its own by itself.
    pub fn races(
        &mut self,
        id: CollectiveId,
        task: u32,
        cost: &Cost,
        now: f64,
    ) -> Result<(), SimError> {
        let Some(turns) = self.scattered.all.get(&(id.index() as u32)) else {
            return Ok(());
        };
        let racing = turns.racing.clone();
        let p = self.costs.device(self.costs.gpu(task)).scatter.first;
        let (p, time) = (
            p.unwrap_or(0.0),
            cost.alpha + cost.work / self.alone(cost.bound),
        );
        for gemm in racing {
            let Some(&flow) = self.kernels.flows.get(&gemm) else {
                self.scattered.later.insert(gemm, (p, time));
                continue;
            };
            // It multiplies already.
            let (more, left) = (p * self.waves(gemm, time)?, self.fluid.left(flow, now));
            let takes = left / self.fluid.rate(flow) + more;
            if more > 0.0 && takes.is_finite() && takes > 0.0 {
                self.rebound(flow, left / takes);
            }
        }
        Ok(())
    }

    /// The cost of a task whose own is this: of a collective in turns, or of a GEMM that ends later.
    pub fn in_turns(&mut self, task: u32, mut cost: Cost) -> Result<Cost, SimError> {
        if let Some((p, later)) = self.scattered.later.remove(&task) {
            let time = cost.work / self.alone(cost.bound);
            let more = p * self.waves(task, later)?;
            cost.bound = cost.bound.min(cost.work / (time + more));
        }
        if let Some(mean) = self.scattered.means.remove(&task) {
            cost.bound = cost.bound.min(cost.work / mean);
        }
        let Work::Collective(id) = self.schedule.tasks[task as usize].work else {
            return Ok(cost);
        };
        let members = self.schedule.collectives[id.index()].members.len();
        let time = cost.work / self.alone(cost.bound);
        let scatter = self.costs.device(self.costs.gpu(task)).scatter;
        if let Some(turns) = self.scattered.all.get_mut(&(id.index() as u32)) {
            if let Some(mean) = turns.mean {
                cost.bound = cost.bound.min(cost.work / (mean - cost.alpha));
                return Ok(cost);
            }
            turns.block = cost.alpha + time * scatter.share.unwrap_or(1.0);
            let first = match turns.racing.is_empty() {
                true => 0.0,
                false => scatter.first.unwrap_or(0.0).powi(members as i32),
            };
            let count = if turns.behind.is_empty() {
                1
            } else {
                turns.count
            };
            let second = f64::from(count) * turns.block;
            let mean = first * (cost.alpha + time) + (1.0 - first) * second;
            cost.bound = cost.bound.min(cost.work / (mean - cost.alpha));
        }
        Ok(cost)
    }

    /// The rate of a flow of the current `usages` by itself.
    pub fn alone(&self, bound: f64) -> f64 {
        (self.usages.iter()).fold(bound, |least, usage| {
            least.min(self.costs.machine.capacity(usage.resource) / usage.per_unit)
        })
    }

    /// The flow of a collective begins.
    pub fn turns_flow(&mut self, task: u32, flow: FlowId) {
        if let Work::Collective(id) = self.schedule.tasks[task as usize].work
            && let Some(turns) = self.scattered.all.get_mut(&(id.index() as u32))
        {
            turns.flow = Some(flow);
        }
    }

    /// A GEMM has left its SMs: blocks of collectives that waited for them begin.
    pub fn leaves_turns(&mut self, gemm: u32, now: f64) {
        let mut sooner: SmallVec<[(FlowId, f64); 2]> = SmallVec::new();
        for turns in self.scattered.all.values_mut() {
            let before = turns.behind.len();
            turns.behind.retain(|task| *task != gemm);
            if turns.behind.is_empty()
                && before > 0
                && let Some(flow) = turns.flow
            {
                sooner.push((flow, turns.block));
            }
        }
        // Not in the order of a hash table.
        sooner.sort_by_key(|(flow, _)| flow.index());
        for (flow, block) in sooner {
            let bound = self.fluid.left(flow, now) / block;
            if bound > self.fluid.rate(flow) {
                self.rebound(flow, bound);
            }
        }
    }
}
