//! How good the choices are: a chosen strategy against the fastest of those that the selector can
//! choose (sequential, decompositions by the library, fusions with settings that it
//! offers), and against the fastest of everything simulated.

use super::cases::Case;
use crate::calibrate::bootstrap::Bootstrap;
use crate::calibrate::metrics::{Decision, max_regret, mean_interval, mean_regret, top1};

/// Two strategies this close are both right.
pub const LEVEL: f64 = 0.01;

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
    /// The pick beside the fastest that can be chosen.
    pub decision: Decision,
    /// The pick beside the fastest of everything simulated.
    pub any: Decision,
}

/// A choice that cannot be judged, since the grid does not have it, e.g. another d.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsimulated {
    /// Index into the analysis' cases.
    pub case: usize,
    /// Whether the case was fitted on.
    pub train: bool,
    /// The strategy chosen.
    pub pick: String,
}

/// Judges the choice of run `pick`.
pub(super) fn judge(at: usize, case: &Case, train: bool, pick: usize, predicted: f64) -> Judged {
    let best = case.best_offered().unwrap_or(case.best());
    let taken = case.runs[pick].seconds;
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
        decision: Decision::new(taken, best.seconds),
        any: Decision::new(taken, case.best().seconds),
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
    let decisions: Vec<Decision> = judged.iter().map(|j| j.decision).collect();
    let any: Vec<Decision> = judged.iter().map(|j| j.any).collect();
    let regrets: Vec<f64> = decisions.iter().map(Decision::regret).collect();
    let (most_at, most_regret) = max_regret(&decisions)?;
    let family = |j: &&&Judged| {
        let runs = &cases[j.case].runs;
        j.decision.is_right(LEVEL) || runs[j.pick].family == runs[j.best].family
    };
    Some(Choices {
        cases: judged.len(),
        strict: top1(&decisions, 0.0),
        right: top1(&decisions, LEVEL),
        family: judged.iter().filter(family).count(),
        mean_regret: mean_regret(&decisions)?,
        mean_interval: mean_interval(
            &regrets,
            &Bootstrap {
                seed,
                ..Bootstrap::default()
            },
        ),
        most_regret,
        most_at: judged[most_at].case,
        any_right: top1(&any, LEVEL),
        any_mean: mean_regret(&any)?,
        any_most: max_regret(&any)?.1,
    })
}

/// How often which strategy was chosen where which was the fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Confusion {
    /// Strategies without parameters, in the order of the registry.
    pub classes: Vec<&'static str>,
    /// `counts[fastest][chosen]`; of several that are the fastest to rounding, the one chosen.
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
        // Of several that take as long, the chosen one is the fastest.
        let best = match j.decision.is_right(0.0) {
            true => j.pick,
            false => j.best,
        };
        if let Some((row, column)) = place(best).zip(place(j.pick)) {
            counts[row][column] += 1;
            level[row][column] += usize::from(j.decision.is_right(LEVEL));
        }
    }
    Confusion {
        classes,
        counts,
        level,
    }
}
