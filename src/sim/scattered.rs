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
//! whichever is first. Its blocks on a GPU where all began at once leave with those whose turn it is on the other:
//! those of turn i at start + i · B (section `held` of calibrations). The turns are those of the member that has most, and the GEMM is the last of
//! those that members wait for. A GEMM that comes second has its last clusters wait for the
//! collective ([`blocks`](super::blocks)).
//!
//! Which comes first where both waited for the end of the same task is the order's to say
//! ([`Order`](super::Order)). A GEMM on all SMs lets no collective in that comes second before blocks of its own
//! are done.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::blocks::Leaving;
use super::cost::Cost;
use super::engine::Engine;
use super::fluid::FlowId;
use super::orders::Race;
use super::{SimError, Streams};
use crate::schedule::{CollectiveId, Work};

/// A collective whose blocks take turns.
#[derive(Clone, Debug, Default)]
struct Turns {
    /// How many.
    count: u32,
    /// GEMMs between whose blocks it began.
    behind: SmallVec<[u32; 4]>,
    /// GPUs on which they take turns, and how many have one at once.
    gpus: SmallVec<[u32; 4]>,
    blocks: u32,
    /// Its flow, and what a block takes from its beginning on [s].
    flow: Option<FlowId>,
    block: f64,
}

/// The collectives whose blocks take turns.
#[derive(Debug, Default)]
pub(super) struct Scattered {
    all: FxHashMap<u32, Turns>,
    /// Steps that let another come first.
    pub(super) passed: FxHashSet<u32>,
    /// Races that took place, each once.
    pub(super) races: Vec<Race>,
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
    pub fn scatters(&mut self, id: CollectiveId, (gpu, got): (u32, u32)) -> Result<(), SimError> {
        let scatter = self.costs.device(gpu).scatter;
        let real = self.options.streams == Streams::PerGpu && self.options.terms.contention;
        if !real || scatter.cluster.is_none() {
            return Ok(());
        }
        let behind = self.holders(gpu, false);
        let busy = behind.iter().map(|task| self.kernels.held(*task)).sum();
        let mut turns = 1;
        let free = self.costs.device(gpu).sms.saturating_sub(busy);
        for gemm in &behind {
            let of = self.clustered(*gemm)?;
            turns = turns.max(scatter.turns((busy, of), (got, free)));
        }
        if behind.is_empty() || turns < 2 {
            return Ok(());
        }
        let all = self.scattered.all.entry(id.index() as u32).or_default();
        all.count = all.count.max(turns);
        all.gpus.push(gpu);
        let cluster = scatter.cluster.unwrap_or(1).max(1);
        all.blocks = got.div_ceil(cluster).div_ceil(all.count) * cluster;
        all.behind.extend(behind);
        Ok(())
    }

    /// The cost of a task whose own is this, where it is a collective in turns.
    pub fn in_turns(&mut self, task: u32, mut cost: Cost) -> Cost {
        let Work::Collective(id) = self.schedule.tasks[task as usize].work else {
            return cost;
        };
        let time = cost.work / self.alone(cost.bound);
        let scatter = self.costs.device(self.costs.gpu(task)).scatter;
        if let Some(turns) = self.scattered.all.get_mut(&(id.index() as u32)) {
            turns.block = cost.alpha + time * scatter.share.unwrap_or(1.0);
            let count = match turns.behind.is_empty() {
                true => 1,
                false => turns.count,
            };
            let all = f64::from(count) * turns.block;
            cost.bound = cost.bound.min(cost.work / (all - cost.alpha));
        }
        cost
    }

    /// The rate of a flow of the current `usages` by itself.
    pub fn alone(&self, bound: f64) -> f64 {
        (self.usages.iter()).fold(bound, |least, usage| {
            least.min(self.costs.machine.capacity(usage.resource) / usage.per_unit)
        })
    }

    /// The flow of a collective begins, `alpha` after its blocks did \[s\]. Where all of them have an SM they leave as
    /// those do whose turn it is elsewhere.
    pub fn turns_flow(&mut self, task: u32, flow: FlowId, (alpha, now): (f64, f64)) {
        let Work::Collective(id) = self.schedule.tasks[task as usize].work else {
            return;
        };
        let Some(turns) = self.scattered.all.get_mut(&(id.index() as u32)) else {
            return;
        };
        turns.flow = Some(flow);
        if turns.behind.is_empty() {
            return;
        }
        let end = |turn: u32| now - alpha + f64::from(turn) * turns.block;
        let leaving: Leaving = (1..turns.count)
            .map(|turn| (end(turn), turns.blocks))
            .collect();
        let gpus = turns.gpus.clone();
        for member in &self.schedule.collectives[id.index()].members {
            let step = member.task.index() as u32;
            if !gpus.contains(&self.costs.gpu(step)) {
                self.leave(step, leaving.clone(), (0.0, now));
            }
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

#[cfg(test)]
mod tests {
    const HELD: &str =
        include_str!("../../experiments/calibration/measured/2026-11-30-h200-pair-held.csv");

    /// When the last 24 of 132 blocks found an SM, those that a collective held, and when the collective ended \[us\].
    fn frees(name: &str) -> ([f64; 24], f64) {
        let samples = |case: &str| -> Vec<f64> {
            let begin = format!("held,{name} {case},");
            let line = HELD.lines().find(|line| line.starts_with(&begin)).unwrap();
            let samples = line.rsplit(',').next().unwrap().split(' ');
            samples.map(|x| x.parse().unwrap()).collect()
        };
        let frees = samples("frees");
        let ends = samples("ends on 0");
        (frees[108..].try_into().unwrap(), ends[ends.len() / 2])
    }

    #[test]
    fn blocks_that_all_began_leave_with_those_whose_turn_it_is_elsewhere() {
        for kind in ["all-gather", "reduce-scatter"] {
            for size in ["2MiB", "8MiB"] {
                let (at_once, end) = frees(&format!("{kind} {size} at once"));
                let (in_turns, later) = frees(&format!("{kind} {size} places taken"));
                // The first half as if all had begun everywhere, the others a turn later.
                assert!(in_turns[11] < at_once[23] * 1.02, "{kind} {size}");
                assert!(in_turns[12] > 1.5 * in_turns[11], "{kind} {size}");
                assert!(later > 1.4 * end, "{kind} {size}");
            }
        }
    }
}
