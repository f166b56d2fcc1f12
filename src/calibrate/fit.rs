//! Overheads from times: alpha and beta of what a closed form leaves out.
//!
//! A closed form predicts `base` seconds for a row and leaves out what starting, waiting and
//! interfering cost per overlap step. That is taken to be (Compass, arXiv 2609.10549)
//!
//! ```text
//! seconds − base ≈ steps·(alpha + beta·message),   alpha, beta ≥ 0
//! ```
//!
//! with steps = d − 1 for a decomposition into d and n − 1 for a kernel fused over n ranks.
//! Minimised is Σ w·(residual)² over the rows, w = weight/seconds²: relative errors count, so that
//! long rows do not drown short ones. Rows without a step (d = 1) say nothing and are passed over.
//! Intervals are bootstrapped over cases, not rows: the rows of one case (one operator, several d)
//! err together.
//!
//! ```
//! use duet::calibrate::bootstrap::Bootstrap;
//! use duet::calibrate::fit::{Sample, fit};
//! // 3 us and 2 us per MiB in each of the d − 1 steps, on top of 1 ms.
//! let mut samples = Vec::new();
//! for case in 0..8 {
//!     let message = f64::from(1 << case) * 1024.0 * 1024.0;
//!     for d in [2.0, 4.0, 8.0] {
//!         let overhead = (d - 1.0) * (3e-6 + 2e-6 / 1048576.0 * message);
//!         samples.push(Sample { case, seconds: 1e-3 + overhead, base: 1e-3, steps: d - 1.0, message, weight: 1.0 });
//!     }
//! }
//! let found = fit(&samples, &Bootstrap::default())?;
//! assert!((found.alpha - 3e-6).abs() < 1e-14);
//! assert!((found.beta * 1048576.0 - 2e-6).abs() < 1e-14);
//! # Ok::<(), duet::calibrate::fit::FitError>(())
//! ```

use super::bootstrap::Bootstrap;
use super::metrics::{self, Pair};
use super::nnls::Normal;
use crate::units::Bytes;

/// Fewer cases than this are refused: two unknowns, and one to contradict them.
const LEAST_CASES: usize = 3;
/// Fewer cases than this have no interval: their resamples are too few to differ.
const LEAST_FOR_INTERVALS: usize = 5;
/// Below this 1 − R² between the columns (messages within about 1 % of each other) alpha and beta
/// cannot be told apart.
const LEAST_INDEPENDENCE: f64 = 1e-4;

/// One time of one strategy.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Sample {
    /// The case it belongs to; cases are resampled whole.
    pub case: usize,
    /// Measured, or simulated \[s\].
    pub seconds: f64,
    /// What the closed form says without overhead \[s\].
    pub base: f64,
    /// Overlap steps, each of which pays alpha + beta·message.
    pub steps: f64,
    /// Message size \[bytes\].
    pub message: f64,
    /// Factor of the row's weight.
    pub weight: f64,
}

/// Errors of a set of predictions.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Errors {
    /// Mean absolute error \[s\].
    pub mae: f64,
    /// Mean absolute relative error.
    pub mape: f64,
}

/// Fitted overheads.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// \[s per step\]; 0 where the rows ask for none.
    pub alpha: f64,
    /// \[s per step and byte\]; 0 where the rows ask for none.
    pub beta: f64,
    /// `None` with fewer than five cases, or where too few resamples could be fitted.
    pub alpha_interval: Option<[f64; 2]>,
    pub beta_interval: Option<[f64; 2]>,
    /// Rows fitted.
    pub rows: usize,
    /// Cases they belong to.
    pub cases: usize,
    /// Errors of those rows with alpha = beta = 0.
    pub before: Errors,
    /// Errors of those rows with the overheads found.
    pub after: Errors,
}

impl Fit {
    /// Errors on other rows, with alpha = beta = 0 and with the overheads found; rows without a
    /// step are passed over. `None` where no row is left.
    pub fn judge(&self, samples: &[Sample]) -> Option<(Errors, Errors)> {
        let rows: Vec<Sample> = informative(samples).collect();
        let before = errors(&rows, 0.0, 0.0)?;
        Some((before, errors(&rows, self.alpha, self.beta)?))
    }
}

