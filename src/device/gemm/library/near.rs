//! Measured points as a correction that remembers algorithms.
//!
//! ln(measured / modelled) of the measurements by tiles in the same form of cluster is averaged with weights
//!
//! ```text
//! max(0, 1 / far⁴ − 1 / FAR⁴),   far = NEAR + Σ WEIGHTS · Δ² + SPLIT + ROWS
//! ```
//!
//! over what tells kernels and shapes apart, see [`WEIGHTS`]; those further away than [`FAR`] do not count. What a kernel deviates by is much less a
//! matter of n and k than of how its tiles lie: whether they fill the SMs, what lies beyond C in a row's last
//! cluster (with some kernels half as slow again), whether an odd number of rows of narrow tiles reads B without
//! sharing it, and whether memory or arithmetic takes longer. SPLIT counts where k is split
//! otherwise, [`ROWS`] where k alone is aligned otherwise. A zero of
//! weight [`PRIOR`] is averaged with them; at a measured point the time is the measured one. Only measurements of
//! the same alignment count, where there are any.

mod index;

use super::{Algorithm, Lenders, Library, Modelled, Shape};
use crate::device::{Device, MeasuredGemm};
pub(super) use index::Index;
use index::{Kind, Sample, row};

/// What a difference of 1 counts, as a squared distance, in ln of a tile's rows and columns, in waves, in
/// what lies beyond C of a row's last cluster and of a column's, in ln of rows of tiles, in ln k, ln n and ln m, in
/// ln of arithmetic over memory, in how narrow tiles are whose number of rows is odd, and in what the last wave lacks.
/// These and the next were chosen by leaving out whole columns of H200s' measurements; half or twice any of
/// them changes the mean error by less than a fortieth.
const WEIGHTS: [f64; FEATURES] = [
    2.4, 2.0, 12.0, 0.7, 0.9, 1.7, 0.12, 0.1, 0.06, 1.7, 0.9, 0.9,
];
const FEATURES: usize = 12;
/// What k split otherwise counts as further away, as a squared distance.
const SPLIT: f64 = 0.1;
/// What a column counts as further away whose rows of A are aligned otherwise, as a squared distance.
const ROWS: f64 = 0.5;
/// What a measurement on all SMs counts as further away from a GEMM on fewer, and the other way round.
const FEWER: f64 = 0.3;
/// Squared distance below which all measurements are equally near, and that from which on none counts.
const NEAR: f64 = 0.05;
const FAR: f64 = 0.8;
/// Waves beyond which one more or less does not tell shapes apart, and rows of tiles.
const MANY: f64 = 3.0;
const MANY_ROWS: u64 = 12;
/// Rows of tiles that are narrow: less than this by a factor of 2, or of [`NARROWEST`] doublings.
const WIDE: f64 = 128.0;
const NARROWEST: f64 = 2.0;
/// Largest |ln(arithmetic / memory)| that tells shapes apart.
const BOUND: f64 = 1.5;
/// Weight of the model alone: that of a measurement at a squared distance of 1.2.
const PRIOR: f64 = 0.5;

/// How unsure a time is, as a relative standard deviation σ: σ² = SURE² + (LENT / (Σ weights)^¼)² + the weighted
/// variance of what is averaged. Of greatest likelihood for columns left out of H200s' measurements, of which
/// 94.7 % are within 1.96 σ then.
const SURE: f64 = 0.003;
const LENT: f64 = 0.08;

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

/// A weighted mean of corrections.
#[derive(Copy, Clone, Debug)]
struct Blend {
    mean: f64,
    /// Of all measurements and of the model alone.
    weights: f64,
    /// Of what is averaged, about the mean.
    variance: f64,
}

/// A place between the columns.
#[derive(Clone, Debug)]
pub(in crate::device::gemm) struct Place {
    pub(super) n: u64,
    pub(super) k: u64,
    /// Whose choices it takes.
    pub(super) lenders: Lenders,
    /// The columns that are measured, on all SMs and on fewer.
    exact: [Option<usize>; 2],
}

