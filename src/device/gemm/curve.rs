//! The GEMM time of one GPU with everything worked out that does not depend on the shape, for
//! callers that ask many times per microsecond.
//!
//! Tile shapes are tried from the most to the least efficient until the arithmetic alone takes the
//! next one longer than the best so far. Tiles win by their waves: the least `waves · t_tile` over the tile shapes and splits of k is the
//! least possible time, and the answer where that tile's memory traffic takes no longer. Shapes that
//! are bound by memory go the long way, [`super::gemm`]. Measured
//! corrections of columns with common rows are blended once per (n, k): between columns weights do
//! not depend on m. Where the library's choices are listed, the place among them is looked up once.

use super::super::{DType, Device, Tile};
use super::library::Place;
use super::{GemmTime, K_FILL, gemm, listed, table, wave};

/// Most rows of a table that is blended.
const MOST_ROWS: usize = 8;

/// GEMM times of one GPU and element type.
#[derive(Clone, Debug)]
pub struct Curve {
    device: Device,
    dtype: DType,
    tiles: Vec<Prepared>,
    table: table::Columns,
    /// Seconds per multiply-add that no shape beats: the best tile's, and the best correction's.
    least: f64,
    /// Seconds of every GEMM's overhead, times the best correction.
    least_overhead: f64,
}

#[derive(Clone, Debug)]
struct Prepared {
    /// Its rows and columns, and the inverse of each.
    m: f64,
    n: f64,
    per_m: f64,
    per_n: f64,
    /// √(rows / columns).
    aspect: f64,
    /// Operations per element of k, and what one SM does of them per second.
    flops: f64,
    rate: f64,
    /// Place in the profile, where the first of equals wins.
    place: usize,
}

/// A curve at fixed n and k.
#[derive(Clone, Debug)]
pub struct Column<'c> {
    curve: &'c Curve,
    n: u64,
    k: u64,
    /// Corrections at the table's rows; `None`: worked out by each call.
    factors: Option<[f64; MOST_ROWS]>,
    /// Where (n, k) lies among what the profile lists of the library's choices.
    place: Option<Place>,
}

impl Curve {
    /// `None` when the device lacks `dtype`.
    pub fn new(device: &Device, dtype: DType) -> Option<Self> {
        let rate = device.rate(dtype)? / f64::from(device.sms.max(1));
        let prepared = |(place, tile): (usize, &Tile)| {
            let (tm, tn) = (f64::from(tile.m), f64::from(tile.n));
            Prepared {
                m: tm,
                n: tn,
                per_m: 1.0 / tm,
                per_n: 1.0 / tn,
                aspect: (tm / tn).sqrt(),
                flops: 2.0 * tm * tn,
                rate: rate * tile.efficiency,
                place,
            }
        };
        let mut tiles: Vec<Prepared> = device.tiles.iter().enumerate().map(prepared).collect();
        tiles.sort_by(|a, b| b.rate.total_cmp(&a.rate));
        let table = table::Columns::new(&device.gemm_table, dtype);
        let sms = f64::from(device.sms.max(1));
        let each = |p: &Prepared| 2.0 / (p.rate * sms);
        let least = tiles.iter().map(each).fold(f64::INFINITY, f64::min);
        if let Some(library) = listed(device, dtype) {
            let (factor, rates) = (library.least() / library.best(), &library.rates);
            return Some(Self {
                device: device.clone(),
                dtype,
                least: factor * 2.0 / (device.rate(dtype)? * rates.arithmetic),
                least_overhead: factor * device.gemm_overhead.get() * rates.overhead,
                tiles,
                table: table::Columns::default(),
            });
        }
        Some(Self {
            device: device.clone(),
            dtype,
            least: least * table.least(),
            least_overhead: device.gemm_overhead.get() * table.least(),
            tiles,
            table,
        })
    }

