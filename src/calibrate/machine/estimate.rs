//! A number with how sure it is: medians, and least squares with weights 1/y², so that relative
//! errors count, each with a bootstrap interval of 95 %.

use crate::calibrate::bootstrap::Bootstrap;
use crate::calibrate::nnls::Normal;

/// How often samples are drawn again.
const RESAMPLES: u32 = 400;

/// A measured number.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    /// Where 95 % of the resampled values lie.
    pub low: f64,
    pub high: f64,
    /// Samples.
    pub n: usize,
}

fn bootstrap() -> Bootstrap {
    Bootstrap {
        resamples: RESAMPLES,
        ..Bootstrap::default()
    }
}

/// The median; the mean of the two in the middle of an even number.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = samples.iter().copied().filter(|s| s.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some((sorted[last / 2] + sorted[last.div_ceil(2)]) / 2.0)
}

impl Estimate {
    /// A number that is counted or read and has no spread.
    pub const fn exact(value: f64, n: usize) -> Self {
        Self {
            value,
            low: value,
            high: value,
            n,
        }
    }

    /// The median of samples; `None` without any.
    pub fn median(samples: &[f64]) -> Option<Self> {
        let value = median(samples)?;
        let draws = bootstrap().draw(samples.len(), |picks| {
            median(&picks.iter().map(|&i| samples[i]).collect::<Vec<_>>())
        });
        Some(Self::around(value, draws, samples.len()))
    }

    fn around(value: f64, draws: Vec<f64>, n: usize) -> Self {
        let [low, high] = bootstrap().interval(draws).unwrap_or([value, value]);
        Self {
            value,
            low: low.min(value),
            high: high.max(value),
            n,
        }
    }

    /// What a monotonic function makes of it.
    #[must_use]
    pub fn map(self, f: impl Fn(f64) -> f64) -> Self {
        let (one, two) = (f(self.low), f(self.high));
        Self {
            value: f(self.value),
            low: one.min(two),
            high: one.max(two),
            n: self.n,
        }
    }

    /// The difference of two that vary by themselves, at least 0.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self {
            value: (self.value - other.value).max(0.0),
            low: (self.low - other.high).max(0.0),
            high: (self.high - other.low).max(0.0),
            n: self.n.min(other.n),
        }
    }
}

/// Weighted non-negative least squares of `y ≈ columns · x` with weights 1/y²: an estimate for each
/// unknown. `None` where the rows cannot tell the unknowns apart.
///
/// ```
/// use duet::calibrate::machine::estimate::fit;
/// // A copy of b bytes takes 5 us + b / (400 GB/s).
/// let rows: Vec<([f64; 2], f64)> = (12..30)
///     .map(|e| f64::from(1 << e))
///     .map(|bytes| ([1.0, bytes], 5e-6 + bytes / 400e9))
///     .collect();
/// let [start, per_byte] = fit(&rows).unwrap();
/// assert!((start.value - 5e-6).abs() < 1e-12);
/// assert!((1.0 / per_byte.value - 400e9).abs() < 1.0);
/// ```
pub fn fit<const P: usize>(rows: &[([f64; P], f64)]) -> Option<[Estimate; P]> {
    let rows: Vec<_> = rows.iter().filter(|(_, y)| *y > 0.0).collect();
    let solve = |picks: &mut dyn Iterator<Item = usize>| {
        let mut sums = Normal::<P>::default();
        for pick in picks {
            let (columns, y) = rows[pick];
            sums.add(*columns, *y, 1.0 / (y * y));
        }
        (sums.independence() > 1e-9).then(|| sums.solve())
    };
    let value = solve(&mut (0..rows.len()))?;
    let draws = bootstrap().draw(rows.len(), |picks| solve(&mut picks.iter().copied()));
    Some(std::array::from_fn(|j| {
        let of = draws.iter().map(|draw| draw[j]).collect();
        Estimate::around(value[j], of, rows.len())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn medians_and_their_intervals() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(Estimate::median(&[f64::NAN]), None);
        let samples: Vec<f64> = (0..101).map(f64::from).collect();
        let found = Estimate::median(&samples).unwrap();
        // The median of n samples of a uniform law has standard deviation of about range / (2 √n).
        assert_eq!((found.value, found.n), (50.0, 101));
        assert!(found.low > 35.0 && found.low < 48.0, "{found:?}");
        assert!(found.high < 65.0 && found.high > 52.0, "{found:?}");
        let inverse = found.map(|v| 1.0 / v);
        assert!(inverse.low < inverse.value && inverse.value < inverse.high);
    }

    #[test]
    fn differences_stay_above_zero() {
        let of = |value: f64| Estimate {
            value,
            low: value - 1.0,
            high: value + 1.0,
            n: 5,
        };
        let gap = of(5.0).less(of(3.0));
        assert_eq!((gap.value, gap.low, gap.high), (2.0, 0.0, 4.0));
        assert_eq!(of(3.0).less(of(9.0)).value, 0.0);
    }

    #[test]
    fn one_point_tells_no_line() {
        assert!(fit(&[([1.0, 5.0], 2.0), ([1.0, 5.0], 2.1)]).is_none());
        assert!(fit::<2>(&[]).is_none());
    }

    proptest! {
        /// What made the samples is found again. With rows aᵢ = [1, bytes]/tᵢ, relative noise of at
        /// most ε moves a solution x of least squares by |Δx_j| ≤ ε·√n·√((AᵀA)⁻¹_jj) (Cauchy and
        /// Schwarz); weights taken from the noisy times themselves add at most a factor of
        /// ((1 + ε)/(1 − ε))².
        #[test]
        fn lines_are_recovered(start in 1e-6..2e-5_f64, rate in 1e9..1e12_f64, noise in 0.0..0.02_f64, seed in 0..1000_u64) {
            let mut rng = fastrand::Rng::with_seed(seed);
            let rows: Vec<([f64; 2], f64)> = (0..60)
                .map(|i| f64::from(1 << (12 + i % 15)))
                .map(|bytes| {
                    let wobble = 1.0 + noise * (2.0 * rng.f64() - 1.0);
                    ([1.0, bytes], (start + bytes / rate) * wobble)
                })
                .collect();
            let [found, per_byte] = fit(&rows).unwrap();
            let [mut ones, mut mixed, mut bytes2] = [0.0; 3];
            for ([_, bytes], _) in &rows {
                let weight = (start + bytes / rate).powi(-2);
                ones += weight;
                mixed += weight * bytes;
                bytes2 += weight * bytes * bytes;
            }
            let determinant = ones * bytes2 - mixed * mixed;
            let most = noise * 60f64.sqrt() * ((1.0 + noise) / (1.0 - noise)).powi(2);
            let bound = |inverse: f64, truth: f64| most * inverse.sqrt() + 1e-6 * truth;
            let (off, most) = ((found.value - start).abs(), bound(bytes2 / determinant, start));
            prop_assert!(off <= most, "{found:?} {start}");
            let (off, most) = ((per_byte.value - 1.0 / rate).abs(), bound(ones / determinant, 1.0 / rate));
            prop_assert!(off <= most, "{per_byte:?} {rate}");
            prop_assert!(found.low <= found.value && found.value <= found.high);
        }
    }
}
