//! Tables that are judged: read, and refused where they are not of one another.

use std::collections::HashSet;
use std::path::Path;

use super::{JudgeArgs, needed};
use crate::cli::error::Failure;
use crate::experiment::Experiment;
use crate::validate::cases::groups;
use crate::validate::divergence::Divergence;
use crate::validate::key::{Case, Reference, Subject};
use crate::validate::measure::tasks_beside as beside;
use crate::validate::prediction::Predictions;
use crate::validate::simulated::Simulated;
use crate::validate::table::{self, Row};
use crate::validate::tasks;

/// A table of measured times with a row at least.
pub(super) fn read(path: &Path) -> Result<Vec<Row>, Failure> {
    let rows = table::read(path).map_err(|error| Failure::input(&error))?;
    match rows.is_empty() {
        false => Ok(rows),
        true => Err(Failure::Input(format!(
            "error: `{}` measures nothing: it has a header and no rows\n  help: give a table that `duet validate EXPERIMENT --out FILE` wrote",
            path.display()
        ))),
    }
}

/// Refuses a table of another experiment's cases.
pub(super) fn is_of(experiment: &Experiment, measured: &[Row], path: &Path) -> Result<(), Failure> {
    let groups = groups(experiment)?;
    let cases = groups.iter().flat_map(|planned| planned.cases());
    let planned: HashSet<String> = cases.map(|case| case.to_string()).collect();
    let ours = |row: &Row| planned.contains(&row.case.to_string());
    match measured.iter().any(ours) {
        true => Ok(()),
        false => Err(Failure::Input(format!(
            "error: none of the {} rows of `{}` is a case of the experiment `{}`\n  help: name the experiment that was measured; the table begins with `{}`",
            measured.len(),
            path.display(),
            experiment.name,
            measured[0].case
        ))),
    }
}

/// Refuses predictions of which a measured case is missing: choices and regrets would silently be those of the rest.
/// Tables written before Duet's own product in one piece was a reference lack that, which chooses nothing.
pub(super) fn foretells(
    predictions: &Predictions,
    measured: &[Row],
    path: &Path,
) -> Result<(), Failure> {
    let missing: Vec<&Case> = (measured.iter().map(|row| &row.case))
        .filter(|case| predictions.get(case).is_none())
        .filter(|case| case.subject != Subject::Reference(Reference::GemmOwn))
        .collect();
    let Some(first) = missing.first() else {
        return Ok(());
    };
    Err(Failure::Input(format!(
        "error: `{}` predicts {} of the {} measured cases; `{first}` is not among them\n  help: give all that `--predict` wrote of this experiment",
        path.display(),
        measured.len() - missing.len(),
        measured.len(),
    )))
}

/// Whether `today` says what `blind` says of all that it predicts.
pub(super) fn says(today: &Predictions, blind: &Predictions) -> bool {
    let known = (today.rows.iter()).filter(|row| blind.get(&row.case).is_some());
    let rows = known.cloned().collect();
    let known = Predictions::new(today.topology.clone(), today.model.clone(), rows);
    known.write() == blind.write()
}

/// The table of tasks that is named, or lies beside the first measured one.
pub(super) fn read_tasks(args: &JudgeArgs) -> Result<Vec<tasks::Task>, Failure> {
    let read = |path: &Path| tasks::read(path).map_err(|error| Failure::input(&error));
    match (&args.tasks, args.measured.first()) {
        (Some(path), _) => read(path),
        (None, Some(measured)) => match beside(measured) {
            beside if beside.is_file() => read(&beside),
            _ => Ok(Vec::new()),
        },
        (None, None) => Err(Failure::Usage(
            "error: no measured tasks\n  help: name their table with `--tasks FILE`".to_owned(),
        )),
    }
}

/// Where the traced cases leave their simulation; nothing without a topology.
pub(super) fn divergences(args: &JudgeArgs, measured: &[Row]) -> Result<Vec<Divergence>, Failure> {
    if args.topology.is_none() {
        return Ok(Vec::new());
    }
    let tasks = read_tasks(args)?;
    let topology = needed(args)?;
    let judged = |case: &Case| {
        measured
            .iter()
            .any(|row| row.case == *case && row.excluded.is_none())
    };
    let parts = tasks.chunk_by(|a, b| a.case == b.case);
    let parts = parts.filter(|part| judged(&part[0].case));
    let one = |part: &[tasks::Task]| {
        let case = &part[0].case;
        // What is not simulated is listed as such already.
        Simulated::new(case, &topology)
            .ok()?
            .against(case, part)
            .ok()
    };
    Ok(parts.filter_map(one).collect())
}
