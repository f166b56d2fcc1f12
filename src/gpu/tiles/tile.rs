//! The kernels that there are, and which suits a product.

use std::fmt;

use super::fetch::{FETCH, MOST_FETCHES};
use super::launch::gate_size;
use crate::device::DType;
use crate::gpu::lt::Problem;
use crate::gpu::raw::Attributes;
use crate::schedule::lowered;

/// Depth of a stage in elements of k.
const DEPTH: u64 = 64;
/// Of the time of a tile: over how much the stores of the one before are spread that leaves for another GPU
/// \[percent\].
const PACE: u32 = 60;

/// The tensor cores that a kernel is written for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Products of single warps, from compute capability 8.0 on.
    Sm80,
    /// Products of four warps, loads by the tensor copy engine: compute capability 9.0.
    Sm90,
}

impl Family {
    const fn name(self) -> &'static str {
        match self {
            Self::Sm80 => "sm80",
            Self::Sm90 => "sm90",
        }
    }

    /// The rate of its fastest kernel, as a share of the fastest of all (measured on an H200).
    pub(super) const fn rate(self) -> f64 {
        match self {
            Self::Sm90 => 1.0,
            Self::Sm80 => 0.53,
        }
    }
}

/// What a kernel does beside its tile.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Does {
    pub dtype: DType,
    /// Whether it adds onto C.
    pub accumulate: bool,
    /// Whether it notes the moments of its tiles.
    pub traced: bool,
    /// What it does for a [`Gate`](super::Gate), if it has one.
    pub gated: Option<Gated>,
}

/// What a kernel does for a [`Gate`](super::Gate) beside waiting and telling.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gated {
    /// Brings rows of A itself.
    pub brings: bool,
    /// Stores C in several places.
    pub parted: bool,
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

impl Does {
    /// What `problem` asks for, untraced, without a gate.
    pub const fn of(problem: &Problem) -> Self {
        Self {
            dtype: problem.dtype,
            accumulate: problem.accumulate,
            traced: false,
            gated: None,
        }
    }
}

impl Tile {
    /// Of the time of a wave: what the tiles of the one before take at least to leave for another GPU.
    pub const PACE: f64 = PACE as f64 / 100.0;

    /// A multiple of the rows of every kernel's bands.
    pub const BANDS: u32 = lowered::BAND;

    /// All kernels of all GPUs.
    pub const TABLE: [Self; TILES.len()] = {
        let mut all = [TILES[0].0; TILES.len()];
        let mut i = 0;
        while i < TILES.len() {
            all[i] = TILES[i].0;
            i += 1;
        }
        all
    };

    /// The kernels that a GPU runs, its own family's first.
    pub fn all(gpu: &Attributes) -> Vec<Self> {
        let own = match gpu.major {
            9 => Family::Sm90,
            _ => Family::Sm80,
        };
        let mut all = Self::of(own, gpu.shared);
        if own == Family::Sm90 {
            all.extend(Self::of(Family::Sm80, gpu.shared));
        }
        all
    }

    /// The kernels of a family that fit so many bytes of shared memory of a block.
    pub fn of(family: Family, shared: u32) -> Vec<Self> {
        let all = TILES.iter().map(|(tile, _)| *tile);
        let fits = |tile: &Self| tile.family == family && tile.shared() <= shared;
        all.filter(fits).collect()
    }

    /// A word for it: `sm90-128x256x4-2x1`, the tile, its stages and its cluster.
    pub fn name(self) -> String {
        let family = self.family.name();
        let Self {
            rows, cols, stages, ..
        } = self;
        match self.cluster {
            (1, 1) => format!("{family}-{rows}x{cols}x{stages}"),
            (m, n) => format!("{family}-{rows}x{cols}x{stages}-{m}x{n}"),
        }
    }

    /// The kernel of a name.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = TILES.iter().map(|(tile, _)| *tile);
        all.find(|tile| tile.name() == name)
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
            // Four pieces of C of 64 × 64, the barriers (of stages, of pieces, of pieces that come back), a word
            // for each piece and one for what is there, a table of what is brought, and what aligns it all.
            Family::Sm90 => {
                let barriers = 16 * self.stages + 32 + 16;
                let table = FETCH * MOST_FETCHES;
                stages + 4 * 64 * 64 * 2 + barriers + 16 + 4 + (table + 16) as u32 + 1024
            }
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

    /// Blocks that compute tiles of a product of `m` × `n`: places of moments in a trace of tiles.
    pub const fn turns(self, m: u64, n: u64) -> u64 {
        let (bands, columns) = self.grid(m, n);
        bands * columns * self.cluster.0 as u64 * self.cluster.1 as u64
    }

    /// Whether the kernel has a gate, which may be none: those for compute capability 8.0 always do.
    pub(super) const fn gated(self, does: Does) -> bool {
        matches!(self.family, Family::Sm80) || does.gated.is_some()
    }

    /// The options that make the kernel of this tile, for what it is to do.
    pub fn options(self, does: Does) -> Vec<String> {
        let (element, convert) = match does.dtype {
            DType::Fp16 => ("f16", "cvt.rn.f16x2.f32"),
            _ => ("bf16", "cvt.rn.bf16x2.f32"),
        };
        let gated = does.gated.unwrap_or_default();
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
            ("ACCUMULATE", u32::from(does.accumulate)),
            ("PACE", PACE),
            ("GATED", u32::from(self.gated(does))),
            ("GATE_BYTES", 8 * gate_size(self, does) as u32),
            ("BRINGS", u32::from(gated.brings)),
            ("PARTED", u32::from(gated.parted)),
        ];
        let texts = [("ELEMENT", element), ("CONVERT", convert)];
        let texts = texts.map(|(name, value)| format!("-D{name}=\"{value}\""));
        let numbers = numbers.map(|(name, value)| format!("-D{name}={value}"));
        let traced = does.traced.then(|| "-DTRACE".to_owned());
        texts.into_iter().chain(numbers).chain(traced).collect()
    }

    /// The source file's name.
    pub const fn file(self) -> &'static str {
        match self.family {
            Family::Sm80 => "gemm_sm80",
            Family::Sm90 => "gemm_sm90",
        }
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = self.family.name();
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
