//! The closed forms fitted on a part of the groups and judged on the rest, without and with the
//! overhead (steps)·(α + β·message) that `calibrate::fit` finds for each strategy.

use std::collections::BTreeMap;

use super::Group;
use super::errors::path_kind;
use crate::calibrate::bootstrap::Bootstrap;
use crate::calibrate::fit::{Fit, Sample, fit};
use crate::calibrate::lot;
use crate::calibrate::metrics::{Pair, mae, mape, row_mean_interval, wmape};
use crate::experiment::AnalysisOptions;
use crate::experiment::analysis::Family;

/// The forms, by name.
pub const FORMS: [&str; 2] = ["compass", "extended"];

/// Errors of one form on the groups that it was not fitted on, rows with overlap steps only.
#[derive(Clone, Debug, PartialEq)]
pub struct FormErrors {
    /// One of [`FORMS`].
    pub form: &'static str,
    pub overhead: bool,
    pub family: Family,
    pub groups: usize,
    pub rows: usize,
    /// \[s\], with its 95 % bootstrap interval over groups.
    pub mae: f64,
    pub mae_interval: Option<[f64; 2]>,
    pub mape: f64,
    pub wmape: f64,
}

/// What was fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    pub form: &'static str,
    /// Operator, path, launch mode and strategy.
    pub name: String,
    pub fit: Result<Fit, String>,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forms {
    pub train: f64,
    pub fitted_groups: usize,
    pub judged_groups: usize,
    pub errors: Vec<FormErrors>,
    pub fitted: Vec<Fitted>,
}

/// A row of a form.
struct Row {
    group: usize,
    train: bool,
    family: Family,
    key: String,
    sample: Sample,
}

/// Fits and judges, on groups whose ranks have a GPU each.
pub fn forms(groups: &[Group<'_>], options: AnalysisOptions) -> Forms {
    let alone: Vec<&Group<'_>> = groups.iter().filter(|group| group.is_headline()).collect();
    let train = |group: &Group<'_>| lot(&group.key.to_string(), options.seed) < options.train;
    let fitted_groups = alone.iter().filter(|group| train(group)).count();
    let mut forms = Forms {
        train: options.train,
        fitted_groups,
        judged_groups: alone.len() - fitted_groups,
        ..Forms::default()
    };
    for form in FORMS {
        let mut rows = Vec::new();
        for (at, group) in alone.iter().enumerate() {
            for entry in &group.entries {
                let Some(said) = entry.prediction.filter(|said| said.steps > 0.0) else {
                    continue;
                };
                let base = match form {
                    "compass" => said.compass,
                    _ => said.closed_no_overhead,
                };
                let Some(base) = base else { continue };
                let name = entry.strategy().split(':').next().unwrap_or("");
                rows.push(Row {
                    group: at,
                    train: train(group),
                    family: Family::of(name),
                    key: format!(
                        "{} {} {} {}",
                        group.key.operator.kind,
                        path_kind(&group.key.path),
                        group.key.launch.name(),
                        entry.family
                    ),
                    sample: Sample {
                        case: at,
                        seconds: entry.seconds,
                        base,
                        steps: said.steps,
                        message: said.message,
                        weight: 1.0,
                    },
                });
            }
        }
        one(form, &rows, options.seed, &mut forms);
    }
    forms
}

fn one(form: &'static str, rows: &[Row], seed: u64, forms: &mut Forms) {
    let bootstrap = Bootstrap {
        seed,
        resamples: 200,
        ..Bootstrap::default()
    };
    let mut samples: BTreeMap<&str, Vec<Sample>> = BTreeMap::new();
    for row in rows {
        let samples = samples.entry(&row.key).or_default();
        samples.extend(row.train.then_some(row.sample));
    }
    let fits: BTreeMap<&str, Result<Fit, String>> = samples
        .into_iter()
        .map(|(key, samples)| (key, fit(&samples, &bootstrap).map_err(|e| e.to_string())))
        .collect();
    for overhead in [false, true] {
        for family in [Family::Decomposition, Family::Fusion] {
            let part: Vec<(usize, Pair)> = rows
                .iter()
                .filter(|row| !row.train && row.family == family)
                .map(|row| {
                    let Sample {
                        base,
                        steps,
                        message,
                        seconds,
                        ..
                    } = row.sample;
                    let fit = fits[row.key.as_str()].as_ref().ok().filter(|_| overhead);
                    let extra = fit.map_or(0.0, |fit| steps * (fit.alpha + fit.beta * message));
                    (row.group, Pair::new(base + extra, seconds))
                })
                .collect();
            forms
                .errors
                .extend(errors(form, overhead, family, &part, seed));
        }
    }
    let fitted = fits.into_iter().map(|(key, fit)| Fitted {
        form,
        name: key.to_owned(),
        fit,
    });
    forms.fitted.extend(fitted);
}

fn errors(
    form: &'static str,
    overhead: bool,
    family: Family,
    part: &[(usize, Pair)],
    seed: u64,
) -> Option<FormErrors> {
    let pairs: Vec<Pair> = part.iter().map(|(_, pair)| *pair).collect();
    let groups: Vec<(f64, usize)> = part
        .chunk_by(|a, b| a.0 == b.0)
        .map(|rows| (rows.iter().map(|(_, pair)| pair.error()).sum(), rows.len()))
        .collect();
    let bootstrap = Bootstrap {
        seed,
        ..Bootstrap::default()
    };
    Some(FormErrors {
        form,
        overhead,
        family,
        groups: groups.len(),
        rows: pairs.len(),
        mae: mae(&pairs)?,
        mae_interval: row_mean_interval(&groups, &bootstrap),
        mape: mape(&pairs)?,
        wmape: wmape(&pairs)?,
    })
}
