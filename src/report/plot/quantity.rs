//! What an axis measures, and how its numbers are written.

/// What the numbers of an axis mean; values are in base units (bytes, seconds, bytes per second,
/// shares of one).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A number without unit, or with the unit that the label names.
    Number,
    /// Bytes, written `64 KiB`.
    Bytes,
    /// Seconds, written in ns, us, ms or s, whichever suits the largest.
    Seconds,
    /// Bytes per second, written in MB/s, GB/s or TB/s.
    Rate,
    /// A share of one, written in per cent.
    Share,
    /// A ratio, written `1.5×`.
    Factor,
}

/// A unit: what to divide by, and its name.
pub(super) type Unit = (f64, &'static str);

const TIMES: [Unit; 4] = [(1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s")];
const RATES: [Unit; 3] = [(1e6, "MB/s"), (1e9, "GB/s"), (1e12, "TB/s")];
const SIZES: [Unit; 6] = [
    (1.0, "B"),
    (1024.0, "KiB"),
    (1_048_576.0, "MiB"),
    (1_073_741_824.0, "GiB"),
    (1_099_511_627_776.0, "TiB"),
    (1_125_899_906_842_624.0, "PiB"),
];

fn largest_below(units: &[Unit], value: f64) -> Unit {
    let fits = units
        .iter()
        .rev()
        .find(|(size, _)| value.abs() >= *size * 0.999_999);
    *fits.unwrap_or(&units[0])
}

impl Quantity {
    /// The unit that suits values up to this one.
    pub(super) fn unit(&self, largest: f64) -> Unit {
        match self {
            Self::Number => (1.0, ""),
            Self::Factor => (1.0, "×"),
            Self::Share => (0.01, "%"),
            Self::Bytes => largest_below(&SIZES, largest),
            Self::Seconds => largest_below(&TIMES, largest),
            Self::Rate => largest_below(&RATES, largest),
        }
    }

    /// Whether the unit follows each number rather than the name of the axis.
    pub(super) fn unit_on_ticks(&self) -> bool {
        matches!(self, Self::Share | Self::Factor)
    }

    /// One value with its unit, to three digits: `1.23 ms`, `64 KiB`, `97.2%`.
    #[must_use]
    pub fn show(&self, value: f64) -> String {
        let (size, name) = self.unit(value);
        let text = digits(value / size);
        match self {
            Self::Number => text,
            Self::Share | Self::Factor => text + name,
            _ => format!("{text} {name}"),
        }
    }
}

/// Three digits as of [`three`]; whole numbers up to a million
/// in full.
pub(super) fn digits(value: f64) -> String {
    let size = value.abs();
    if value == value.round() && size < 1e6 {
        return plain(value, 0);
    }
    three(value)
}

/// Three digits, of them two decimals at least below ten, whole or not.
pub(super) fn three(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "–".to_owned();
    }
    if size >= 1e6 || (size > 0.0 && size < 1e-5) {
        return exponent(value, 2);
    }
    let decimals = if size >= 99.95 {
        0
    } else if size >= 9.995 {
        1
    } else {
        [0.1, 0.01, 1e-3, 1e-4]
            .iter()
            .filter(|limit| size < **limit)
            .count()
            + 2
    };
    plain(value, decimals)
}

/// Fixed decimals, and no minus before a zero.
pub(super) fn plain(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let zero = text.chars().all(|c| matches!(c, '-' | '0' | '.'));
    let text = if zero {
        text.trim_start_matches('-').to_owned()
    } else {
        text
    };
    text.replace('-', "−")
}

/// `1.5e9`, with up to so many decimals before the `e`.
pub(super) fn exponent(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$e}");
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = if mantissa.contains('.') {
        mantissa.trim_end_matches('0').trim_end_matches('.')
    } else {
        mantissa
    };
    format!("{mantissa}e{power}").replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_choose_their_unit() {
        assert_eq!(Quantity::Bytes.show(65536.0), "64 KiB");
        assert_eq!(Quantity::Bytes.show(1e9), "954 MiB");
        assert_eq!(Quantity::Seconds.show(1.234e-3), "1.23 ms");
        assert_eq!(Quantity::Seconds.show(0.999_999_9e-3), "1.00 ms");
        assert_eq!(Quantity::Seconds.show(0.0), "0 ns");
        assert_eq!(Quantity::Rate.show(24.5e9), "24.5 GB/s");
        assert_eq!(Quantity::Share.show(0.9272), "92.7%");
        assert_eq!(Quantity::Factor.show(1.3), "1.30×");
        assert_eq!(Quantity::Number.show(f64::NAN), "–");
        assert_eq!(Quantity::Number.show(-0.0), "0");
        assert_eq!(Quantity::Number.show(-2.5e9), "−2.5e9");
        assert_eq!(Quantity::Number.show(16384.0), "16384");
    }
}
