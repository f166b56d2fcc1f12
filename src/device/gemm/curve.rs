//! The GEMM time of one GPU with everything worked out that does not depend on the shape, for
//! callers that ask many times per microsecond.
//!
//! Tiles win by their waves: the least `waves · t_tile` over the tile shapes is the least possible
//! time, and the answer where that tile's memory traffic takes no longer. Shapes that leave SMs
//! idle (k may be split) or are bound by memory go the long way, [`super::gemm`]. Measured
//! corrections of columns with common rows are blended once per (n, k): between columns weights do
//! not depend on m.

use super::super::{DType, Device, Tile};
use super::{GemmTime, K_FILL, gemm, table, wave};

/// Most rows of a table that is blended.
const MOST_ROWS: usize = 16;

/// GEMM times of one GPU and element type.
#[derive(Clone, Debug)]
pub struct Curve {
    device: Device,
    dtype: DType,
    tiles: Vec<Prepared>,
    table: table::Columns,
    /// Seconds per multiply-add that no shape beats: the best tile's, and the best correction's.
    least: f64,
}

#[derive(Clone, Debug)]
struct Prepared {
    tile: Tile,
    /// Inverse of its rows and columns.
    per_m: f64,
    per_n: f64,
    /// Operations per element of k, and what one SM does of them per second.
    flops: f64,
    rate: f64,
}

/// A curve at fixed n and k.
#[derive(Clone, Debug)]
pub struct Column<'c> {
    curve: &'c Curve,
    n: u64,
    k: u64,
    /// Corrections at the table's rows; `None`: worked out by each call.
    factors: Option<[f64; MOST_ROWS]>,
}

impl Curve {
    /// `None` when the device lacks `dtype`.
    pub fn new(device: &Device, dtype: DType) -> Option<Self> {
        let rate = device.rate(dtype)? / f64::from(device.sms.max(1));
        let prepared = |tile: &Tile| {
            let (tm, tn) = (f64::from(tile.m), f64::from(tile.n));
            Prepared {
                tile: tile.clone(),
                per_m: 1.0 / tm,
                per_n: 1.0 / tn,
                flops: 2.0 * tm * tn,
                rate: rate * tile.efficiency,
            }
        };
        let tiles: Vec<Prepared> = device.tiles.iter().map(prepared).collect();
        let table = table::Columns::new(&device.gemm_table, dtype);
        let sms = f64::from(device.sms.max(1));
        let each = |p: &Prepared| 2.0 / (p.rate * sms);
        let least = tiles.iter().map(each).fold(f64::INFINITY, f64::min);
        Some(Self {
            device: device.clone(),
            dtype,
            least: least * table.least(),
            tiles,
            table,
        })
    }

    /// The curve of GEMMs with `n` columns and depth `k`.
    pub fn at(&self, n: u64, k: u64) -> Column<'_> {
        Column {
            curve: self,
            n,
            k,
            factors: self.table.blend(n as f64, k as f64),
        }
    }

    /// The wave model's short way; `None` where the long one has to be gone.
    fn short(&self, [m, n, k]: [u64; 3], sms: u32) -> Option<GemmTime> {
        const LARGEST: u64 = 1 << 31;
        if m == 0 || n == 0 || k == 0 || m > LARGEST || n > LARGEST || k > LARGEST {
            return None;
        }
        let sms = u64::from(sms.clamp(1, self.device.sms.max(1)));
        let per_sm = 1.0 / sms as f64;
        let depth = k as f64 + K_FILL;
        let mut best = (f64::INFINITY, None);
        for prepared in &self.tiles {
            let rows = quotient(m, u64::from(prepared.tile.m), prepared.per_m);
            let columns = quotient(n, u64::from(prepared.tile.n), prepared.per_n);
            let tiles = rows * columns;
            if 2 * tiles <= sms {
                return None;
            }
            // The same operations in the same order as in `wave`, so that ties fall alike.
            let one = prepared.flops * depth / prepared.rate;
            let time = quotient(tiles, sms, per_sm) as f64 * one;
            if time < best.0 {
                best = (time, Some((prepared, rows, columns, one)));
            }
        }
        let (compute, Some((prepared, rows, columns, one))) = best else {
            return None;
        };
        let shape = wave::Shape {
            m: m as f64,
            n: n as f64,
            k: k as f64,
            size: self.dtype.size() as f64,
        };
        let tile = (f64::from(prepared.tile.m), f64::from(prepared.tile.n));
        let bytes = wave::traffic(
            &self.device,
            &shape,
            tile,
            (rows as f64, columns as f64),
            1.0,
            sms as f64,
        );
        if bytes > compute * self.device.hbm.get() {
            return None;
        }
        let overhead = self.device.gemm_overhead.get();
        Some(GemmTime {
            seconds: overhead + compute,
            overhead,
            hbm_bytes: bytes,
            unquantised: overhead + compute,
            wave: one,
        })
    }
}

