//! The rates of `gemm::library` fitted to measured GEMMs.
//!
//! Rates are those of the least Σ √(1 + (ε/2 %)²), ε = ln(modelled / measured), over points whose
//! kernel is known: a few that the model does not explain count little. Rows that are no multiples of
//! 16 bytes have rates of their own by what they are multiples of, from ten points on. Then each tile in a
//! form of cluster has its work ([`super::works`]). What then remains of each tile and split, averaged with `CALM` points of no deviation, and then of each form of
//! cluster likewise, is its efficiency.

use std::collections::BTreeMap;

use crate::device::Device;
use crate::device::gemm::library::{ALIGNED, Algorithm, Library, Rates};
use crate::units::{BytesPerSecond, Seconds};

/// Points without deviation that a tile's mean starts with, and the largest deviation that counts.
pub(super) const CALM: f64 = 3.0;
const MOST_DEVIATION: f64 = 1.0;
/// Points of one alignment that rates are fitted to at least.
const ENOUGH: usize = 10;
/// Deviation beyond which errors count linearly.
pub(super) const SOFT: f64 = 0.02;
/// What sums of partial products move at most \[bytes/s\]: beyond any cache, so that they cost nothing.
const MOST_PARTIALS: f64 = 2e13;
/// Steps of the search, as factors: the first and the last.
const STEPS: [f64; 2] = [0.2, 0.002];

/// A measured shape, its kernel's place and time \[s\].
pub(super) struct Point {
    pub shape: [u64; 3],
    pub align: u32,
    pub kernel: u16,
    pub time: f64,
}

/// Where the search begins: near what an H200 reaches.
pub(super) const START: Rates = Rates {
    arithmetic: 0.95,
    memory: 0.98,
    overhead: 0.9,
    load: BytesPerSecond::of(180e9),
    epilogue: Seconds::of(1.5e-6),
    partials: BytesPerSecond::of(4e12),
    latency: Seconds::of(1.4e-9),
    cached: 26e6,
    reduction: Seconds::of(1.4e-6),
};
/// Where it begins for rows that are no multiples of 16 bytes: a factor on the arithmetic of those that
/// are.
const SLOWER: f64 = 0.25;
/// The rates, as [`scale`] counts them, and those that rows that are no multiples of 16 bytes have of
/// their own: their products are bound by what an SM does with a tile, and others are not seen.
const ALL: [usize; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
const OWN: [usize; 5] = [0, 2, 5, 6, 8];

/// ln(modelled / measured); 0 where nothing is modelled.
pub(super) fn deviation(device: &Device, library: &Library, point: &Point) -> f64 {
    let time = library.seconds(device, point.shape, point.kernel);
    time.map_or(0.0, |time| (time / point.time).ln())
}

/// The library with rates for each alignment.
pub(super) fn searched(device: &Device, mut library: Library, points: &[Point]) -> Library {
    let of = |align: u32| points.iter().filter(move |p| p.align == align).collect();
    let whole: Vec<&Point> = of(ALIGNED);
    let rates = search(device, &library, ALIGNED, &whole);
    library.rates = rates;
    let mut unaligned = Vec::new();
    for align in [2, 4, 8] {
        let own: Vec<&Point> = of(align);
        if own.len() >= ENOUGH {
            let slower = Rates {
                arithmetic: rates.arithmetic * SLOWER,
                ..rates
            };
            let begin = library.clone().with_unaligned(vec![(align, slower)]);
            unaligned.push((align, search(device, &begin, align, &own)));
        }
    }
    library.unaligned = unaligned;
    library
}

/// The rates of an alignment; no kernel computes more than one of aligned rows. Moves one rate after
/// another by a factor while that helps, with smaller and smaller factors.
fn search(device: &Device, library: &Library, align: u32, points: &[&Point]) -> Rates {
    let most = library.rates.arithmetic;
    let which = if align < ALIGNED { &OWN[..] } else { &ALL[..] };
    let mut trial = library.clone();
    let mut error = |rates: Rates| {
        match trial.unaligned.first_mut().filter(|_| align < ALIGNED) {
            Some((_, own)) if rates.arithmetic <= most => *own = rates,
            Some(_) => return f64::INFINITY,
            None => trial.rates = rates,
        }
        let deviations = points.iter().map(|point| deviation(device, &trial, point));
        deviations
            .map(|e| (1.0 + (e / SOFT).powi(2)).sqrt())
            .sum::<f64>()
    };
    let mut rates = *library.rates_of(align);
    let mut best = error(rates);
    let mut step = STEPS[0];
    while step > STEPS[1] {
        let mut moved = false;
        for &which in which {
            for factor in [1.0 + step, 1.0 / (1.0 + step)] {
                let mut trial = rates;
                scale(&mut trial, which, factor);
                let found = error(trial);
                if found < best {
                    (best, rates, moved) = (found, trial, true);
                }
            }
        }
        if !moved {
            step /= 2.0;
        }
    }
    rates
}

fn scale(rates: &mut Rates, which: usize, factor: f64) {
    let factor_within = |value: f64| (value * factor).clamp(0.06, 19.0);
    match which {
        0 => rates.arithmetic = factor_within(rates.arithmetic),
        1 => rates.memory = factor_within(rates.memory),
        2 => rates.overhead = factor_within(rates.overhead),
        3 => rates.load = BytesPerSecond::of(rates.load.get() * factor),
        4 => rates.epilogue = Seconds::of((rates.epilogue.get() * factor).min(1.0)),
        5 => {
            rates.partials = BytesPerSecond::of((rates.partials.get() * factor).min(MOST_PARTIALS))
        }
        6 => rates.latency = Seconds::of((rates.latency.get() * factor).min(1e-6)),
        7 => rates.cached = (rates.cached * factor).min(1e12),
        _ => rates.reduction = Seconds::of((rates.reduction.get() * factor).min(1e-3)),
    }
}

/// Sets each kernel's efficiency from what the rates leave: that of its tile and split, and then that of
/// its cluster.
pub(super) fn efficiencies(device: &Device, library: Library, points: &[Point]) -> Library {
    let tiles = |a: &Algorithm| (a.align, a.tile, a.split, (0, 0));
    let clusters = |a: &Algorithm| (a.align, a.tile, a.split, a.cluster);
    let library = averaged(device, library, points, tiles);
    averaged(device, library, points, clusters)
}

/// Multiplies the efficiencies of kernels with one key by what remains of their points on average.
fn averaged<K: Ord>(
    device: &Device,
    mut library: Library,
    points: &[Point],
    key: impl Fn(&Algorithm) -> K,
) -> Library {
    let mut sums: BTreeMap<K, (f64, f64)> = BTreeMap::new();
    for point in points {
        let error = deviation(device, &library, point);
        if let Some(algorithm) = library.algorithms.get(usize::from(point.kernel)) {
            let (sum, count) = sums.entry(key(algorithm)).or_insert((0.0, CALM));
            *sum += error.clamp(-MOST_DEVIATION, MOST_DEVIATION);
            *count += 1.0;
        }
    }
    for algorithm in &mut library.algorithms {
        if let Some((sum, count)) = sums.get(&key(algorithm)) {
            algorithm.efficiency *= (sum / count).exp();
        }
    }
    library
}
