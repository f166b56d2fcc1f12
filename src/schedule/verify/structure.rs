//! Everything that can be said of one object at a time: ids in range, slices inside their
//! buffers, shapes that agree, numbers that are finite, tasks in places where they can run.

use super::error::VerifyError;
use crate::schedule::{
    Buffer, CollectiveKind, Compute, Dep, Extent, LaunchId, Mover, Rank, Schedule, Slice, TaskId,
    Via, Work,
};

type Check = Result<(), VerifyError>;

fn refuse<T>(
    place: impl Into<String>,
    problem: impl Into<String>,
    remedy: &'static str,
) -> Result<T, VerifyError> {
    Err(VerifyError::Structure {
        place: place.into(),
        problem: problem.into(),
        remedy,
    })
}

/// Checks a schedule of which nothing is known.
pub(super) fn check(schedule: &Schedule) -> Check {
    tables(schedule)?;
    for (i, buffer) in schedule.buffers.iter().enumerate() {
        self::buffer(schedule, i, buffer)?;
    }
    // Ids first: the messages of the other checks look things up by them.
    for id in 0..schedule.tasks.len() as u32 {
        ids(schedule, TaskId(id))?;
    }
    let mut members = vec![false; schedule.tasks.len()];
    for i in 0..schedule.collectives.len() {
        collective(schedule, i, &mut members)?;
    }
    for (id, member) in members.iter().enumerate() {
        work(schedule, TaskId(id as u32), *member)?;
        deps(schedule, TaskId(id as u32))?;
    }
    launches(schedule)
}

fn tables(schedule: &Schedule) -> Check {
    let ranks = schedule.placement.len();
    if ranks == 0 || ranks > 1 << 16 {
        return refuse(
            "placement",
            format!("{ranks} ranks"),
            "give between 1 and 65536 ranks a GPU each",
        );
    }
    if schedule.operator.tp as usize != ranks {
        return refuse(
            "placement",
            format!("{ranks} ranks for an operator of {}", schedule.operator.tp),
            "name one GPU for each rank",
        );
    }
    let starts = &schedule.dep_start;
    let rows_fit = starts.len() == schedule.tasks.len() + 1
        && starts.first() == Some(&0)
        && starts.windows(2).all(|w| w[0] <= w[1])
        && starts.last().map(|&end| end as usize) == Some(schedule.deps.len());
    if !rows_fit || schedule.tasks.len() >= u32::MAX as usize {
        return refuse(
            "dependency table",
            "its rows do not match the tasks",
            "build the schedule with the builder",
        );
    }
    for tensor in &schedule.tensors {
        if tensor.rows == 0 || tensor.cols == 0 || tensor.contributions == 0 {
            return refuse(
                format!("tensor {}", tensor.name),
                format!(
                    "{} x {} elements of {} contributions",
                    tensor.rows, tensor.cols, tensor.contributions
                ),
                "all three must be positive",
            );
        }
    }
    for (i, launch) in schedule.launches.iter().enumerate() {
        if launch.rank.0 as usize >= ranks {
            let place = format!("launch {} ({})", i, launch.name);
            return refuse(
                place,
                format!("rank {} of {ranks}", launch.rank.0),
                "ranks count from 0",
            );
        }
    }
    Ok(())
}

