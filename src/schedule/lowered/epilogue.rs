//! Transfers by epilogues: which product performs each, and which cannot be performed so.
//!
//! The tiles of the product that a transfer copies are stored at its destination, and nowhere else. That is
//! the same as to copy them once they are there if
//!
//! * they are what one tile group of a fused kernel of the same rank computes, and that adds to nothing;
//! * nobody else reads or writes where they would be, and no output is there;
//! * neither the group nor the transfer waits for anything else, so that the destination is as free when the
//!   tiles are stored as it would be later;
//! * transfers of a lane follow the order of their groups, and nothing else precedes them there.

use rustc_hash::FxHashMap;

use crate::schedule::{
    Compute, GemmKernel, Lane, Mover, Rank, Role, Schedule, Slice, TaskId, Via, Work,
};

/// A transfer that a tile group performs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub transfer: TaskId,
    pub group: TaskId,
    /// Where the group's tiles go.
    pub to: Slice,
}

/// Why a transfer by an epilogue or a loader is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfused {
    pub transfer: TaskId,
    pub why: String,
}

/// Whether two slices have memory in common.
pub(super) fn meet(a: &Slice, b: &Slice) -> bool {
    let rows = u64::from(a.rows.start) < b.rows.end() && u64::from(b.rows.start) < a.rows.end();
    let cols = u64::from(a.cols.start) < b.cols.end() && u64::from(b.cols.start) < a.cols.end();
    (a.buffer, a.slot) == (b.buffer, b.slot) && rows && cols
}

/// What a task reads and writes.
fn touched(schedule: &Schedule, id: TaskId) -> Vec<Slice> {
    match schedule.task(id).work {
        Work::Transfer { from, to, .. } => vec![from, to],
        Work::Collective(c) => {
            let members = &schedule.collectives[c.index()].members;
            let own = members.iter().filter(|member| member.task == id);
            own.flat_map(|member| [member.input, member.output])
                .collect()
        }
        Work::Compute(c) => match &schedule.computes[c.index()] {
            Compute::Gemm { a, b, out, .. } => vec![*a, *b, *out],
            Compute::Reduce { inputs, out } | Compute::Pointwise { inputs, out, .. } => {
                inputs.iter().chain([out]).copied().collect()
            }
        },
    }
}

/// Whether a transfer is to be performed by an epilogue.
pub fn by_epilogue(schedule: &Schedule, id: TaskId) -> bool {
    matches!(
        schedule.task(id).work,
        Work::Transfer {
            mover: Mover::Epilogue,
            ..
        }
    )
}

/// All transfers by epilogues, in the order of their tasks, each with its tile group.
///
/// # Errors
/// [`Unfused`], the first that cannot be performed so.
pub fn stored(schedule: &Schedule) -> Result<Vec<Stored>, Unfused> {
    let all = (0..schedule.tasks.len() as u32).map(TaskId);
    let mut transfers = all
        .clone()
        .filter(|&id| by_epilogue(schedule, id))
        .peekable();
    if transfers.peek().is_none() {
        return Ok(Vec::new());
    }
    // By buffer: who touches what of it.
    let mut touching: FxHashMap<u32, Vec<(TaskId, Slice)>> = FxHashMap::default();
    for id in all.clone() {
        for slice in touched(schedule, id) {
            touching
                .entry(slice.buffer.0)
                .or_default()
                .push((id, slice));
        }
    }
    let mut before: FxHashMap<(Rank, Lane), Option<TaskId>> = FxHashMap::default();
    let mut stored = Vec::new();
    for id in all {
        let task = schedule.task(id);
        let lane = before.entry((task.rank, task.lane)).or_default();
        let last = *lane;
        *lane = Some(id);
        let Work::Transfer {
            from,
            to,
            mover: Mover::Epilogue,
        } = task.work
        else {
            continue;
        };
        let group = group(schedule, id, &from, &touching);
        let group = group.and_then(|group| follows(schedule, &stored, last, group));
        match group {
            Ok(group) => stored.push(Stored {
                transfer: id,
                group,
                to,
            }),
            Err(why) => return Err(Unfused { transfer: id, why }),
        }
    }
    Ok(stored)
}

/// The tile group that a transfer waits for and whose result `from` is.
fn group(
    schedule: &Schedule,
    id: TaskId,
    from: &Slice,
    touching: &FxHashMap<u32, Vec<(TaskId, Slice)>>,
) -> Result<TaskId, String> {
    let what = schedule.describe_slice(from);
    let computes = |task: TaskId| match schedule.task(task).work {
        Work::Compute(c) => match &schedule.computes[c.index()] {
            Compute::Gemm {
                out,
                accumulate,
                kernel: GemmKernel::Scatter | GemmKernel::Gated,
                ..
            } if out == from => Some(*accumulate),
            _ => None,
        },
        _ => None,
    };
    let here = touching.get(&from.buffer.0).into_iter().flatten();
    let others: Vec<TaskId> = here
        .filter(|(task, slice)| *task != id && meet(slice, from))
        .map(|(task, _)| *task)
        .collect();
    let group = match others[..] {
        [one] if computes(one) == Some(false) => one,
        [one] if computes(one) == Some(true) => {
            return Err(format!("{} adds to what it has", schedule.describe(one)));
        }
        [one, other, ..] => {
            return Err(format!(
                "{what} is of {} and of {}, and would never be there",
                schedule.describe(one),
                schedule.describe(other)
            ));
        }
        _ => {
            return Err(format!(
                "{what} is not what one tile group of a fused kernel computes"
            ));
        }
    };
    if schedule.buffers[from.buffer.index()].role != Role::Scratch {
        return Err(format!("{what} would never be there, and it is no scratch"));
    }
    let there = schedule.task(group);
    if there.launch.is_none() || there.rank != schedule.task(id).rank {
        return Err(format!(
            "{} is in no fused kernel of its rank",
            schedule.describe(group)
        ));
    }
    let [dep] = schedule.deps(id) else {
        return Err(format!(
            "it waits for more than {}",
            schedule.describe(group)
        ));
    };
    if dep.task != group {
        return Err(format!("it does not wait for {}", schedule.describe(group)));
    }
    match (schedule.deps(group).iter()).find(|dep| dep.via == Via::KernelFlag) {
        Some(dep) => Err(format!(
            "{} waits for {} inside its kernel",
            schedule.describe(group),
            schedule.describe(dep.task)
        )),
        None => Ok(group),
    }
}

/// The group, if what precedes its transfer in the lane is a transfer by an epilogue of a group before it.
fn follows(
    schedule: &Schedule,
    stored: &[Stored],
    last: Option<TaskId>,
    group: TaskId,
) -> Result<TaskId, String> {
    let Some(last) = last else { return Ok(group) };
    let place = |id: TaskId| (schedule.task(id).rank, schedule.task(id).lane);
    match stored.iter().find(|other| other.transfer == last) {
        Some(other) if place(other.group) == place(group) && other.group < group => Ok(group),
        _ => Err(format!(
            "{} comes before it in its lane",
            schedule.describe(last)
        )),
    }
}
