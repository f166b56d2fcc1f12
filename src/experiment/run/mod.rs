//! Performing an experiment: in parallel, into a file that grows in the order of the grid.
//!
//! Finished cases are written in order, each batch by one write, to `results.csv.partial`; what a
//! kill leaves there is a prefix of the table and at most one torn row. The next run keeps the
//! complete cases and goes on. Beside the table stands a [`Stamp`] of the experiment it belongs
//! to, so that rows of two experiments never meet in one file. When all cases are there, the file
//! is renamed to `results.csv`.

mod model;
mod perform;
mod resume;
mod shard;
mod stamp;
mod store;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use shard::{Shard, ShardError};
pub use stamp::Stamp;
pub use store::RunError;
pub(crate) use store::temporary;
pub(super) use store::{RESULTS, Store, stem};

use super::results::{Outcome, Results, ResultsError, Row, Table, identity};
use super::{Case, Experiment};

/// Watches a run.
pub trait Observer: Sync {
    /// There are `total` schedules to perform, `done` of them by earlier runs.
    fn begin(&self, total: u64, done: u64);
    /// One more schedule is performed or skipped.
    fn step(&self);
}

/// Where and how results are written.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The folder; it is made where it does not exist.
    pub out: PathBuf,
    /// Only a part of the cases.
    pub shard: Option<Shard>,
    /// Forget what earlier runs left.
    pub fresh: bool,
    pub table: Table,
}

/// A finished run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The result table.
    pub path: PathBuf,
    /// Cases in it.
    pub cases: u64,
    /// Cases that earlier runs had finished.
    pub kept: u64,
}

/// Performs the cases that earlier runs left and finishes the table.
///
/// # Errors
/// [`RunError`]; cases already written stay.
pub fn run(
    experiment: &Experiment,
    options: &RunOptions,
    observer: &dyn Observer,
) -> Result<Finished, RunError> {
    let stamp = Stamp {
        file: crate::input::between(&options.out, &experiment.file),
        ..Stamp::of(experiment, options.shard)
    };
    let store = Store::open(&options.out, &stem(options.shard))?;
    if options.fresh {
        store.clear()?;
    }
    let cases = cases(experiment, options.shard);
    let finished = |path, kept| Finished {
        path,
        cases: cases.len() as u64,
        kept,
    };
    if let Some(path) = store.finished(&stamp, options.table)? {
        check(experiment, &cases, &path)?;
        return Ok(finished(path, cases.len() as u64));
    }
    let kept = {
        let (file, kept) = store.resume(experiment, &cases, &stamp)?;
        let (before, left) = cases.split_at(kept);
        let rows =
            |cases: &[u32]| -> u64 { cases.iter().map(|&case| strategies(experiment, case)).sum() };
        observer.begin(rows(&cases), rows(before));
        perform::perform(experiment, left, &file, observer)
            .and_then(|()| file.sync_all())
            .map_err(|error| store.failed(&error))?;
        kept as u64
    };
    let path = store.finish(options.table)?;
    Ok(finished(path, kept))
}

/// Whether a finished table says in every row what the experiment has in that place.
fn check(experiment: &Experiment, cases: &[u32], path: &Path) -> Result<(), ResultsError> {
    let results = Results::read(path)?;
    let layout = Layout::of(experiment);
    let mut rows = results.rows.iter().enumerate();
    for &case in cases {
        for choice in &*experiment.cases[case as usize].strategies {
            let strategy = choice.to_string();
            let none = Outcome::Skipped("".into());
            let expected = layout.row(experiment, case, &strategy, none, (0.0, None));
            let found = rows.next();
            let same = found.is_some_and(|(_, row)| identity(row) == identity(&expected));
            if !same {
                return Err(ResultsError::Foreign {
                    path: path.display().to_string(),
                    row: found.map_or(results.rows.len(), |(at, _)| at) as u64 + 1,
                    case: case + 1,
                    strategy,
                });
            }
        }
    }
    Ok(())
}

fn strategies(experiment: &Experiment, case: u32) -> u64 {
    experiment.cases[case as usize].strategies.len() as u64
}

/// The cases of a shard in order.
fn cases(experiment: &Experiment, shard: Option<Shard>) -> Vec<u32> {
    (0..experiment.cases.len() as u32)
        .filter(|case| shard.is_none_or(|shard| shard.has(*case)))
        .collect()
}

/// How long all schedules of a run would take on this machine, from a sample of them.
pub fn estimate(experiment: &Experiment, shard: Option<Shard>) -> Duration {
    perform::estimate(experiment, &cases(experiment, shard))
}

/// How many cases and schedules a run has.
pub fn size(experiment: &Experiment, shard: Option<Shard>) -> (u64, u64) {
    let cases = cases(experiment, shard);
    let rows = cases.iter().map(|&case| strategies(experiment, case)).sum();
    (cases.len() as u64, rows)
}

/// Which columns a case's values fill, for each grid.
struct Layout {
    /// By grid: column → index among the grid's axes.
    axes: Vec<Vec<Option<usize>>>,
    grids: Vec<Arc<str>>,
}

impl Layout {
    fn of(experiment: &Experiment) -> Self {
        let grids = experiment.grids.iter();
        Self {
            axes: grids
                .clone()
                .map(|grid| {
                    let at = |name| grid.axes.iter().position(|axis| axis.name == name);
                    experiment.axes.iter().map(|name| at(&**name)).collect()
                })
                .collect(),
            grids: grids.map(|grid| grid.name.as_str().into()).collect(),
        }
    }

    /// The row of a strategy; `unsplit` and `bound` belong to the case.
    fn row(
        &self,
        experiment: &Experiment,
        index: u32,
        strategy: &str,
        outcome: Outcome,
        (unsplit_gemm, lower_bound): (f64, Option<f64>),
    ) -> Row {
        let case: &Case = &experiment.cases[index as usize];
        let machine = &experiment.machines[case.machine as usize];
        let set = |path: &String| {
            let value = machine.sets.iter().find(|(set, _)| set == path);
            value.map(|(_, value)| value.as_str().into())
        };
        let axes = &self.axes[case.grid as usize];
        Row {
            grid: Arc::clone(&self.grids[case.grid as usize]),
            case: index + 1,
            topology: machine.topology.name.as_str().into(),
            sets: experiment.sets.iter().map(set).collect(),
            operator: case.operator,
            launch: case.launch,
            axes: axes
                .iter()
                .map(|axis| axis.map(|axis| case.values[axis]))
                .collect(),
            strategy: strategy.into(),
            outcome,
            unsplit_gemm,
            lower_bound,
        }
    }
}

/// The parent of a path, `.` where it names none.
pub(super) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
