//! What must hold before anything is performed: tables that refer to what exists, and sizes that
//! an oracle can afford.

use super::{InterpretError, LIMIT};
use crate::schedule::{Compute, Schedule, TaskId, Work};

/// Refuses what cannot be performed or is too large to, before anything is allocated.
pub(super) fn check(schedule: &Schedule) -> Result<(), InterpretError> {
    let tables = dependencies(schedule) && works(schedule) && members(schedule);
    if !tables {
        return Err(InterpretError::Broken {
            place: "schedule".into(),
            problem: "a table refers to what does not exist".into(),
        });
    }
    sizes(schedule)
}

fn dependencies(schedule: &Schedule) -> bool {
    let starts = &schedule.dep_start;
    starts.len() == schedule.tasks.len() + 1
        && starts.is_sorted()
        && starts[0] == 0
        && starts[schedule.tasks.len()] as usize == schedule.deps.len()
        && schedule
            .deps
            .iter()
            .all(|dep| dep.task.index() < schedule.tasks.len())
}

fn works(schedule: &Schedule) -> bool {
    schedule.tasks.iter().all(|task| match task.work {
        Work::Transfer { .. } => true,
        Work::Compute(c) => c.index() < schedule.computes.len(),
        Work::Collective(c) => c.index() < schedule.collectives.len(),
    })
}

/// Every collective has members, and every collective task is a member once.
fn members(schedule: &Schedule) -> bool {
    let mut member = vec![false; schedule.tasks.len()];
    let fits = schedule.collectives.iter().enumerate().all(|(c, group)| {
        !group.members.is_empty()
            && group.members.iter().all(|m| {
                schedule.tasks.get(m.task.index()).is_some_and(|task| {
                    let here = matches!(task.work, Work::Collective(of) if of.index() == c);
                    here && !std::mem::replace(&mut member[m.task.index()], true)
                })
            })
    });
    let collective = |task: TaskId| matches!(schedule.task(task).work, Work::Collective(_));
    fits && member
        .iter()
        .enumerate()
        .all(|(t, member)| *member || !collective(TaskId(t as u32)))
}

fn sizes(schedule: &Schedule) -> Result<(), InterpretError> {
    let area = |rows: u32, cols: u32| u64::from(rows) * u64::from(cols);
    let tensors = schedule.tensors.iter().map(|t| area(t.rows, t.cols));
    refuse("the elements of all tensors", tensors)?;
    let buffers = schedule.buffers.iter();
    let buffers = buffers.map(|b| area(b.rows, b.cols).saturating_mul(b.slots.into()));
    refuse("the elements of all buffers", buffers)?;
    let work = schedule.tasks.iter().map(|task| match task.work {
        Work::Transfer { from, .. } => from.elements(),
        Work::Compute(c) => match &schedule.computes[c.index()] {
            Compute::Gemm { a, b, .. } => a.elements().saturating_mul(b.cols.len.into()),
            Compute::Reduce { inputs, out } | Compute::Pointwise { inputs, out, .. } => {
                out.elements().saturating_mul(inputs.len() as u64)
            }
        },
        Work::Collective(c) => {
            let members = &schedule.collectives[c.index()].members;
            let sizes = members
                .iter()
                .map(|m| m.input.elements().max(m.output.elements()));
            sizes.fold(0, u64::saturating_add)
        }
    });
    refuse("the additions and multiplications of one order", work)
}

fn refuse(what: &'static str, sizes: impl Iterator<Item = u64>) -> Result<(), InterpretError> {
    match sizes.fold(0, u64::saturating_add) {
        size if size > LIMIT => Err(InterpretError::TooLarge { what, size }),
        _ => Ok(()),
    }
}
