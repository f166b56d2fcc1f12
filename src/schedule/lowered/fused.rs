//! Which fused kernels of a schedule are performed as one.
//!
//! A kernel of ours computes one product whose rows wait for flags and set flags. A launch is performed
//! so if
//!
//! * its groups together are such a product: one B, rows of one A into as many rows of one C, without
//!   gaps, and each row once;
//! * nothing that is issued before its last group waits for one of its groups, so that the kernel
//!   can be issued after everything that it waits for;
//! * elements are of 16 bits.
//!
//! Other launches are products one after another.

use rustc_hash::FxHashMap;

use crate::device::DType;
use crate::schedule::{Compute, GemmKernel, Schedule, Slice, TaskId, Work};

/// By launch: whether it is performed as one kernel. `order` is the order of issue.
pub(super) fn kept(schedule: &Schedule, order: &[TaskId]) -> Vec<bool> {
    let count = schedule.launches.len();
    if !matches!(schedule.operator.dtype, DType::Bf16 | DType::Fp16) {
        return vec![false; count];
    }
    let mut tasks: Vec<Vec<TaskId>> = vec![Vec::new(); count];
    let mut place = vec![usize::MAX; schedule.tasks.len()];
    let mut lanes: FxHashMap<_, Vec<TaskId>> = FxHashMap::default();
    for (at, &id) in order.iter().enumerate() {
        place[id.index()] = at;
        let task = schedule.task(id);
        lanes.entry((task.rank, task.lane)).or_default().push(id);
        if let Some(launch) = task.launch {
            tasks[launch.index()].push(id);
        }
    }
    let mut kept: Vec<bool> = tasks
        .iter()
        .map(|tasks| one_product(schedule, tasks))
        .collect();
    for (launch, tasks) in tasks.iter().enumerate() {
        let [first, ..] = tasks[..] else { continue };
        // Nothing else lies between the groups in their lane.
        let task = schedule.task(first);
        let lane = &lanes[&(task.rank, task.lane)];
        let begin = lane.iter().position(|&id| id == first).unwrap_or(0);
        kept[launch] &= lane.get(begin..begin + tasks.len()) == Some(&tasks[..]);
    }
    for (t, task) in schedule.tasks.iter().enumerate() {
        for dep in schedule.deps(TaskId(t as u32)) {
            let Some(launch) = schedule.task(dep.task).launch else {
                continue;
            };
            let last = tasks[launch.index()].last();
            let early = last.is_none_or(|last| place[t] < place[last.index()]);
            if task.launch == Some(launch) || early {
                kept[launch.index()] = false;
            }
        }
    }
    kept
}

/// Whether the groups are disjoint rows of one product that follow one another without gaps.
fn one_product(schedule: &Schedule, tasks: &[TaskId]) -> bool {
    let groups: Option<Vec<(Slice, Slice, Slice)>> = tasks
        .iter()
        .map(|&id| match schedule.task(id).work {
            Work::Compute(c) => match schedule.computes[c.index()] {
                Compute::Gemm {
                    a,
                    b,
                    out,
                    accumulate: false,
                    kernel: GemmKernel::Gated | GemmKernel::Scatter,
                    ..
                } => Some((a, b, out)),
                _ => None,
            },
            _ => None,
        })
        .collect();
    let Some(mut groups) = groups.filter(|groups| groups.len() > 1) else {
        return false;
    };
    groups.sort_by_key(|(a, ..)| a.rows.start);
    let size = schedule.operator.dtype.size();
    let (a0, b0, out0) = groups[0];
    // Kernels read and write 16 bytes at a time.
    let aligned = [a0, b0, out0]
        .iter()
        .all(|slice| (u64::from(slice.cols.start) * size).is_multiple_of(16));
    let alike = |x: &Slice, y: &Slice| (x.buffer, x.slot, x.cols) == (y.buffer, y.slot, y.cols);
    let follows = groups.windows(2).all(|pair| {
        let [(a, _, out), (a_next, _, out_next)] = pair else {
            return false;
        };
        a.rows.start + a.rows.len == a_next.rows.start
            && out.rows.start + out.rows.len == out_next.rows.start
    });
    aligned
        && follows
        && groups.iter().all(|(a, b, out)| {
            alike(a, &a0) && *b == b0 && alike(out, &out0) && a.rows.len == out.rows.len
        })
}
