//! Measuring an experiment: group by group, into a table that survives a kill.
//!
//! All strategies of a group and its references take turns in the same rounds, so that the
//! differences between them are paired. A group is written only when it is whole; the next run goes
//! on with the groups that are missing. Who performs a group is a [`Performer`]: real GPUs
//! ([`Executor`]), or in tests something that needs none.

mod entry;
mod estimate;
mod executor;
mod products;
mod store;
#[cfg(test)]
mod tests;
mod variant;

use std::time::{Duration, Instant};

pub use estimate::{Estimate, GROUP, SAMPLE, estimate};
pub use executor::{Executor, Watch};
pub use products::products;
pub use store::{Store, StoreError, tasks_beside};
pub use variant::{Variant, variants};

use super::cases::{Planned, order};
use super::table::Row;
use super::tasks::Task;
use crate::gpu::GpuError;

/// What came of a group: a row for each of [`Planned::cases`], in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    pub rows: Vec<Row>,
    /// Of one traced run of each case that has one.
    pub tasks: Vec<Task>,
}

/// Nothing more can be measured in this process; the rows say so.
#[derive(Debug)]
pub struct Halt {
    pub measured: Measured,
    pub error: GpuError,
}

/// Who performs groups.
pub trait Performer {
    /// Measures a group. What cannot be measured is a row with a reason.
    ///
    /// # Errors
    /// [`Halt`] after which it is not asked again: a run hung, or the GPUs are lost.
    fn perform(&mut self, planned: &Planned) -> Result<Measured, Box<Halt>>;
}

/// How far a run goes.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Indices of the groups wanted.
    pub chosen: Vec<usize>,
    /// Seconds that each group takes, by index.
    pub seconds: Vec<f64>,
    /// No group begins that would end after it.
    pub budget: Option<Duration>,
    /// Of the order.
    pub seed: u64,
}

/// What a run did.
#[derive(Debug, Default)]
pub struct Finished {
    /// Groups that earlier runs had measured.
    pub kept: usize,
    pub measured: usize,
    /// Indices of groups that are left.
    pub left: Vec<usize>,
    /// Seconds that the groups of this run took.
    pub seconds: f64,
    /// Why it ended early, if not for lack of time.
    pub halted: Option<GpuError>,
}

/// Watches a run, group by group.
pub trait Observer {
    /// Group `planned` begins, which takes about so many seconds.
    fn begin(&self, planned: &Planned, seconds: f64);
    /// It is written.
    fn end(&self, measured: &Measured);
}

/// Measures the groups of `plan` that `store` does not hold yet.
///
/// # Errors
/// [`StoreError::Write`]; groups already written stay.
pub fn run(
    groups: &[Planned],
    plan: &Plan,
    store: &mut Store,
    performer: &mut dyn Performer,
    observer: &dyn Observer,
) -> Result<Finished, StoreError> {
    let begin = Instant::now();
    let missing = |index: &usize| !store.has(&groups[*index]);
    let mut left: Vec<usize> = order(groups, &plan.chosen, plan.seed);
    left.retain(missing);
    let mut finished = Finished {
        kept: plan.chosen.len() - left.len(),
        ..Finished::default()
    };
    // How much longer groups take than was estimated, from those that are done.
    let (mut spent, mut foreseen) = (0.0, 0.0);
    let mut rest = left.into_iter();
    for index in rest.by_ref() {
        let slower = match foreseen > 0.0 {
            true => spent / foreseen,
            false => 1.0,
        };
        let seconds = plan.seconds[index] * slower;
        let elapsed = begin.elapsed().as_secs_f64();
        if plan
            .budget
            .is_some_and(|budget| elapsed + seconds > budget.as_secs_f64())
        {
            // A shorter group may still fit.
            finished.left.push(index);
            continue;
        }
        let planned = &groups[index];
        observer.begin(planned, seconds);
        let (measured, halted) = match performer.perform(planned) {
            Ok(measured) => (measured, None),
            Err(halt) => (halt.measured, Some(halt.error)),
        };
        store.append(planned, &measured)?;
        observer.end(&measured);
        finished.measured += 1;
        spent += begin.elapsed().as_secs_f64() - elapsed;
        foreseen += plan.seconds[index];
        if halted.is_some() {
            finished.halted = halted;
            break;
        }
    }
    finished.left.extend(rest);
    finished.seconds = begin.elapsed().as_secs_f64();
    Ok(finished)
}
