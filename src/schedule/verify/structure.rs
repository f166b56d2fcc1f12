//! Everything that can be said of one object at a time: ids in range, slices inside their
//! buffers, shapes that agree, numbers that are finite, tasks in places where they can run.

use super::error::VerifyError;
use super::{group, task};
use crate::schedule::{Buffer, Extent, Schedule, Slice, TaskId, Work};

pub(super) type Check = Result<(), VerifyError>;

pub(super) fn refuse<T>(
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
        group::check(schedule, i, &mut members)?;
    }
    for (id, member) in members.iter().enumerate() {
        task::work(schedule, TaskId(id as u32), *member)?;
        task::deps(schedule, TaskId(id as u32))?;
    }
    task::launches(schedule)
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

pub(super) fn slice(schedule: &Schedule, place: impl Fn() -> String, slice: &Slice) -> Check {
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

pub(super) fn overlaps(a: &Slice, b: &Slice) -> bool {
    a.buffer == b.buffer && a.slot == b.slot && a.rows.overlaps(b.rows) && a.cols.overlaps(b.cols)
}
