//! Measured points as a correction that remembers algorithms.
//!
//! ln(measured / modelled) of the rows around m in the [`NEAREST`] columns around (n, k) is averaged with
//! weights
//!
//! ```text
//! 1 / (d² + 20·Δw² + Δo² + OTHER or CLUSTER + NEAR)²,   d² = Δ(ln n)² + Δ(ln k)² + 2·Δ(ln m)²
//! ```
//!
//! with w the waves that a shape's tiles are, three at most, and o the share of a row's last cluster that lies
//! beyond C: kernels whose tiles fill the SMs alike deviate alike, and clusters with tiles that are not there
//! are slower, with some kernels by half. OTHER counts where the tile or the split of k is another, CLUSTER
//! where they are the same in clusters of another form. A zero of weight [`PRIOR`] is averaged with them; at a
//! measured point the time is the measured one. Only
//! columns of the same alignment count, where there are any; of those, columns whose k alone is aligned
//! otherwise are further away by [`ROWS`].

use super::{Lenders, Library, Modelled, Shape};
use crate::device::{Device, MeasuredGemm};

/// Columns that a shape between them looks at.
const NEAREST: usize = 12;
/// What a measurement of another algorithm counts as further away, as a squared distance, and of the same in other
/// clusters. These and the next four were chosen by leaving out whole columns of an H200's measurements.
const OTHER: f64 = 1.0;
const CLUSTER: f64 = 0.5;
/// What a difference of 1 in ln m, in waves and in what lies beyond C counts, as squared distances.
const ROW: f64 = 2.0;
const WAVE: f64 = 20.0;
const BEYOND: f64 = 1.0;
/// Squared distance below which all measurements are equally near.
const NEAR: f64 = 0.05;
/// What a column counts as further away whose rows of A are aligned otherwise, as a squared distance:
/// a factor of 2 in k.
const ROWS: f64 = 0.5;
/// Waves beyond which one more or less does not tell shapes apart.
const MANY: f64 = 3.0;
/// Weight of the model alone: that of a measurement at a squared distance of 1.4.
const PRIOR: f64 = 0.5;

/// How an algorithm's tiles lie on C and the SMs.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
struct Fill {
    /// Waves that its tiles, whole clusters of them, are on all SMs, at most [`MANY`].
    waves: f64,
    /// Share of a row's last cluster that is beyond C [0–1].
    beyond: f64,
}

/// Measured rows of one (n, k).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measured {
    n: u64,
    k: u64,
    /// Of n and k, and of k alone.
    align: [u32; 2],
    ln_n: f64,
    ln_k: f64,
    /// By m, and the least of their corrections.
    rows: Vec<Row>,
    least: f64,
}

#[derive(Copy, Clone, Debug, PartialEq)]
struct Row {
    ln_m: f64,
    m: u64,
    /// ln(measured / modelled).
    correction: f64,
    algorithm: u16,
    fill: Fill,
}

/// A place between the columns.
#[derive(Clone, Debug)]
pub(in crate::device::gemm) struct Place {
    pub(super) n: u64,
    pub(super) k: u64,
    /// Whose choices it takes.
    pub(super) lenders: Lenders,
    /// Squared distances and columns, the nearest first.
    near: [(f64, usize); NEAREST],
    count: usize,
}

impl Library {
    /// Sets every point's correction, and keeps those of this library's type.
    pub(in crate::device::gemm) fn learn(&mut self, device: &Device, points: &mut [MeasuredGemm]) {
        // How often an algorithm was met decides what unlisted shapes choose from: first count.
        self.met.clear();
        let mut met = vec![0; self.algorithms.len()];
        for point in points.iter().filter(|point| point.dtype == self.dtype) {
            if let Some((algorithm, _)) = self.of(device, point) {
                met[usize::from(algorithm)] += 1;
            }
        }
        self.met = met;
        self.columns.clear();
        for point in points.iter_mut().filter(|point| point.dtype == self.dtype) {
            let Some((algorithm, modelled)) = self.of(device, point) else {
                continue;
            };
            let MeasuredGemm { m, n, k, .. } = *point;
            point.correction = point.time.get() / modelled.seconds;
            let row = Row {
                ln_m: (m as f64).ln(),
                m,
                correction: point.correction.ln(),
                algorithm,
                fill: self.fill(device, Shape { m, n, k }, algorithm),
            };
            match self.columns.last_mut() {
                Some(column) if (column.n, column.k) == (n, k) => {
                    column.least = column.least.min(row.correction);
                    column.rows.push(row);
                }
                _ => self.columns.push(Measured {
                    n,
                    k,
                    align: self.aligns(n, k),
                    ln_n: (n as f64).ln(),
                    ln_k: (k as f64).ln(),
                    least: row.correction,
                    rows: vec![row],
                }),
            }
        }
    }

