//! The closed forms against the simulator: their variants, overheads fitted on part of the cases,
//! errors on the rest.
//!
//! | variant | terms |
//! |---|---|
//! | `compass-paper-without-overhead` | of fusions only: as the next, a step being Tm/n as printed |
//! | `compass-paper` | the same and the fitted overhead |
//! | `compass-without-overhead` | shares of the unsplit GEMM and of the collective |
//! | `compass` | the same and (steps)·(α + β·m), fitted |
//! | `extended-without-overhead` | GEMM curve, stages, contention, launch |
//! | `extended` | the same and the fitted overhead |

use super::Machines;
use super::cases::{Case, Family, Group, Run, groups};
use crate::calibrate::bootstrap::Bootstrap;
use crate::calibrate::fit::{Sample, fit};
use crate::calibrate::metrics::{Pair, mae, mape, row_mean_interval, wmape, worst};
use crate::predict::{Key, Machine, Overhead, Parameters, Prediction, Terms, family};

/// The variants in the order of tables and figures.
pub const VARIANTS: [&str; 6] = [
    "compass-paper-without-overhead",
    "compass-paper",
    "compass-without-overhead",
    "compass",
    "extended-without-overhead",
    "extended",
];

/// A closed form with its predictions.
#[derive(Clone, Debug)]
pub struct Model {
    /// One of [`VARIANTS`].
    pub name: &'static str,
    pub terms: Terms,
    /// Fitted on the training cases; empty without the overhead term.
    pub parameters: Parameters,
    /// Which overheads are left at zero, and why.
    pub unfitted: Vec<(Key, String)>,
    /// \[s\], per case of the main grid and run; `None` where the form does not apply.
    pub predictions: Vec<Vec<Option<f64>>>,
}

/// Errors of one variant on one family of strategies.
#[derive(Clone, Debug, PartialEq)]
pub struct Errors {
    pub model: &'static str,
    pub family: Family,
    /// Whether of fusions with default parameters, or of those with others.
    pub usual: bool,
    /// Whether of the cases fitted on.
    pub train: bool,
    pub cases: usize,
    pub rows: usize,
    /// Mean absolute error \[s\] and its 95 % bootstrap interval over cases.
    pub mae: f64,
    pub mae_interval: Option<[f64; 2]>,
    /// Mean absolute relative error and its interval.
    pub mape: f64,
    pub mape_interval: Option<[f64; 2]>,
    /// Σ|error|/Σtime.
    pub wmape: f64,
    /// Largest relative error.
    pub worst: f64,
    /// Where: index into the main cases, and the strategy.
    pub worst_at: (usize, String),
}

/// The variants' predictions of `cases`; `train` says which cases are fitted on.
pub(super) fn models(
    cases: &[&Case],
    train: &[bool],
    machines: &Machines<'_>,
    seed: u64,
) -> Vec<Model> {
    let paper = Terms {
        compass_paper: true,
        ..Terms::compass()
    };
    let forms = [paper, Terms::compass(), Terms::default()];
    let pairs = forms.into_iter().zip(VARIANTS.chunks(2));
    pairs
        .flat_map(|(terms, names)| {
            let without = terms.without_overhead();
            let base = bases(cases, machines, &without);
            let (parameters, unfitted) = fitted(cases, train, &base, seed);
            let plain = Model {
                name: names[0],
                terms: without,
                parameters: Parameters::default(),
                unfitted: Vec::new(),
                predictions: base
                    .iter()
                    .map(|runs| runs.iter().map(|base| Some((*base)?.seconds)).collect())
                    .collect(),
            };
            let predictions = predictions(cases, machines, &terms, &parameters);
            let full = Model {
                name: names[1],
                terms,
                parameters,
                unfitted,
                predictions,
            };
            [plain, full]
        })
        .collect()
}

/// A prediction without overhead.
#[derive(Copy, Clone, Debug)]
struct Base {
    seconds: f64,
    steps: f64,
    message: f64,
}

fn bases(cases: &[&Case], machines: &Machines<'_>, terms: &Terms) -> Vec<Vec<Option<Base>>> {
    let none = Parameters::default();
    let base = |case: &&Case| {
        let (machine, terms) = (machines.of(case), case.terms(terms));
        let run = |run: &Run| {
            let found = predict(machine?, case, run, &terms, &none)?;
            Some(Base {
                seconds: found.seconds,
                steps: found.steps,
                message: found.message,
            })
        };
        case.runs.iter().map(run).collect()
    };
    cases.iter().map(base).collect()
}

fn predictions(
    cases: &[&Case],
    machines: &Machines<'_>,
    terms: &Terms,
    parameters: &Parameters,
) -> Vec<Vec<Option<f64>>> {
    let all = |case: &&Case| {
        let (machine, terms) = (machines.of(case), case.terms(terms));
        let run = |run: &Run| Some(predict(machine?, case, run, &terms, parameters)?.seconds);
        case.runs.iter().map(run).collect()
    };
    cases.iter().map(all).collect()
}

/// What a form says of a run; how the paper prints a step concerns fusions alone.
fn predict(
    machine: &Machine,
    case: &Case,
    run: &Run,
    terms: &Terms,
    parameters: &Parameters,
) -> Option<Prediction> {
    if terms.compass_paper && run.family != Family::Fusion {
        return None;
    }
    let found = machine.predict(&case.operator, &run.choice, terms, parameters);
    found.ok()
}

