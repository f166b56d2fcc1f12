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

#[cfg(test)]
mod tests {
    use super::super::rates::START;
    use super::*;
    use crate::device::gemm::library::ALIGNED;
    use crate::device::{DType, load};

    fn algorithm(tile: (u32, u32), split: u32, cluster: (u32, u32)) -> Algorithm {
        Algorithm {
            tile,
            split,
            cluster,
            align: ALIGNED,
            work: 1.0,
            efficiency: 1.0,
        }
    }

    /// Times made up with a work of 2 for one tile, in whichever parts of k, and of 1 for another, are found
    /// again; a tile that was not measured is taken to be like the ones near it, and in the same clusters.
    #[test]
    fn work_is_found_again_and_lent() {
        let device = load("h200").unwrap();
        let all = vec![
            algorithm((64, 448), 1, (1, 2)),
            algorithm((64, 448), 2, (1, 2)),
            algorithm((128, 128), 1, (2, 1)),
            algorithm((64, 384), 1, (1, 2)),
        ];
        let library = Library::new(DType::Bf16, START, all, Vec::new());
        let mut made = library.clone();
        for at in [0, 1] {
            made.algorithms[at].work = 2.0;
        }
        let mut points = Vec::new();
        for kernel in [0, 1, 2] {
            for n in [7168, 14_336, 28_672] {
                for m in [512, 1024, 2048, 4096] {
                    let shape = [m, n, 4096];
                    points.push(Point {
                        shape,
                        align: ALIGNED,
                        kernel,
                        time: made.seconds(&device, shape, kernel).unwrap(),
                    });
                }
            }
        }
        let found = works(&device, library, &points);
        let work: Vec<f64> = found.algorithms.iter().map(|a| a.work).collect();
        // A step of the search is 1 %.
        assert!(
            (work[0] - 2.0).abs() < 0.02 && work[0] == work[1],
            "{work:?}"
        );
        assert!((work[2] - 1.0).abs() < 0.01, "{work:?}");
        assert!((1.8..2.0).contains(&work[3]), "{work:?}");
    }
}
