//! Structure of one task: operands that agree, waits that can be noticed, kernels in one place.

use super::structure::{Check, overlaps, refuse, slice};
use crate::schedule::{
    Compute, Dep, GemmKernel, LaunchId, Mover, Rank, Schedule, Slice, TaskId, Via, Work,
};

/// Checks what a task does; `member`: a collective lists it.
pub(super) fn work(schedule: &Schedule, id: TaskId, member: bool) -> Check {
    let task = schedule.task(id);
    let place = || schedule.describe(id);
    let same_shape = |a: &Slice, b: &Slice| {
        if (a.rows.len, a.cols.len) == (b.rows.len, b.cols.len) {
            return Ok(());
        }
        refuse(
            place(),
            format!(
                "{} and {} differ in shape",
                schedule.describe_slice(a),
                schedule.describe_slice(b)
            ),
            "give both the same rows and columns",
        )
    };
    let local = |s: &Slice| {
        slice(schedule, place, s)?;
        if schedule.rank_of(s) == task.rank {
            return Ok(());
        }
        refuse(
            place(),
            format!("{} is another rank's memory", schedule.describe_slice(s)),
            "transfer it first; only transfers reach other ranks",
        )
    };
    // Elementwise work may be in place; anything else would overwrite what it still has to read.
    let apart = |s: &Slice, out: &Slice, in_place: bool| {
        if !overlaps(s, out) || (in_place && s == out) {
            return Ok(());
        }
        refuse(
            place(),
            format!(
                "it writes {} while it reads {}",
                schedule.describe_slice(out),
                schedule.describe_slice(s)
            ),
            "write to memory that the task does not read",
        )
    };
    match task.work {
        Work::Transfer { from, to, mover } => {
            slice(schedule, place, &from)?;
            slice(schedule, place, &to)?;
            same_shape(&from, &to)?;
            apart(&from, &to, false)?;
            if ![&from, &to]
                .map(|s| schedule.rank_of(s))
                .contains(&task.rank)
            {
                return refuse(
                    place(),
                    "neither end is the memory of its own rank",
                    "let one of the two ranks issue the transfer",
                );
            }
            match mover {
                Mover::Sm { blocks: 0 } => refuse(
                    place(),
                    "an SM mover of 0 blocks",
                    "give it at least one block",
                ),
                _ => Ok(()),
            }
        }
        Work::Compute(c) => match &schedule.computes[c.index()] {
            Compute::Gemm { a, b, out, .. } => {
                [a, b, out].into_iter().try_for_each(local)?;
                apart(a, out, false)?;
                apart(b, out, false)?;
                let fits = (a.cols.len, a.rows.len, b.cols.len)
                    == (b.rows.len, out.rows.len, out.cols.len);
                if fits {
                    return Ok(());
                }
                refuse(
                    place(),
                    format!(
                        "{} x {} times {} x {} is not {} x {}",
                        a.rows.len, a.cols.len, b.rows.len, b.cols.len, out.rows.len, out.cols.len
                    ),
                    "give a, b and out the shapes m x k, k x n and m x n",
                )
            }
            Compute::Reduce { inputs, out } | Compute::Pointwise { inputs, out, .. } => {
                local(out)?;
                for input in inputs {
                    local(input)?;
                    same_shape(input, out)?;
                    apart(input, out, true)?;
                }
                if inputs.is_empty() {
                    return refuse(place(), "it has no inputs", "give it at least one");
                }
                match schedule.computes[c.index()] {
                    Compute::Pointwise { flops, .. } if !flops.is_finite() || flops < 0.0 => {
                        refuse(
                            place(),
                            format!("{flops} flops"),
                            "give a finite number that is not negative",
                        )
                    }
                    _ => Ok(()),
                }
            }
        },
        Work::Collective(c) if !member => refuse(
            place(),
            format!("collective {} does not list it as a member", c.0),
            "list every task of a collective once among its members",
        ),
        Work::Collective(_) => Ok(()),
    }
}

/// Checks what a task waits for.
pub(super) fn deps(schedule: &Schedule, id: TaskId) -> Check {
    for dep in schedule.deps(id) {
        if dep.task.index() >= schedule.tasks.len() {
            return refuse(
                schedule.describe(id),
                format!(
                    "it waits for task {} of {}",
                    dep.task.0,
                    schedule.tasks.len()
                ),
                "wait for tasks that exist",
            );
        }
        via(schedule, id, dep)?;
    }
    Ok(())
}

