//! Choosing strategies, judging them in parallel and ranking them.

use std::cmp::Ordering;

use rayon::prelude::*;

use super::{Judge, Numbers};
use crate::cli::error::Failure;
use crate::cli::progress::Progress;
use crate::operator::Operator;
use crate::report::{Comparison, Outcome, Skipped};
use crate::schedule::Schedule;
use crate::strategy::{self, Choice};

/// What others are measured against: the first of these that performs the operator.
const BASELINES: [&str; 2] = ["sequential", "library"];

/// Reads a strategy as written on the command line.
///
/// # Errors
/// [`Failure::Usage`] for one that does not exist.
pub fn choice(text: &str) -> Result<Choice, Failure> {
    strategy::parse(text).map_err(|error| {
        Failure::Usage(format!(
            "error: {error}\n  help: `duet strategies` lists them all"
        ))
    })
}

/// What `compare` tries: everything, or what `filters` name; a baseline is always among them.
///
/// # Errors
/// [`Failure::Usage`] for a strategy that does not exist.
pub fn choices(filters: &[String], operator: &Operator) -> Result<Vec<Choice>, Failure> {
    let all = strategy::candidates(operator);
    if filters.is_empty() {
        return Ok(all);
    }
    let name = |choice: &Choice| choice.strategy().name();
    let mut chosen: Vec<Choice> = Vec::new();
    for filter in filters {
        let exact = choice(filter)?;
        let mut matching: Vec<Choice> = all
            .iter()
            .filter(|choice| name(choice) == filter)
            .cloned()
            .collect();
        if matching.is_empty() {
            matching.push(exact);
        }
        for choice in matching {
            if !chosen.contains(&choice) {
                chosen.push(choice);
            }
        }
    }
    let baseline = all.iter().find(|choice| BASELINES.contains(&name(choice)));
    if let Some(baseline) = baseline.filter(|baseline| !chosen.contains(baseline)) {
        chosen.insert(0, baseline.clone());
    }
    Ok(chosen)
}

/// The order in which strategies are ranked: by their settled makespans, and stable, so that
/// equals stay in the registry's order.
fn faster(a: f64, b: f64) -> Ordering {
    a.total_cmp(&b)
}

impl Judge<'_> {
    fn judge(&self, choice: &Choice) -> Result<Numbers, String> {
        Ok(self.perform(&self.build(choice)?, false)?.1)
    }

    /// Makespan of the baseline; `None` where no baseline performs the operator.
    pub fn baseline(&self) -> Option<f64> {
        let candidates = strategy::candidates(&self.operator);
        let choice = BASELINES.iter().find_map(|name| {
            candidates
                .iter()
                .find(|choice| choice.strategy().name() == *name)
        })?;
        let schedule = self.build(choice).ok()?;
        self.makespan(&schedule).ok()
    }

    /// Judges every choice and ranks them.
    ///
    /// # Errors
    /// [`Failure::Input`] when not one can be performed.
    pub fn compare(&self, choices: &[Choice], progress: &Progress) -> Result<Comparison, Failure> {
        let judged: Vec<Result<Numbers, String>> = choices
            .par_iter()
            .map(|choice| {
                let numbers = self.judge(choice);
                progress.step();
                numbers
            })
            .collect();
        let baseline = BASELINES.iter().find_map(|name| {
            let place = choices
                .iter()
                .position(|choice| choice.strategy().name() == *name)?;
            judged[place].as_ref().ok().map(|numbers| numbers.makespan)
        });
        let (mut results, mut skipped) = (Vec::new(), Vec::new());
        for (choice, judged) in choices.iter().zip(judged) {
            let strategy = choice.to_string();
            match judged {
                Ok(numbers) => results.push(self.outcome(strategy, numbers, baseline)),
                Err(reason) => skipped.push(Skipped { strategy, reason }),
            }
        }
        if results.is_empty() {
            return Err(nothing(&self.operator, &self.topology.name, &skipped));
        }
        results.sort_by(|a: &Outcome, b| faster(a.makespan, b.makespan));
        Ok(Comparison {
            topology: self.topology.name.clone(),
            operator: self.operator,
            launch: self.launch().to_owned(),
            unsplit_gemm: self.unsplit_gemm(),
            lower_bound: self.lower_bound(),
            expected_error: self.expected_error(),
            results,
            skipped,
            selected: None,
        })
    }

    /// The fastest of `choices` with its schedule and makespan: the first of [`Self::compare`].
    ///
    /// # Errors
    /// [`Failure::Input`] when not one can be performed.
    pub fn fastest(&self, choices: &[Choice]) -> Result<(Schedule, f64), Failure> {
        let performed: Vec<Result<f64, String>> = choices
            .par_iter()
            .map(|choice| self.makespan(&self.build(choice)?))
            .collect();
        let best = choices
            .iter()
            .zip(&performed)
            .filter_map(|(choice, makespan)| Some((choice, *makespan.as_ref().ok()?)))
            .min_by(|a, b| faster(a.1, b.1));
        match best {
            Some((choice, makespan)) => {
                let schedule = self.build(choice).map_err(Failure::Internal)?;
                Ok((schedule, makespan))
            }
            None => {
                let skipped: Vec<Skipped> = choices
                    .iter()
                    .zip(performed)
                    .filter_map(|(choice, result)| {
                        Some(Skipped {
                            strategy: choice.to_string(),
                            reason: result.err()?,
                        })
                    })
                    .collect();
                Err(nothing(&self.operator, &self.topology.name, &skipped))
            }
        }
    }
}

fn nothing(operator: &Operator, topology: &str, skipped: &[Skipped]) -> Failure {
    let reasons: Vec<String> = skipped
        .iter()
        .map(|skipped| format!("\n  {}: {}", skipped.strategy, skipped.reason))
        .collect();
    Failure::Input(format!(
        "error: no strategy can perform {operator} on {topology}{}\n  help: change what these reasons name: the shape, `--tp`, `--path` or the machine",
        reasons.concat()
    ))
}
