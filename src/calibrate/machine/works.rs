//! What tiles take over what the rates say: [`Algorithm::work`].
//!
//! One number for a tile in a form of cluster, whatever k is split into: the one of the least
//!
//! ```text
//! Σ √(1 + (ε/2 %)²) + CALM · √(1 + (ln(work / usual) / 10 %)²),   ε = ln(modelled / measured)
//! ```
//!
//! over its points, first with a usual of 1, then with that of tiles and clusters like it: the mean of ln work by
//! weights 1 / (4·Δ(ln rows)² + 2·Δ(ln columns)² + [another cluster] + 0.05)², less where there are few points. One
//! that was not measured has the usual. Work changes nothing where memory is what takes long, unlike an
//! efficiency.

use std::collections::BTreeMap;

use super::rates::{CALM, Point, SOFT, deviation};
use crate::device::Device;
use crate::device::gemm::library::{Algorithm, Library};

/// Least and largest work, and numbers that are tried between them.
const RANGE: [f64; 2] = [0.6, 4.0];
const STEPS: u32 = 192;
/// Departure from the usual beyond which it counts linearly, in ln work.
const FAR: f64 = 0.1;
/// Weight of a work of 1 among those of others: that of one at a squared distance of 1.4.
const PRIOR: f64 = 0.5;

/// A tile in clusters, of rows with some alignment.
type Key = (u32, (u32, u32), (u32, u32));

const fn key(a: &Algorithm) -> Key {
    (a.align, a.tile, a.cluster)
}

/// Sets the work of every tile.
pub(super) fn works(device: &Device, mut library: Library, points: &[Point]) -> Library {
    let mut by: BTreeMap<Key, Vec<&Point>> = BTreeMap::new();
    for point in points {
        if let Some(algorithm) = library.algorithms.get(usize::from(point.kernel)) {
            by.entry(key(algorithm)).or_default().push(point);
        }
    }
    let mut found: BTreeMap<Key, (f64, usize)> = BTreeMap::new();
    for usual in [false, true] {
        for (own, points) in &by {
            let usual = if usual { likely(&found, own) } else { 0.0 };
            let work = fitted(device, &mut library, points, (own, usual));
            found.insert(*own, (work.ln(), points.len()));
        }
    }
    for algorithm in &mut library.algorithms {
        let own = key(algorithm);
        let ln = found
            .get(&own)
            .map_or_else(|| likely(&found, &own), |f| f.0);
        algorithm.work = ln.exp();
    }
    library
}

/// ln of the work that others of the same alignment say.
fn likely(found: &BTreeMap<Key, (f64, usize)>, own: &Key) -> f64 {
    let &(align, tile, cluster) = own;
    let ln = |a: u32, b: u32| (f64::from(a) / f64::from(b)).ln();
    let (mut sum, mut weights) = (0.0, PRIOR);
    for (other, &(work, points)) in found {
        if other == own || other.0 != align {
            continue;
        }
        let unlike = if other.2 == cluster { 0.0 } else { 1.0 };
        let (rows, columns) = (ln(other.1.0, tile.0), ln(other.1.1, tile.1));
        let far = 4.0 * rows.powi(2) + 2.0 * columns.powi(2) + unlike + 0.05;
        let weight = points as f64 / (points as f64 + CALM) / far.powi(2);
        sum += weight * work;
        weights += weight;
    }
    sum / weights
}

/// The work that fits some points of a tile best.
fn fitted(
    device: &Device,
    library: &mut Library,
    points: &[&Point],
    (own, usual): (&Key, f64),
) -> f64 {
    let places: Vec<usize> = (0..library.algorithms.len())
        .filter(|at| key(&library.algorithms[*at]) == *own)
        .collect();
    let [least, most] = RANGE.map(f64::ln);
    let step = (most - least) / f64::from(STEPS);
    let tried = (0..=STEPS).map(|i| least + step * f64::from(i));
    let soft = |x: f64, scale: f64| (1.0 + (x / scale).powi(2)).sqrt();
    let mut best = (f64::INFINITY, usual);
    for ln in tried.chain([usual]) {
        places
            .iter()
            .for_each(|at| library.algorithms[*at].work = ln.exp());
        let errors = points
            .iter()
            .map(|point| soft(deviation(device, library, point), SOFT));
        let cost = errors.sum::<f64>() + CALM * soft(ln - usual, FAR);
        if cost < best.0 {
            best = (cost, ln);
        }
    }
    best.1.exp()
}
