//! Weighted non-negative least squares: min over x ≥ 0 of Σ w·(y − Σ_j x_j·a_j)².
//!
//! The rows are added up to the normal equations G = Σ w·a·aᵀ, r = Σ w·a·y, which is all that is
//! kept: adding those of groups of rows is what makes a bootstrap cheap. Columns are scaled to unit
//! length (G_jj = 1) before solving, so units do not matter. The active-set method of Lawson and
//! Hanson (*Solving Least Squares Problems*, 1974, ch. 23), on the normal equations as in Bro and de
//! Jong 1997, then ends at a point that meets the conditions of Karush, Kuhn and Tucker:
//! gradient g = r − G·x, and for each j either x_j > 0 and g_j = 0, or x_j = 0 and g_j ≤ 0.
//!
//! ```
//! use duet::calibrate::nnls::Normal;
//! // y = 2 + 3·t at t = 0, 1, 2.
//! let mut sums = Normal::<2>::default();
//! for t in [0.0, 1.0, 2.0] {
//!     sums.add([1.0, t], 2.0 + 3.0 * t, 1.0);
//! }
//! let [a, b] = sums.solve();
//! assert!((a - 2.0).abs() < 1e-12 && (b - 3.0).abs() < 1e-12);
//! // y = 1 − t would need b = −1; the best with b = 0 is the mean of y.
//! let mut sums = Normal::<2>::default();
//! for t in [0.0, 1.0, 2.0] {
//!     sums.add([1.0, t], 1.0 - t, 1.0);
//! }
//! assert_eq!(sums.solve(), [0.0, 0.0]);
//! ```

use std::array::from_fn;
use std::ops::AddAssign;

/// A pivot below this, of a matrix with unit diagonal, is rounding: the column depends on others.
const DEPENDENT: f64 = 1e-12;
/// A gradient below this share of the largest |r_j| is rounding.
const FLAT: f64 = 1e-13;

type Matrix<const P: usize> = [[f64; P]; P];

/// Normal equations of P unknowns.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Normal<const P: usize> {
    gram: Matrix<P>,
    right: [f64; P],
}

impl<const P: usize> Default for Normal<P> {
    fn default() -> Self {
        Self {
            gram: [[0.0; P]; P],
            right: [0.0; P],
        }
    }
}

impl<const P: usize> AddAssign for Normal<P> {
    fn add_assign(&mut self, other: Self) {
        for i in 0..P {
            self.right[i] += other.right[i];
            for j in 0..P {
                self.gram[i][j] += other.gram[i][j];
            }
        }
    }
}

impl<const P: usize> Normal<P> {
    /// Adds the row `columns · x ≈ y` with a weight.
    pub fn add(&mut self, columns: [f64; P], y: f64, weight: f64) {
        for (i, a) in columns.iter().enumerate() {
            self.right[i] += weight * a * y;
            for (j, b) in columns.iter().enumerate() {
                self.gram[i][j] += weight * a * b;
            }
        }
    }

    /// How well the unknowns can be told apart: the least, over columns, of 1 − R² of a column
    /// explained by those before it. 1: orthogonal; 0: dependent, or a column of zeros.
    pub fn independence(&self) -> f64 {
        let (scaled, _) = self.scaled();
        if (0..P).any(|j| scaled.gram[j][j] == 0.0) {
            return 0.0;
        }
        let mut least = 1.0_f64;
        // A non-positive pivot stops the factorisation.
        if factor(&scaled.gram, &[true; P], |pivot| least = least.min(pivot)).is_none() {
            return 0.0;
        }
        least
    }

    /// The least-squares solution with x ≥ 0. Where columns depend on each other it is one of
    /// several; a column of zeros gets 0.
    pub fn solve(&self) -> [f64; P] {
        let (scaled, scale) = self.scaled();
        let x = scaled.active_set();
        from_fn(|j| if scale[j] > 0.0 { x[j] / scale[j] } else { 0.0 })
    }

    /// With every column at unit length, and the lengths.
    fn scaled(&self) -> (Self, [f64; P]) {
        let scale: [f64; P] = from_fn(|j| self.gram[j][j].max(0.0).sqrt());
        let over = |value: f64, by: f64| if by > 0.0 { value / by } else { 0.0 };
        let scaled = Self {
            gram: from_fn(|i| from_fn(|j| over(over(self.gram[i][j], scale[i]), scale[j]))),
            right: from_fn(|j| over(self.right[j], scale[j])),
        };
        (scaled, scale)
    }

