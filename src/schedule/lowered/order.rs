//! The order in which tasks are issued.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use crate::schedule::{Schedule, TaskId, Work};

/// The tasks in issue order: a topological order of waits and lanes, the lowest id first among
/// those that could come next, the members of a collective one after another. Ids that already
/// are such an order, as in all schedules of the registry, stay as they are. What waits in a
/// circle is left out.
pub(super) fn issue(schedule: &Schedule) -> Vec<TaskId> {
    let count = schedule.tasks.len();
    // The lowest member stands for its collective.
    let stands: Vec<u32> = schedule
        .collectives
        .iter()
        .map(|c| c.members.iter().map(|m| m.task.0).min().unwrap_or(0))
        .collect();
    let node: Vec<u32> = (0..count as u32)
        .map(|t| match schedule.tasks[t as usize].work {
            Work::Collective(c) => stands[c.index()],
            _ => t,
        })
        .collect();
    let mut last: FxHashMap<(u16, u16), u32> = FxHashMap::default();
    let mut edges: Vec<(u32, u32)> = Vec::new();
    for (t, task) in schedule.tasks.iter().enumerate() {
        let deps = schedule.deps(TaskId(t as u32)).iter();
        edges.extend(deps.map(|dep| (node[dep.task.index()], node[t])));
        if let Some(before) = last.insert((task.rank.0, task.lane.0), t as u32) {
            edges.push((node[before as usize], node[t]));
        }
    }
    edges.sort_unstable();
    edges.dedup();
    let mut waiting = vec![0u32; count];
    for &(_, to) in &edges {
        waiting[to as usize] += 1;
    }
    let mut ready: BinaryHeap<Reverse<u32>> = (0..count as u32)
        .filter(|&t| node[t as usize] == t && waiting[t as usize] == 0)
        .map(Reverse)
        .collect();
    let mut order = Vec::with_capacity(count);
    while let Some(Reverse(next)) = ready.pop() {
        match schedule.tasks[next as usize].work {
            Work::Collective(c) => {
                let mut members: Vec<TaskId> = schedule.collectives[c.index()]
                    .members
                    .iter()
                    .map(|m| m.task)
                    .collect();
                members.sort_unstable();
                order.extend(members);
            }
            _ => order.push(TaskId(next)),
        }
        let first = edges.partition_point(|&(from, _)| from < next);
        for &(_, to) in edges[first..].iter().take_while(|&&(from, _)| from == next) {
            waiting[to as usize] -= 1;
            if waiting[to as usize] == 0 {
                ready.push(Reverse(to));
            }
        }
    }
    order
}
