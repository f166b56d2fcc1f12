//! Which kernel suits a product: by waves of tiles, and by when their rows come.

use std::collections::VecDeque;

use super::Tile;
use super::tile::TILES;
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
}

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
    fn at_once(self, sms: u32) -> u64 {
        let cluster = self.cluster.0 * self.cluster.1;
        u64::from((sms * self.blocks() / cluster).max(1))
    }

    /// How long the tiles of a wave take, in units of [`Self::cost`].
    fn wave(self, k: u64) -> f64 {
        let known = TILES.iter().find(|(tile, _)| *tile == self);
        let (_, rate) = known.unwrap_or(&TILES[0]);
        let each = f64::from(self.blocks() * self.rows * self.cols);
        each * (k as f64 + BEGIN) / (rate * self.family.rate())
    }

    /// The same where rows come in stages. Those that wait are there once the rows before them could
    /// have been computed with no waste: what is gained by waiting for nothing shows, what is lost
    /// by tiles that do not fit the first rows too.
    ///
    /// ```text
    /// start of tile i = max(end of tile i − clusters at once, there)     end = start + wave
    /// there           = rows before · n · (k + begin) / (SMs · rate)
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
        let ideal = problem.n as f64 * (problem.k as f64 + BEGIN)
            / (f64::from(sms.max(1)) * self.family.rate());
        let (mut rows, mut last) = (0, 0.0);
        for stage in stages {
            let there = match stage.waits {
                true => rows as f64 * ideal,
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
                last = f64::max(free, there) + wave;
                ends.push_back(last);
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
        let mut all: Vec<(f64, Self)> = Self::all(gpu)
            .into_iter()
            .filter(|tile| tile.cluster.0 * tile.cluster.1 <= sms)
            .map(|tile| (tile.cost_in_stages(problem, sms, stages), tile))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.into_iter().map(|(_, tile)| tile).collect()
    }
}
