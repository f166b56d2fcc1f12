//! What can be set for one group.

use std::fmt;

use crate::device::DType;
use crate::gpu::campaign::products_name;
use crate::gpu::plan::{Options, Path, Products};
use crate::gpu::tiles::Tile;
use crate::operator::Kind;
use crate::strategy::{self, Choice};
use crate::validate::key::Group;
use crate::validate::simulated::lowering;

/// A way to perform an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// With its chunks, order and mover.
    pub strategy: Choice,
    pub products: Products,
    /// `None`: the products' own choice.
    pub tile: Option<Tile>,
}

impl Setting {
    /// How a group is lowered with it.
    pub fn options(&self, group: &Group) -> Options {
        Options {
            products: self.products,
            tile: self.tile,
            ..lowering(group)
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.strategy, products_name(self.products))?;
        match self.tile {
            Some(tile) => write!(f, ", {}", tile.name()),
            None => Ok(()),
        }
    }
}

/// Chunks of a shard.
const CHUNKS: [u32; 5] = [1, 2, 4, 8, 16];
/// The most of them where copies are fast: each costs a start and a flag.
const FEW_CHUNKS: u32 = 8;
/// Slabs of k of a chunk.
const SLABS: [u32; 4] = [1, 2, 4, 8];
/// Most pieces of a shard whose copies go through the host; elsewhere only a shard of one chunk comes in slabs.
const PIECES: u32 = 32;
/// Thread blocks of copies by SMs, each an SM that the product does not get.
const BLOCKS: [u32; 4] = [4, 8, 16, 32];

/// Everything there is for a group: what comparisons try with the library's products, and with Duet's
/// own, by each of `tiles`, every chunk, slab, order and mover.
pub fn settings(group: &Group, tiles: &[Tile]) -> Vec<Setting> {
    let operator = &group.operator;
    // Copies through the host are by copy engines.
    let host = matches!(lowering(group).path, Path::Host { .. });
    let mut all: Vec<Setting> = strategy::candidates(operator)
        .into_iter()
        .map(|strategy| Setting {
            strategy,
            products: Products::Library,
            tile: None,
        })
        .collect();
    // Duet's kernels multiply 16-bit elements.
    let tiles = match operator.dtype {
        DType::Bf16 | DType::Fp16 => tiles,
        _ => &[],
    };
    for text in own(operator.kind, host) {
        let Ok(strategy) = strategy::parse(&text) else {
            continue;
        };
        if !strategy.strategy().applies(operator.kind) {
            continue;
        }
        all.extend(tiles.iter().map(|&tile| Setting {
            strategy: strategy.clone(),
            products: Products::Own,
            tile: Some(tile),
        }));
    }
    all
}

/// Strategies whose products may be one kernel.
fn own(kind: Kind, host: bool) -> Vec<String> {
    let blocks = BLOCKS.iter().filter(|_| !host);
    let movers: Vec<String> = std::iter::once("ce".to_owned())
        .chain(blocks.map(|blocks| format!("sm:{blocks}")))
        .collect();
    let mut all = vec!["sequential".to_owned()];
    for chunks in CHUNKS
        .into_iter()
        .filter(|&chunks| host || chunks <= FEW_CHUNKS)
    {
        for mover in &movers {
            for issue in ["push", "pull"] {
                for slabs in SLABS {
                    // Only a gathered A is cut along k. Slabs that the receiver's copy engine pulls take
                    // twice the time of those that are pushed, for a reason that the simulator does not know.
                    let few = chunks == 1 || (host && chunks * slabs <= PIECES);
                    if slabs == 1 || (few && kind == Kind::AgGemm && issue == "push") {
                        all.push(format!(
                            "fusion-alltoall:chunks={chunks},slabs={slabs},issue={issue},mover={mover}"
                        ));
                    }
                }
            }
            for ring in ["fusion-ring", "fusion-double-ring"] {
                all.push(format!("{ring}:chunks={chunks},mover={mover}"));
            }
        }
        // Kernels that bring their rows themselves.
        if kind == Kind::AgGemm && chunks == 1 && !host {
            for slabs in SLABS {
                all.push(format!("fusion-alltoall:slabs={slabs},mover=loader"));
            }
        }
        // Products that others add up.
        if kind != Kind::AgGemm && !host {
            for fusion in ["fusion-ring", "fusion-alltoall"] {
                all.push(format!("{fusion}:chunks={chunks},mover=epilogue"));
            }
        }
        all.push(format!("ring-accumulate:chunks={chunks}"));
    }
    all
}
