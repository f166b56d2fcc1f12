//! What a wrong d costs, and what a predicted one gains over a fixed one.
//!
//! Per workload w, with T(w, d) for every simulated d (d = 1 is sequential) and d°(w) the fastest:
//! penalty(w, d) = T(w, d)/T(w, d°) − 1. "A wrong d costs on average" is the mean of the penalty
//! over all workloads and all their d ≠ d°; "at most" is its maximum.

use super::cases::{Case, Group};
use super::statistics::{geomean, largest, mean};

/// The d that frameworks use where nobody chooses.
pub const FIXED: u32 = 4;

/// One workload, decomposed.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Index into the analysis' cases.
    pub case: usize,
    /// (d, T \[s\]), ascending by d; d = 1 is sequential.
    pub times: Vec<(u32, f64)>,
    /// The fastest d.
    pub best: u32,
    /// The d that the paper's form with overhead predicts, where there are predictions.
    pub predicted: Option<u32>,
    /// The d that the extended form predicts.
    pub extended: Option<u32>,
    /// A, B, C and d* of that model.
    pub form: Option<crate::predict::Decomposition>,
}

impl Workload {
    /// `None` without the fixed d and one more.
    pub(super) fn of(case: usize, of: &Case) -> Option<Self> {
        let times = of.decompositions();
        let best = fastest(times.iter().copied())?;
        let whole = times.len() > 1 && times.iter().any(|(d, _)| *d == FIXED);
        whole.then_some(Self {
            case,
            times,
            best,
            predicted: None,
            extended: None,
            form: None,
        })
    }

    /// T(w, d) \[s\].
    pub fn time(&self, d: u32) -> Option<f64> {
        let mut times = self.times.iter();
        times.find(|(other, _)| *other == d).map(|(_, time)| *time)
    }

    /// T(w, d)/T(w, d°) − 1.
    pub fn penalty(&self, d: u32) -> Option<f64> {
        Some((self.time(d)? / self.time(self.best)? - 1.0).max(0.0))
    }

    /// Penalties of all d but the fastest, those with d ≥ `least` only.
    fn wrong(&self, least: u32) -> Vec<f64> {
        let times = self.times.iter().copied().filter(|(d, _)| *d >= least);
        let Some(best) = fastest(times.clone()) else {
            return Vec::new();
        };
        let shortest = self.time(best).unwrap_or(f64::NAN);
        let wrong = times.filter(|(d, _)| *d != best);
        wrong.map(|(_, time)| time / shortest - 1.0).collect()
    }
}

/// The d of the shortest time; the least of equals.
pub fn fastest(times: impl IntoIterator<Item = (u32, f64)>) -> Option<u32> {
    let times = times.into_iter();
    times
        .reduce(|best, next| match next.1 < best.1 * (1.0 - 1e-12) {
            true => next,
            false => best,
        })
        .map(|(d, _)| d)
}

/// Workloads summed up.
#[derive(Clone, Debug, PartialEq)]
pub struct Penalty {
    pub workloads: usize,
    /// Workloads in which the fixed d is the fastest of all d ≥ 1.
    pub fixed_optimal: usize,
    /// Workloads in which it is the fastest of all d ≥ 2.
    pub fixed_optimal_divided: usize,
    /// Mean penalty of the fixed d.
    pub fixed_mean: f64,
    pub fixed_most: f64,
    /// Mean penalty over all workloads and all d ≥ 1 but the fastest, and the largest.
    pub wrong_mean: f64,
    pub wrong_most: f64,
    /// Index into the workloads of the largest.
    pub wrong_most_at: usize,
    /// The same for d ≥ 2.
    pub divided_mean: f64,
    pub divided_most: f64,
    /// Mean over workloads of the largest penalty of each.
    pub worst_mean: f64,
    /// How often each d is the fastest.
    pub best: Vec<(u32, usize)>,
    /// How often the predicted d is the fastest.
    pub predicted_optimal: usize,
    /// The same for the extended form.
    pub extended_optimal: usize,
    /// Geometric means of T(4)/T(predicted d) and T(4)/T(d°), and the largest.
    pub predicted_speedup: Option<f64>,
    pub predicted_speedup_most: Option<f64>,
    pub extended_speedup: Option<f64>,
    pub best_speedup: f64,
    pub best_speedup_most: f64,
}

