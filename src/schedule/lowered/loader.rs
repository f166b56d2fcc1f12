//! Transfers by loaders: which product performs each, and which cannot be performed so.
//!
//! The kernel that multiplies what a transfer brings brings it itself, from its start on, by threads that it
//! does not multiply with. That is the same as a copy beside it if
//!
//! * the transfer waits for nothing, so that it may begin with the kernel whenever that begins, and nothing else
//!   precedes it in its lane or follows it there;
//! * it touches no rows that an earlier one brings: blocks bring theirs in no common order;
//! * it brings rows to its own rank;
//! * only groups of one product wait for it, inside their kernel, and that adds to nothing that was there.

use rustc_hash::FxHashMap;

use super::Lowered;
use super::epilogue::{Unfused, meet};
use crate::schedule::{Compute, Lane, Mover, Rank, Schedule, Slice, TaskId, Via, Work};

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
/// [`Unfused`], the first that cannot be performed so.
pub fn loaded(lowered: &Lowered) -> Result<Vec<Loaded>, Unfused> {
    let outside =
        "inside a kernel of Duet's own; use --gemm duet, bf16 or fp16, and flags that are words";
    performed(
        &lowered.schedule,
        &|id| lowered.product[id.index()],
        outside,
    )
}

/// The same of a schedule as it is written, where products are fused kernels.
///
/// # Errors
/// [`Unfused`], the first that cannot be performed so.
pub fn loadable(schedule: &Schedule) -> Result<Vec<Loaded>, Unfused> {
    let launch = |id: TaskId| schedule.task(id).launch.map(|launch| launch.0);
    performed(schedule, &launch, "inside a fused kernel; use mover=ce")
}

/// Transfers by loaders, each with its product; `number` gives that of a task, and `outside` says where others
/// do not wait.
fn performed(
    schedule: &Schedule,
    number: &dyn Fn(TaskId) -> Option<u32>,
    outside: &str,
) -> Result<Vec<Loaded>, Unfused> {
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
    // By lane: the first task that is no transfer by a loader, and the last that is one.
    let mut others: FxHashMap<(Rank, Lane), TaskId> = FxHashMap::default();
    let mut loaders: FxHashMap<(Rank, Lane), TaskId> = FxHashMap::default();
    // By buffer: what loaders bring there.
    let mut places: FxHashMap<u32, Vec<(TaskId, Slice)>> = FxHashMap::default();
    let mut loaded = Vec::new();
    for id in all {
        let task = schedule.task(id);
        let lane = (task.rank, task.lane);
        let Work::Transfer {
            from,
            to,
            mover: Mover::Loader,
        } = task.work
        else {
            if let Some(&transfer) = loaders.get(&lane) {
                let why = format!(
                    "{} follows it in its lane, but nothing there waits for what a product brings; use another lane",
                    schedule.describe(id)
                );
                return Err(Unfused { transfer, why });
            }
            others.entry(lane).or_insert(id);
            continue;
        };
        let there = |slice: &Slice| {
            let before = places.get(&slice.buffer.0).into_iter().flatten();
            before
                .clone()
                .find(|(_, place)| meet(place, slice))
                .map(|&(before, _)| before)
        };
        let product = match (others.get(&lane), schedule.deps(id)) {
            (Some(&before), _) => Err(format!(
                "{} comes before it in its lane; use another lane",
                schedule.describe(before)
            )),
            (None, [dep, ..]) => Err(format!("it waits for {}", schedule.describe(dep.task))),
            (None, []) if schedule.rank_of(&to) != task.rank => {
                Err("it brings nothing to its own rank".to_owned())
            }
            (None, []) => match there(&from).or_else(|| there(&to)) {
                Some(before) => Err(format!(
                    "it touches rows that {} brings, and nothing orders what products bring; use mover=ce",
                    schedule.describe(before)
                )),
                None => product(schedule, id, (number, outside), waiting.get(&id)),
            },
        };
        match product {
            Ok(product) => loaded.push(Loaded {
                transfer: id,
                product,
            }),
            Err(why) => return Err(Unfused { transfer: id, why }),
        }
        places.entry(to.buffer.0).or_default().push((id, to));
        loaders.insert(lane, id);
    }
    Ok(loaded)
}

/// The product whose groups wait for a transfer, and nobody else.
fn product(
    schedule: &Schedule,
    id: TaskId,
    (number_of, outside): (&dyn Fn(TaskId) -> Option<u32>, &str),
    waiting: Option<&Vec<(TaskId, Via)>>,
) -> Result<u32, String> {
    let mut found = None;
    for &(task, via) in waiting.into_iter().flatten() {
        let there = number_of(task);
        let one = there.filter(|_| {
            via == Via::KernelFlag && schedule.task(task).rank == schedule.task(id).rank
        });
        match (one, found) {
            (Some(number), None) => found = Some(number),
            (Some(number), Some(before)) if number == before => {}
            (Some(_), Some(_)) => return Err("two products wait for it".to_owned()),
            (None, _) => {
                return Err(format!(
                    "{} waits for it, and not {outside}",
                    schedule.describe(task)
                ));
            }
        }
    }
    let number = found.ok_or_else(|| "nobody waits for it".to_owned())?;
    let tasks = (0..schedule.tasks.len() as u32).map(TaskId);
    let first = tasks
        .filter(|&id| number_of(id) == Some(number))
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
