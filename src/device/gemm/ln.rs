//! The natural logarithm of numbers from 1 on in a few instructions, for callers that ask many times per
//! microsecond.
//!
//! ```text
//! x = 2^e · m,  1 ≤ m < 2,  c the middle of the 128th of [1, 2) that m lies in
//! ln x = e·ln 2 + ln c + ln(1 + r),   r = m/c − 1,  |r| < 1/256
//! ln(1 + r) = r − r²/2 + r³/3 − r⁴/4 + r⁵/5,  the rest being less than r⁶/6 < 6·10⁻¹⁶
//! ```

const PARTS: usize = 128;

/// (1/c, ln c) of every part.
#[derive(Clone, Debug)]
pub(super) struct Ln(Box<[(f64, f64); PARTS]>);

impl Default for Ln {
    fn default() -> Self {
        let part = |i: usize| {
            let inverse = 1.0 / (1.0 + (i as f64 + 0.5) / PARTS as f64);
            (inverse, -inverse.ln())
        };
        Self(Box::new(std::array::from_fn(part)))
    }
}

impl Ln {
    /// ln x.
    #[inline]
    pub fn of(&self, x: f64) -> f64 {
        const DIGITS: u64 = (1 << 52) - 1;
        const ONE: u64 = 1023 << 52;
        let bits = x.to_bits();
        let exponent = (bits >> 52) as i32 - 1023;
        let (inverse, ln) = self.0[(bits >> 45) as usize % PARTS];
        let r = f64::from_bits(bits & DIGITS | ONE) * inverse - 1.0;
        let rest = r * (1.0 + r * (-1.0 / 2.0 + r * (1.0 / 3.0 + r * (-1.0 / 4.0 + r / 5.0))));
        f64::from(exponent) * std::f64::consts::LN_2 + (ln + rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_right_to_the_last_digits() {
        let ln = Ln::default();
        let near = (1..5000u32).map(f64::from);
        let far = (0..5000u32).map(|i| 1.0 + f64::from(i) / 4999.0);
        let huge = (0..1000).map(|i| 1.013f64.powi(i));
        for x in near.chain(far).chain(huge) {
            let error = (ln.of(x) - x.ln()).abs();
            assert!(error <= 2e-15 * x.ln().max(1.0), "{x}: {error}");
        }
    }
}
