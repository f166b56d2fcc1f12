//! Which dependencies are waits of their own.
//!
//! Where lanes share a queue, and on real GPUs throughout, a task waits for another only where
//! nothing else implies it: not if both are in one queue, and not if a wait before it in its queue,
//! or another of its own, comes after the other's end. Of the tasks that one waits for the latest are
//! looked at first, as they can imply earlier ones. Flags cost time at both ends, events do not, so
//! that it matters which are left.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Streams;
use crate::schedule::lowered::{Clocks, MOST_STREAMS};
use crate::schedule::{Lane, Mover, Rank, Schedule, TaskId, Via, Work};

/// What is left of the dependencies.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// By dependency: whether it is a wait; empty: all are.
    pub kept: Vec<bool>,
    /// By task: its signals; empty: not counted.
    pub signals: Vec<Signals>,
}

/// What a task awaits and makes known beside its work.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Signals {
    /// Flags and events awaited before it.
    pub flag_waits: u16,
    pub event_waits: u16,
    /// Flags written, and events recorded, after it.
    pub flag_writes: u16,
    pub records: u16,
}

/// The queue of every rank's compute lane: that of the first rank on its GPU.
pub(super) fn compute_queues(schedule: &Schedule, streams: Streams) -> Vec<usize> {
    let ranks = 0..schedule.placement.len();
    match streams {
        Streams::PerLane => ranks.collect(),
        Streams::PerGpu => {
            let mut first = FxHashMap::default();
            ranks
                .map(|rank| *first.entry(schedule.placement[rank]).or_insert(rank))
                .collect()
        }
    }
}

/// Whether equally numbered lanes of a GPU's ranks are one queue, because it serves only so many
/// ([`MOST_STREAMS`]). `host`: the share of the rows between GPUs that goes through a host, with a queue for each
/// lane at either end; the lane's own is one of them where nothing of the transfer goes straight.
pub(crate) fn shares(schedule: &Schedule, streams: Streams, host: f64) -> bool {
    let alone = schedule.placement.len() <= 1 || streams == Streams::PerLane;
    if alone || compute_queues(schedule, streams).is_sorted_by(|a, b| a < b) {
        return false; // every rank has a GPU of its own
    }
    let gpu = |rank: Rank| schedule.placement[usize::from(rank.0)];
    // Of each GPU: its queues, by rank, lane and end of the host's path, some of them twice.
    let mut queues: Vec<(u32, Rank, Lane, u8)> = Vec::new();
    for (t, task) in schedule.tasks.iter().enumerate() {
        let by_product = matches!(
            task.work,
            Work::Transfer {
                mover: Mover::Epilogue | Mover::Loader,
                ..
            }
        );
        if by_product {
            continue;
        }
        let here = gpu(task.rank);
        // That of the products is one for all ranks.
        let rank = match task.lane.0 {
            0 => Rank(0),
            _ => task.rank,
        };
        queues.push((here, rank, task.lane, 0));
        if let Work::Transfer { from, to, .. } = task.work
            && crosses(schedule, TaskId(t as u32))
        {
            let rows = from.rows.len;
            let staged = (f64::from(rows) * host).round() as u32;
            let ends =
                [(from, 1), (to, 2)].map(|(slice, end)| (gpu(schedule.rank_of(&slice)), end));
            let apart = |at: &(u32, u8)| staged > 0 && (staged < rows || at.0 != here);
            let apart = ends.into_iter().filter(apart);
            queues.extend(apart.map(|(at, end)| (at, task.rank, task.lane, end)));
        }
    }
    queues.sort_unstable();
    queues.dedup();
    queues
        .chunk_by(|a, b| a.0 == b.0)
        .any(|of_gpu| of_gpu.len() > MOST_STREAMS)
}

/// Whether a task is a transfer between two GPUs.
pub(super) fn crosses(schedule: &Schedule, task: TaskId) -> bool {
    let gpu = |slice| schedule.placement[usize::from(schedule.rank_of(slice).0)];
    match &schedule.tasks[task.index()].work {
        Work::Transfer { from, to, .. } => gpu(from) != gpu(to),
        _ => false,
    }
}

impl Waits {
    /// Of a schedule whose tasks are in the order of their waits.
    /// `split`: whether transfers between GPUs go in two parts, each with a flag of its own; `shared`: of [`shares`].
    pub fn new(schedule: &Schedule, streams: Streams, split: bool, shared: bool) -> Self {
        if streams == Streams::PerLane {
            return Self::default();
        }
        let compute = compute_queues(schedule, streams);
        let mut queues: FxHashMap<(usize, u16), u32> = FxHashMap::default();
        let queue: Vec<u32> = (schedule.tasks.iter())
            .map(|task| {
                let rank = usize::from(task.rank.0);
                let owner = if task.lane.0 == 0 || shared {
                    compute[rank]
                } else {
                    rank
                };
                let next = queues.len() as u32;
                *queues.entry((owner, task.lane.0)).or_insert(next)
            })
            .collect();
        let count = schedule.tasks.len();
        let mut waits = Self {
            kept: vec![false; schedule.deps.len()],
            signals: vec![Signals::default(); count],
        };
        let mut clocks = Clocks::default();
        let mut flags: FxHashSet<(u32, u32)> = FxHashSet::default();
        let mut t = 0;
        while t < count {
            let members = match schedule.tasks[t].work {
                Work::Collective(c) => schedule.collectives[c.index()].members.len(),
                _ => 1,
            };
            let together = t..(t + members).min(count);
            for t in together.clone() {
                let start = schedule.dep_start[t] as usize;
                let mut places: Vec<usize> =
                    (start..start + schedule.deps(TaskId(t as u32)).len()).collect();
                places.sort_unstable_by_key(|&place| {
                    let dep = schedule.deps[place];
                    std::cmp::Reverse((dep.task, dep.via))
                });
                for place in places {
                    let dep = schedule.deps[place];
                    if dep.task.index() >= t {
                        // Out of order: kept as it is.
                        waits.kept[place] = true;
                        continue;
                    }
                    if clocks.knows(queue[t], dep.task.index()) {
                        continue;
                    }
                    clocks.wait(queue[t], dep.task.index());
                    waits.kept[place] = true;
                    // One flag serves all who await it on a GPU, one event all who await it.
                    if matches!(dep.via, Via::StreamFlag | Via::KernelFlag) {
                        let parts = 1 + u16::from(split && crosses(schedule, dep.task));
                        waits.signals[t].flag_waits += parts;
                        let rank = schedule.tasks[t].rank.0;
                        let gpu = schedule.placement[usize::from(rank)];
                        if flags.insert((dep.task.0, gpu)) {
                            waits.signals[dep.task.index()].flag_writes += 1;
                        }
                    } else {
                        waits.signals[t].event_waits += 1;
                        waits.signals[dep.task.index()].records = 1;
                    }
                }
            }
            let meeting: Vec<u32> = together.clone().map(|t| queue[t]).collect();
            if members > 1 {
                clocks.meet(&meeting);
            }
            for queue in meeting {
                clocks.push(queue);
            }
            t = together.end;
        }
        waits
    }
}
