//! Values of overrides: words, factors, bandwidths and latencies.

use crate::topology::read::draft::{check_rate, check_time};
use crate::units::{BytesPerSecond, Seconds};

pub(super) fn choice(value: &str, words: &[&str]) -> Result<usize, String> {
    words
        .iter()
        .position(|word| *word == value)
        .ok_or_else(|| format!("`{value}` is not a value: write {}", words.join(" or ")))
}

/// `2x`, `0.5x` or `2×` as a number; `None` where the value is no factor.
pub(super) fn factor(value: &str) -> Result<Option<f64>, String> {
    let Some(number) = value.strip_suffix(['x', '×']) else {
        return Ok(None);
    };
    match number.trim().parse::<f64>() {
        Ok(factor) if factor > 0.0 && factor.is_finite() => Ok(Some(factor)),
        _ => Err(format!(
            "`{value}` is no factor: write one above 0, e.g. `2x`"
        )),
    }
}

/// A bandwidth from a value or a factor of the old one.
pub(super) fn rate(old: BytesPerSecond, value: &str) -> Result<BytesPerSecond, String> {
    let new: BytesPerSecond = match factor(value)? {
        Some(factor) => BytesPerSecond::new(old.get() * factor),
        None => value.parse(),
    }
    .map_err(|error| error.to_string())?;
    check_rate(new)?;
    Ok(new)
}

/// A latency from a value or a factor of the old one.
pub(super) fn time(old: Seconds, value: &str) -> Result<Seconds, String> {
    let new: Seconds = match factor(value)? {
        Some(factor) => Seconds::new(old.get() * factor),
        None => value.parse(),
    }
    .map_err(|error| error.to_string())?;
    check_time(new)?;
    Ok(new)
}