/// Sums workloads up; `None` without workloads.
pub(super) fn penalty(workloads: &[&Workload]) -> Option<Penalty> {
    let fixed: Vec<f64> = workloads.iter().filter_map(|w| w.penalty(FIXED)).collect();
    let wrong = |least| workloads.iter().map(move |w| w.wrong(least));
    let worst = || wrong(1).map(|all| largest(all).map_or(0.0, |(_, most)| most));
    let (wrong_most_at, wrong_most) = largest(worst())?;
    let mut best: Vec<(u32, usize)> = Vec::new();
    for (d, _) in workloads.iter().flat_map(|w| &w.times) {
        if !best.iter().any(|(other, _)| other == d) {
            best.push((*d, workloads.iter().filter(|w| w.best == *d).count()));
        }
    }
    best.sort_unstable();
    let over_fixed = |d: fn(&Workload) -> Option<u32>| -> Vec<f64> {
        let ratio = |w: &&Workload| Some(w.time(FIXED)? / w.time(d(w)?)?);
        workloads.iter().filter_map(ratio).collect()
    };
    let predicted = over_fixed(|w| w.predicted);
    let extended = over_fixed(|w| w.extended);
    let optimum = over_fixed(|w| Some(w.best));
    let optimal =
        |d: fn(&Workload) -> Option<u32>| workloads.iter().filter(|w| d(w) == Some(w.best)).count();
    Some(Penalty {
        workloads: workloads.len(),
        fixed_optimal: workloads.iter().filter(|w| w.best == FIXED).count(),
        fixed_optimal_divided: workloads
            .iter()
            .filter(|w| fastest(w.times.iter().copied().filter(|(d, _)| *d > 1)) == Some(FIXED))
            .count(),
        fixed_mean: mean(fixed.iter().copied())?,
        fixed_most: largest(fixed)?.1,
        wrong_mean: mean(wrong(1).flatten())?,
        wrong_most,
        wrong_most_at,
        divided_mean: mean(wrong(2).flatten()).unwrap_or(0.0),
        divided_most: largest(wrong(2).flatten()).map_or(0.0, |(_, most)| most),
        worst_mean: mean(worst())?,
        best,
        predicted_optimal: optimal(|w| w.predicted),
        extended_optimal: optimal(|w| w.extended),
        predicted_speedup: geomean(predicted.iter().copied()),
        predicted_speedup_most: largest(predicted).map(|(_, most)| most),
        extended_speedup: geomean(extended),
        best_speedup: geomean(optimum.iter().copied())?,
        best_speedup_most: largest(optimum)?.1,
    })
}

/// Speed-ups over the fixed d at one sequence length (or whatever the axis is).
#[derive(Clone, Debug, PartialEq)]
pub struct Gain {
    pub group: Group,
    /// Value of the axis.
    pub at: u64,
    pub workloads: usize,
    /// Geometric mean of T(4)/T(predicted d).
    pub predicted: Option<f64>,
    /// The same with the extended form's d.
    pub extended: Option<f64>,
    /// Geometric mean of T(4)/T(d°).
    pub best: f64,
}

/// Gains by group and value of an axis.
pub(super) fn gains(cases: &[Case], workloads: &[Workload], axis: &str) -> Vec<Gain> {
    let mut keys: Vec<(Group, u64)> = workloads
        .iter()
        .filter_map(|w| Some((Group::of(&cases[w.case]), cases[w.case].axis(axis)?)))
        .collect();
    keys.sort();
    keys.dedup();
    let gain = |(group, at): (Group, u64)| {
        let here = workloads.iter().filter(|w| {
            let case = &cases[w.case];
            case.axis(axis) == Some(at) && Group::of(case) == group
        });
        let here: Vec<&Workload> = here.collect();
        let sum = penalty(&here)?;
        Some(Gain {
            group,
            at,
            workloads: here.len(),
            predicted: sum.predicted_speedup,
            extended: sum.extended_speedup,
            best: sum.best_speedup,
        })
    };
    keys.into_iter().filter_map(gain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(times: &[(u32, f64)], predicted: u32) -> Workload {
        Workload {
            case: 0,
            times: times.to_vec(),
            best: fastest(times.iter().copied()).unwrap(),
            predicted: Some(predicted),
            extended: None,
            form: None,
        }
    }

    #[test]
    fn penalties_are_averaged_as_documented() {
        // d° = 2: penalties 100 %, 50 % and 200 %; d° = 4: 25 %, 50 % and 75 %.
        let one = workload(&[(1, 2.0), (2, 1.0), (4, 1.5), (8, 3.0)], 2);
        let two = workload(&[(1, 5.0), (2, 6.0), (4, 4.0), (8, 7.0)], 8);
        let sum = penalty(&[&one, &two]).unwrap();
        assert_eq!((sum.workloads, sum.fixed_optimal), (2, 1));
        assert!((sum.wrong_mean - (1.0 + 0.5 + 2.0 + 0.25 + 0.5 + 0.75) / 6.0).abs() < 1e-15);
        assert_eq!((sum.wrong_most, sum.wrong_most_at), (2.0, 0));
        assert!((sum.divided_mean - (0.5 + 2.0 + 0.5 + 0.75) / 4.0).abs() < 1e-15);
        assert!((sum.worst_mean - (2.0 + 0.75) / 2.0).abs() < 1e-15);
        assert_eq!((sum.fixed_mean, sum.fixed_most), (0.25, 0.5));
        assert_eq!(sum.best, [(1, 0), (2, 1), (4, 1), (8, 0)]);
        assert_eq!(sum.predicted_optimal, 1);
        // T(4)/T(2) = 1.5 and T(4)/T(8) = 4/7.
        assert!((sum.predicted_speedup.unwrap() - (1.5_f64 * 4.0 / 7.0).sqrt()).abs() < 1e-15);
        assert!((sum.best_speedup - 1.5_f64.sqrt()).abs() < 1e-15);
    }

    #[test]
    fn equal_times_go_to_the_smaller_d() {
        assert_eq!(fastest([(2, 1.0), (4, 1.0)]), Some(2));
        assert_eq!(penalty(&[]), None);
    }
}
