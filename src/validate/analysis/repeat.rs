//! How repeatable the measurement itself is: no model can be judged finer than that.

use crate::calibrate::metrics::{Pair, wmape};
use crate::experiment::analysis::statistics::{largest, mean, percentile};
use crate::validate::key::Subject;
use crate::validate::table::Row;

/// Differences of some cases.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    pub name: String,
    pub cases: usize,
    /// |b/a − 1|: median, mean and largest; for rounds (p90 − p10)/median.
    pub median: f64,
    pub mean: f64,
    pub worst: f64,
    /// Σ|b − a|/Σa; `None` for rounds.
    pub weighted: Option<f64>,
    pub worst_at: String,
}

/// Within the rounds of the first table, then of the second table against it, by length.
pub fn repeat(first: &[Row], second: Option<&[Row]>) -> Vec<Repeat> {
    let judged =
        |row: &&Row| row.excluded.is_none() && matches!(row.case.subject, Subject::Strategy(_));
    let within: Vec<(f64, String)> = (first.iter().filter(judged))
        .filter_map(|row| {
            let spread = (row.p90? - row.p10?) / row.makespan?;
            Some((spread, row.case.to_string()))
        })
        .collect();
    let mut all = Vec::new();
    all.extend(sum_up("rounds, p10 to p90", &within, None));
    let Some(second) = second else { return all };
    let known: std::collections::BTreeMap<String, f64> = (second.iter().filter(judged))
        .filter_map(|row| Some((row.case.to_string(), row.makespan?)))
        .collect();
    let pairs: Vec<(Pair, String)> = (first.iter().filter(judged))
        .filter_map(|row| {
            let case = row.case.to_string();
            Some((Pair::new(*known.get(&case)?, row.makespan?), case))
        })
        .collect();
    for (name, above) in [
        ("second table, all", 0.0),
        ("second table, longer than 100 us", 100e-6),
        ("second table, longer than 300 us", 300e-6),
    ] {
        let part: Vec<&(Pair, String)> = (pairs.iter())
            .filter(|(pair, _)| pair.measured > above)
            .collect();
        let values: Vec<(f64, String)> = (part.iter())
            .map(|(pair, case)| (pair.relative(), case.clone()))
            .collect();
        let pairs: Vec<Pair> = part.iter().map(|(pair, _)| *pair).collect();
        all.extend(sum_up(name, &values, wmape(&pairs)));
    }
    all
}

fn sum_up(name: &str, values: &[(f64, String)], weighted: Option<f64>) -> Option<Repeat> {
    let numbers: Vec<f64> = values.iter().map(|(value, _)| *value).collect();
    let (at, worst) = largest(numbers.iter().copied())?;
    Some(Repeat {
        name: name.to_owned(),
        cases: values.len(),
        median: percentile(&numbers, 0.5)?,
        mean: mean(numbers.iter().copied())?,
        worst,
        weighted,
        worst_at: values[at].1.clone(),
    })
}