fn buffer(schedule: &Schedule, index: usize, buffer: &Buffer) -> Check {
    let place = || format!("buffer {index} ({}, rank {})", buffer.name, buffer.rank.0);
    let ranks = schedule.placement.len();
    if buffer.rank.0 as usize >= ranks {
        return refuse(
            place(),
            format!("rank {} of {ranks}", buffer.rank.0),
            "ranks count from 0",
        );
    }
    let Some(tensor) = schedule.tensors.get(buffer.tensor.index()) else {
        return refuse(
            place(),
            format!("tensor {} of {}", buffer.tensor.0, schedule.tensors.len()),
            "name a tensor that the schedule declares",
        );
    };
    if buffer.rows == 0 || buffer.cols == 0 || buffer.slots == 0 {
        return refuse(
            place(),
            format!(
                "{} slots of {} x {} elements",
                buffer.slots, buffer.rows, buffer.cols
            ),
            "all three must be positive",
        );
    }
    for piece in &buffer.pieces {
        let inside = Extent::new(0, buffer.rows).contains(piece.rows)
            && Extent::new(0, buffer.cols).contains(piece.cols)
            && Extent::new(0, tensor.rows).contains(Extent::new(piece.global_row, piece.rows.len))
            && Extent::new(0, tensor.cols).contains(Extent::new(piece.global_col, piece.cols.len));
        if !inside || piece.rows.len == 0 || piece.cols.len == 0 {
            return refuse(
                place(),
                format!(
                    "piece rows {}, cols {} at global row {}, column {} does not fit {} x {} elements of {} ({} x {})",
                    span(piece.rows),
                    span(piece.cols),
                    piece.global_row,
                    piece.global_col,
                    buffer.rows,
                    buffer.cols,
                    tensor.name,
                    tensor.rows,
                    tensor.cols
                ),
                "pieces are non-empty rectangles inside both the buffer and its tensor",
            );
        }
        if !Extent::new(0, tensor.contributions).contains(piece.initial) {
            return refuse(
                place(),
                format!(
                    "initial contributions {} of {}'s {}",
                    span(piece.initial),
                    tensor.name,
                    tensor.contributions
                ),
                "state a range inside the tensor's contributions",
            );
        }
    }
    Ok(())
}

pub(super) fn span(extent: Extent) -> String {
    format!("{}..{}", extent.start, extent.end())
}

/// Whether the slice is a non-empty rectangle of an existing slot.
fn slice_fits(schedule: &Schedule, slice: &Slice) -> bool {
    schedule.buffers.get(slice.buffer.index()).is_some_and(|b| {
        slice.slot < b.slots
            && slice.rows.len > 0
            && slice.cols.len > 0
            && Extent::new(0, b.rows).contains(slice.rows)
            && Extent::new(0, b.cols).contains(slice.cols)
    })
}

fn slice(schedule: &Schedule, place: impl Fn() -> String, slice: &Slice) -> Check {
    if slice_fits(schedule, slice) {
        return Ok(());
    }
    match schedule.buffers.get(slice.buffer.index()) {
        None => refuse(
            place(),
            format!("buffer {} of {}", slice.buffer.0, schedule.buffers.len()),
            "name a buffer that the schedule declares",
        ),
        Some(b) => refuse(
            place(),
            format!(
                "{} does not lie inside {} slots of {} x {} elements",
                schedule.describe_slice(slice),
                b.slots,
                b.rows,
                b.cols
            ),
            "slices are non-empty rectangles of one slot",
        ),
    }
}

/// Checks that everything a task names exists, so that it can be described.
fn ids(schedule: &Schedule, id: TaskId) -> Check {
    let task = schedule.task(id);
    let place = || format!("task {}", id.0);
    let ranks = schedule.placement.len();
    if task.rank.0 as usize >= ranks {
        return refuse(
            place(),
            format!("rank {} of {ranks}", task.rank.0),
            "ranks count from 0",
        );
    }
    let missing = |what: &str, i: usize, of: usize| {
        refuse(
            place(),
            format!("{what} {i} of {of}"),
            "refer to something that the schedule declares",
        )
    };
    match task.work {
        Work::Compute(c) if c.index() >= schedule.computes.len() => {
            missing("compute", c.index(), schedule.computes.len())
        }
        Work::Collective(c) if c.index() >= schedule.collectives.len() => {
            missing("collective", c.index(), schedule.collectives.len())
        }
        _ => match task.launch {
            Some(l) if l.index() >= schedule.launches.len() => {
                missing("launch", l.index(), schedule.launches.len())
            }
            _ => Ok(()),
        },
    }
}

