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

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

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
        let rows = informative(samples);
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
    let rows = informative(samples);
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

/// Rows with a step, in an order that their contents alone decide, since sums depend on it.
fn informative(samples: &[Sample]) -> Vec<Sample> {
    let keys = |row: &Sample| [row.steps, row.message, row.base, row.seconds, row.weight];
    let mut rows: Vec<Sample> = samples
        .iter()
        .filter(|row| row.steps > 0.0)
        .copied()
        .collect();
    rows.sort_by(|a, b| {
        let numbers = keys(a)
            .into_iter()
            .zip(keys(b))
            .map(|(a, b)| a.total_cmp(&b));
        numbers.fold(a.case.cmp(&b.case), Ordering::then)
    });
    rows
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
