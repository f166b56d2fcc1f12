//! Which kernel suits a product: by waves of tiles, and by when their rows come.

use std::collections::VecDeque;

use super::tile::TILES;
use super::{Family, Tile};
use crate::gpu::lt::Problem;
use crate::gpu::raw::Attributes;

/// What begin and end of a tile take, as elements of k.
const BEGIN: f64 = 200.0;

/// Rows of a product that come after those before them in its order.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stage {
    pub rows: u64,
    /// Whether they wait for something.
    pub waits: bool,
    /// Whether they wait when they are added to it, and not before.
    pub adds: bool,
    /// Whether their tiles are stored on another GPU, which adds to them.
    pub leaves: bool,
}

impl Stage {
    /// Appends a stage; those that wait for nothing and go the same way are one.
    pub fn push(stages: &mut Vec<Self>, stage: Self) {
        let alike = |last: &Self| !last.waits && !stage.waits && last.leaves == stage.leaves;
        match stages.last_mut() {
            Some(last) if alike(last) => last.rows += stage.rows,
            _ => stages.push(stage),
        }
    }
}

/// What an element of a partial sum takes from GPU to GPU, as elements of k (measured on two H200:
/// 370 GB/s, while products run at 750 TFLOP/s).
const ARRIVAL: f64 = 2000.0;

/// What passes until a copy by an engine begins beside a product and until its rows are seen, likewise: 12 us as
/// for a first slab on two H200.
const START: f64 = 4.5e9;

impl Tile {
    /// About how long a product takes, in units of its own: each of the waves computes its tiles
    /// through all of k, and begins and ends.
    ///
    /// ```text
    /// waves = ⌈clusters / ⌊SMs · blocks / blocks of a cluster⌋⌉
    /// time  = waves · blocks · rows · cols · (k + begin) / rate
    /// ```
    pub fn cost(self, problem: &Problem, sms: u32) -> f64 {
        let (bands, columns) = self.grid(problem.m, problem.n);
        let waves = (bands * columns).div_ceil(self.at_once(sms));
        waves as f64 * self.wave(problem.k)
    }

    /// Clusters that so many SMs hold.
    pub(super) fn at_once(self, sms: u32) -> u64 {
        let cluster = self.cluster.0 * self.cluster.1;
        u64::from((sms * self.blocks() / cluster).max(1))
    }

    /// How long the tiles of a wave take, in units of [`Self::cost`].
    pub(super) fn wave(self, k: u64) -> f64 {
        let each = f64::from(self.blocks() * self.rows * self.cols);
        each * (k as f64 + BEGIN) / (self.rate() * self.family.rate())
    }

    /// How long so many elements take from GPU to GPU, and what precedes and follows, in units of [`Self::cost`].
    pub(super) fn arrival(self, elements: u64, sms: u32) -> (f64, f64) {
        let all = f64::from(sms.max(1)) * self.family.rate();
        (elements as f64 * ARRIVAL / all, START / all)
    }

    /// The share of its family's fastest rate that it reaches where it fills the GPU.
    fn rate(self) -> f64 {
        let known = TILES.iter().find(|(tile, _)| *tile == self);
        known.unwrap_or(&TILES[0]).1
    }

    /// The same where rows come in stages. Those that wait are there once the rows before them could
    /// have been computed with no waste: what is gained by waiting for nothing shows, what is lost
    /// by tiles that do not fit the first rows too. Those that wait when they are added are
    /// multiplied before; what they are added to is as many rows of another GPU, which computes its
    /// stages in the same way, and has come some time after it has computed those that add nothing, one
    /// stage after another; or, where tiles leave as they are stored, once the last has left.
    ///
    /// ```text
    /// start of tile i = max(end of tile i − clusters at once, there)     end = start + wave
    /// there           = rows before · n · (k + begin) / (SMs · rate)
    /// end of a sum    = max(start + wave, last end of rows that add nothing + Σ rows · n · arrival / (SMs · rate))
    ///   of left tiles = max(start + wave, left), left = max(left, end) + tile · arrival / (SMs · rate) of each
    /// ```
    pub fn cost_in_stages(self, problem: &Problem, sms: u32, stages: &[Stage]) -> f64 {
        /// So many tiles are so many waves that stages do not matter.
        const MANY: u64 = 100_000;
        let (bands, columns) = self.grid(problem.m, problem.n);
        if stages.is_empty() || bands * columns > MANY {
            return self.cost(problem, sms);
        }
        let (at_once, wave) = (self.at_once(sms), self.wave(problem.k));
        let mut ends = VecDeque::from(vec![0.0; at_once as usize]);
        let row = problem.n as f64 / (f64::from(sms.max(1)) * self.family.rate());
        let tile = f64::from(self.band() as u32) * row / columns as f64 * ARRIVAL;
        let ideal = row * (problem.k as f64 + BEGIN);
        let (mut rows, mut last, mut arrived, mut left) = (0, 0.0_f64, 0.0, None);
        for stage in stages {
            let there = match stage.waits && !stage.adds {
                true => rows as f64 * ideal,
                false => 0.0,
            };
            let sums = match stage.adds {
                true if left.is_some() => left.unwrap_or(0.0),
                true => {
                    arrived += stage.rows as f64 * row * ARRIVAL;
                    arrived
                }
                false => 0.0,
            };
            // A band that two stages share is one of the later.
            let before = rows / self.band();
            rows += stage.rows;
            let upto = match rows >= problem.m {
                true => bands,
                false => rows / self.band(),
            };
            for _ in 0..upto.saturating_sub(before) * columns {
                let free = ends.pop_front().unwrap_or(0.0);
                let end = f64::max(f64::max(free, there) + wave, sums);
                last = last.max(end);
                ends.push_back(end);
                if stage.leaves {
                    left = Some(f64::max(left.unwrap_or(0.0), end) + tile);
                }
            }
            if !stage.adds {
                arrived = last;
            }
        }
        last
    }