/// Overheads of every group and strategy, fitted on the training cases.
fn fitted(
    cases: &[&Case],
    train: &[bool],
    base: &[Vec<Option<Base>>],
    seed: u64,
) -> (Parameters, Vec<(Key, String)>) {
    let bootstrap = Bootstrap {
        seed,
        resamples: 200,
        ..Bootstrap::default()
    };
    let mut parameters = Parameters::default();
    let mut unfitted = Vec::new();
    for group in groups(cases.iter().copied()) {
        let here: Vec<usize> = (0..cases.len())
            .filter(|&at| train[at] && Group::of(cases[at]) == group)
            .collect();
        let mut strategies: Vec<String> = Vec::new();
        let runs = here.iter().flat_map(|&at| &cases[at].runs);
        for strategy in runs.map(|run| family(&run.choice)) {
            if !strategies.contains(&strategy) {
                strategies.push(strategy);
            }
        }
        for strategy in strategies {
            let samples: Vec<Sample> = here
                .iter()
                .flat_map(|&at| {
                    let runs = cases[at].runs.iter().zip(&base[at]);
                    let strategy = &strategy;
                    runs.filter_map(move |(run, base)| {
                        let base = (*base)?;
                        let wanted = family(&run.choice) == *strategy && base.steps > 0.0;
                        wanted.then_some(Sample {
                            case: at,
                            seconds: run.seconds,
                            base: base.seconds,
                            steps: base.steps,
                            message: base.message,
                            weight: 1.0,
                        })
                    })
                })
                .collect();
            if samples.is_empty() {
                continue;
            }
            let key = Key {
                topology: group.topology.to_string(),
                operator: group.kind,
                tp: group.tp,
                strategy,
            };
            match fit(&samples, &bootstrap) {
                // Squares weigh outliers; what makes the typical training row worse is not taken.
                Ok(fit) if fit.after.mape >= fit.before.mape => unfitted.push((
                    key,
                    format!(
                        "it would not lower the mean relative error: {:.3} % without, {:.3} % with",
                        100.0 * fit.before.mape,
                        100.0 * fit.after.mape
                    ),
                )),
                Ok(fit) => parameters.insert(
                    key,
                    Overhead {
                        alpha: fit.alpha,
                        beta: fit.beta,
                        alpha_interval: fit.alpha_interval,
                        beta_interval: fit.beta_interval,
                        rows: Some(fit.rows as u64),
                        source: format!("fitted, {} simulated rows", fit.rows),
                    },
                ),
                Err(error) => unfitted.push((key, error.to_string())),
            }
        }
    }
    (parameters, unfitted)
}

/// The errors of every variant by family, of the training cases and of the rest.
pub(super) fn errors(cases: &[&Case], train: &[bool], models: &[Model], seed: u64) -> Vec<Errors> {
    let families = [Family::Sequential, Family::Decomposition, Family::Fusion];
    let mut all = Vec::new();
    for model in models {
        for family in families {
            for (usual, trained) in [(true, false), (true, true), (false, false), (false, true)] {
                let subset = Subset {
                    family,
                    usual,
                    train: trained,
                };
                all.extend(judge(cases, train, model, subset, seed));
            }
        }
    }
    all
}

/// Which rows errors are of; see [`Errors`].
#[derive(Copy, Clone)]
struct Subset {
    family: Family,
    usual: bool,
    train: bool,
}

fn judge(
    cases: &[&Case],
    train: &[bool],
    model: &Model,
    subset: Subset,
    seed: u64,
) -> Option<Errors> {
    let mut pairs = Vec::new();
    let mut places = Vec::new();
    let (mut absolute, mut relative) = (Vec::new(), Vec::new());
    let wanted = |run: &Run| run.family == subset.family && run.is_usual() == subset.usual;
    for at in (0..cases.len()).filter(|&at| train[at] == subset.train) {
        let before = pairs.len();
        for (run, predicted) in cases[at].runs.iter().zip(&model.predictions[at]) {
            if let Some(predicted) = predicted.filter(|_| wanted(run)) {
                pairs.push(Pair::new(predicted, run.seconds));
                places.push((at, run.strategy.to_string()));
            }
        }
        let new = &pairs[before..];
        if !new.is_empty() {
            absolute.push((new.iter().map(Pair::error).sum::<f64>(), new.len()));
            relative.push((new.iter().map(Pair::relative).sum::<f64>(), new.len()));
        }
    }
    let bootstrap = Bootstrap {
        seed,
        ..Bootstrap::default()
    };
    let (at, worst) = worst(&pairs)?;
    Some(Errors {
        model: model.name,
        family: subset.family,
        usual: subset.usual,
        train: subset.train,
        cases: absolute.len(),
        rows: pairs.len(),
        mae: mae(&pairs)?,
        mae_interval: row_mean_interval(&absolute, &bootstrap),
        mape: mape(&pairs)?,
        mape_interval: row_mean_interval(&relative, &bootstrap),
        wmape: wmape(&pairs)?,
        worst,
        worst_at: places.swap_remove(at),
    })
}
