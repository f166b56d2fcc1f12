//! What cuBLASLt's numbers for an algorithm mean.

use std::fmt;

use crate::gpu::raw::lt::{Algo, AlgoNumbers, numbers};

/// Rows and columns of tile n + 1, as the library counts them, up to CUDA 13.2.
const TILES: &str = include_str!("tiles.txt");

/// An algorithm in words.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Rows and columns of C that one block computes; `None` for a number not known here.
    pub tile: Option<(u32, u32)>,
    /// Depth of a stage in elements of k, and how many stages there are (`None`: the library's
    /// choice).
    pub stages: Option<(u32, Option<u32>)>,
    /// Parts that k is cut into, summed at the end.
    pub split_k: u32,
    /// Blocks of a cluster over rows and columns of C.
    pub cluster: Option<(u32, u32)>,
    /// The library's own numbers.
    pub numbers: AlgoNumbers,
}

impl Config {
    /// Reads an algorithm.
    pub fn of(algo: &Algo) -> Self {
        Self::from_numbers(numbers(algo))
    }

    fn from_numbers(numbers: AlgoNumbers) -> Self {
        // The library computes the transposed product, so its rows are our columns.
        let turn = |(rows, cols)| (cols, rows);
        Self {
            tile: tile(numbers.tile).map(turn),
            stages: stages(numbers.stages),
            split_k: numbers.split_k.max(1),
            cluster: cluster(numbers.cluster).map(turn),
            numbers,
        }
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tile {
            Some((rows, cols)) => write!(f, "tile {rows}×{cols}")?,
            None => write!(f, "tile no. {}", self.numbers.tile)?,
        }
        match self.stages {
            Some((depth, Some(count))) => write!(f, ", {count} stages of {depth}")?,
            Some((depth, None)) => write!(f, ", stages of {depth}")?,
            None => write!(f, ", stages no. {}", self.numbers.stages)?,
        }
        if self.split_k > 1 {
            write!(f, ", k in {} parts", self.split_k)?;
        }
        match self.cluster {
            Some((1, 1)) => Ok(()),
            Some((rows, cols)) => write!(f, ", clusters of {rows}×{cols}"),
            None => write!(f, ", clusters no. {}", self.numbers.cluster),
        }
    }
}

fn tile(id: u32) -> Option<(u32, u32)> {
    let line = TILES.lines().nth(id.checked_sub(1)? as usize)?;
    let (rows, cols) = line.split_once(' ')?;
    Some((rows.parse().ok()?, cols.parse().ok()?))
}

fn stages(id: u32) -> Option<(u32, Option<u32>)> {
    const DEPTHS: [u32; 4] = [16, 32, 64, 128];
    match id {
        1..=24 => Some((DEPTHS[(id as usize - 1) / 6], Some((id - 1) % 6 + 1))),
        25 => Some((32, Some(10))),
        26 => Some((8, Some(4))),
        27 => Some((16, Some(10))),
        28 => Some((8, Some(5))),
        31 => Some((8, Some(3))),
        32..=37 => Some((8 << (id - 32), None)),
        38 => Some((768, None)),
        _ => None,
    }
}

fn cluster(id: u32) -> Option<(u32, u32)> {
    match id {
        2..=4 => Some((1 << (id - 2), 1)),
        5..=7 => Some((1 << (id - 5), 2)),
        8..=10 => Some((1 << (id - 8), 4)),
        11 => Some((8, 1)),
        12 => Some((1, 8)),
        13 => Some((8, 2)),
        14 => Some((2, 8)),
        15 => Some((16, 1)),
        16 => Some((1, 16)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_the_header_states_them() {
        // CUBLASLT_MATMUL_TILE_8x8, 64x64, 128x256, 512x512; undefined and beyond the end.
        assert_eq!(tile(1), Some((8, 8)));
        assert_eq!(tile(15), Some((64, 64)));
        assert_eq!(tile(23), Some((128, 256)));
        assert_eq!(tile(633), Some((512, 512)));
        assert_eq!((tile(0), tile(634)), (None, None));
        // CUBLASLT_MATMUL_STAGES_16x1, 64x5, 128x6, 128xAUTO.
        assert_eq!(stages(1), Some((16, Some(1))));
        assert_eq!(stages(17), Some((64, Some(5))));
        assert_eq!(stages(24), Some((128, Some(6))));
        assert_eq!(stages(36), Some((128, None)));
        // CUBLASLT_CLUSTER_SHAPE_2x1x1, 1x2x1, 4x2x1, 1x4x1.
        assert_eq!(cluster(3), Some((2, 1)));
        assert_eq!(cluster(5), Some((1, 2)));
        assert_eq!(cluster(7), Some((4, 2)));
        assert_eq!(cluster(8), Some((1, 4)));
        assert_eq!(cluster(0), None);
    }

    #[test]
    fn tiles_are_turned_to_rows_and_columns_of_c() {
        let numbers = AlgoNumbers {
            id: 66,
            tile: 23,
            stages: 36,
            split_k: 0,
            reduction: 0,
            swizzle: 0,
            custom: 0,
            inner: 0,
            cluster: 3,
        };
        let config = Config::from_numbers(numbers);
        assert_eq!(config.tile, Some((256, 128)));
        assert_eq!(config.cluster, Some((1, 2)));
        assert_eq!(config.split_k, 1);
        assert_eq!(
            config.to_string(),
            "tile 256×128, stages of 128, clusters of 1×2"
        );
    }
}
