//! Differences of times of the same rounds: what drifts between rounds cancels.

use crate::calibrate::bootstrap::Bootstrap;
use crate::validate::table::median;

/// Fewest rounds whose differences have an interval.
const LEAST: usize = 5;

/// A difference's median and 95 % percentile bootstrap interval over rounds.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Paired {
    pub median: f64,
    pub interval: [f64; 2],
}

impl Paired {
    /// Whether nothing is different, as far as these rounds can tell.
    pub fn includes_zero(&self) -> bool {
        self.interval[0] <= 0.0 && self.interval[1] >= 0.0
    }
}

/// `statistic` over all rounds and its interval over resampled rounds, given the indices of rounds;
/// `None` with fewer than five rounds.
pub fn over_rounds(
    rounds: usize,
    seed: u64,
    statistic: impl Fn(&[usize]) -> Option<f64> + Sync,
) -> Option<Paired> {
    if rounds < LEAST {
        return None;
    }
    let all: Vec<usize> = (0..rounds).collect();
    let bootstrap = Bootstrap {
        seed,
        ..Bootstrap::default()
    };
    Some(Paired {
        median: statistic(&all)?,
        interval: bootstrap.interval(bootstrap.draw(rounds, &statistic))?,
    })
}

/// The median of a_i − b_i over rounds \[s\]; `None` where the rounds are not the same.
///
/// ```
/// use duet::validate::analysis::paired::difference;
/// let (a, b) = ([3.0, 5.0, 4.0, 6.0, 3.5], [2.0, 4.0, 3.0, 5.0, 2.5]);
/// let paired = difference(&a, &b, 1).unwrap();
/// assert_eq!((paired.median, paired.interval), (1.0, [1.0, 1.0])); // drift cancels
/// assert!(!paired.includes_zero());
/// assert_eq!(difference(&a, &b[1..], 1), None);
/// ```
pub fn difference(a: &[f64], b: &[f64], seed: u64) -> Option<Paired> {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    (a.len() == b.len())
        .then(|| over_rounds(a.len(), seed, |picks| median(&picked(&differences, picks))))
        .flatten()
}

/// The values at some rounds.
pub fn picked(values: &[f64], picks: &[usize]) -> Vec<f64> {
    picks.iter().map(|at| values[*at]).collect()
}

/// The median of a_i / b_i over rounds; of the medians, where the rounds are not the same.
pub fn ratio(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() != b.len() {
        return Some(median(a)? / median(b)?);
    }
    let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
    median(&ratios)
}
