//! Printing quantities with 3–4 significant digits and a fitting prefix.

use std::fmt;

use super::{Bytes, BytesPerSecond, Flops, FlopsPerSecond, Seconds};

/// `value` with four significant digits, without trailing zeros after the point.
fn digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (3 - magnitude).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Writes `value` with the largest unit that leaves at least 1 before the point.
fn write_scaled(f: &mut fmt::Formatter<'_>, value: f64, units: &[(&str, f64)]) -> fmt::Result {
    if value.is_infinite() {
        return f.pad("infinite");
    }
    let (unit, factor) = units
        .iter()
        .rev()
        .find(|(_, factor)| value >= *factor * 0.999_95)
        .unwrap_or(&units[0]);
    f.pad(&format!("{} {unit}", digits(value / factor)))
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
        write_scaled(f, self.get(), &units)
    }
}

impl fmt::Display for BytesPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            ("B/s", 1.0),
            ("kB/s", 1e3),
            ("MB/s", 1e6),
            ("GB/s", 1e9),
            ("TB/s", 1e12),
        ];
        write_scaled(f, self.get(), &units)
    }
}

impl fmt::Display for Flops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            ("FLOP", 1.0),
            ("MFLOP", 1e6),
            ("GFLOP", 1e9),
            ("TFLOP", 1e12),
            ("PFLOP", 1e15),
        ];
        write_scaled(f, self.get(), &units)
    }
}

impl fmt::Display for FlopsPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            ("FLOP/s", 1.0),
            ("MFLOP/s", 1e6),
            ("GFLOP/s", 1e9),
            ("TFLOP/s", 1e12),
            ("PFLOP/s", 1e15),
        ];
        write_scaled(f, self.get(), &units)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            ("B", 1.0),
            ("KiB", 1024.0),
            ("MiB", 1024.0 * 1024.0),
            ("GiB", 1024.0 * 1024.0 * 1024.0),
            ("TiB", 1024.0 * 1024.0 * 1024.0 * 1024.0),
        ];
        write_scaled(f, self.as_f64(), &units)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_three_to_four_digits() {
        assert_eq!(Seconds::of(150.300_64e-6).to_string(), "150.3 us");
        assert_eq!(Seconds::of(999.96e-6).to_string(), "1 ms");
        assert_eq!(Seconds::ZERO.to_string(), "0 ns");
        assert_eq!(BytesPerSecond::of(450e9).to_string(), "450 GB/s");
        assert_eq!(Bytes::new(64 << 20).to_string(), "64 MiB");
        assert_eq!(FlopsPerSecond::of(989.4e12).to_string(), "989.4 TFLOP/s");
        assert_eq!(BytesPerSecond::INFINITE.to_string(), "infinite");
    }
}