    /// Lawson and Hanson's algorithm NNLS.
    fn active_set(&self) -> [f64; P] {
        let flat = FLAT
            * self
                .right
                .iter()
                .fold(0.0, |most: f64, r| most.max(r.abs()));
        let (mut x, mut free) = ([0.0; P], [false; P]);
        // Unknowns that rounding would free in vain at this x.
        let mut vain = [false; P];
        // Each round that changes x lowers the sum of squares, so no set of free unknowns comes
        // twice; the bound only guards against rounding.
        for _ in 0..1 << P.min(12) {
            let gradient = self.gradient(&x);
            let enter = (0..P)
                .filter(|&j| !free[j] && !vain[j] && gradient[j] > flat)
                .max_by(|&i, &j| gradient[i].total_cmp(&gradient[j]));
            let Some(enter) = enter else { break };
            free[enter] = true;
            match self.unconstrained(&free) {
                Some(z) if z[enter] > 0.0 => {
                    vain = [false; P];
                    self.walk(&mut x, &mut free, z);
                }
                _ => {
                    free[enter] = false;
                    vain[enter] = true;
                }
            }
        }
        x
    }

    /// From x towards the free minimum z, fixing at 0 what would turn negative on the way.
    fn walk(&self, x: &mut [f64; P], free: &mut [bool; P], mut z: [f64; P]) {
        loop {
            let blocks = |j: usize| free[j] && z[j] <= 0.0;
            let step = |j: usize| x[j] / (x[j] - z[j]);
            let first = (0..P)
                .filter(|&j| blocks(j))
                .min_by(|&i, &j| step(i).total_cmp(&step(j)));
            let Some(first) = first else {
                *x = z;
                return;
            };
            let share = step(first);
            *x = from_fn(|j| (x[j] + share * (z[j] - x[j])).max(0.0));
            x[first] = 0.0;
            for j in 0..P {
                free[j] &= x[j] > 0.0;
            }
            // A principal part of a matrix that could be factored can be factored.
            let Some(next) = self.unconstrained(free) else {
                return;
            };
            z = next;
        }
    }

    fn gradient(&self, x: &[f64; P]) -> [f64; P] {
        from_fn(|i| self.right[i] - (0..P).map(|j| self.gram[i][j] * x[j]).sum::<f64>())
    }

    /// The minimum over the free unknowns, the others being 0; `None` where they are dependent.
    fn unconstrained(&self, free: &[bool; P]) -> Option<[f64; P]> {
        let lower = factor(&self.gram, free, |_| ())?;
        let mut z = [0.0; P];
        for i in (0..P).filter(|&i| free[i]) {
            let known: f64 = (0..i).map(|j| lower[i][j] * z[j]).sum();
            z[i] = (self.right[i] - known) / lower[i][i];
        }
        for i in (0..P).rev().filter(|&i| free[i]) {
            let known: f64 = (i + 1..P).map(|j| lower[j][i] * z[j]).sum();
            z[i] = (z[i] - known) / lower[i][i];
        }
        Some(z)
    }
}

