//! What a changed machine does: times, winners and d over the values of a set path.

use std::sync::Arc;

use super::cases::{Case, Family, Group};
use super::decomposition::fastest;
use super::statistics::{geomean, mean};

/// One group of cases over the values of what a grid sets.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    pub grid: Arc<str>,
    pub group: Group,
    /// The path set; several are joined by ` + `.
    pub path: String,
    pub steps: Vec<Step>,
}

/// The machine with one value set.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// As written, e.g. `2x`.
    pub value: String,
    pub cases: usize,
    /// Geometric mean of the fastest strategy's time \[s\].
    pub best: f64,
    /// Geometric mean of the speed-up of the fastest over sequential.
    pub speedup: Option<f64>,
    /// Geometric mean of each strategy's time \[s\], parameters at their best.
    pub classes: Vec<(&'static str, f64)>,
    /// How many cases each family wins.
    pub winners: Vec<(Family, usize)>,
    /// Geometric mean of the fastest d of a decomposition (d = 1: sequential).
    pub pieces: Option<f64>,
}

/// The sweeps of all grids that set something.
pub(super) fn sweeps(cases: &[Case]) -> Vec<Sweep> {
    let mut all: Vec<Sweep> = Vec::new();
    let mut done: Vec<(Arc<str>, Group)> = Vec::new();
    for case in cases.iter().filter(|case| !case.sets.is_empty()) {
        let key = (Arc::clone(&case.grid), Group::of(case));
        if !done.contains(&key) {
            all.extend(sweep(cases, &key));
            done.push(key);
        }
    }
    all
}

fn label(case: &Case) -> String {
    let values: Vec<&str> = case.sets.iter().map(|(_, value)| &**value).collect();
    values.join(" + ")
}

fn sweep(cases: &[Case], (grid, group): &(Arc<str>, Group)) -> Option<Sweep> {
    let mut here = cases
        .iter()
        .filter(|case| case.grid == *grid && !case.sets.is_empty() && Group::of(case) == *group);
    let here: Vec<&Case> = here.by_ref().collect();
    let paths: Vec<&str> = here.first()?.sets.iter().map(|(path, _)| &**path).collect();
    let mut values: Vec<String> = Vec::new();
    for case in &here {
        let value = label(case);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let steps = values.into_iter().filter_map(|value| {
        let cases: Vec<&Case> = here
            .iter()
            .copied()
            .filter(|case| label(case) == value)
            .collect();
        step(value, &cases)
    });
    Some(Sweep {
        grid: Arc::clone(grid),
        group: group.clone(),
        path: paths.join(" + "),
        steps: steps.collect(),
    })
}

fn step(value: String, cases: &[&Case]) -> Option<Step> {
    let speedups: Vec<f64> = cases
        .iter()
        .filter_map(|case| Some(case.sequential()? / case.best().seconds))
        .collect();
    let registry = crate::strategy::registry().iter().map(|s| s.name());
    let classes = registry.filter_map(|class| {
        let times: Option<Vec<f64>> = cases
            .iter()
            .map(|case| case.best_in(class).map(|run| run.seconds))
            .collect();
        Some((class, geomean(times?)?))
    });
    let families = [
        Family::Sequential,
        Family::Decomposition,
        Family::Fusion,
        Family::Other,
    ];
    let won = |family| {
        cases
            .iter()
            .filter(|case| case.best().family == family)
            .count()
    };
    let pieces = cases.iter().filter_map(|case| {
        let times = case.decompositions();
        (times.len() > 1).then(|| fastest(times))?
    });
    Some(Step {
        cases: cases.len(),
        best: geomean(cases.iter().map(|case| case.best().seconds))?,
        speedup: geomean(speedups),
        classes: classes.collect(),
        winners: families
            .into_iter()
            .map(|family| (family, won(family)))
            .filter(|(_, count)| *count > 0)
            .collect(),
        pieces: mean(pieces.map(|d| f64::from(d).log2())).map(f64::exp2),
        value,
    })
}
