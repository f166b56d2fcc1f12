//! Measured points as a correction that remembers algorithms.
//!
//! ln(measured / modelled) of the measurements by tiles of at most twice and at least half the rows and
//! columns is averaged with weights
//!
//! ```text
//! 1 / (d² + SPLIT + CLUSTER + ROWS + NEAR)⁴,   d² = Σ WEIGHTS · Δ²
//! ```
//!
//! d over what tells kernels and shapes apart, see [`WEIGHTS`]. What a kernel deviates by is much less a
//! matter of n and k than of how its tiles lie: whether they fill the SMs, what lies beyond C in a row's last
//! cluster (with some kernels half as slow again), whether an odd number of rows of tiles reads B without
//! sharing it, and whether memory or arithmetic takes longer. SPLIT and CLUSTER count where k is split
//! otherwise and where clusters have another form, [`ROWS`] where k alone is aligned otherwise. A zero of
//! weight [`PRIOR`] is averaged with them; at a measured point the time is the measured one. Only measurements of
//! the same alignment count, where there are any.

use super::{Algorithm, Lenders, Library, Modelled, Shape};
use crate::device::{Device, MeasuredGemm};

/// What a difference of 1 counts, as a squared distance, in ln of a tile's rows and columns, in waves, in
/// what lies beyond C of a row's last cluster and of a column's, in ln of rows of tiles and in whether their number is
/// odd, in ln k, ln n and ln m, and in ln of arithmetic over memory. These and the next were chosen by leaving out
/// whole columns of an H200's measurements; half or twice any of them changes the mean error by less
/// than a twentieth.
const WEIGHTS: [f64; FEATURES] = [4.0, 2.0, 20.0, 2.0, 0.3, 1.0, 0.5, 0.2, 0.3, 0.3, 1.0];
const FEATURES: usize = 11;
/// What k split otherwise counts as further away, and clusters of another form, as squared distances.
const SPLIT: f64 = 0.3;
const CLUSTER: f64 = 1.0;
/// What a column counts as further away whose rows of A are aligned otherwise, as a squared distance.
const ROWS: f64 = 0.5;
/// Squared distance below which all measurements are equally near.
const NEAR: f64 = 0.05;
/// Waves beyond which one more or less does not tell shapes apart, and rows of tiles.
const MANY: f64 = 3.0;
const MANY_ROWS: u64 = 12;
/// Largest |ln(arithmetic / memory)| that tells shapes apart.
const BOUND: f64 = 1.5;
/// Largest difference in ln of a tile's rows or columns.
const TILE: f64 = std::f64::consts::LN_2 + 1e-9;
/// Weight of the model alone: that of a measurement at a squared distance of 1.2.
const PRIOR: f64 = 0.5;

/// Where a measurement lies: each part times the root of its weight.
type Features = [f64; FEATURES];

/// Measured rows of one (n, k).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measured {
    n: u64,
    k: u64,
    /// By m: ln(measured / modelled).
    rows: Vec<(u64, f64)>,
}

/// Measurements by tiles of one size.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kin {
    align: u32,
    tile: (u32, u32),
    samples: Vec<Sample>,
}

#[derive(Copy, Clone, Debug, PartialEq)]
struct Sample {
    features: Features,
    split: u32,
    cluster: (u32, u32),
    /// Of k alone.
    align: u32,
    /// ln(measured / modelled).
    correction: f64,
}

