//! Tiles of Duet's own kernels for simulations of them.

use crate::gpu::lt::Problem;
use crate::gpu::plan::Products;
use crate::gpu::tiles::{Stage, Tile, waves};
use crate::sim::{Fused, Rows, Tiled, Tiling};

/// What knows the tiles of fused kernels, where Duet's own multiply.
pub fn tiling(products: Products, tile: Option<Tile>) -> Option<Tiling> {
    let number = |tile: Tile| Tile::TABLE.iter().position(|known| *known == tile);
    match products {
        Products::Own => Some(Tiling {
            find: tiled,
            tile: tile.and_then(number),
        }),
        Products::Library => None,
    }
}

/// The waves of a kernel's tile; `None` for GPUs that are no Hopper, whose tiles were not measured.
fn tiled(fused: &Fused<'_>, tile: Option<usize>) -> Option<Tiled> {
    let hopper = ["H100", "H200", "H800", "GH200"];
    if !hopper.iter().any(|name| fused.device.name.contains(name)) {
        return None;
    }
    let [m, n, k] = fused.shape;
    let problem = Problem {
        m,
        n,
        k,
        ld: [k, n, n],
        align: [256; 3],
        dtype: fused.dtype,
        accumulate: fused.rows.iter().any(|rows| rows.adds),
        sms: fused.sms,
    };
    let mut stages: Vec<Stage> = Vec::new();
    for &Rows { rows, waits, adds } in &fused.rows {
        Stage::push(&mut stages, Stage { rows, waits, adds });
    }
    let tile = tile.and_then(|number| Tile::TABLE.get(number).copied());
    let waves = waves(&problem, fused.device.sms, &stages, tile)?;
    Some(Tiled {
        time: waves.time,
        wave: waves.wave,
    })
}
