//! Tiles of Duet's own kernels for simulations of them.

use crate::device::Device;
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
            pace: Tile::PACE,
        }),
        Products::Library => None,
    }
}

/// Whether a device is a Hopper, by its name.
pub fn hopper(device: &Device) -> bool {
    let name = device.name.to_lowercase();
    ["h100", "h200", "h800"].iter().any(|h| name.contains(h))
}

/// The waves of a kernel's tile; `None` for GPUs that are no Hopper, whose tiles were not measured.
fn tiled(fused: &Fused<'_>, tile: Option<usize>) -> Option<Tiled> {
    if !hopper(fused.device) {
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
    for &Rows {
        rows,
        waits,
        adds,
        leaves,
    } in &fused.rows
    {
        let stage = Stage {
            rows,
            waits,
            adds,
            leaves,
        };
        Stage::push(&mut stages, stage);
    }
    let tile = tile.and_then(|number| Tile::TABLE.get(number).copied());
    let waves = waves(&problem, fused.device.sms, &stages, tile)?;
    Some(Tiled {
        time: waves.time,
        wave: waves.wave,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{self, DType};

    /// Half of 512 rows wait: two waves of 128 × 128 at 0.9 of the rate, which take 1/0.9 of one of
    /// 128 × 256 on 128 of 132 SMs. Only on a Hopper.
    #[test]
    fn kernels_take_their_tiles_waves_on_a_hopper() {
        let tiling = tiling(Products::Own, None).unwrap();
        let half = |waits| Rows {
            rows: 256,
            waits,
            adds: false,
            leaves: false,
        };
        let on = |name: &str| {
            let device = device::load(name).unwrap();
            let fused = Fused {
                device: &device,
                dtype: DType::Bf16,
                shape: [512, 8192, 8192],
                sms: device.sms,
                rows: vec![half(false), half(true)],
            };
            (tiling.find)(&fused, tiling.tile)
        };
        let found = on("h200").unwrap();
        assert!((found.time - 1.0 / 0.9).abs() < 1e-9, "{found:?}");
        assert_eq!(found.wave, 0.5);
        assert_eq!(on("a100-sxm-80g"), None);
        assert_eq!(super::tiling(Products::Library, None), None);
    }
}
