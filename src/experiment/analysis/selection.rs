//! How good the choices are: a chosen strategy against the fastest of those that the selector can
//! choose (sequential, decompositions by the library, fusions with default parameters), and against
//! the fastest of everything simulated (fusions with other parameters too).

use super::cases::Case;
use super::statistics::{largest, mean};
use crate::calibrate::bootstrap::Bootstrap;
use crate::calibrate::metrics::mean_interval;

/// Two strategies this close are both right.
pub const LEVEL: f64 = 0.01;

/// Sums of the same times in another order are the same time.
const ROUNDING: f64 = 1e-12;

/// One choice, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Index into the analysis' cases.
    pub case: usize,
    /// Whether the case was fitted on.
    pub train: bool,
    /// Index of the chosen run, and of the fastest that can be chosen.
    pub pick: usize,
    pub best: usize,
    /// The time that the model gives the pick \[s\].
    pub predicted: f64,
    /// T(pick)/T(best) − 1.
    pub regret: f64,
    /// The same against the fastest of everything simulated.
    pub regret_any: f64,
}

impl Judged {
    /// Whether nothing is faster than the pick.
    pub fn strict(&self) -> bool {
        self.regret <= ROUNDING
    }

    /// Whether nothing is faster by more than 1 %.
    pub fn right(&self) -> bool {
        self.regret <= LEVEL + ROUNDING
    }
}

/// Judges the choice of run `pick`.
pub(super) fn judge(at: usize, case: &Case, train: bool, pick: usize, predicted: f64) -> Judged {
    let best = case.best_offered().unwrap_or(case.best());
    let regret = |best: f64| (case.runs[pick].seconds / best - 1.0).max(0.0);
    let best_at = case
        .runs
        .iter()
        .position(|run| run.strategy == best.strategy);
    Judged {
        case: at,
        train,
        pick,
        best: best_at.unwrap_or(0),
        predicted,
        regret: regret(best.seconds),
        regret_any: regret(case.best().seconds),
    }
}

/// Choices summed up.
#[derive(Clone, Debug, PartialEq)]
pub struct Choices {
    pub cases: usize,
    /// Nothing is faster.
    pub strict: usize,
    /// Nothing is faster by more than 1 %.
    pub right: usize,
    /// Sequential, decomposition or fusion as the fastest, within 1 %.
    pub family: usize,
    pub mean_regret: f64,
    /// Bootstrap interval of the mean, 95 %.
    pub mean_interval: Option<[f64; 2]>,
    pub most_regret: f64,
    /// Index into the analysis' cases.
    pub most_at: usize,
    /// Against everything simulated: cases right within 1 %, mean and largest regret.
    pub any_right: usize,
    pub any_mean: f64,
    pub any_most: f64,
}

/// Sums up; `None` without choices.
pub(super) fn choices(cases: &[Case], judged: &[&Judged], seed: u64) -> Option<Choices> {
    let regrets: Vec<f64> = judged.iter().map(|j| j.regret).collect();
    let (most_at, most_regret) = largest(regrets.iter().copied())?;
    let family = |j: &&&Judged| {
        let runs = &cases[j.case].runs;
        j.right() || runs[j.pick].family == runs[j.best].family
    };
    Some(Choices {
        cases: judged.len(),
        strict: judged.iter().filter(|j| j.strict()).count(),
        right: judged.iter().filter(|j| j.right()).count(),
        family: judged.iter().filter(family).count(),
        mean_regret: mean(regrets.iter().copied())?,
        mean_interval: mean_interval(
            &regrets,
            &Bootstrap {
                seed,
                ..Bootstrap::default()
            },
        ),
        most_regret,
        most_at: judged[most_at].case,
        any_right: judged
            .iter()
            .filter(|j| j.regret_any <= LEVEL + ROUNDING)
            .count(),
        any_mean: mean(judged.iter().map(|j| j.regret_any))?,
        any_most: largest(judged.iter().map(|j| j.regret_any))?.1,
    })
}

/// How often which strategy was chosen where which was the fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Confusion {
    /// Strategies without parameters, in the order of the registry.
    pub classes: Vec<&'static str>,
    /// `counts[fastest][chosen]`.
    pub counts: Vec<Vec<usize>>,
    /// Of those, how many are within 1 %.
    pub level: Vec<Vec<usize>>,
}

/// Counts choices by class.
pub(super) fn confusion(cases: &[Case], judged: &[&Judged]) -> Confusion {
    let registry = crate::strategy::registry().iter().map(|s| s.name());
    let used = |class: &str| {
        let mut runs = judged.iter().flat_map(|j| &cases[j.case].runs);
        runs.any(|run| run.class() == class)
    };
    let classes: Vec<&'static str> = registry.filter(|class| used(class)).collect();
    let mut counts = vec![vec![0; classes.len()]; classes.len()];
    let mut level = counts.clone();
    for j in judged {
        let place = |run: usize| {
            let class = cases[j.case].runs[run].class();
            classes.iter().position(|other| *other == class)
        };
        if let Some((row, column)) = place(j.best).zip(place(j.pick)) {
            counts[row][column] += 1;
            level[row][column] += usize::from(j.right());
        }
    }
    Confusion {
        classes,
        counts,
        level,
    }
}