/// The Cholesky factor of the free rows and columns, the others being 0, showing each pivot; `None`
/// where one is not positive.
fn factor<const P: usize>(
    gram: &Matrix<P>,
    free: &[bool; P],
    mut pivot: impl FnMut(f64),
) -> Option<Matrix<P>> {
    let mut lower = [[0.0; P]; P];
    for i in (0..P).filter(|&i| free[i]) {
        for j in (0..=i).filter(|&j| free[j]) {
            let known: f64 = (0..j).map(|l| lower[i][l] * lower[j][l]).sum();
            let rest = gram[i][j] - known;
            lower[i][j] = if i > j {
                rest / lower[j][j]
            } else {
                pivot(rest);
                (rest > DEPENDENT).then(|| rest.sqrt())?
            };
        }
    }
    Some(lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normal<const P: usize>(rows: &[([f64; P], f64, f64)]) -> Normal<P> {
        let mut sums = Normal::default();
        for (columns, y, weight) in rows {
            sums.add(*columns, *y, *weight);
        }
        sums
    }

    /// Σ w·(y − x·a)² but for the constant Σ w·y².
    fn objective<const P: usize>(sums: &Normal<P>, x: &[f64; P]) -> f64 {
        (0..P)
            .map(|i| {
                let row: f64 = (0..P).map(|j| sums.gram[i][j] * x[j]).sum();
                x[i] * (row - 2.0 * sums.right[i])
            })
            .sum()
    }

    /// The best of the minima over all sets of free unknowns that have no negative part.
    fn brute<const P: usize>(sums: &Normal<P>) -> (f64, [f64; P]) {
        let (scaled, _) = sums.scaled();
        (0..1_u32 << P)
            .filter_map(|set| scaled.unconstrained(&from_fn(|j| set >> j & 1 == 1)))
            .filter(|x| x.iter().all(|x| *x >= 0.0))
            .map(|x| (objective(&scaled, &x), x))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .expect("nothing free is always a minimum")
    }

    fn check<const P: usize>(rows: &[([f64; P], f64, f64)]) {
        let sums = normal(rows);
        let (scaled, scale) = sums.scaled();
        let solution = sums.solve();
        let x = from_fn(|j| solution[j] * scale[j]);
        let size = scaled
            .right
            .iter()
            .fold(1e-300_f64, |most, r| most.max(r.abs()));
        let gradient = scaled.gradient(&x);
        for j in 0..P {
            assert!(x[j] >= 0.0);
            assert!(
                gradient[j] <= 1e-7 * size,
                "gradient {gradient:?} of {size}"
            );
            assert!(
                x[j] == 0.0 || gradient[j].abs() <= 1e-7 * size,
                "{x:?} {gradient:?}"
            );
        }
        let (found, (best, at)) = (objective(&scaled, &x), brute(&sums));
        // Convex: f(x) − f(at) ≤ ∇f(x)·(x − at), and ∇f is twice a gradient of at most 1e-7·size.
        let away: f64 = (0..P).map(|j| (x[j] - at[j]).abs()).sum();
        assert!(
            found <= best + 2e-7 * size * away + 1e-9 * (best.abs() + size * size),
            "{found} is not {best}"
        );
    }

    fn rows<const P: usize>() -> impl Strategy<Value = Vec<([f64; P], f64, f64)>> {
        let cell = prop_oneof![Just(0.0), -3.0..3.0, (0i32..4).prop_map(f64::from)];
        let row = (prop::array::uniform::<_, P>(cell), -5.0..5.0, 0.01..10.0);
        prop::collection::vec(row, 0..20)
    }

    proptest! {
        #[test]
        fn meets_the_conditions_and_brute_force_2(rows in rows::<2>()) { check(&rows); }
        #[test]
        fn meets_the_conditions_and_brute_force_3(rows in rows::<3>()) { check(&rows); }
        #[test]
        fn meets_the_conditions_and_brute_force_5(rows in rows::<5>()) { check(&rows); }
        #[test]
        fn meets_the_conditions_and_brute_force_8(rows in rows::<8>()) { check(&rows); }

        /// y is made of known x ≥ 0 without noise; columns in seconds and in bytes.
        #[test]
        fn recovers_what_made_the_data(
            x in prop::array::uniform3(0.0..5.0_f64),
            rows in prop::collection::vec((prop::array::uniform3(0.1..3.0_f64), 0.01..10.0), 12..20),
        ) {
            let scale = [1.0, 1e-9, 1e8];
            let made: Vec<([f64; 3], f64, f64)> = rows
                .iter()
                .map(|(a, w)| {
                    let y: f64 = (0..3).map(|j| a[j] * x[j]).sum();
                    (from_fn(|j| a[j] * scale[j]), y, *w)
                })
                .collect();
            let sums = normal(&made);
            prop_assume!(sums.independence() > 1e-3);
            let found: [f64; 3] = sums.solve();
            for j in 0..3 {
                prop_assert!((found[j] * scale[j] - x[j]).abs() < 1e-9 * 5.0, "{found:?}");
            }
        }
    }

    #[test]
    fn dependent_columns_are_seen() {
        let line = |t: f64| ([1.0, t], 0.0, 1.0);
        assert_eq!(normal(&[line(2.0), line(2.0)]).independence(), 0.0);
        // Directions (1, 0) and (1, 1): the columns (1, 1) and (0, 1) meet at 45°, 1 − cos² = 1/2.
        let half = normal(&[line(0.0), line(1.0)]).independence();
        assert!((half - 0.5).abs() < 1e-12);
        assert_eq!(normal(&[([0.0, 1.0], 1.0, 1.0)]).independence(), 0.0);
        assert_eq!(normal(&[([0.0, 2.0], 6.0, 1.0)]).solve(), [0.0, 3.0]);
    }

    /// min (y − x)² over x ≥ 0 with weights is the weighted mean of y, or 0.
    #[test]
    fn one_unknown_is_a_weighted_mean() {
        let sums = normal(&[([1.0], 1.0, 1.0), ([1.0], 4.0, 2.0)]);
        assert!((sums.solve()[0] - 3.0).abs() < 1e-15);
        assert_eq!(normal(&[([1.0], -1.0, 1.0)]).solve(), [0.0]);
        assert_eq!(Normal::<1>::default().solve(), [0.0]);
    }
}
