//! The kernels that there are, and which suits a product.

use std::fmt;

use crate::device::DType;
use crate::gpu::lt::Problem;
use crate::gpu::raw::Attributes;

/// Depth of a stage in elements of k.
const DEPTH: u64 = 64;

/// The tensor cores that a kernel is written for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Products of single warps, from compute capability 8.0 on.
    Sm80,
    /// Products of four warps, loads by the tensor copy engine: compute capability 9.0.
    Sm90,
}

/// The shape of a kernel's work.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tile {
    pub family: Family,
    /// Rows and columns of C that a block computes at a time.
    pub rows: u32,
    pub cols: u32,
    /// Tiles of A and of B in shared memory.
    pub stages: u32,
    /// Blocks over rows and columns that share what they load.
    pub cluster: (u32, u32),
}

const fn sm90(cols: u32, stages: u32, cluster: (u32, u32)) -> Tile {
    Tile {
        family: Family::Sm90,
        rows: 128,
        cols,
        stages,
        cluster,
    }
}

const fn sm80(rows: u32, cols: u32, stages: u32) -> Tile {
    Tile {
        family: Family::Sm80,
        rows,
        cols,
        stages,
        cluster: (1, 1),
    }
}

/// All kernels, each with the share of its family's fastest rate that it reaches where it fills
/// the GPU (measured on an H200).
pub(super) const TILES: [(Tile, f64); 10] = [
    (sm90(256, 4, (2, 1)), 1.0),
    (sm90(256, 4, (1, 2)), 0.985),
    (sm90(256, 4, (1, 1)), 0.965),
    (sm90(192, 4, (1, 1)), 0.93),
    (sm90(128, 6, (2, 1)), 0.90),
    (sm90(128, 6, (1, 1)), 0.65),
    (sm90(64, 8, (1, 1)), 0.465),
    (sm80(128, 256, 4), 1.0),
    (sm80(128, 128, 3), 0.98),
    (sm80(64, 128, 4), 0.68),
];

impl Tile {
    /// The kernels that a GPU runs, its own family's first.
    pub fn all(gpu: &Attributes) -> Vec<Self> {
        let own = match gpu.major {
            9 => Family::Sm90,
            _ => Family::Sm80,
        };
        let mut all: Vec<Self> = TILES
            .iter()
            .map(|(tile, _)| *tile)
            .filter(|tile| tile.family <= own && tile.shared() <= gpu.shared)
            .collect();
        all.sort_by_key(|tile| tile.family != own);
        all
    }

    /// Threads of a block.
    pub const fn threads(self) -> u32 {
        match self.family {
            // Four warps that load and store, and two groups of four.
            Family::Sm90 => 384,
            // A warp for 64 × 64 elements.
            Family::Sm80 => self.rows / 64 * (self.cols / 64) * 32,
        }
    }

    /// Blocks that an SM's registers hold.
    pub const fn blocks(self) -> u32 {
        match self.family {
            Family::Sm90 => 1,
            Family::Sm80 => 256 / self.threads(),
        }
    }

    /// Bytes of shared memory of a block.
    pub const fn shared(self) -> u32 {
        let stages = self.stages * (self.rows + self.cols) * DEPTH as u32 * 2;
        match self.family {
            // Four pieces of C of 64 × 64, the barriers, and what aligns it all.
            Family::Sm90 => stages + 4 * 64 * 64 * 2 + 1024 + 16 * self.stages + 32,
            Family::Sm80 => stages,
        }
    }

    /// Rows of a band: what a cluster computes at a time.
    pub const fn band(self) -> u64 {
        self.rows as u64 * self.cluster.0 as u64
    }

    /// Who counts a band of one column of clusters: two groups of warps in each block, or the block.
    pub const fn writers(self) -> u64 {
        match self.family {
            Family::Sm90 => 2 * self.cluster.0 as u64 * self.cluster.1 as u64,
            Family::Sm80 => 1,
        }
    }

    /// Bands of `m` rows, and clusters side by side in `n` columns.
    pub const fn grid(self, m: u64, n: u64) -> (u64, u64) {
        let width = self.cols as u64 * self.cluster.1 as u64;
        (m.div_ceil(self.band()), n.div_ceil(width))
    }

    /// The options that make the kernel of this tile, for `dtype` and a sum onto C or not.
    pub fn options(self, dtype: DType, accumulate: bool) -> Vec<String> {
        let (element, convert) = match dtype {
            DType::Fp16 => ("f16", "cvt.rn.f16x2.f32"),
            _ => ("bf16", "cvt.rn.bf16x2.f32"),
        };
        let numbers = [
            ("TILE_M", self.rows),
            ("TILE_N", self.cols),
            ("STAGES", self.stages),
            ("CLUSTER_M", self.cluster.0),
            ("CLUSTER_N", self.cluster.1),
            ("BLOCKS", self.blocks()),
            // B lies row after row of k.
            ("ACROSS_A", 0),
            ("ACROSS_B", 1),
            ("ACCUMULATE", u32::from(accumulate)),
        ];
        let texts = [("ELEMENT", element), ("CONVERT", convert)];
        let texts = texts.map(|(name, value)| format!("-D{name}=\"{value}\""));
        let numbers = numbers.map(|(name, value)| format!("-D{name}={value}"));
        texts.into_iter().chain(numbers).collect()
    }

    /// The source file's name.
    pub const fn file(self) -> &'static str {
        match self.family {
            Family::Sm80 => "gemm_sm80",
            Family::Sm90 => "gemm_sm90",
        }
    }

    /// About how long a product takes, in units of its own: each of the waves computes its tiles
    /// through all of k, and begins and ends.
    ///
    /// ```text
    /// waves = ⌈clusters / ⌊SMs · blocks / blocks of a cluster⌋⌉
    /// time  = waves · blocks · rows · cols · (k + begin) / rate
    /// ```
    pub fn cost(self, problem: &Problem, sms: u32) -> f64 {
        /// What begin and end of a tile take, as elements of k.
        const BEGIN: f64 = 200.0;
        let (_, rate) = TILES
            .iter()
            .find(|(tile, _)| *tile == self)
            .unwrap_or(&TILES[0]);
        let family = match self.family {
            Family::Sm90 => 1.0,
            Family::Sm80 => 0.53,
        };
        let (bands, columns) = self.grid(problem.m, problem.n);
        let blocks = self.blocks();
        let at_once = (sms * blocks / (self.cluster.0 * self.cluster.1)).max(1);
        let waves = (bands * columns).div_ceil(u64::from(at_once));
        let each = f64::from(blocks * self.rows * self.cols);
        waves as f64 * each * (problem.k as f64 + BEGIN) / (rate * family)
    }

    /// The kernels of a GPU for `problem`, the one that should be fastest first.
    pub fn ranked(problem: &Problem, gpu: &Attributes) -> Vec<Self> {
        let sms = match problem.sms {
            0 => gpu.sms,
            some => some.min(gpu.sms),
        };
        let mut all: Vec<(f64, Self)> = Self::all(gpu)
            .into_iter()
            .filter(|tile| tile.cluster.0 * tile.cluster.1 <= sms)
            .map(|tile| (tile.cost(problem, sms), tile))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.into_iter().map(|(_, tile)| tile).collect()
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = match self.family {
            Family::Sm80 => "sm80",
            Family::Sm90 => "sm90",
        };
        let Self {
            rows, cols, stages, ..
        } = self;
        write!(f, "{family} {rows}×{cols}, {stages} stages")?;
        match self.cluster {
            (1, 1) => Ok(()),
            (rows, cols) => write!(f, ", clusters of {rows}×{cols}"),
        }
    }
}