fn work(schedule: &Schedule, id: TaskId, member: bool) -> Check {
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

pub(super) fn overlaps(a: &Slice, b: &Slice) -> bool {
    a.buffer == b.buffer && a.slot == b.slot && a.rows.overlaps(b.rows) && a.cols.overlaps(b.cols)
}

fn deps(schedule: &Schedule, id: TaskId) -> Check {
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
        _ => return Ok(()),
    };
    refuse(
        schedule.describe(id),
        format!("it waits for {} {problem}", schedule.describe(dep.task)),
        "wait by an event or a stream flag",
    )
}

/// Tasks of a launch are neighbours in one lane of the launch's rank, and once the kernel runs it
/// can learn of other tasks through kernel flags only.
fn launches(schedule: &Schedule) -> Check {
    let mut first: Vec<Option<TaskId>> = vec![None; schedule.launches.len()];
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
    Ok(())
}

fn collective(schedule: &Schedule, index: usize, seen: &mut [bool]) -> Check {
    let group = &schedule.collectives[index];
    let place = || format!("collective {index}");
    if group.members.is_empty() {
        return refuse(place(), "it has no members", "list its members");
    }
    let blocks = group.members.len() as u32;
    let mut ranks: Vec<Rank> = group.members.iter().map(|m| m.rank).collect();
    ranks.sort_unstable();
    if let Some(twice) = ranks.windows(2).find(|w| w[0] == w[1]) {
        return refuse(
            place(),
            format!("rank {} is a member twice", twice[0].0),
            "a rank takes part once",
        );
    }
    let first = &group.members[0];
    for member in &group.members {
        let refers = schedule.tasks.get(member.task.index()).is_some_and(|t| {
            matches!(t.work, Work::Collective(c) if c.index() == index) && t.rank == member.rank
        });
        if !refers || std::mem::replace(&mut seen[member.task.index()], true) {
            return refuse(
                place(),
                format!(
                    "member task {} on rank {} is no task of its own",
                    member.task.0, member.rank.0
                ),
                "give each member one task of this collective on the member's rank",
            );
        }
        let at = || schedule.describe(member.task);
        for s in [&member.input, &member.output] {
            slice(schedule, at, s)?;
            if schedule.rank_of(s) != member.rank {
                return refuse(
                    at(),
                    format!("{} is another rank's memory", schedule.describe_slice(s)),
                    "a member's input and output lie on its own rank",
                );
            }
        }
        let (input, output) = (member.input, member.output);
        let (grow, shrink) = match group.kind {
            CollectiveKind::AllGather => (blocks, 1),
            CollectiveKind::ReduceScatter => (1, blocks),
            CollectiveKind::AllReduce | CollectiveKind::AllToAll => (1, 1),
        };
        let rows_fit = u64::from(input.rows.len) * u64::from(grow)
            == u64::from(output.rows.len) * u64::from(shrink)
            && (group.kind != CollectiveKind::AllToAll || input.rows.len % blocks == 0);
        let alike =
            (input.rows.len, input.cols.len) == (first.input.rows.len, first.input.cols.len);
        if !rows_fit || !alike || input.cols.len != output.cols.len {
            return refuse(
                at(),
                format!(
                    "{} and {} are no input and output of {blocks} members",
                    schedule.describe_slice(&input),
                    schedule.describe_slice(&output)
                ),
                "inputs have one shape, and rows divide among the members",
            );
        }
        let block = ranks.partition_point(|r| *r < member.rank) as u32;
        let in_place = match group.kind {
            CollectiveKind::AllGather => {
                input == output.rows(block * input.rows.len, input.rows.len)
            }
            CollectiveKind::ReduceScatter => {
                output == input.rows(block * output.rows.len, output.rows.len)
            }
            CollectiveKind::AllReduce => input == output,
            CollectiveKind::AllToAll => false,
        };
        if overlaps(&input, &output) && !in_place {
            return refuse(
                at(),
                format!(
                    "it writes {} while it reads {}",
                    schedule.describe_slice(&output),
                    schedule.describe_slice(&input)
                ),
                "use separate slices, or in place the member's own block",
            );
        }
    }
    Ok(())
}
