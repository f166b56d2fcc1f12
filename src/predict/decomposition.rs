//! `T(d) = A·d + B + C/d` and the best number of pieces.
//!
//! Compass (arXiv 2609.10549): d pieces of computation Tc/d and communication Tm/d overlap, and
//! every piece beyond the first costs A = α + β·m:
//!
//! ```text
//! T(d) = (d − 1)·max(Tc/d, Tm/d) + (Tc + Tm)/d + (d − 1)·A
//!      = A·d + B + C/d      with  C = min(Tc, Tm),  B = max(Tc, Tm) − A
//! T'(d) = A − C/d² = 0  ⇒  d* = √(C/A);   T''(d) = 2C/d³ ≥ 0, so d* is the minimum
//! ```
//!
//! A = 0 means the largest d allowed. d* is rounded to the better neighbouring power of two, and
//! kept only if it beats d = 1. Here A holds, besides the fitted overhead, what the profile says a
//! further piece costs: the fixed time of its collective where communication is the longer part, of
//! its kernel where computation is.
//!
//! ```
//! use duet::predict::Decomposition;
//! let t = Decomposition::new(8e-3, 2e-3, 0.125e-3); // Tc = 8 ms, Tm = 2 ms, A = 0.125 ms
//! assert_eq!(t.optimum, 4.0); // √(2/0.125)
//! assert_eq!(t.pieces(|d| d <= 64), 4);
//! assert!((t.seconds(4.0) - 8.875e-3).abs() < 1e-12); // 8 + 2/4 + 3 · 0.125
//! assert_eq!(t.seconds(1.0), 10e-3);
//! ```

/// The closed form of a decomposition.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Decomposition {
    /// Seconds that every further piece costs.
    pub a: f64,
    /// The part that the number of pieces does not change \[s\].
    pub b: f64,
    /// The part that is overlapped but for one piece \[s\].
    pub c: f64,
    /// √(C/A), not rounded; infinite where A is 0.
    pub optimum: f64,
}

/// Pieces beyond this are never tried.
pub(super) const MOST_PIECES: u32 = 4096;

impl Decomposition {
    /// From the unsplit computation and communication and the cost of a further piece \[s\].
    pub fn new(compute: f64, communication: f64, a: f64) -> Self {
        let c = compute.min(communication);
        Self {
            a,
            b: compute.max(communication) - a,
            c,
            optimum: if a > 0.0 {
                (c / a).sqrt()
            } else {
                f64::INFINITY
            },
        }
    }

    /// T(d) \[s\].
    pub fn seconds(&self, d: f64) -> f64 {
        self.a * d + self.b + self.c / d
    }

    /// The powers of two on both sides of the optimum, from 1 to 4096.
    pub fn neighbours(&self) -> [u32; 2] {
        let most = f64::from(MOST_PIECES);
        let optimum = if self.optimum.is_nan() {
            1.0
        } else {
            self.optimum.clamp(1.0, most)
        };
        let below = 1u32 << (optimum as u32).max(1).ilog2();
        [below, (2 * below).min(MOST_PIECES)]
    }

    /// The best power of two that `admissible` lets pass, 1 if none beats it.
    pub fn pieces(&self, admissible: impl Fn(u32) -> bool) -> u32 {
        let [below, above] = self.neighbours();
        let mut best = 1;
        let mut consider = |d: u32| {
            if self.seconds(f64::from(d)) < self.seconds(f64::from(best)) {
                best = d;
            }
        };
        // T falls up to the optimum: of those below it the largest admissible is the best.
        let mut d = below;
        while d > 1 && !admissible(d) {
            d /= 2;
        }
        if d > 1 {
            consider(d);
        }
        if admissible(above) {
            consider(above);
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Over all d: convex, and no d beats the optimum; over all powers of two that divide,
        /// none beats the one chosen.
        #[test]
        fn the_optimum_is_that_of_brute_force(
            compute in 0.0..1.0f64,
            communication in 0.0..1.0f64,
            a in prop_oneof![Just(0.0), 1e-7..1e-1f64],
            limit in 0u32..13,
        ) {
            let t = Decomposition::new(compute, communication, a);
            let textbook = |d: f64| {
                (d - 1.0) * (compute / d).max(communication / d)
                    + (compute + communication) / d + (d - 1.0) * a
            };
            let all: Vec<f64> = (1..=MOST_PIECES).map(|d| textbook(f64::from(d))).collect();
            for (i, time) in all.iter().enumerate() {
                prop_assert!((time - t.seconds(1.0 + i as f64)).abs() <= 1e-12 * (1.0 + time));
            }
            let slack = 1e-12 * all.iter().copied().fold(1.0, f64::max);
            for three in all.windows(3) {
                prop_assert!(three[0] - 2.0 * three[1] + three[2] >= -slack);
            }
            let least = all.iter().copied().fold(f64::INFINITY, f64::min);
            let real = t.optimum.clamp(1.0, f64::from(MOST_PIECES));
            prop_assert!(t.seconds(real) <= least + slack);
            let admissible = |d: u32| d <= 1 << limit;
            let powers = (0..=limit.min(12)).map(|power| 1u32 << power);
            let best = powers.map(|d| all[d as usize - 1]).fold(f64::INFINITY, f64::min);
            let chosen = t.pieces(admissible);
            prop_assert!(admissible(chosen));
            prop_assert!(all[chosen as usize - 1] <= best + slack, "{chosen}");
        }
    }

    #[test]
    fn free_pieces_are_as_many_as_allowed() {
        let t = Decomposition::new(1.0, 1.0, 0.0);
        assert_eq!(t.pieces(|d| d <= 32), 32);
        assert_eq!(t.pieces(|d| d == 1), 1);
        // Nothing to overlap: d = 1.
        assert_eq!(Decomposition::new(1.0, 0.0, 0.0).pieces(|_| true), 1);
    }
}
