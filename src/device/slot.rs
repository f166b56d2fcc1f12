//! One number of a profile, read from a text or multiplied, within limits that keep every time of
//! the model finite.

use std::str::FromStr;

use crate::units::{Bytes, BytesPerSecond, FlopsPerSecond, Seconds, UnitError};

/// Slowest rate [bytes/s, FLOP/s], longest cost [s], smallest share.
const LEAST_RATE: f64 = 1.0;
const LONGEST: f64 = 3600.0;
const LEAST_SHARE: f64 = 1e-6;
/// Most SMs and engines: many times what any GPU has.
const MOST_COUNT: u32 = 65_536;

/// A field of a device, ready to be written.
pub(super) enum Slot<'d> {
    Time(&'d mut Seconds),
    Rate(&'d mut BytesPerSecond),
    Flops(&'d mut FlopsPerSecond),
    Size(&'d mut Bytes),
    Count(&'d mut u32),
    Share(&'d mut f64),
}

impl Slot<'_> {
    /// What a value looks like, for messages.
    pub(super) const fn example(&self) -> &'static str {
        match self {
            Self::Time(_) => "2 us",
            Self::Rate(_) => "450 GB/s",
            Self::Flops(_) => "989 TFLOP/s",
            Self::Size(_) => "80 GiB",
            Self::Count(_) => "132",
            Self::Share(_) => "0.9",
        }
    }

    /// The value in base units.
    pub(super) fn get(&self) -> f64 {
        match self {
            Self::Time(slot) => slot.get(),
            Self::Rate(slot) => slot.get(),
            Self::Flops(slot) => slot.get(),
            Self::Size(slot) => slot.as_f64(),
            Self::Count(slot) => f64::from(**slot),
            Self::Share(slot) => **slot,
        }
    }

    /// `value`, in base units, as a file states it: to five significant digits, sizes and counts
    /// whole.
    pub(super) fn text(&self, value: f64) -> String {
        match self {
            Self::Time(_) => format!("{} us", digits(value * 1e6)),
            Self::Rate(_) => format!("{} GB/s", digits(value / 1e9)),
            Self::Flops(_) => format!("{} TFLOP/s", digits(value / 1e12)),
            Self::Size(_) => format!("{} B", value.round() as u64),
            Self::Count(_) => format!("{}", value.round() as u64),
            Self::Share(_) => digits(value),
        }
    }

    /// Writes the value that `text` states.
    ///
    /// # Errors
    /// Why it is refused, with the remedy.
    pub(super) fn write(&mut self, text: &str) -> Result<(), String> {
        fn read<T: FromStr<Err = UnitError>>(text: &str) -> Result<T, String> {
            text.parse().map_err(|error: UnitError| error.to_string())
        }
        match self {
            Self::Time(slot) => **slot = time(read::<Seconds>(text)?.get())?,
            Self::Rate(slot) => {
                **slot = BytesPerSecond::of(rate(read::<BytesPerSecond>(text)?.get())?)
            }
            Self::Flops(slot) => {
                **slot = FlopsPerSecond::of(rate(read::<FlopsPerSecond>(text)?.get())?)
            }
            Self::Size(slot) => **slot = read(text)?,
            Self::Count(slot) => **slot = count(text)?,
            Self::Share(slot) => **slot = share(text)?,
        }
        Ok(())
    }

    /// Multiplies what is there by a finite factor above 0.
    ///
    /// # Errors
    /// Why the result is refused.
    pub(super) fn scale(&mut self, factor: f64) -> Result<(), String> {
        match self {
            Self::Time(slot) => **slot = time(slot.get() * factor)?,
            Self::Rate(slot) => **slot = BytesPerSecond::of(rate(limited(slot.get())? * factor)?),
            Self::Flops(slot) => **slot = FlopsPerSecond::of(rate(limited(slot.get())? * factor)?),
            Self::Size(slot) => {
                let bytes = (slot.as_f64() * factor).round();
                if bytes >= 2f64.powi(63) {
                    return Err("too many bytes: use a smaller factor".to_owned());
                }
                **slot = Bytes::new(bytes as u64);
            }
            Self::Count(slot) => **slot = count(&(f64::from(**slot) * factor).round().to_string())?,
            Self::Share(slot) => **slot = share(&(**slot * factor).to_string())?,
        }
        Ok(())
    }
}

/// Five significant digits, without an exponent.
pub(crate) fn digits(value: f64) -> String {
    let rounded = format!("{value:.4e}").parse::<f64>();
    rounded.unwrap_or(value).to_string()
}

/// A rate that has a limit (the ideal profile's have none).
fn limited(rate: f64) -> Result<f64, String> {
    match rate.is_finite() {
        true => Ok(rate),
        false => Err("this profile has no limit here: set a value, e.g. `450 GB/s`".to_owned()),
    }
}

/// A finite rate of at least [`LEAST_RATE`].
fn rate(value: f64) -> Result<f64, String> {
    if value < LEAST_RATE {
        Err("too slow: write an amount above 0, at least 1 a second".to_owned())
    } else if value.is_infinite() {
        Err("infinite: write a finite amount".to_owned())
    } else {
        Ok(value)
    }
}

/// A time of at most [`LONGEST`].
fn time(seconds: f64) -> Result<Seconds, String> {
    match seconds <= LONGEST {
        true => Ok(Seconds::of(seconds)),
        false => Err("longer than an hour: write less".to_owned()),
    }
}

/// A whole number from 1.
fn count(text: &str) -> Result<u32, String> {
    match u32::from_str(text.trim()) {
        Ok(0) => Err("zero: write a whole number of at least 1".to_owned()),
        Ok(number) if number <= MOST_COUNT => Ok(number),
        _ => Err(format!(
            "`{text}` is not a count: write a whole number from 1 to {MOST_COUNT}"
        )),
    }
}

/// A share above 0 (at least [`LEAST_SHARE`]), at most 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    match f64::from_str(text.trim()) {
        Ok(number) if (LEAST_SHARE..=1.0).contains(&number) => Ok(number),
        Ok(_) => Err(format!(
            "`{text}` is no share: write a number above 0 (at least {LEAST_SHARE}) and at most 1"
        )),
        Err(_) => Err(format!(
            "`{text}` is not a number: write a share such as `0.9`"
        )),
    }
}
