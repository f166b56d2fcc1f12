//! Measured points as a factor on the wave model.
//!
//! At a measured point the factor is measured / modelled, so the product is exact there, and the
//! model's wave steps survive between the points. Points of one (k, n) form a column. Along a
//! column the factor is linear in log m, constant beyond its ends; between columns it is the mean
//! weighted by 1/d², d the distance in (ln k, ln n), together with a factor of 1 weighted by
//! [`PRIOR`]: far from all columns, and without points, the model stands alone.

use super::ln::Ln;
use crate::device::{DType, MeasuredGemm};

/// Weight of the bare model between columns: that of a column at a ratio of 1.4 in k or n. Assumed:
/// columns of the H200 table left out one by one are predicted with a mean error of 5.1 % at weight
/// 0, 4.3 % at this one and 3.8 % by the bare model, so that corrections carry over to near shapes
/// only.
const PRIOR: f64 = 8.0;

/// Points in the order that [`correction`] needs: by type, column, m.
pub(super) fn sorted(mut points: Vec<MeasuredGemm>) -> Vec<MeasuredGemm> {
    points.sort_by_key(|point| (point.dtype, point.k, point.n, point.m));
    points
}

/// Most rows of columns that are blended.
pub(super) const MOST_ROWS: usize = 8;

/// The points of one type as columns on common rows: between its own rows a column's factor is
/// linear in log m, so that further rows change nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    /// ln m, ascending; at most [`MOST_ROWS`] unless there are `many`.
    rows: Vec<f64>,
    many: bool,
    /// (ln k, ln n, factor at each row and 1 beyond).
    columns: Vec<(f64, f64, [f64; MOST_ROWS])>,
    /// The least factor there is: 1 or below.
    least: f64,
    ln: Ln,
}

impl Columns {
    pub fn new(points: &[MeasuredGemm], dtype: DType) -> Self {
        let dtype = kin(points, dtype);
        let of = |point: &&MeasuredGemm| Some(point.dtype) == dtype;
        let mut rows: Vec<u64> = points.iter().filter(of).map(|point| point.m).collect();
        rows.sort_unstable();
        rows.dedup();
        let ln = Ln::default();
        let columns = points
            .chunk_by(|a, b| (a.dtype, a.k, a.n) == (b.dtype, b.k, b.n))
            .filter(|column| of(&&column[0]))
            .map(|column| {
                let mut factors = [1.0; MOST_ROWS];
                for (factor, m) in factors.iter_mut().zip(&rows) {
                    *factor = along(column, *m as f64);
                }
                let (k, n) = (column[0].k as f64, column[0].n as f64);
                (ln.of(k), ln.of(n), factors)
            });
        let factors = points.iter().filter(of).map(|point| point.correction);
        Self {
            columns: columns.collect(),
            many: rows.len() > MOST_ROWS,
            least: factors.fold(1.0, f64::min),
            rows: rows.into_iter().map(|m| ln.of(m as f64)).collect(),
            ln,
        }
    }

    /// The least factor there is: 1 or below.
    pub fn least(&self) -> f64 {
        self.least
    }

    /// The least of blended factors.
    #[inline]
    pub fn least_of(&self, factors: &[f64; MOST_ROWS]) -> f64 {
        match self.rows.is_empty() {
            true => 1.0,
            false => factors
                .iter()
                .fold(factors[0], |a, &b| if b < a { b } else { a }),
        }
    }

    /// The factors at the rows for a (n, k); `None` where there are too many rows.
    #[inline]
    pub fn blend(&self, n: f64, k: f64) -> Option<[f64; MOST_ROWS]> {
        if self.columns.is_empty() || self.many {
            return (!self.many).then_some([1.0; MOST_ROWS]);
        }
        let (ln_k, ln_n) = (self.ln.of(k), self.ln.of(n));
        let mut weights = PRIOR;
        let mut factors = [PRIOR; MOST_ROWS];
        for (at_k, at_n, column) in &self.columns {
            let (far_k, far_n) = (at_k - ln_k, at_n - ln_n);
            let distance = far_k * far_k + far_n * far_n;
            if distance == 0.0 {
                return Some(*column);
            }
            let weight = 1.0 / distance;
            weights += weight;
            for (sum, factor) in factors.iter_mut().zip(column) {
                *sum += factor * weight;
            }
        }
        let share = 1.0 / weights;
        for sum in &mut factors {
            *sum *= share;
        }
        Some(factors)
    }

    /// The factor of m rows among blended ones.
    #[inline]
    pub fn along(&self, factors: &[f64; MOST_ROWS], m: f64) -> f64 {
        let (Some(&first), Some(&last)) = (self.rows.first(), self.rows.last()) else {
            return 1.0;
        };
        let m = self.ln.of(m).clamp(first, last);
        let above = self.rows.iter().filter(|row| **row < m).count().max(1);
        let (Some(&upper), Some(&end)) = (self.rows.get(above), factors.get(above)) else {
            return factors[above - 1];
        };
        let (lower, start) = (self.rows[above - 1], factors[above - 1]);
        start + (end - start) * (m - lower) / (upper - lower)
    }
}

/// The type whose points count for `dtype`: its own, else that of a type of the same size.
fn kin(points: &[MeasuredGemm], dtype: DType) -> Option<DType> {
    let of = |wanted: DType| points.iter().any(|point| point.dtype == wanted);
    let kin = |wanted: &DType| wanted.size() == dtype.size() && of(*wanted);
    match of(dtype) {
        true => Some(dtype),
        false => DType::ALL.into_iter().find(kin),
    }
}

/// The factor for a shape. A type without points borrows those of a type of the same size, which
/// runs on the same units (bf16 and fp16).
pub(super) fn correction(points: &[MeasuredGemm], dtype: DType, m: u64, n: u64, k: u64) -> f64 {
    let Some(dtype) = kin(points, dtype) else {
        return 1.0;
    };
    let (mut weighted, mut weights) = (PRIOR, PRIOR);
    for column in points.chunk_by(|a, b| (a.dtype, a.k, a.n) == (b.dtype, b.k, b.n)) {
        let first = column[0];
        if first.dtype != dtype {
            continue;
        }
        let far = |a: u64, b: u64| (a as f64).ln() - (b as f64).ln();
        let distance = far(first.k, k).powi(2) + far(first.n, n).powi(2);
        let factor = along(column, m as f64);
        if distance == 0.0 {
            return factor;
        }
        weighted += factor / distance;
        weights += 1.0 / distance;
    }
    weighted / weights
}

/// The factor within one column, ascending in m.
fn along(column: &[MeasuredGemm], m: f64) -> f64 {
    let above = column.partition_point(|point| (point.m as f64) < m);
    let Some(upper) = column.get(above) else {
        return column[column.len() - 1].correction;
    };
    if above == 0 || upper.m as f64 == m {
        return upper.correction;
    }
    let lower = &column[above - 1];
    let (from, to) = ((lower.m as f64).ln(), (upper.m as f64).ln());
    let share = (m.ln() - from) / (to - from);
    lower.correction + share * (upper.correction - lower.correction)
}