/// Checks that the waiting task can learn of the end of the other by these means.
fn via(schedule: &Schedule, id: TaskId, dep: &Dep) -> Check {
    let (task, other) = (schedule.task(id), schedule.task(dep.task));
    let same_launch = task.launch.is_some() && task.launch == other.launch;
    if same_launch && !matches!(dep.via, Via::Launch | Via::KernelFlag) {
        return refuse(
            schedule.describe(id),
            format!(
                "it waits for {} of its own kernel {}, which orders nothing inside a kernel",
                schedule.describe(dep.task),
                match dep.via {
                    Via::Lane => "by lane order",
                    Via::Event => "by an event",
                    _ => "by a stream flag",
                }
            ),
            "wait by kernel order (launch) or by a kernel flag",
        );
    }
    let problem = match dep.via {
        Via::Lane if (task.rank, task.lane) != (other.rank, other.lane) => {
            "by lane order, but the two are in different lanes"
        }
        Via::Launch if !same_launch => "by kernel order, but the two are not in one launch",
        Via::KernelFlag
            if matches!(
                task.work,
                Work::Transfer {
                    mover: Mover::CopyEngine,
                    ..
                }
            ) =>
        {
            "by a kernel flag, but a copy engine cannot wait for one"
        }
        Via::KernelFlag if is_library(schedule, task.work) => {
            "by a kernel flag, but a library's kernel does not look at one"
        }
        _ => return Ok(()),
    };
    refuse(
        schedule.describe(id),
        format!("it waits for {} {problem}", schedule.describe(dep.task)),
        "wait by an event or a stream flag",
    )
}

/// Whether a library's own kernel does the work.
fn is_library(schedule: &Schedule, work: Work) -> bool {
    match work {
        Work::Collective(_) => true,
        Work::Compute(c) => matches!(
            schedule.computes[c.index()],
            Compute::Gemm {
                kernel: GemmKernel::Library,
                ..
            }
        ),
        Work::Transfer { .. } => false,
    }
}

/// Tasks of a launch are neighbours in one lane of the launch's rank, and once the kernel runs it
/// can learn of other tasks through kernel flags only.
pub(super) fn launches(schedule: &Schedule) -> Check {
    let mut first: Vec<Option<TaskId>> = vec![None; schedule.launches.len()];
    let mut last = first.clone();
    let mut open: Vec<((Rank, u16), Option<LaunchId>)> = Vec::new();
    let lanes: rustc_hash::FxHashMap<(Rank, u16), usize> = {
        let mut lanes = rustc_hash::FxHashMap::default();
        for task in &schedule.tasks {
            let next = lanes.len();
            lanes.entry((task.rank, task.lane.0)).or_insert_with(|| {
                open.push(((task.rank, task.lane.0), None));
                next
            });
        }
        lanes
    };
    for (index, task) in schedule.tasks.iter().enumerate() {
        let id = TaskId(index as u32);
        let lane = lanes[&(task.rank, task.lane.0)];
        let previous = std::mem::replace(&mut open[lane].1, task.launch);
        let Some(launch) = task.launch else { continue };
        last[launch.index()] = Some(id);
        let name = &schedule.launches[launch.index()].name;
        if schedule.launches[launch.index()].rank != task.rank {
            return refuse(
                schedule.describe(id),
                format!(
                    "launch {name} belongs to rank {}",
                    schedule.launches[launch.index()].rank.0
                ),
                "one kernel runs on one rank",
            );
        }
        if matches!(task.work, Work::Collective(_)) {
            return refuse(
                schedule.describe(id),
                format!("a collective cannot be part of launch {name}"),
                "a library's collective is a kernel of its own",
            );
        }
        if previous != Some(launch) {
            if let Some(start) = first[launch.index()] {
                return refuse(
                    schedule.describe(id),
                    format!("launch {name} began with {}", schedule.describe(start)),
                    "the tasks of one kernel must follow one another in one lane",
                );
            }
            first[launch.index()] = Some(id);
            continue;
        }
        let outside = schedule.deps(id).iter().find(|dep| {
            schedule.task(dep.task).launch != Some(launch) && dep.via != Via::KernelFlag
        });
        if let Some(dep) = outside {
            return refuse(
                schedule.describe(id),
                format!(
                    "launch {name} already runs when it waits for {}",
                    schedule.describe(dep.task)
                ),
                "wait by a kernel flag, or let the first task of the launch wait",
            );
        }
    }
    events(schedule, &last)
}

/// An event is recorded in a lane, that is after a whole kernel: only its last task stands for
/// that. `last`: by launch.
fn events(schedule: &Schedule, last: &[Option<TaskId>]) -> Check {
    for id in (0..schedule.tasks.len() as u32).map(TaskId) {
        let early = schedule.deps(id).iter().find_map(|dep| {
            let launch = schedule.task(dep.task).launch?;
            let inside = dep.via == Via::Event && last[launch.index()] != Some(dep.task);
            inside.then_some((dep.task, launch))
        });
        if let Some((task, launch)) = early {
            return refuse(
                schedule.describe(id),
                format!(
                    "it waits by an event for {}, which is inside launch {}, but an event follows the whole kernel",
                    schedule.describe(task),
                    schedule.launches[launch.index()].name
                ),
                "wait by a stream flag or a kernel flag, or for the last task of the launch",
            );
        }
    }
    Ok(())
}