/// A place between the columns.
#[derive(Clone, Debug)]
pub(in crate::device::gemm) struct Place {
    pub(super) n: u64,
    pub(super) k: u64,
    /// Whose choices it takes.
    pub(super) lenders: Lenders,
    /// The column that is measured.
    exact: Option<usize>,
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
        self.kin.clear();
        self.least = 0.0;
        let dtype = self.dtype;
        for point in points.iter_mut().filter(|point| point.dtype == dtype) {
            let Some((algorithm, modelled)) = self.of(device, point) else {
                continue;
            };
            let MeasuredGemm { m, n, k, .. } = *point;
            point.correction = point.time.get() / modelled.seconds;
            let correction = point.correction.ln();
            self.least = self.least.min(correction);
            let shape = Shape { m, n, k };
            self.keep(
                device,
                shape,
                self.algorithms[usize::from(algorithm)],
                (modelled, correction),
            );
            match self.columns.last_mut() {
                Some(column) if (column.n, column.k) == (n, k) => column.rows.push((m, correction)),
                _ => self.columns.push(Measured {
                    n,
                    k,
                    rows: vec![(m, correction)],
                }),
            }
        }
    }

    /// Keeps a measurement with those of its tile.
    fn keep(
        &mut self,
        device: &Device,
        shape: Shape,
        algorithm: Algorithm,
        (modelled, correction): (Modelled, f64),
    ) {
        let sample = Sample {
            features: features(device, shape, algorithm, modelled.bound),
            split: algorithm.split,
            cluster: algorithm.cluster,
            align: self.align(0, shape.k),
            correction,
        };
        let align = self.align(shape.n, shape.k);
        let of = |kin: &Kin| kin.align == align && kin.tile == algorithm.tile;
        match self.kin.iter_mut().find(|kin| of(kin)) {
            Some(kin) => kin.samples.push(sample),
            None => self.kin.push(Kin {
                align,
                tile: algorithm.tile,
                samples: vec![sample],
            }),
        }
    }

    /// The algorithm of a measured point and its time by the model.
    fn of(&self, device: &Device, point: &MeasuredGemm) -> Option<(u16, Modelled)> {
        let MeasuredGemm { m, n, k, .. } = *point;
        let lenders = self.lenders(n, k);
        self.modelled(device, None, Shape { m, n, k }, &lenders, device.sms)
    }

    /// The place of (n, k) among choices and columns.
    pub(in crate::device::gemm) fn place(&self, n: u64, k: u64) -> Place {
        // Columns are in the order of the measured points.
        let exact = (self.columns).binary_search_by_key(&(k, n), |column| (column.k, column.n));
        Place {
            n,
            k,
            lenders: self.lenders(n, k),
            exact: exact.ok(),
        }
    }

    /// No shape takes less than this part of the model, 1 or below.
    pub(in crate::device::gemm) fn least(&self) -> f64 {
        self.least.exp()
    }

    /// ln of the factor on what the model says of `m` rows at a place by an algorithm.
    pub(super) fn correction(
        &self,
        device: &Device,
        (place, m): (&Place, u64),
        (algorithm, modelled): (u16, Modelled),
    ) -> f64 {
        let Place { n, k, .. } = *place;
        if let Some(column) = place.exact.and_then(|at| self.columns.get(at)) {
            let exact = column.rows.binary_search_by_key(&m, |row| row.0);
            if let Some((_, correction)) = exact.ok().and_then(|at| column.rows.get(at)) {
                return *correction;
            }
        }
        let Some(own) = self.algorithms.get(usize::from(algorithm)) else {
            return 0.0;
        };
        let here = features(device, Shape { m, n, k }, *own, modelled.bound);
        let (align, rows) = (self.align(n, k), self.align(0, k));
        let any = self.kin.iter().any(|kin| kin.align == align);
        let like = |a: u32, b: u32| (f64::from(a) / f64::from(b.max(1))).ln().abs() <= TILE;
        let (mut sum, mut weights) = (0.0, PRIOR);
        for kin in &self.kin {
            let near = like(kin.tile.0, own.tile.0) && like(kin.tile.1, own.tile.1);
            if !near || (any && kin.align != align) {
                continue;
            }
            for sample in &kin.samples {
                let parts = sample.features.iter().zip(&here);
                let mut far = parts.fold(NEAR, |sum, (a, b)| sum + (a - b) * (a - b));
                far += if sample.split == own.split {
                    0.0
                } else {
                    SPLIT
                };
                far += if sample.cluster == own.cluster {
                    0.0
                } else {
                    CLUSTER
                };
                far += if sample.align == rows { 0.0 } else { ROWS };
                let square = far * far;
                let weight = 1.0 / (square * square);
                sum += sample.correction * weight;
                weights += weight;
            }
        }
        sum / weights
    }
}

/// Where a shape lies that an algorithm computes whose arithmetic takes `bound` times as long as the memory.
fn features(device: &Device, shape: Shape, a: Algorithm, bound: f64) -> Features {
    let Shape { m, n, k } = shape;
    let across = |x: u64, tile: u32, cluster: u32| {
        let tiles = x.div_ceil(tile.max(1).into());
        let whole = tiles.next_multiple_of(cluster.max(1).into()) as f64;
        let there = x as f64 / f64::from(tile.max(1));
        (tiles, whole, (whole - there) / f64::from(cluster.max(1)))
    };
    let (rows, down, below) = across(m, a.tile.0, a.cluster.0);
    let (_, over, beyond) = across(n, a.tile.1, a.cluster.1);
    let tiles = down * over * f64::from(a.split.max(1));
    let waves = (tiles / f64::from(device.sms.max(1))).min(MANY);
    let odd = rows > 1 && rows % 2 == 1;
    let ln = |x: u64| (x.max(1) as f64).ln();
    let all = [
        ln(a.tile.0.into()),
        ln(a.tile.1.into()),
        waves,
        beyond,
        below,
        ln(rows.min(MANY_ROWS)),
        if odd { 1.0 } else { 0.0 },
        ln(k),
        ln(n),
        ln(m),
        bound.ln().clamp(-BOUND, BOUND),
    ];
    std::array::from_fn(|at| all[at] * WEIGHTS[at].sqrt())
}

#[cfg(test)]
mod tests;