impl Library {
    /// Sets every point's correction, and keeps those of this library's type.
    pub(in crate::device::gemm) fn learn(&mut self, device: &Device, points: &mut [MeasuredGemm]) {
        // How often an algorithm was met decides what unlisted shapes choose from: first count.
        self.met.clear();
        let mut met = vec![0; self.algorithms.len()];
        for point in points.iter().filter(|point| point.dtype == self.dtype) {
            if let Some((algorithm, _)) = self.of(device, point, device.sms) {
                met[usize::from(algorithm)] += 1;
            }
        }
        self.met = met;
        self.near = Index::default();
        self.least = 0.0;
        let mut samples = Vec::new();
        let mut fewer = std::mem::take(&mut self.fewer);
        self.columns = [(points, device.sms), (&mut fewer[..], self.left)]
            .map(|(points, sms)| self.measured_columns(device, points, sms, &mut samples));
        self.fewer = fewer;
        self.near = Index::new(samples);
    }

    /// The columns of points on so many SMs, in their order, whose corrections it sets; adds what they say to others.
    fn measured_columns(
        &mut self,
        device: &Device,
        points: &mut [MeasuredGemm],
        sms: u32,
        samples: &mut Vec<(Kind, Sample)>,
    ) -> Vec<Measured> {
        let mut columns: Vec<Measured> = Vec::new();
        let dtype = self.dtype;
        for point in points.iter_mut().filter(|point| point.dtype == dtype) {
            let Some(sample) = self.sample(device, point, sms) else {
                continue;
            };
            samples.push(sample);
            let MeasuredGemm { m, n, k, .. } = *point;
            let correction = point.correction.ln();
            match columns.last_mut() {
                Some(column) if (column.n, column.k) == (n, k) => column.rows.push((m, correction)),
                _ => columns.push(Measured {
                    n,
                    k,
                    rows: vec![(m, correction)],
                }),
            }
        }
        columns
    }

    /// What a measured point on so many SMs says to others; sets its correction.
    fn sample(
        &mut self,
        device: &Device,
        point: &mut MeasuredGemm,
        sms: u32,
    ) -> Option<(Kind, Sample)> {
        let (algorithm, modelled) = self.of(device, point, sms)?;
        let MeasuredGemm { m, n, k, .. } = *point;
        point.correction = point.time.get() / modelled.seconds;
        let correction = point.correction.ln();
        self.least = self.least.min(correction);
        let algorithm = self.algorithms[usize::from(algorithm)];
        let kind = Kind {
            align: self.align(n, k),
            cluster: algorithm.cluster,
            split: algorithm.split,
            fewer: sms < device.sms,
        };
        let shape = Shape { m, n, k };
        let sample = Sample {
            features: row(&features(sms, shape, algorithm, modelled.bound)),
            align: self.align(0, k),
            correction,
        };
        Some((kind, sample))
    }

    /// The algorithm of a measured point on so many SMs and its time by the model.
    fn of(&self, device: &Device, point: &MeasuredGemm, sms: u32) -> Option<(u16, Modelled)> {
        let MeasuredGemm { m, n, k, .. } = *point;
        let lenders = self.lenders(n, k);
        self.modelled(device, None, Shape { m, n, k }, &lenders, sms)
    }

    /// The place of (n, k) among choices and columns.
    pub(in crate::device::gemm) fn place(&self, n: u64, k: u64) -> Place {
        // Columns are in the order of the measured points.
        let exact = |columns: &Vec<Measured>| {
            let at = columns.binary_search_by_key(&(k, n), |column| (column.k, column.n));
            at.ok()
        };
        Place {
            n,
            k,
            lenders: self.lenders(n, k),
            exact: self.columns.each_ref().map(exact),
        }
    }

    /// No shape takes less than this part of the model, 1 or below.
    pub(in crate::device::gemm) fn least(&self) -> f64 {
        self.least.exp()
    }

    /// ln of the factor on what the model says of `m` rows at a place by an algorithm on so many SMs.
    pub(super) fn correction(
        &self,
        device: &Device,
        (place, m): (&Place, u64),
        (algorithm, modelled): (u16, Modelled),
        sms: u32,
    ) -> f64 {
        // Where GEMMs on fewer SMs were timed, those on all of them say little of them: the library takes another
        // kernel. Else they are all that is known.
        let timed = sms < device.sms && sms == self.left && !self.fewer.is_empty();
        if let Some(measured) = self.measured(place, m, timed) {
            return measured;
        }
        let shape = Shape {
            m,
            n: place.n,
            k: place.k,
        };
        let sms = if timed { sms } else { device.sms };
        let blend = self.blend(device, shape, (algorithm, modelled), sms);
        blend.map_or(0.0, |blend| blend.mean)
    }