/// Why nothing can be fitted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    #[error(
        "no row has an overlap step (d = 1 throughout): add rows of the same operators with d = 2 or more"
    )]
    NoSteps,
    #[error(
        "{} with {} {} too few for alpha and beta: give at least 3 operators of different size, better 10",
        count(*cases, "case"), count(*rows, "row"), if *cases == 1 { "is" } else { "are" }
    )]
    TooFew { cases: usize, rows: usize },
    #[error(
        "all messages are {message}, so that alpha (per step) and beta (per byte) cannot be told apart: add operators with other sizes, best from a tenth to ten times this"
    )]
    OneMessage { message: Bytes },
    #[error(
        "messages from {least} to {most} are too alike to tell alpha (per step) from beta (per byte): add operators with other sizes, best from a tenth to ten times these"
    )]
    LikeMessages { least: Bytes, most: Bytes },
    #[error("the {what} of a row is {value}: every number must be finite{also}")]
    NotANumber {
        what: &'static str,
        value: f64,
        also: &'static str,
    },
}

/// `1 row`, `2 rows`.
fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Fits alpha and beta. The order of the samples does not matter, not even to the last bit.
///
/// # Errors
/// [`FitError`] where the rows cannot say what they are.
pub fn fit(samples: &[Sample], bootstrap: &Bootstrap) -> Result<Fit, FitError> {
    samples.iter().try_for_each(check)?;
    let mut rows: Vec<Sample> = informative(samples).collect();
    rows.sort_by(|a, b| {
        let keys = |row: &Sample| [row.steps, row.message, row.base, row.seconds, row.weight];
        let pairs = keys(a).into_iter().zip(keys(b));
        let numbers = pairs.map(|(a, b)| a.total_cmp(&b));
        a.case
            .cmp(&b.case)
            .then(numbers.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then))
    });
    if rows.is_empty() {
        return Err(FitError::NoSteps);
    }
    let cases: Vec<Normal<2>> = rows.chunk_by(|a, b| a.case == b.case).map(sums).collect();
    if cases.len() < LEAST_CASES {
        return Err(FitError::TooFew {
            cases: cases.len(),
            rows: rows.len(),
        });
    }
    let Some([alpha, beta]) = solve(&cases, 0..cases.len()) else {
        return Err(alike(&rows));
    };
    let [mut alpha_interval, mut beta_interval] = [None, None];
    if cases.len() >= LEAST_FOR_INTERVALS {
        let (alphas, betas) = bootstrap
            .draw(cases.len(), |picks| solve(&cases, picks.iter().copied()))
            .into_iter()
            .map(|[alpha, beta]| (alpha, beta))
            .unzip();
        alpha_interval = bootstrap.interval(alphas);
        beta_interval = bootstrap.interval(betas);
    }
    let of_rows = |alpha, beta| errors(&rows, alpha, beta).ok_or(FitError::NoSteps);
    Ok(Fit {
        alpha,
        beta,
        alpha_interval,
        beta_interval,
        rows: rows.len(),
        cases: cases.len(),
        before: of_rows(0.0, 0.0)?,
        after: of_rows(alpha, beta)?,
    })
}

fn informative(samples: &[Sample]) -> impl Iterator<Item = Sample> {
    samples.iter().filter(|row| row.steps > 0.0).copied()
}

/// Refuses what is no number, so that none of it reaches a sum.
fn check(row: &Sample) -> Result<(), FitError> {
    let positive = [("time", row.seconds), ("weight", row.weight)];
    let others = [
        ("prediction", row.base),
        ("number of steps", row.steps),
        ("message size", row.message),
    ];
    for (what, value) in positive {
        if !(value.is_finite() && value > 0.0) {
            let also = " and above 0";
            return Err(FitError::NotANumber { what, value, also });
        }
    }
    for (what, value) in others {
        if !(value.is_finite() && value >= 0.0) {
            let also = " and at least 0";
            return Err(FitError::NotANumber { what, value, also });
        }
    }
    Ok(())
}

/// The normal equations of one case. Both sides of a row are divided by its seconds, which is the
/// weight 1/seconds² without squaring what may be very small.
fn sums(rows: &[Sample]) -> Normal<2> {
    let mut sums = Normal::default();
    for row in rows {
        let steps = row.steps / row.seconds;
        let y = (row.seconds - row.base) / row.seconds;
        sums.add([steps, steps * row.message], y, row.weight);
    }
    sums
}

