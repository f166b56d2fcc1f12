//! Which tile groups of fused kernels are performed as one kernel.
//!
//! A kernel of ours computes one product whose rows wait for flags and set flags. Groups of a launch that
//! follow one another are performed so if
//!
//! * together they are such a product: one B, rows of one A into as many rows of one C, without gaps, and
//!   each row once, all as a sum onto what C holds or none;
//! * nothing that is issued before the last of them waits for another, so that the kernel
//!   can be issued after everything that it waits for;
//! * elements are of 16 bits.
//!
//! A launch is cut into as few kernels as that allows: a partial sum that goes round a ring and comes home is
//! one kernel in each step. Groups of which no kernel can be made are products one after another.

use rustc_hash::FxHashMap;

use crate::device::DType;
use crate::schedule::{Compute, ComputeId, GemmKernel, Schedule, Slice, Task, TaskId, Via, Work};

/// The groups that are performed as one kernel, in the order of issue, which is `order`. Where kernels
/// cannot `tell` of rows before they end, they end where somebody waits.
pub(super) fn kept(schedule: &Schedule, order: &[TaskId], tell: bool) -> Vec<Vec<TaskId>> {
    if !matches!(schedule.operator.dtype, DType::Bf16 | DType::Fp16) {
        return Vec::new();
    }
    let mut groups: Vec<Vec<TaskId>> = vec![Vec::new(); schedule.launches.len()];
    let mut place = vec![usize::MAX; schedule.tasks.len()];
    let mut lanes: FxHashMap<_, usize> = FxHashMap::default();
    let mut place_in_lane = vec![0; schedule.tasks.len()];
    for (at, &id) in order.iter().enumerate() {
        place[id.index()] = at;
        let task = schedule.task(id);
        let next = lanes.entry((task.rank, task.lane)).or_default();
        place_in_lane[id.index()] = *next;
        *next += 1;
        if let Some(launch) = task.launch {
            groups[launch.index()].push(id);
        }
    }
    // By task: where who waits for it first is issued.
    let mut awaited = vec![usize::MAX; schedule.tasks.len()];
    let mut told = vec![false; schedule.tasks.len()];
    for (t, place) in place.iter().enumerate() {
        for dep in schedule.deps(TaskId(t as u32)) {
            let first = &mut awaited[dep.task.index()];
            *first = (*first).min(*place);
            told[dep.task.index()] |= matches!(dep.via, Via::StreamFlag | Via::KernelFlag);
        }
    }
    let joins = |run: &[TaskId], next: TaskId| {
        let [.., last] = *run else { return true };
        let early = |id: &TaskId| awaited[id.index()] <= place[next.index()];
        let follows = place_in_lane[last.index()] + 1 == place_in_lane[next.index()];
        let tells = !tell && run.iter().any(|id| told[id.index()]);
        follows && alike(schedule, last, next) && !tells && !run.iter().any(early)
    };
    let mut kept = Vec::new();
    for groups in groups {
        let mut run: Vec<TaskId> = Vec::new();
        for next in groups {
            if !joins(&run, next) {
                kept.push(std::mem::take(&mut run));
            }
            run.push(next);
        }
        kept.push(run);
    }
    kept.retain(|run| one_product(schedule, run));
    kept
}

/// The order of issue with the groups of each kernel where its last one is: nobody waits for any of them
/// before.
pub(super) fn together(order: &[TaskId], kept: &[Vec<TaskId>]) -> Vec<TaskId> {
    let mut kernel_of: FxHashMap<TaskId, &[TaskId]> = FxHashMap::default();
    for tasks in kept {
        kernel_of.extend(tasks.iter().map(|&id| (id, &tasks[..])));
    }
    let mut new = Vec::with_capacity(order.len());
    for id in order {
        match kernel_of.get(id) {
            None => new.push(*id),
            Some(tasks) if tasks.last() == Some(id) => new.extend_from_slice(tasks),
            Some(_) => {}
        }
    }
    new
}

/// A, B and C of a group, and whether it adds.
fn product(schedule: &Schedule, id: TaskId) -> Option<(Slice, Slice, Slice, bool)> {
    let compute = |c: ComputeId| &schedule.computes[c.index()];
    match *schedule.task(id) {
        Task {
            work: Work::Compute(c),
            ..
        } => match *compute(c) {
            Compute::Gemm {
                a,
                b,
                out,
                accumulate,
                kernel: GemmKernel::Gated | GemmKernel::Scatter,
                ..
            } => Some((a, b, out, accumulate)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether two groups are rows of one A, times one B, into rows of one C.
fn alike(schedule: &Schedule, x: TaskId, y: TaskId) -> bool {
    let same = |x: &Slice, y: &Slice| (x.buffer, x.slot, x.cols) == (y.buffer, y.slot, y.cols);
    match (product(schedule, x), product(schedule, y)) {
        (Some((a, b, out, adds)), Some((a2, b2, out2, adds2))) => {
            same(&a, &a2) && b == b2 && same(&out, &out2) && adds == adds2
        }
        _ => false,
    }
}

/// Whether groups that are alike are disjoint rows that follow one another without gaps. A single group
/// that adds is a kernel too, because it waits only before it adds.
fn one_product(schedule: &Schedule, tasks: &[TaskId]) -> bool {
    let groups = tasks.iter().map(|&id| product(schedule, id));
    let Some(mut groups) = groups.collect::<Option<Vec<_>>>() else {
        return false;
    };
    groups.sort_by_key(|(a, ..)| a.rows.start);
    let [(a0, b0, out0, adds), ref others @ ..] = groups[..] else {
        return false;
    };
    let size = schedule.operator.dtype.size();
    // Kernels read and write 16 bytes at a time.
    let aligned = [a0, b0, out0]
        .iter()
        .all(|slice| (u64::from(slice.cols.start) * size).is_multiple_of(16));
    let follows = groups.windows(2).all(|pair| {
        let [(a, _, out, _), (a_next, _, out_next, _)] = pair else {
            return false;
        };
        a.rows.start + a.rows.len == a_next.rows.start
            && out.rows.start + out.rows.len == out_next.rows.start
    });
    let as_many = groups
        .iter()
        .all(|(a, _, out, _)| a.rows.len == out.rows.len);
    aligned && follows && as_many && (adds || !others.is_empty())
}
