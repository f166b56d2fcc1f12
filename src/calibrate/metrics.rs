//! How far predictions and choices are from the truth.
//!
//! Errors of a time: with p predicted and t measured (or simulated) seconds of each row,
//! MAE = mean |p − t|, MAPE = mean |p − t|/t, wMAPE = Σ|p − t| / Σ t, which long rows dominate as
//! they dominate a day's work.
//!
//! Errors of a choice: a case is one operator on one machine; the strategy chosen takes t in truth
//! and the fastest takes t*. Regret = t/t* − 1 is what the choice costs; top-1 is the share of cases
//! whose regret is at most a tolerance (0: strictly the fastest, or one that takes as long).
//!
//! ```
//! use duet::calibrate::metrics::{Decision, Pair, mae, mape, max_regret, top1, wmape};
//! let pairs = [Pair::new(1.1e-3, 1e-3), Pair::new(2e-3, 4e-3)];
//! assert!((mae(&pairs).unwrap() - 1.05e-3).abs() < 1e-15); // (0.1 + 2)/2 ms
//! assert!((mape(&pairs).unwrap() - 0.30).abs() < 1e-12); // (10 % + 50 %)/2
//! assert!((wmape(&pairs).unwrap() - 0.42).abs() < 1e-12); // 2.1 ms of 5 ms
//! let cases = [Decision::new(1.0, 1.0), Decision::new(1.005, 1.0), Decision::new(1.5, 1.0)];
//! assert_eq!(top1(&cases, 0.0), 1);
//! assert_eq!(top1(&cases, 0.01), 2);
//! assert_eq!(max_regret(&cases), Some((2, 0.5)));
//! assert_eq!(mae(&[]), None);
//! ```

use super::bootstrap::Bootstrap;

/// Times that are sums of the same parts in another order count as equal.
const ROUNDING: f64 = 1e-12;

/// A predicted and a true time \[s\].
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Pair {
    pub predicted: f64,
    /// Measured, or simulated where the simulator stands for the truth; above 0.
    pub measured: f64,
}

impl Pair {
    pub const fn new(predicted: f64, measured: f64) -> Self {
        Self {
            predicted,
            measured,
        }
    }

    /// |p − t| \[s\].
    pub fn error(&self) -> f64 {
        (self.predicted - self.measured).abs()
    }

    /// |p − t|/t.
    pub fn relative(&self) -> f64 {
        self.error() / self.measured
    }
}

/// Mean absolute error \[s\]; `None` without rows.
pub fn mae(pairs: &[Pair]) -> Option<f64> {
    mean(pairs.iter().map(Pair::error))
}

/// Mean absolute relative error; `None` without rows.
pub fn mape(pairs: &[Pair]) -> Option<f64> {
    mean(pairs.iter().map(Pair::relative))
}

/// Σ|p − t| / Σt; `None` without rows.
pub fn wmape(pairs: &[Pair]) -> Option<f64> {
    let total: f64 = pairs.iter().map(|pair| pair.measured).sum();
    let error: f64 = pairs.iter().map(Pair::error).sum();
    (!pairs.is_empty()).then(|| error / total)
}

/// The row with the largest relative error, and that error; the first of equals.
pub fn worst(pairs: &[Pair]) -> Option<(usize, f64)> {
    largest(pairs.iter().map(Pair::relative))
}

/// A choice among strategies: what it takes in truth \[s\] and what the fastest takes.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Decision {
    pub taken: f64,
    /// Above 0 and at most `taken`.
    pub best: f64,
}

impl Decision {
    pub const fn new(taken: f64, best: f64) -> Self {
        Self { taken, best }
    }

    /// t/t* − 1; not below 0, where `best` is `taken` to rounding.
    pub fn regret(&self) -> f64 {
        (self.taken / self.best - 1.0).max(0.0)
    }

    /// Whether the regret is at most `tolerance`, to rounding (10⁻¹²).
    pub fn is_right(&self, tolerance: f64) -> bool {
        self.regret() <= tolerance + ROUNDING
    }
}

/// Cases with a regret of at most `tolerance`; top-1 is their share.
pub fn top1(cases: &[Decision], tolerance: f64) -> usize {
    cases.iter().filter(|case| case.is_right(tolerance)).count()
}

/// Mean regret; `None` without cases.
pub fn mean_regret(cases: &[Decision]) -> Option<f64> {
    mean(cases.iter().map(Decision::regret))
}