    /// The curve of GEMMs with `n` columns and depth `k`.
    #[inline]
    pub fn at(&self, n: u64, k: u64) -> Column<'_> {
        let library = listed(&self.device, self.dtype);
        Column {
            curve: self,
            n,
            k,
            factors: match library {
                Some(_) => None,
                None => self.table.blend(n as f64, k as f64),
            },
            place: library.map(|library| library.place(n, k)),
        }
    }

    /// The wave model's short way; `None` where the long one has to be gone.
    fn short(&self, [m, n, k]: [u64; 3], sms: u32) -> Option<GemmTime> {
        const LARGEST: u64 = 1 << 31;
        if m == 0
            || n == 0
            || k == 0
            || m > LARGEST
            || n > LARGEST
            || k > LARGEST
            || self.tiles.is_empty()
        {
            return None;
        }
        let [m, n, k] = [m, n, k].map(|x| x as i64 as f64);
        let sms = f64::from(sms.clamp(1, self.device.sms.max(1)));
        let (per_sm, root) = (1.0 / sms, sms.sqrt());
        let work = 2.0 * m * n * k * per_sm;
        let mut best = (f64::INFINITY, &self.tiles[0], 1.0);
        for prepared in &self.tiles {
            // Rounding aside; equals are tried, for the first of them wins.
            if work > best.0 * prepared.rate * (1.0 + 1e-9) {
                break;
            }
            let tiles = prepared.tiles(m, n);
            // The same operations in the same order as in `wave`, so that ties fall alike.
            let time = quotient(tiles, sms, per_sm) * prepared.one(k);
            if time < best.0 || (time == best.0 && prepared.place < best.1.place) {
                best = (time, prepared, 1.0);
            }
            let mut split = 2.0;
            while tiles * split <= sms && split <= wave::MAX_SPLIT && k >= split * wave::MIN_SPLIT_K
            {
                let time = prepared.one(quotient(k, split, 1.0 / split));
                if time < best.0 || (time == best.0 && prepared.place < best.1.place) {
                    best = (time, prepared, split);
                }
                split *= 2.0;
            }
        }
        let (compute, prepared, split) = best;
        let shape = wave::Shape {
            m,
            n,
            k,
            size: self.dtype.size() as f64,
        };
        let rows = quotient(m, prepared.m, prepared.per_m);
        let columns = quotient(n, prepared.n, prepared.per_n);
        let tiles = rows * columns * split;
        let part = if split > 1.0 {
            quotient(k, split, 1.0 / split)
        } else {
            k
        };
        let wave = match tiles < sms {
            true => (tiles, tiles.sqrt() * prepared.aspect),
            false => (sms, root * prepared.aspect),
        };
        let bytes = wave::traffic(
            &self.device,
            &shape,
            prepared.m,
            (rows, columns),
            split,
            wave,
        );
        if bytes > compute * self.device.hbm.get() {
            return None;
        }
        let one = prepared.one(part);
        let overhead = self.device.gemm_overhead.get();
        Some(GemmTime {
            seconds: overhead + compute,
            overhead,
            hbm_bytes: bytes,
            unquantised: overhead + compute,
            wave: one,
            tiles,
        })
    }
}

impl Prepared {
    /// Tiles of C.
    fn tiles(&self, m: f64, n: f64) -> f64 {
        quotient(m, self.m, self.per_m) * quotient(n, self.n, self.per_n)
    }

    /// Seconds of one tile of depth k.
    fn one(&self, k: f64) -> f64 {
        self.flops * (k + K_FILL) / self.rate
    }
}

impl Column<'_> {
    /// The arithmetic of `m` rows, in any number of pieces, takes no less \[s\].
    pub fn least(&self, m: u64) -> f64 {
        m as f64 * self.n as f64 * self.k as f64 * self.curve.least
    }

    /// No GEMM takes less beyond its arithmetic \[s\].
    pub fn least_overhead(&self) -> f64 {
        self.curve.least_overhead
    }

    /// The time of `m` rows on `sms` SMs, as [`super::gemm`] gives it but for `unquantised`, which
    /// is not worked out.
    pub fn time(&self, m: u64, sms: u32) -> GemmTime {
        let (curve, n, k) = (self.curve, self.n, self.k);
        let long = || gemm(&curve.device, curve.dtype, m, n, k, sms).unwrap_or_default();
        if let Some(place) = self.place.as_ref().filter(|_| m > 0 && n > 0 && k > 0) {
            let library = listed(&curve.device, curve.dtype);
            let time = library.and_then(|library| library.time(&curve.device, place, m, sms));
            return time.unwrap_or_default();
        }
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
            tiles: time.tiles,
        }
    }
}

/// ⌈x / by⌉ of whole numbers below 2^51; plain arithmetic, where `ceil` is a call on old x86.
fn quotient(x: f64, by: f64, inverse: f64) -> f64 {
    // Beyond 2^52 doubles are whole numbers: adding this rounds to the nearest.
    const WHOLE: f64 = 1.5 * (1u64 << 52) as f64;
    let near = (x * inverse + WHOLE) - WHOLE;
    // The nearest is the floor or the ceiling, and a multiple is exact.
    near + if near * by < x { 1.0 } else { 0.0 }
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
            for x in (0u64..5000).chain((1 << 40)..(1 << 40) + 500) {
                let (real, inverse) = (by as f64, 1.0 / by as f64);
                let found = quotient(x as f64, real, inverse);
                assert_eq!(found, x.div_ceil(by) as f64, "{x}/{by}");
            }
        }
    }
}
