//! The host's submission queue: when each task has been handed to its GPU.
//!
//! One host thread per GPU submits that GPU's tasks in task order. A kernel costs
//! `submit_kernel`, a copy `submit_copy`; each wait on another lane and each signal to one costs
//! `submit_sync`. A fused kernel is submitted once, with its first tasks: the others are part of it and
//! wait inside it, so copies handed over after the kernel delay none of them. A graph is one
//! submission for everything.

use super::LaunchMode;
use crate::schedule::lowered;
use crate::schedule::{Mover, Schedule, TaskId, Via, Work};
use crate::topology::Topology;

/// Submission time of every task [s], or nothing where submitting is free.
pub(super) fn submissions(
    schedule: &Schedule,
    topology: &Topology,
    mode: LaunchMode,
) -> Option<Vec<f64>> {
    let costs = |gpu: u32| &topology.device(gpu).costs;
    let free = schedule.placement.iter().all(|&gpu| {
        let c = costs(gpu);
        let all = match mode {
            LaunchMode::Stream => c.submit_kernel.get() + c.submit_copy.get() + c.submit_sync.get(),
            LaunchMode::Graph => c.submit_graph.get(),
        };
        all == 0.0
    });
    if free {
        return None;
    }
    if mode == LaunchMode::Graph {
        let at = |task: &crate::schedule::Task| {
            let gpu = schedule.placement[task.rank.0 as usize];
            costs(gpu).submit_graph.get()
        };
        return Some(schedule.tasks.iter().map(at).collect());
    }
    let mut signals = vec![false; schedule.tasks.len()];
    for dep in schedule.deps.iter().filter(|dep| crosses(dep.via)) {
        signals[dep.task.index()] = true;
    }
    let mut clock = vec![0.0; topology.gpus.len()];
    // When each fused kernel was handed over.
    let mut launched = vec![None; schedule.launches.len()];
    let times = schedule.tasks.iter().enumerate().map(|(t, task)| {
        let gpu = schedule.placement[task.rank.0 as usize];
        let c = costs(gpu);
        if let Some(launch) = task.launch
            && let Some(at) = launched[launch.index()]
        {
            return at;
        }
        // A part of a kernel that is handed over.
        if lowered::by_epilogue(schedule, TaskId(t as u32)) {
            return 0.0;
        }
        let submit = match task.work {
            Work::Transfer {
                mover: Mover::CopyEngine,
                ..
            } => c.submit_copy.get(),
            _ => c.submit_kernel.get(),
        };
        let waits = schedule
            .deps(TaskId(t as u32))
            .iter()
            .filter(|dep| matches!(dep.via, Via::Event | Via::StreamFlag))
            .count();
        let clock = &mut clock[gpu as usize];
        *clock += submit + waits as f64 * c.submit_sync.get();
        let done = *clock;
        if let Some(launch) = task.launch {
            launched[launch.index()] = Some(done);
        }
        if signals[t] && !inside_kernel(&task.work, task.launch.is_some()) {
            *clock += c.submit_sync.get();
        }
        done
    });
    Some(times.collect())
}

/// Whether the signal leaves the lane.
const fn crosses(via: Via) -> bool {
    matches!(via, Via::Event | Via::StreamFlag | Via::KernelFlag)
}

/// Whether the task's kernel writes its flag itself, at no cost to the host.
const fn inside_kernel(work: &Work, fused: bool) -> bool {
    fused
        || matches!(
            work,
            Work::Transfer {
                mover: Mover::Sm { .. },
                ..
            }
        )
}
