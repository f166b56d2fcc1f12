//! The fastest of all algorithms without trying each.
//!
//! Algorithms of one tile differ in their split of k only, so most are left out together: their tiles'
//! arithmetic on all SMs, or the memory, takes longer than the best so far. Of the others each has a
//! lower bound, whole waves of its tiles or the memory, and its sums. ‖a, b‖ is no less than the larger,
//! so neither leaves out what would have been the fastest, and the few that are left are worked out.

use super::model::{AREA, Modelled, PARTIAL, both};
use super::{ALIGNED, Algorithm, Library, MET, Shape};
use crate::device::Device;
use crate::device::gemm::tiles::quotient;

/// What shapes whose choice is not listed choose from on one GPU, by the alignment of their rows: 1
/// byte, 2, 4, …
#[derive(Clone, Debug)]
pub(in crate::device::gemm) struct Search([Kind; ALIGNED.ilog2() as usize + 1]);

#[derive(Clone, Debug, Default)]
struct Kind {
    /// The one with the most arithmetic a second first.
    tiles: Vec<Tile>,
    /// Fixed time, per byte in memory, per element of C and part of a sum, and of beginning one \[s\].
    overhead: f64,
    per_byte: f64,
    per_partial: f64,
    reduction: f64,
}

/// Algorithms of one tile.
#[derive(Clone, Debug)]
struct Tile {
    extent: (u32, u32),
    m: f64,
    n: f64,
    per_m: f64,
    per_n: f64,
    /// An element of k, and what follows the last \[s\].
    step: f64,
    epilogue: f64,
    /// The inverse of the largest efficiency, and the least work.
    per_best: f64,
    work: f64,
    ways: Vec<Way>,
}

/// A split of k.
#[derive(Copy, Clone, Debug)]
struct Way {
    place: u16,
    split: f64,
    per_split: f64,
    work: f64,
    per_efficiency: f64,
}

impl Kind {
    fn new(library: &Library, device: &Device, rate: f64, align: u32) -> Self {
        let rates = library.rates_of(align);
        let all = || library.algorithms.iter().enumerate();
        let own = all().any(|(_, a)| a.align == align);
        let fits = |a: &Algorithm| !own || a.align == align;
        let met = |place: usize| library.met.get(place).is_some_and(|met| *met >= MET);
        let any = all().any(|(place, a)| fits(a) && met(place));
        let usable: Vec<bool> = all()
            .map(|(place, a)| fits(a) && (met(place) || !any))
            .collect();
        let mut tiles: Vec<Tile> = Vec::new();
        for (place, algorithm) in all().filter(|(place, _)| usable[*place]) {
            let way = Way {
                place: place as u16,
                split: f64::from(algorithm.split.max(1)),
                per_split: 1.0 / f64::from(algorithm.split.max(1)),
                work: algorithm.work,
                per_efficiency: 1.0 / algorithm.efficiency,
            };
            let known = tiles.iter_mut().find(|tile| tile.extent == algorithm.tile);
            if let Some(tile) = known {
                tile.per_best = tile.per_best.min(way.per_efficiency);
                tile.work = tile.work.min(way.work);
                tile.ways.push(way);
                continue;
            }
            let (m, n) = (f64::from(algorithm.tile.0), f64::from(algorithm.tile.1));
            tiles.push(Tile {
                extent: algorithm.tile,
                m,
                n,
                per_m: 1.0 / m,
                per_n: 1.0 / n,
                step: library.step(device, rate, rates, algorithm.tile),
                epilogue: rates.epilogue.get() * m * n / AREA,
                per_best: way.per_efficiency,
                work: way.work,
                ways: vec![way],
            });
        }
        let slow = |tile: &Tile| tile.step * tile.work * tile.per_m * tile.per_n * tile.per_best;
        tiles.sort_by(|a, b| slow(a).total_cmp(&slow(b)));
        Self {
            tiles,
            overhead: device.gemm_overhead.get() * rates.overhead,
            per_byte: 1.0 / (device.hbm.get() * rates.memory),
            per_partial: PARTIAL / rates.partials.get(),
            reduction: rates.reduction.get(),
        }
    }
}

impl Search {
    /// `None` without a peak.
    pub fn new(library: &Library, device: &Device) -> Option<Self> {
        let rate = device.rate(library.dtype)?;
        let kind = |power| Kind::new(library, device, rate, 1u32 << power);
        Some(Self(std::array::from_fn(kind)))
    }

    /// The fastest on some SMs, of equals the first of the list.
    pub(in crate::device::gemm::library) fn fastest(
        &self,
        (library, device): (&Library, &Device),
        shape: Shape,
        sms: u32,
    ) -> Option<(u16, Modelled)> {
        let rate = device.rate(library.dtype)?;
        let Self(kinds) = self;
        let kind = kinds.get(library.align(shape.n, shape.k).ilog2() as usize)?;
        let mut best: Option<(u16, Modelled)> = None;
        let mut limit = f64::INFINITY;
        let mut consider = |place: u16, limit: &mut f64| {
            let algorithm = library.algorithms[usize::from(place)];
            let time = library.one(device, rate, shape, algorithm, sms);
            let better = |(other, best): (u16, Modelled)| {
                time.seconds < best.seconds || (time.seconds == best.seconds && place < other)
            };
            if best.is_none_or(better) {
                (best, *limit) = (Some((place, time)), time.seconds);
            }
        };
        let [m, n, k] = [shape.m, shape.n, shape.k].map(|x| x as f64);
        let sms = f64::from(sms.clamp(1, device.sms.max(1)));
        let per_sms = 1.0 / sms;
        let size = library.dtype.size() as f64;
        let b = k * n * size;
        let memory = ((m * k + m * n) * size + b * library.miss(shape)) * kind.per_byte;
        let partials = kind.per_partial * m * n;
        let greater = |a: f64, b: f64| if a < b { b } else { a };
        // A little slack against rounding.
        let least = |work: f64, inverse: f64| {
            (kind.overhead + greater(work, memory)) * inverse * (1.0 - 1e-12)
        };
        for tile in &kind.tiles {
            let tiles = quotient(m, tile.m, tile.per_m) * quotient(n, tile.n, tile.per_n);
            if least(tiles * per_sms * tile.step * tile.work * k, tile.per_best) > limit {
                continue;
            }
            for way in &tile.ways {
                let waves = quotient(tiles * way.split, sms, per_sms);
                let one = tile.step * quotient(k, way.split, way.per_split) + tile.epilogue;
                let one = one * way.work;
                let sums = match way.split > 1.0 {
                    true => partials * way.split + kind.reduction,
                    false => 0.0,
                };
                if least(waves * one, way.per_efficiency) > limit {
                    continue;
                }
                // Now what it takes but for rounding.
                let work = both(waves * one, memory);
                let all = (kind.overhead + work + sums) * way.per_efficiency;
                if all * (1.0 - 1e-12) <= limit {
                    consider(way.place, &mut limit);
                }
            }
        }
        best
    }
}
