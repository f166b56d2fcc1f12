//! What can be set for one operator.

use std::fmt;

use crate::device::DType;
use crate::gpu::campaign::products_name;
use crate::gpu::plan::{Options, Products};
use crate::gpu::tiles::Tile;
use crate::operator::{Kind, Operator};
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
const CHUNKS: [u32; 4] = [1, 2, 4, 8];
/// Slabs of k of a shard that is one chunk.
const SLABS: [u32; 4] = [1, 2, 4, 8];
/// Thread blocks of copies by SMs, each an SM that the product does not get.
const BLOCKS: [u32; 4] = [4, 8, 16, 32];

/// Everything there is for an operator: what comparisons try with the library's products, and with Duet's
/// own, by each of `tiles`, every chunk, slab, order and mover.
pub fn settings(operator: &Operator, tiles: &[Tile]) -> Vec<Setting> {
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
    for text in own(operator.kind) {
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
fn own(kind: Kind) -> Vec<String> {
    let movers: Vec<String> = std::iter::once("ce".to_owned())
        .chain(BLOCKS.iter().map(|blocks| format!("sm:{blocks}")))
        .collect();
    let mut all = vec!["sequential".to_owned()];
    for chunks in CHUNKS {
        for mover in &movers {
            for issue in ["push", "pull"] {
                for slabs in SLABS {
                    // Only a gathered A is cut along k. Slabs that the receiver's copy engine pulls take
                    // twice the time of those that are pushed, for a reason that the simulator does not know.
                    if slabs == 1 || (chunks == 1 && kind == Kind::AgGemm && issue == "push") {
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
        // Products that others add up.
        if kind != Kind::AgGemm {
            for fusion in ["fusion-ring", "fusion-alltoall"] {
                all.push(format!("{fusion}:chunks={chunks},mover=epilogue"));
            }
        }
        all.push(format!("ring-accumulate:chunks={chunks}"));
    }
    all
}
