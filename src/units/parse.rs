//! Reading quantities: `NUMBER UNIT`, e.g. `450 GB/s`, `1.5 us`, `64 MiB`, `989 TFLOP/s`.

use std::str::FromStr;

use super::{Bytes, BytesPerSecond, Flops, FlopsPerSecond, Seconds};

/// Why a quantity was refused; the text names the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Nothing, or no leading number.
    #[error("`{text}` does not start with a number: write e.g. `{example}`")]
    NoNumber { text: String, example: &'static str },
    /// A bare number.
    #[error("`{text}` has no unit: write e.g. `{text} {unit}`")]
    NoUnit { text: String, unit: &'static str },
    /// A unit of something else, or none known.
    #[error("`{unit}` is not a unit of {what}: use one of {known}")]
    WrongUnit {
        unit: String,
        what: &'static str,
        known: &'static str,
    },
    /// NaN.
    #[error("not a number (NaN): write a finite amount")]
    Nan,
    /// Below zero.
    #[error("negative: write an amount of at least 0")]
    Negative,
    /// Infinite or beyond the range of a double.
    #[error("infinite: write a finite amount")]
    Infinite,
    /// Bytes that are no whole number, or too many.
    #[error("`{text}` is not a whole number of bytes below 2^63")]
    NotWhole { text: String },
}

/// Accepts finite numbers ≥ 0.
pub(super) fn check_number(value: f64) -> Result<f64, UnitError> {
    if value.is_nan() {
        Err(UnitError::Nan)
    } else if value == f64::NEG_INFINITY || value < 0.0 {
        Err(UnitError::Negative)
    } else if value.is_infinite() {
        Err(UnitError::Infinite)
    } else {
        Ok(value + 0.0) // -0.0 becomes 0.0
    }
}

/// What a quantity is called and which units it takes: `(symbol, factor)`.
struct Dimension {
    what: &'static str,
    example: &'static str,
    unit: &'static str,
    known: &'static str,
    units: &'static [(&'static str, f64)],
}

const KIB: f64 = 1024.0;