/// The case with the largest regret, and that regret; the first of equals.
pub fn max_regret(cases: &[Decision]) -> Option<(usize, f64)> {
    largest(cases.iter().map(Decision::regret))
}

/// Bootstrap interval of the mean of one value per case (an absolute or relative error, a regret,
/// 1 or 0 for a right or wrong choice).
///
/// ```
/// use duet::calibrate::bootstrap::Bootstrap;
/// use duet::calibrate::metrics::mean_interval;
/// let [low, high] = mean_interval(&[1.0, 2.0, 3.0, 4.0], &Bootstrap::default()).unwrap();
/// assert!(1.0 < low && low < 2.5 && 2.5 < high && high < 4.0);
/// ```
pub fn mean_interval(values: &[f64], bootstrap: &Bootstrap) -> Option<[f64; 2]> {
    let cases: Vec<(f64, usize)> = values.iter().map(|value| (*value, 1)).collect();
    row_mean_interval(&cases, bootstrap)
}

/// Bootstrap interval of a mean over rows (MAE, MAPE) whose cases are resampled whole, since the
/// rows of one case err together: of every case the sum over its rows, and how many those are. A
/// resample's mean is the sum of sums over the sum of counts.
///
/// ```
/// use duet::calibrate::bootstrap::Bootstrap;
/// use duet::calibrate::metrics::row_mean_interval;
/// // Every row errs by 2, whether its case has one row or three.
/// let cases = [(2.0, 1), (6.0, 3), (2.0, 1)];
/// assert_eq!(row_mean_interval(&cases, &Bootstrap::default()), Some([2.0, 2.0]));
/// ```
pub fn row_mean_interval(cases: &[(f64, usize)], bootstrap: &Bootstrap) -> Option<[f64; 2]> {
    let means = bootstrap.draw(cases.len(), |picks| {
        let drawn = picks.iter().map(|at| cases[*at]);
        let (sum, rows) = drawn.fold((0.0, 0), |(sum, rows), case| (sum + case.0, rows + case.1));
        (rows > 0).then(|| sum / rows as f64)
    });
    bootstrap.interval(means)
}

/// Arithmetic mean; `None` without values.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_usize);
    for value in values {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / count as f64)
}

/// The largest value and its place; the first of equals.
pub fn largest(values: impl IntoIterator<Item = f64>) -> Option<(usize, f64)> {
    let values = values.into_iter().enumerate();
    values.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equals_is_the_worst() {
        let pairs = [
            Pair::new(1.0, 2.0),
            Pair::new(3.0, 2.0),
            Pair::new(2.0, 2.0),
        ];
        assert_eq!(worst(&pairs), Some((0, 0.5)));
        assert_eq!(worst(&[]), None);
    }

    #[test]
    fn a_choice_that_takes_as_long_is_right() {
        let sum = Decision::new(0.1 + 0.2, 0.3);
        assert!(sum.regret() > 0.0);
        assert_eq!(top1(&[sum], 0.0), 1);
        assert_eq!(Decision::new(0.3 - 1e-16, 0.3).regret(), 0.0);
        assert_eq!(
            mean_regret(&[Decision::new(3.0, 2.0), Decision::new(2.0, 2.0)]),
            Some(0.25)
        );
        assert_eq!(
            (top1(&[], 0.0), mean_regret(&[]), max_regret(&[])),
            (0, None, None)
        );
    }

    /// Cases of one row that errs by 1 and of nine rows that err by 3: the mean over rows is 2.8, and
    /// resamples of many such cases lie about it, not about the mean 2 of the cases' means.
    #[test]
    fn intervals_of_rows_lie_about_the_mean_of_rows() {
        let cases: Vec<(f64, usize)> = (0..400)
            .map(|i| if i % 2 == 0 { (1.0, 1) } else { (27.0, 9) })
            .collect();
        let [low, high] = row_mean_interval(&cases, &Bootstrap::default()).unwrap();
        assert!(
            low < 2.8 && 2.8 < high && low > 2.7 && high < 2.9,
            "{low} {high}"
        );
    }

    #[test]
    fn figures_of_nothing_are_none() {
        assert_eq!((mae(&[]), mape(&[]), wmape(&[])), (None, None, None));
        assert_eq!(mean_interval(&[], &Bootstrap::default()), None);
    }
}
