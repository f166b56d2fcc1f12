//! Collectives that begin on scattered SMs beside a GEMM ([`Scatter`](crate::device::Scatter)).
//!
//! With T the time of a collective by itself, α of it before its bytes flow, b a block's share of the
//! rest, and t turns, the last block ends
//!
//! ```text
//! start + t · (α + b·(T − α))        while the GEMM holds its SMs
//! end of the GEMM + α + b·(T − α)    if it leaves them earlier, with the collective's last blocks waiting
//! ```
//!
//! whichever is first. The turns are those of the member that has most, and the GEMM is the last of
//! those that members wait for.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Streams;
use super::cost::Cost;
use super::engine::Engine;
use super::fluid::FlowId;
use crate::schedule::{CollectiveId, Work};

/// A collective whose blocks take turns.
#[derive(Clone, Debug, Default)]
struct Turns {
    /// How many.
    count: u32,
    /// GEMMs between whose blocks it began.
    behind: SmallVec<[u32; 4]>,
    /// Its flow, and what a block takes from its beginning on [s].
    flow: Option<(FlowId, f64)>,
}

/// The collectives whose blocks take turns.
#[derive(Debug, Default)]
pub(super) struct Scattered {
    all: FxHashMap<u32, Turns>,
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
    /// A member of a collective has `got` SMs of a GPU.
    pub fn scatters(&mut self, id: CollectiveId, gpu: u32, got: u32) {
        let scatter = self.costs.device(gpu).scatter;
        let real = self.options.streams == Streams::PerGpu && self.options.terms.contention;
        if !real || scatter.cluster.is_none() {
            return;
        }
        let gemm = |task: &u32| {
            (*task as usize) < self.schedule.tasks.len()
                && self.costs.gpu(*task) == gpu
                && self.whole_gemm(*task).is_some()
        };
        let mut behind: SmallVec<[u32; 4]> =
            self.kernels.held.keys().copied().filter(gemm).collect();
        if behind.is_empty() {
            return;
        }
        behind.sort_unstable();
        let busy = behind.iter().map(|task| self.kernels.held(*task)).sum();
        let turns = scatter.turns(busy, got);
        if turns < 2 {
            return;
        }
        let all = self.scattered.all.entry(id.index() as u32).or_default();
        all.count = all.count.max(turns);
        all.behind.extend(behind);
    }

    /// The cost of a collective whose `cost` by itself is this.
    pub fn in_turns(&self, task: u32, mut cost: Cost) -> Cost {
        if let Work::Collective(id) = self.schedule.tasks[task as usize].work
            && let Some(turns) = self.scattered.all.get(&(id.index() as u32))
        {
            let flowing = cost.work / self.alone(cost.bound);
            let share = self.costs.device(self.costs.gpu(task)).scatter.share;
            let block = cost.alpha + flowing * share.unwrap_or(1.0);
            let count = if turns.behind.is_empty() {
                1
            } else {
                turns.count
            };
            let rest = f64::from(count) * block - cost.alpha;
            cost.bound = cost.bound.min(cost.work / rest);
        }
        cost
    }

    /// The rate of a flow of the current `usages` by itself.
    pub fn alone(&self, bound: f64) -> f64 {
        (self.usages.iter()).fold(bound, |least, usage| {
            least.min(self.costs.machine.capacity(usage.resource) / usage.per_unit)
        })
    }

    /// The flow of a collective begins.
    pub fn turns_flow(&mut self, task: u32, flow: FlowId, cost: &Cost) {
        if let Work::Collective(id) = self.schedule.tasks[task as usize].work
            && let Some(turns) = self.scattered.all.get_mut(&(id.index() as u32))
        {
            let all = cost.alpha + cost.work / cost.bound;
            turns.flow = Some((flow, all / f64::from(turns.count.max(1))));
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
                && let Some((flow, block)) = turns.flow
            {
                sooner.push((flow, block));
            }
        }
        for (flow, block) in sooner {
            let bound = self.fluid.left(flow, now) / block;
            if bound > self.fluid.rate(flow) {
                self.rebound(flow, bound);
            }
        }
    }
}