const BYTES: Dimension = Dimension {
    what: "bytes",
    example: "64 MiB",
    unit: "MiB",
    known: "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB",
    units: &[
        ("B", 1.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("TB", 1e12),
        ("KiB", KIB),
        ("MiB", KIB * KIB),
        ("GiB", KIB * KIB * KIB),
        ("TiB", KIB * KIB * KIB * KIB),
    ],
};

const SECONDS: Dimension = Dimension {
    what: "time",
    example: "2 us",
    unit: "us",
    known: "ns, us, ms, s",
    units: &[
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("μs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
    ],
};

const RATE: Dimension = Dimension {
    what: "bandwidth",
    example: "450 GB/s",
    unit: "GB/s",
    known: "B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s, Mbit/s, Gbit/s, Tbit/s",
    units: &[
        ("B/s", 1.0),
        ("kB/s", 1e3),
        ("KB/s", 1e3),
        ("MB/s", 1e6),
        ("GB/s", 1e9),
        ("TB/s", 1e12),
        ("KiB/s", KIB),
        ("MiB/s", KIB * KIB),
        ("GiB/s", KIB * KIB * KIB),
        ("TiB/s", KIB * KIB * KIB * KIB),
        ("bit/s", 0.125),
        ("kbit/s", 125.0),
        ("Mbit/s", 125e3),
        ("Gbit/s", 125e6),
        ("Tbit/s", 125e9),
    ],
};

const FLOPS: Dimension = Dimension {
    what: "arithmetic work",
    example: "12 TFLOP",
    unit: "GFLOP",
    known: "FLOP, MFLOP, GFLOP, TFLOP, PFLOP",
    units: &[
        ("FLOP", 1.0),
        ("MFLOP", 1e6),
        ("GFLOP", 1e9),
        ("TFLOP", 1e12),
        ("PFLOP", 1e15),
    ],
};

const FLOP_RATE: Dimension = Dimension {
    what: "arithmetic rate",
    example: "989 TFLOP/s",
    unit: "TFLOP/s",
    known: "FLOP/s, MFLOP/s, GFLOP/s, TFLOP/s, PFLOP/s",
    units: &[
        ("FLOP/s", 1.0),
        ("MFLOP/s", 1e6),
        ("GFLOP/s", 1e9),
        ("TFLOP/s", 1e12),
        ("PFLOP/s", 1e15),
    ],
};

/// The number and the factor of its unit.
fn split(text: &str, dimension: &Dimension) -> Result<(f64, f64), UnitError> {
    let text = text.trim();
    // The longest numeric prefix: `1.5 us`, `2e3 us` and `.inf` are told apart by parsing, not by
    // looking for letters, because `e` is a letter too.
    let (number, rest) = (1..=text.len())
        .rev()
        .filter(|&end| text.is_char_boundary(end))
        .find_map(|end| Some((text[..end].parse::<f64>().ok()?, &text[end..])))
        .ok_or_else(|| UnitError::NoNumber {
            text: text.to_owned(),
            example: dimension.example,
        })?;
    let unit = rest.trim_start();
    if unit.is_empty() {
        check_number(number)?;
        return Err(UnitError::NoUnit {
            text: text.to_owned(),
            unit: dimension.unit,
        });
    }
    let factor = dimension
        .units
        .iter()
        .find(|(symbol, _)| *symbol == unit)
        .map(|(_, factor)| *factor)
        .ok_or_else(|| UnitError::WrongUnit {
            unit: unit.to_owned(),
            what: dimension.what,
            known: dimension.known,
        })?;
    Ok((check_number(number)?, factor))
}

/// Implements `FromStr` for a floating-point quantity.
macro_rules! from_str {
    ($name:ident, $dimension:expr) => {
        impl FromStr for $name {
            type Err = UnitError;

            fn from_str(text: &str) -> Result<Self, UnitError> {
                let (number, factor) = split(text, &$dimension)?;
                // Dividing by the exact reciprocal keeps `500 ns` the double nearest 500e-9.
                let value = if factor < 1.0 {
                    number / (1.0 / factor).round()
                } else {
                    number * factor
                };
                Self::new(value)
            }
        }
    };
}

from_str!(Seconds, SECONDS);
from_str!(BytesPerSecond, RATE);
from_str!(Flops, FLOPS);
from_str!(FlopsPerSecond, FLOP_RATE);

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, factor) = split(text, &BYTES)?;
        let bytes = number * factor;
        if bytes.fract() != 0.0 || bytes >= 2f64.powi(63) {
            return Err(UnitError::NotWhole {
                text: text.trim().to_owned(),
            });
        }
        Ok(Self::new(bytes as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_units_of_the_field() {
        assert_eq!("450 GB/s".parse::<BytesPerSecond>().unwrap().get(), 450e9);
        assert_eq!("400Gbit/s".parse::<BytesPerSecond>().unwrap().get(), 50e9);
        assert_eq!("2 us".parse::<Seconds>().unwrap().get(), 2e-6);
        assert_eq!("500 ns".parse::<Seconds>().unwrap().get(), 500e-9);
        assert_eq!("64 MiB".parse::<Bytes>().unwrap().get(), 64 << 20);
        assert_eq!("1.5 kB".parse::<Bytes>().unwrap().get(), 1500);
        assert_eq!(
            "989 TFLOP/s".parse::<FlopsPerSecond>().unwrap().get(),
            989e12
        );
        assert_eq!("2e3 us".parse::<Seconds>().unwrap().get(), 2e-3);
    }

    #[test]
    fn refuses_in_words() {
        let say = |text: &str| text.parse::<BytesPerSecond>().unwrap_err().to_string();
        assert_eq!(say("450"), "`450` has no unit: write e.g. `450 GB/s`");
        assert_eq!(say("NaN GB/s"), "not a number (NaN): write a finite amount");
        assert_eq!(say("-1 GB/s"), "negative: write an amount of at least 0");
        assert_eq!(say("inf GB/s"), "infinite: write a finite amount");
        assert_eq!(say("1e400 GB/s"), "infinite: write a finite amount");
        assert!(say("5 us").starts_with("`us` is not a unit of bandwidth: use one of B/s"));
        assert!(say("fast").starts_with("`fast` does not start with a number"));
        assert!(say("").starts_with("`` does not start with a number"));
        assert!(
            "1.5 B"
                .parse::<Bytes>()
                .unwrap_err()
                .to_string()
                .contains("whole number")
        );
    }
}