/// Alpha and beta over the cases picked; `None` where they cannot be told apart.
fn solve(cases: &[Normal<2>], picks: impl Iterator<Item = usize>) -> Option<[f64; 2]> {
    let mut sums = Normal::default();
    for at in picks {
        sums += cases[at];
    }
    (sums.independence() > LEAST_INDEPENDENCE).then(|| sums.solve())
}

/// Which messages are too alike.
fn alike(rows: &[Sample]) -> FitError {
    let messages = || rows.iter().map(|row| row.message as u64);
    let least = Bytes::new(messages().min().unwrap_or(0));
    let most = Bytes::new(messages().max().unwrap_or(0));
    match least == most {
        true => FitError::OneMessage { message: least },
        false => FitError::LikeMessages { least, most },
    }
}

/// Errors of rows, all with steps, under these overheads.
fn errors(rows: &[Sample], alpha: f64, beta: f64) -> Option<Errors> {
    let predicted = |row: &Sample| row.base + row.steps * (alpha + beta * row.message);
    let pairs: Vec<Pair> = rows
        .iter()
        .map(|row| Pair::new(predicted(row), row.seconds))
        .collect();
    Some(Errors {
        mae: metrics::mae(&pairs)?,
        mape: metrics::mape(&pairs)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: f64 = 1048576.0;

    /// `cases` operators with messages of 8, 9, 10, … MiB, each with d = 2, 4, 8; the time of a case
    /// errs by `noise(case)` of its overhead.
    fn samples(cases: usize, alpha: f64, beta: f64, noise: impl Fn(usize) -> f64) -> Vec<Sample> {
        let one = |case: usize, d: f64| {
            let message = (case + 8) as f64 * MIB;
            let (base, steps) = (message * 1e-9, d - 1.0);
            let overhead = steps * (alpha + beta * message) * (1.0 + noise(case));
            Sample {
                case,
                seconds: base + overhead,
                base,
                steps,
                message,
                weight: 1.0,
            }
        };
        (0..cases)
            .flat_map(|case| [2.0, 4.0, 8.0].map(|d| one(case, d)))
            .collect()
    }

    fn quick() -> Bootstrap {
        Bootstrap {
            resamples: 100,
            ..Bootstrap::default()
        }
    }

    proptest! {
        /// Without noise the parameters come back, every resample agrees, and no error is left.
        #[test]
        fn exact_data_give_back_their_parameters(
            cases in 5usize..20, alpha in 1e-7..1e-4, beta in 1e-13..1e-9, weights in prop::collection::vec(0.1..10.0, 60),
        ) {
            let mut rows = samples(cases, alpha, beta, |_| 0.0);
            for (row, weight) in rows.iter_mut().zip(weights) { row.weight = weight; }
            let found = fit(&rows, &quick()).unwrap();
            let near = |a: f64, b: f64| (a - b).abs() < 1e-7 * b;
            prop_assert!(near(found.alpha, alpha) && near(found.beta, beta), "{found:?}");
            let [low, high] = found.alpha_interval.unwrap();
            prop_assert!(near(low, alpha) && near(high, alpha));
            prop_assert!(found.after.mape < 1e-9 && found.before.mape > found.after.mape);
            prop_assert_eq!((found.rows, found.cases), (3 * cases, cases));
        }

        #[test]
        fn the_order_of_rows_changes_no_bit(seed: u64, noise in prop::collection::vec(-0.5..0.5, 12)) {
            let rows = samples(12, 3e-6, 2e-12, |case| noise[case]);
            let mut mixed = rows.clone();
            fastrand::Rng::with_seed(seed).shuffle(&mut mixed);
            prop_assert_eq!(fit(&rows, &quick()), fit(&mixed, &quick()));
        }

        #[test]
        fn no_numbers_make_it_panic(
            rows in prop::collection::vec((0usize..4, any::<[f64; 5]>()), 0..12), small in prop::collection::vec((0usize..9, 1e-300..1e300, 0.0..1e300, 0.0..9.0, 0.0..1e300), 0..30),
        ) {
            let wild = rows.into_iter().map(|(case, [seconds, base, steps, message, weight])| Sample { case, seconds, base, steps, message, weight });
            let _ = fit(&wild.collect::<Vec<_>>(), &quick());
            let small = small.into_iter().map(|(case, seconds, base, steps, message)| Sample { case, seconds, base, steps, message, weight: 1.0 });
            if let Ok(found) = fit(&small.collect::<Vec<_>>(), &quick()) {
                prop_assert!(found.alpha >= 0.0 && found.beta >= 0.0);
            }
        }
    }

    /// With cases that err independently, 90 % intervals should cover about 90 % of the time; small
    /// samples cover a little less.
    #[test]
    fn intervals_cover_the_truth() {
        let (alpha, beta) = (5e-6, 3e-12);
        let mut covered = [0; 2];
        for seed in 0..200 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let noise: Vec<f64> = (0..30).map(|_| 0.2 * (rng.f64() - 0.5)).collect();
            let bootstrap = Bootstrap {
                seed,
                resamples: 200,
                confidence: 0.9,
            };
            let found = fit(&samples(30, alpha, beta, |case| noise[case]), &bootstrap).unwrap();
            let inside = |[low, high]: [f64; 2], truth| low <= truth && truth <= high;
            covered[0] += i32::from(inside(found.alpha_interval.unwrap(), alpha));
            covered[1] += i32::from(inside(found.beta_interval.unwrap(), beta));
        }
        assert!(
            covered.iter().all(|n| (160..=196).contains(n)),
            "{covered:?} of 200"
        );
    }

    #[test]
    fn rows_faster_than_the_closed_form_give_zero() {
        let mut rows = samples(6, 0.0, 0.0, |_| 0.0);
        for row in &mut rows {
            row.base *= 1.5;
        }
        let found = fit(&rows, &quick()).unwrap();
        assert_eq!((found.alpha, found.beta), (0.0, 0.0));
        assert_eq!(found.before, found.after);
    }

    #[test]
    fn other_rows_are_judged() {
        let rows = samples(12, 3e-6, 2e-12, |_| 0.0);
        let (train, test) = rows.split_at(18);
        let (before, after) = fit(train, &quick()).unwrap().judge(test).unwrap();
        assert!(after.mape < 1e-9 && before.mape > 1e-3);
        assert_eq!(fit(train, &quick()).unwrap().judge(&[]), None);
    }

    #[test]
    fn refuses_what_cannot_say() {
        let rows = samples(6, 3e-6, 2e-12, |_| 0.0);
        let with = |change: &dyn Fn(&mut Sample)| {
            let mut rows = rows.clone();
            rows.iter_mut().for_each(change);
            fit(&rows, &quick()).unwrap_err().to_string()
        };
        let said = [
            fit(&[], &quick()).unwrap_err().to_string(),
            fit(&rows[..3], &quick()).unwrap_err().to_string(),
            with(&|row| row.steps = 0.0),
            with(&|row| row.message = 64.0 * MIB),
            with(&|row| row.message = 64e6 + 1e4 * row.message / MIB),
            with(&|row| row.seconds = f64::NAN),
            with(&|row| row.weight = 0.0),
            with(&|row| row.base = f64::INFINITY),
        ];
        insta::assert_snapshot!(said.join("\n"), @"
        no row has an overlap step (d = 1 throughout): add rows of the same operators with d = 2 or more
        1 case with 3 rows is too few for alpha and beta: give at least 3 operators of different size, better 10
        no row has an overlap step (d = 1 throughout): add rows of the same operators with d = 2 or more
        all messages are 64 MiB, so that alpha (per step) and beta (per byte) cannot be told apart: add operators with other sizes, best from a tenth to ten times this
        messages from 61.11 MiB to 61.16 MiB are too alike to tell alpha (per step) from beta (per byte): add operators with other sizes, best from a tenth to ten times these
        the time of a row is NaN: every number must be finite and above 0
        the weight of a row is 0: every number must be finite and above 0
        the prediction of a row is inf: every number must be finite and at least 0
        ");
    }

    #[test]
    fn few_cases_have_no_interval() {
        let found = fit(&samples(4, 3e-6, 2e-12, |_| 0.0), &quick()).unwrap();
        assert_eq!((found.alpha_interval, found.beta_interval), (None, None));
    }
}