    /// How unsure the time of `m` rows at a place is on all SMs, as a relative standard deviation; `None` without a
    /// peak.
    pub(in crate::device::gemm) fn doubt(
        &self,
        device: &Device,
        (place, m): (&Place, u64),
    ) -> Option<f64> {
        if self.measured(place, m, false).is_some() {
            return Some(SURE);
        }
        let shape = Shape {
            m,
            n: place.n,
            k: place.k,
        };
        let taken = self.modelled(device, None, shape, &place.lenders, device.sms)?;
        let blend = self.blend(device, shape, taken, device.sms)?;
        let lent = LENT * blend.weights.powf(-0.25);
        Some((SURE.powi(2) + lent.powi(2) + blend.variance).sqrt())
    }

    /// The correction of `m` rows at a place that is measured with them, on all SMs or on the `fewer` that a
    /// collective leaves.
    fn measured(&self, place: &Place, m: u64, fewer: bool) -> Option<f64> {
        let on = usize::from(fewer);
        let column = self.columns[on].get(place.exact[on]?)?;
        let exact = column.rows.binary_search_by_key(&m, |row| row.0);
        Some(column.rows.get(exact.ok()?)?.1)
    }

    /// The corrections near a shape by an algorithm on so many SMs.
    fn blend(
        &self,
        device: &Device,
        shape: Shape,
        (algorithm, modelled): (u16, Modelled),
        sms: u32,
    ) -> Option<Blend> {
        let Shape { n, k, .. } = shape;
        let own = self.algorithms.get(usize::from(algorithm))?;
        let here = row(&features(sms, shape, *own, modelled.bound));
        let fewer = sms < device.sms;
        let (align, rows) = (self.align(n, k), self.align(0, k));
        let any = self.near.aligned(align);
        let (mut sum, mut squares, mut weights) = (0.0, 0.0, PRIOR);
        let beside = |kind: &Kind| {
            let split = if kind.split == own.split { 0.0 } else { SPLIT };
            NEAR + split + if kind.fewer == fewer { 0.0 } else { FEWER }
        };
        let most = |kind: &Kind| {
            let other = kind.cluster != own.cluster || (any && kind.align != align);
            (!other).then(|| (FAR - beside(kind)) as f32)
        };
        self.near.within(&here, most, |far, kind, sample| {
            let rows = if sample.align == rows { 0.0 } else { ROWS };
            let far = f64::from(far) + beside(kind) + rows;
            if far >= FAR {
                return;
            }
            let inverse = |far: f64| 1.0 / (far * far);
            // Nothing at FAR, so that a shape that comes nearer changes nothing at once.
            let weight = inverse(far * far) - inverse(FAR * FAR);
            sum += sample.correction * weight;
            squares += sample.correction * sample.correction * weight;
            weights += weight;
        });
        let mean = sum / weights;
        Some(Blend {
            mean,
            weights,
            variance: (squares / weights - mean * mean).max(0.0),
        })
    }
}

/// Where a shape lies that an algorithm computes on so many SMs whose arithmetic takes `bound` times as long as the
/// memory.
fn features(sms: u32, shape: Shape, a: Algorithm, bound: f64) -> Features {
    let Shape { m, n, k } = shape;
    let across = |x: u64, tile: u32, cluster: u32| {
        let tiles = x.div_ceil(tile.max(1).into());
        let whole = tiles.next_multiple_of(cluster.max(1).into()) as f64;
        let there = x as f64 / f64::from(tile.max(1));
        (tiles, whole, (whole - there) / f64::from(cluster.max(1)))
    };
    let (rows, down, below) = across(m, a.tile.0, a.cluster.0);
    let (columns, over, beyond) = across(n, a.tile.1, a.cluster.1);
    let per_wave = f64::from(a.split.max(1)) / f64::from(sms.max(1));
    let waves = (down * over * per_wave).min(MANY);
    let filled = (rows * columns) as f64 * per_wave;
    let odd = rows > 1 && rows % 2 == 1;
    let narrow = (WIDE / f64::from(a.tile.0.max(1))).log2();
    let ln = |x: u64| (x.max(1) as f64).ln();
    let all = [
        ln(a.tile.0.into()),
        ln(a.tile.1.into()),
        waves,
        beyond,
        below,
        ln(rows.min(MANY_ROWS)),
        ln(k),
        ln(n),
        ln(m),
        bound.ln().clamp(-BOUND, BOUND),
        if odd {
            narrow.clamp(0.0, NARROWEST)
        } else {
            0.0
        },
        filled.ceil() - filled,
    ];
    std::array::from_fn(|at| all[at] * WEIGHTS[at].sqrt())
}

#[cfg(test)]
mod tests;
