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

/// Most rows of columns that are blended, and most columns side by side.
const MOST_ROWS: usize = 8;
const MOST_PAIRS: usize = 4;
/// The least squared distance: a column that is no further has all the weight there is.
const NONE: f64 = 1e-290;

/// The points of one type as columns on common rows: between its own rows a column's factor is
/// linear in log m, so that further rows change nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    /// Two side by side.
    pairs: Vec<Pair>,
    /// Ascending; infinite beyond the last.
    rows: [f64; MOST_ROWS],
    /// By the number of rows below.
    spans: [Span; MOST_ROWS + 1],
    /// More rows or columns than that: they are not blended.
    many: bool,
    /// The least factor there is: 1 or below.
    least: f64,
    ln: Ln,
}

/// Two columns.
#[derive(Clone, Debug)]
struct Pair {
    ln_k: [f64; 2],
    ln_n: [f64; 2],
    /// The factors at both ends of every span, one after another, and the least of them.
    factors: [[f64; 2]; MOST_ROWS + 2],
    least: [f64; 2],
}

/// Between two rows, or beyond the last ones on one.
#[derive(Copy, Clone, Debug, Default)]
struct Span {
    /// ln of the first, and the inverse of what is between both.
    from: f64,
    per: f64,
}

/// The weights of columns in the factor for one (n, k).
#[derive(Clone, Debug)]
pub(super) struct Blend {
    weights: [[f64; 2]; MOST_PAIRS],
    /// The inverse of their sum and the bare model's.
    per_weight: f64,
    /// The factor is no less, whatever m.
    pub least: f64,
}

impl Columns {
    pub fn new(points: &[MeasuredGemm], dtype: DType) -> Self {
        let dtype = kin(points, dtype);
        let of = |point: &&MeasuredGemm| Some(point.dtype) == dtype;
        let mut rows: Vec<u64> = points.iter().filter(of).map(|point| point.m).collect();
        rows.sort_unstable();
        rows.dedup();
        let columns: Vec<&[MeasuredGemm]> = points
            .chunk_by(|a, b| (a.dtype, a.k, a.n) == (b.dtype, b.k, b.n))
            .filter(|column| of(&&column[0]))
            .collect();
        let factors = points.iter().filter(of).map(|point| point.correction);
        let mut all = Self {
            many: rows.len() > MOST_ROWS || columns.len() > 2 * MOST_PAIRS,
            least: factors.fold(1.0, f64::min),
            rows: [f64::INFINITY; MOST_ROWS],
            ..Self::default()
        };
        if all.many || rows.is_empty() {
            return all;
        }
        for (row, m) in all.rows.iter_mut().zip(&rows) {
            *row = *m as f64;
        }
        let last = rows.len() - 1;
        for (below, span) in all.spans.iter_mut().enumerate() {
            let ends = [below.saturating_sub(1).min(last), below.min(last)];
            let [from, to] = ends.map(|row| all.ln.of(rows[row] as f64));
            *span = Span {
                from,
                per: if from < to { 1.0 / (to - from) } else { 0.0 },
            };
        }
        let pair = |two: &[&[MeasuredGemm]]| {
            let column = |place: usize| two.get(place).map(|column| (column, column[0]));
            let both = |of: &dyn Fn(&[MeasuredGemm], MeasuredGemm) -> f64, none: f64| {
                [0, 1].map(|place| column(place).map_or(none, |(all, first)| of(all, first)))
            };
            let factor = |column: &[MeasuredGemm], row: usize| along(column, rows[row] as f64);
            let least = |column: &[MeasuredGemm], _| {
                let factors = (0..=last).map(|row| factor(column, row));
                factors.fold(f64::INFINITY, f64::min)
            };
            // What is not there is infinitely far.
            Pair {
                ln_k: both(&|_, first| all.ln.of(first.k as f64), f64::INFINITY),
                ln_n: both(&|_, first| all.ln.of(first.n as f64), f64::INFINITY),
                factors: std::array::from_fn(|end| {
                    let row = end.saturating_sub(1).min(last);
                    both(&|column, _| factor(column, row), 1.0)
                }),
                least: both(&least, 1.0),
            }
        };
        all.pairs = columns.chunks(2).map(pair).collect();
        all
    }

    /// The least factor there is: 1 or below.
    pub fn least(&self) -> f64 {
        self.least
    }

    /// The columns' weights for a (n, k); `None` where there are too many of them or their rows.
    #[inline(always)]
    pub fn blend(&self, n: f64, k: f64) -> Option<Blend> {
        let mut blend = Blend {
            weights: [[0.0; 2]; MOST_PAIRS],
            per_weight: 1.0 / PRIOR,
            least: 1.0,
        };
        if self.pairs.is_empty() {
            return (!self.many).then_some(blend);
        }
        let (ln_k, ln_n) = (self.ln.of(k), self.ln.of(n));
        let (mut weights, mut least) = ([0.0; 2], [0.0; 2]);
        for (pair, own) in self.pairs.iter().zip(&mut blend.weights) {
            for lane in 0..2 {
                let (far_k, far_n) = (pair.ln_k[lane] - ln_k, pair.ln_n[lane] - ln_n);
                let distance = far_k * far_k + far_n * far_n;
                let distance = if distance < NONE { NONE } else { distance };
                own[lane] = 1.0 / distance;
                weights[lane] += own[lane];
                least[lane] += own[lane] * pair.least[lane];
            }
        }
        blend.per_weight = 1.0 / (PRIOR + weights[0] + weights[1]);
        blend.least = (PRIOR + least[0] + least[1]) * blend.per_weight;
        Some(blend)
    }

    /// The factor of m rows.
    #[inline(always)]
    pub fn along(&self, blend: &Blend, m: f64) -> f64 {
        if self.pairs.is_empty() {
            return 1.0;
        }
        let below = self.rows.iter().map(|row| usize::from(*row < m));
        let below = below.sum::<usize>().min(MOST_ROWS);
        let (mut start, mut end) = ([0.0; 2], [0.0; 2]);
        for (pair, weights) in self.pairs.iter().zip(&blend.weights) {
            for lane in 0..2 {
                start[lane] += weights[lane] * pair.factors[below][lane];
                end[lane] += weights[lane] * pair.factors[below + 1][lane];
            }
        }
        let (start, end) = (start[0] + start[1], end[0] + end[1]);
        let span = &self.spans[below];
        let way = (self.ln.of(m) - span.from) * span.per;
        (PRIOR + start + (end - start) * way) * blend.per_weight
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
