//! Whether times fall on a lattice, as they do where something is polled.
//!
//! Times x = x₀ + i·g with whole i make all of exp(2πi·x/g) point the same way. The *concentration*
//! R(g) = |Σ exp(2πi·x/g)| / N is 1 then and about 1/√N for times without order. R(g/2), R(g/3), …
//! are as large, so the greatest g with nearly the greatest R is the granularity.

use std::f64::consts::TAU;

/// Least and greatest granularity looked for \[s\], and the ratio of neighbours.
const FROM: f64 = 0.4e-6;
const TO: f64 = 25e-6;
const STEP: f64 = 1.002;
/// Below this concentration there is no lattice.
const SURE: f64 = 0.6;
/// Another granularity with this share of the greatest concentration is as good.
const NEARLY: f64 = 0.95;

/// The concentration of `times` at granularity `g`, 0 to 1.
fn concentration(times: &[f64], g: f64) -> f64 {
    let (mut re, mut im) = (0.0, 0.0);
    for time in times {
        let (sin, cos) = (TAU * time / g).sin_cos();
        re += cos;
        im += sin;
    }
    f64::hypot(re, im) / times.len().max(1) as f64
}

/// The granularity of `times` \[s\] and its concentration; `None` where there is no lattice. Times
/// that differ by less than two granularities cannot tell.
///
/// ```
/// use duet::calibrate::machine::lattice::granularity;
/// let polled: Vec<f64> = (0..200).map(|i| 1.3e-6 + 8.8e-6 * f64::from(i * 7 % 6)).collect();
/// let (g, sure) = granularity(&polled).unwrap();
/// assert!((g - 8.8e-6).abs() < 0.05e-6 && sure > 0.98);
/// ```
pub fn granularity(times: &[f64]) -> Option<(f64, f64)> {
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let most = times.iter().copied().fold(0.0, f64::max);
    let mut candidates = Vec::new();
    let mut g = FROM;
    while g < TO.min((most - least) / 2.0) && times.len() >= 16 {
        candidates.push((g, concentration(times, g)));
        g *= STEP;
    }
    let best = candidates.iter().map(|c| c.1).fold(0.0, f64::max);
    if best < SURE {
        return None;
    }
    let good = candidates.iter().rposition(|c| c.1 >= NEARLY * best)?;
    // From the last good one down to the top of its peak.
    let mut top = good;
    while top > 0 && candidates[top - 1].1 > candidates[top].1 {
        top -= 1;
    }
    Some(candidates[top])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_without_order_have_none() {
        let mut rng = fastrand::Rng::with_seed(3);
        let times: Vec<f64> = (0..300).map(|_| 40e-6 * rng.f64()).collect();
        assert_eq!(granularity(&times), None);
        assert_eq!(granularity(&[1e-6; 100]), None);
        assert_eq!(granularity(&[]), None);
    }

    #[test]
    fn noise_beneath_the_granularity_is_borne() {
        let mut rng = fastrand::Rng::with_seed(4);
        let times: Vec<f64> = (0..200)
            .map(|_| 3e-6 + 6.5e-6 * f64::from(rng.u32(0..7)) + 0.8e-6 * rng.f64())
            .collect();
        let (g, sure) = granularity(&times).unwrap();
        assert!((g - 6.5e-6).abs() < 0.1e-6, "{g}");
        assert!(sure > 0.9);
    }
}