impl Column<'_> {
    /// The arithmetic of `m` rows, in any number of pieces, takes no less \[s\].
    pub fn least(&self, m: u64) -> f64 {
        m as f64 * self.n as f64 * self.k as f64 * self.curve.least
    }

    /// The time of `m` rows on `sms` SMs, as [`super::gemm`] gives it but for `unquantised`, which
    /// is not worked out.
    pub fn time(&self, m: u64, sms: u32) -> GemmTime {
        let (curve, n, k) = (self.curve, self.n, self.k);
        let long = || gemm(&curve.device, curve.dtype, m, n, k, sms).unwrap_or_default();
        let Some(factors) = &self.factors else {
            return long();
        };
        let Some(time) = curve.short([m, n, k], sms) else {
            return long();
        };
        let factor = curve.table.along(factors, m as f64);
        GemmTime {
            seconds: time.seconds * factor,
            overhead: time.overhead * factor,
            hbm_bytes: time.hbm_bytes,
            unquantised: time.unquantised * factor,
            wave: time.wave * factor,
        }
    }
}

/// ⌈x / by⌉ for x below 2^52, with the inverse of `by`.
fn quotient(x: u64, by: u64, inverse: f64) -> u64 {
    // The product is off by less than one part in 2^52, so its floor by at most one, downwards
    // where x is a multiple; both are made good by the comparison.
    let down = (x as f64 * inverse) as u64;
    down + u64::from(down * by < x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_short_way_leads_to_the_same_time(
            gpu in prop::sample::select(vec!["rtx-a6000", "h200", "mi300x", "ideal"]),
            m in 1u64..40_000, n in 1u64..40_000, k in 1u64..40_000,
            whole in any::<bool>(), on_table in any::<bool>(), fewer in 0u32..30,
        ) {
            let device = device::load(gpu).unwrap();
            let round = |x: u64| if whole { x.next_multiple_of(64) } else { x };
            let [m, mut n, mut k] = [m, n, k].map(round);
            if on_table {
                (n, k) = (6144, 12288);
            }
            let sms = device.sms - fewer;
            let curve = Curve::new(&device, DType::Bf16).unwrap();
            let (fast, slow) = (curve.at(n, k).time(m, sms), gemm(&device, DType::Bf16, m, n, k, sms).unwrap());
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs().max(b.abs());
            prop_assert!(near(fast.seconds, slow.seconds), "{fast:?} {slow:?}");
            prop_assert!(slow.seconds >= curve.at(n, k).least(m) * (1.0 - 1e-12));
            prop_assert!(near(fast.overhead, slow.overhead));
            prop_assert!(near(fast.wave, slow.wave) || fast.seconds == 0.0);
        }
    }

    #[test]
    fn quotients_round_up() {
        for by in [64u64, 84, 128, 132, 192, 256] {
            for x in (0..5000).chain((1 << 40)..(1 << 40) + 500) {
                assert_eq!(quotient(x, by, 1.0 / by as f64), x.div_ceil(by), "{x}/{by}");
            }
        }
    }
}
