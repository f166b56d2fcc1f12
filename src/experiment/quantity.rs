//! A figure as a report shows it: a time, a share, a factor, a count, or two of them as a range.
//!
//! ```
//! use duet::experiment::Quantity;
//! let published: Quantity = "1.5x to 2.5x".parse()?;
//! assert_eq!(published, Quantity::Range(1.5, 2.5));
//! assert_eq!("5.43 ms".parse::<Quantity>()?, Quantity::Seconds(5.43e-3));
//! assert_eq!(Quantity::Share(0.9267).to_string(), "92.67 %");
//! assert!("92.67".parse::<Quantity>().is_err());
//! # Ok::<(), duet::experiment::QuantityError>(())
//! ```

use std::fmt;
use std::str::FromStr;

use crate::units::Seconds;

/// A figure.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Quantity {
    /// A time \[s\].
    Seconds(f64),
    /// A share of one; printed in percent.
    Share(f64),
    /// How many times as much.
    Factor(f64),
    /// From one factor to another.
    Range(f64, f64),
    /// So many of so many.
    Count(u64, u64),
}

/// Why a text is no figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no figure: write e.g. `5.43 ms`, `30 %`, `1.3x`, `1.5x to 2.5x` or `78 of 144`")]
pub struct QuantityError(String);

impl Quantity {
    /// The figure as one number: a count as its share, a range as its middle.
    pub fn number(self) -> f64 {
        match self {
            Self::Seconds(x) | Self::Share(x) | Self::Factor(x) => x,
            Self::Range(low, high) => (low + high) / 2.0,
            Self::Count(_, 0) => 0.0,
            Self::Count(n, of) => n as f64 / of as f64,
        }
    }

    /// The key's unit in JSON, e.g. `s`.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Seconds(_) => "s",
            Self::Share(_) => "share",
            Self::Factor(_) | Self::Range(..) => "factor",
            Self::Count(..) => "count",
        }
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || QuantityError(text.to_owned());
        let finite = |text: &str| -> Option<f64> {
            let number = text.trim().parse::<f64>().ok();
            number.filter(|x| x.is_finite() && *x >= 0.0)
        };
        let factor = |text: &str| finite(text.trim().strip_suffix('x')?);
        if let Some((low, high)) = text.split_once(" to ") {
            let range = factor(low).zip(factor(high));
            let range = range.filter(|(low, high)| low <= high);
            return range
                .map(|(low, high)| Self::Range(low, high))
                .ok_or_else(wrong);
        }
        if let Some((n, of)) = text.split_once(" of ") {
            let count = n.trim().parse().ok().zip(of.trim().parse().ok());
            let count = count.filter(|(n, of)| n <= of);
            return count.map(|(n, of)| Self::Count(n, of)).ok_or_else(wrong);
        }
        if let Some(number) = text.trim().strip_suffix('%') {
            let share = finite(number).map(|percent| Self::Share(percent / 100.0));
            return share.ok_or_else(wrong);
        }
        if let Some(number) = factor(text) {
            return Ok(Self::Factor(number));
        }
        let seconds = text.parse::<Seconds>();
        seconds
            .map(|seconds| Self::Seconds(seconds.get()))
            .map_err(|_| wrong())
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Self::Seconds(x) => milliseconds(x),
            Self::Share(x) => percent(x),
            Self::Factor(x) => format!("{x:.2}x"),
            Self::Range(low, high) => format!("{low:.2}x to {high:.2}x"),
            Self::Count(n, of) => format!("{n} of {of}"),
        };
        f.pad(&text)
    }
}

/// A time in the unit in which papers compare whole operators: `0.96 ms`, `0.0083 ms`.
pub fn milliseconds(seconds: f64) -> String {
    let ms = seconds * 1e3;
    match ms.abs() {
        x if x == 0.0 || x >= 0.1 => format!("{ms:.2} ms"),
        x if x >= 0.01 => format!("{ms:.3} ms"),
        _ => format!("{ms:.4} ms"),
    }
}

/// A share in percent: `92.67 %`.
pub fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_they_print() {
        for text in [
            "5.43 ms",
            "92.67 %",
            "1.30x",
            "1.50x to 2.50x",
            "78 of 144",
            "0.0083 ms",
        ] {
            assert_eq!(text.parse::<Quantity>().unwrap().to_string(), text);
        }
        assert!((Quantity::Count(78, 144).number() - 78.0 / 144.0).abs() < 1e-15);
    }

    #[test]
    fn what_is_no_figure_is_refused() {
        let wrong = [
            "", "5", "x", "-1x", "2x to 1x", "5 of 4", "5 of", "nan %", "infx", "5 kg",
        ];
        for text in wrong {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
    }
}
