//! Transfers by loaders: which product performs each, and which cannot be performed so.
//!
//! The kernel that multiplies what a transfer brings brings it itself, from its start on, by threads that it
//! does not multiply with. That is the same as a copy beside it if
//!
//! * the transfer waits for nothing, so that it may begin with the kernel whenever that begins, and nothing else
//!   precedes it in its lane;
//! * it brings rows to its own rank;
//! * only groups of one product wait for it, inside their kernel, and that adds to nothing that was there.

use rustc_hash::FxHashMap;

use super::Lowered;
use crate::schedule::{Compute, Lane, Mover, Rank, Schedule, TaskId, Via, Work};

/// A transfer that a product performs, by its number.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    pub transfer: TaskId,
    pub product: u32,
}

/// Whether a transfer is to be performed by a loader.
pub fn by_loader(schedule: &Schedule, id: TaskId) -> bool {
    matches!(
        schedule.task(id).work,
        Work::Transfer {
            mover: Mover::Loader,
            ..
        }
    )
}

/// All transfers by loaders, in the order of their tasks.
///
/// # Errors
/// The first that cannot be performed so, and why.
pub fn loaded(lowered: &Lowered) -> Result<Vec<Loaded>, (TaskId, String)> {
    let schedule = &lowered.schedule;
    let all = (0..schedule.tasks.len() as u32).map(TaskId);
    if !all.clone().any(|id| by_loader(schedule, id)) {
        return Ok(Vec::new());
    }
    let mut waiting: FxHashMap<TaskId, Vec<(TaskId, Via)>> = FxHashMap::default();
    for id in all.clone() {
        for dep in schedule.deps(id) {
            waiting.entry(dep.task).or_default().push((id, dep.via));
        }
    }
    // By lane: the first task that is no transfer by a loader.
    let mut others: FxHashMap<(Rank, Lane), TaskId> = FxHashMap::default();
    let mut loaded = Vec::new();
    for id in all {
        let task = schedule.task(id);
        let lane = (task.rank, task.lane);
        let Work::Transfer {
            to,
            mover: Mover::Loader,
            ..
        } = task.work
        else {
            others.entry(lane).or_insert(id);
            continue;
        };
        let product = match (others.get(&lane), schedule.deps(id)) {
            (Some(&before), _) => Err(format!(
                "{} comes before it in its lane",
                schedule.describe(before)
            )),
            (None, [dep, ..]) => Err(format!("it waits for {}", schedule.describe(dep.task))),
            (None, []) if schedule.rank_of(&to) != task.rank => {
                Err("it brings nothing to its own rank".to_owned())
            }
            (None, []) => product(lowered, id, waiting.get(&id)),
        };
        match product {
            Ok(product) => loaded.push(Loaded {
                transfer: id,
                product,
            }),
            Err(why) => return Err((id, why)),
        }
    }
    Ok(loaded)
}

/// The product whose groups wait for a transfer, and nobody else.
fn product(
    lowered: &Lowered,
    id: TaskId,
    waiting: Option<&Vec<(TaskId, Via)>>,
) -> Result<u32, String> {
    let schedule = &lowered.schedule;
    let mut found = None;
    for &(task, via) in waiting.into_iter().flatten() {
        let there = lowered.product[task.index()];
        let one = there.filter(|_| {
            via == Via::KernelFlag && schedule.task(task).rank == schedule.task(id).rank
        });
        match (one, found) {
            (Some(number), None) => found = Some(number),
            (Some(number), Some(before)) if number == before => {}
            (Some(_), Some(_)) => return Err("two products wait for it".to_owned()),
            (None, _) => {
                return Err(format!(
                    "{} waits for it, and not inside a kernel of Duet's own; use --gemm duet, bf16 or fp16, and flags that are words",
                    schedule.describe(task)
                ));
            }
        }
    }
    let number = found.ok_or_else(|| "nobody waits for it".to_owned())?;
    let tasks = (0..schedule.tasks.len() as u32).map(TaskId);
    let first = tasks
        .filter(|id| lowered.product[id.index()] == Some(number))
        .find_map(|id| match schedule.task(id).work {
            Work::Compute(c) => Some(&schedule.computes[c.index()]),
            _ => None,
        });
    match first {
        Some(Compute::Gemm {
            accumulate: true, ..
        }) => Err("the product that waits for it adds to what was there".to_owned()),
        _ => Ok(number),
    }
}