    /// The alignment of n and k, and of k alone.
    fn aligns(&self, n: u64, k: u64) -> [u32; 2] {
        [self.align(n, k), self.align(0, k)]
    }

    /// The algorithm of a measured point and its time by the model.
    fn of(&self, device: &Device, point: &MeasuredGemm) -> Option<(u16, Modelled)> {
        let MeasuredGemm { m, n, k, .. } = *point;
        let lenders = self.lenders(n, k);
        self.modelled(device, None, Shape { m, n, k }, &lenders, device.sms)
    }

    /// The place of (n, k) among choices and columns.
    pub(in crate::device::gemm) fn place(&self, n: u64, k: u64) -> Place {
        let (ln_n, ln_k) = ((n.max(1) as f64).ln(), (k.max(1) as f64).ln());
        let mut place = Place {
            n,
            k,
            lenders: self.lenders(n, k),
            near: [(f64::INFINITY, 0); NEAREST],
            count: 0,
        };
        // Columns are in the order of the measured points.
        let exact = (self.columns).binary_search_by_key(&(k, n), |column| (column.k, column.n));
        if let Ok(at) = exact {
            place.near[0] = (0.0, at);
            place.count = 1;
            return place;
        }
        let [own, rows] = self.aligns(n, k);
        let any = self.columns.iter().any(|column| column.align[0] == own);
        for (at, column) in self.columns.iter().enumerate() {
            let [all, of_k] = column.align;
            if any && all != own {
                continue;
            }
            let other = if of_k == rows { 0.0 } else { ROWS };
            let distance = (column.ln_n - ln_n).powi(2) + (column.ln_k - ln_k).powi(2) + other;
            if distance >= place.near[NEAREST - 1].0 {
                continue;
            }
            let slot = place.near.partition_point(|(other, _)| *other <= distance);
            place.near[slot..].rotate_right(1);
            place.near[slot] = (distance, at);
            place.count = (place.count + 1).min(NEAREST);
        }
        place
    }

    /// No rows of a place take less than this part of the model, 1 or below.
    pub(in crate::device::gemm) fn least(&self, place: &Place) -> f64 {
        let near = place.near[..place.count].iter();
        let least = near.map(|&(_, at)| self.columns[at].least);
        least.fold(0.0, f64::min).exp()
    }

    /// How an algorithm's tiles lie.
    fn fill(&self, device: &Device, Shape { m, n, .. }: Shape, algorithm: u16) -> Fill {
        let Some(a) = self.algorithms.get(usize::from(algorithm)) else {
            return Fill::default();
        };
        let whole = |x: u64, tile: u32, cluster: u32| {
            x.div_ceil(tile.into())
                .next_multiple_of(cluster.max(1).into()) as f64
        };
        let rows = whole(m, a.tile.0, a.cluster.0);
        let columns = whole(n, a.tile.1, a.cluster.1);
        let tiles = rows * columns * f64::from(a.split.max(1));
        let there = n as f64 / f64::from(a.tile.1.max(1));
        Fill {
            waves: (tiles / f64::from(device.sms.max(1))).min(MANY),
            beyond: (columns - there) / f64::from(a.cluster.1.max(1)),
        }
    }

    /// What another algorithm counts as further away.
    fn unlike(&self, one: u16, other: u16) -> f64 {
        if one == other {
            return 0.0;
        }
        let of = |place: u16| {
            let algorithm = self.algorithms.get(usize::from(place))?;
            Some((algorithm.tile, algorithm.split, algorithm.align))
        };
        if of(one) == of(other) { CLUSTER } else { OTHER }
    }

    /// ln of the factor on the model.
    pub(super) fn correction(&self, device: &Device, place: &Place, m: u64, algorithm: u16) -> f64 {
        let ln_m = (m.max(1) as f64).ln();
        let Place { n, k, .. } = *place;
        let fill = self.fill(device, Shape { m, n, k }, algorithm);
        let (mut sum, mut weights) = (0.0, PRIOR);
        for &(distance, at) in &place.near[..place.count] {
            let rows = &self.columns[at].rows;
            let above = rows.partition_point(|row| row.m < m);
            // The rows on both sides; at the ends the one there is.
            for row in rows[above.saturating_sub(1)..].iter().take(2) {
                if distance == 0.0 && row.m == m {
                    return row.correction;
                }
                let other = self.unlike(row.algorithm, algorithm);
                let rows = ROW * (row.ln_m - ln_m).powi(2);
                let filled = WAVE * (row.fill.waves - fill.waves).powi(2)
                    + BEYOND * (row.fill.beyond - fill.beyond).powi(2);
                let far = distance + rows + filled + other + NEAR;
                let weight = 1.0 / (far * far);
                sum += row.correction * weight;
                weights += weight;
            }
        }
        sum / weights
    }
}

#[cfg(test)]
mod tests;
