//! Tiles of GPUs that are not there.

use clap::ValueEnum;

use crate::gpu::tiles::{Family, Tile};
use crate::topology::Topology;

/// Shared memory of a block, where no GPU is asked: that of an H200 and of an A100 \[bytes\].
const SHARED: [u32; 2] = [232_448, 166_912];

/// Tensor cores that kernels are written for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Cores {
    /// Hopper.
    Sm90,
    /// From Ampere on.
    Sm80,
}

/// The tiles of a machine that is not there.
pub(super) fn tiles_of(topology: &Topology, cores: Option<Cores>) -> Vec<Tile> {
    let name = topology.device(0).name.to_ascii_lowercase();
    let is = |names: &[&str]| names.iter().any(|part| name.contains(part));
    match cores {
        Some(Cores::Sm90) => Tile::of(Family::Sm90, SHARED[0]),
        Some(Cores::Sm80) => Tile::of(Family::Sm80, SHARED[1]),
        None if is(&["h100", "h200", "h800", "h20"]) => Tile::of(Family::Sm90, SHARED[0]),
        // Neither has the tensor cores.
        None if is(&["mi300", "v100"]) => Vec::new(),
        None => Tile::of(Family::Sm80, SHARED[1]),
    }
}