    /// The kernels of a GPU for `problem`, whose rows come in stages (none: all at once), the one that
    /// should be fastest first.
    pub fn ranked(problem: &Problem, gpu: &Attributes, stages: &[Stage]) -> Vec<Self> {
        let sms = match problem.sms {
            0 => gpu.sms,
            some => some.min(gpu.sms),
        };
        Self::ranked_of(Self::all(gpu), problem, sms, stages)
    }

    /// The same of some kernels, on so many SMs.
    fn ranked_of(all: Vec<Self>, problem: &Problem, sms: u32, stages: &[Stage]) -> Vec<Self> {
        let mut all: Vec<(f64, Self)> = all
            .into_iter()
            .filter(|tile| tile.cluster.0 * tile.cluster.1 <= sms)
            .map(|tile| (tile.cost_in_stages(problem, sms, stages), tile))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.into_iter().map(|(_, tile)| tile).collect()
    }
}

/// What the tiles of a product's kernel make of its time.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Waves {
    /// By the time of the best tile for the product in one piece on all SMs.
    pub time: f64,
    /// The time of a wave by that of the kernel.
    pub wave: f64,
}

/// The tile that [`Tiles::choose`](super::Tiles::choose) takes on a Hopper of `all` SMs for `problem`, whose rows come
/// in `stages`; `None` for a product that the kernels refuse.
pub fn suits(problem: &Problem, all: u32, stages: &[Stage]) -> Option<Tile> {
    /// Bytes of shared memory of a block on Hopper.
    const SHARED: u32 = 232_448;
    if super::refused(problem).is_some() {
        return None;
    }
    let sms = match problem.sms {
        0 => all,
        some => some.min(all),
    };
    let tiles = Tile::of(Family::Sm90, SHARED);
    Tile::ranked_of(tiles, problem, sms, stages)
        .first()
        .copied()
}

/// Waves of `tile`, or of the one that [`Tiles::choose`](super::Tiles::choose) takes, on a Hopper of `all` SMs, of which
/// the problem may name fewer:
///
/// ```text
/// time = waves(tile, SMs) · wave(tile) · rate / alone / min over tiles (waves(tile, all SMs) · wave(tile))
/// wave = 1 / waves(tile, SMs)        alone = min(1, rate · all SMs / SMs)
/// ```
///
/// That small tiles fall behind the largest because of what all SMs together load, and no longer where so many
/// fewer SMs load, is assumed: rates were measured on all SMs only.
///
/// `None` for a product that the kernels refuse.
pub fn waves(problem: &Problem, all: u32, stages: &[Stage], tile: Option<Tile>) -> Option<Waves> {
    let best = suits(&Problem { sms: 0, ..*problem }, all, &[])?;
    let least = best.cost(problem, all);
    let tile = match tile {
        Some(tile) => tile,
        None => suits(problem, all, stages)?,
    };
    let sms = match problem.sms {
        0 => all,
        some => some.min(all),
    };
    let cost = tile.cost(problem, sms);
    let rate = tile.rate();
    let alone = (rate * f64::from(all) / f64::from(sms.max(1))).min(1.0);
    Some(Waves {
        time: cost * (rate / alone) / least,
        wave: tile.wave(problem.k) / cost,
    })
}
