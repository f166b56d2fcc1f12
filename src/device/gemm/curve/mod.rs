//! The GEMM time of one GPU with everything worked out that does not depend on the shape, for
//! callers that ask many times per microsecond.
//!
//! Tile shapes are tried from the most to the least efficient until the arithmetic alone takes the
//! next one longer than the best so far. Tiles win by their waves: the least `waves · t_tile` over
//! the tile shapes and splits of k is the least possible time, and the answer where that tile's
//! memory traffic takes no longer. Shapes that are bound by memory look at the traffic of every tile
//! that could still win. What a rectangle of tiles reads is worked out for whole waves on all SMs,
//! and on those that a collective leaves; both are asked for at once, since they share tiles and
//! corrections. Measured corrections of columns with common rows are blended once per (n, k): between
//! columns weights do not depend on m. Where the library's choices are listed, the place among them is
//! looked up once.

mod column;
mod memory;
#[cfg(test)]
mod tests;

use super::super::{DType, Device};
use super::library::Search;
use super::tiles::{Choice, Pair, Prepared, Waves, part, quotient};
use super::{GemmTime, K_FILL, listed, table, wave};

pub use column::Column;

/// GEMM times of one GPU and element type.
#[derive(Clone, Debug)]
pub struct Curve {
    device: Device,
    dtype: DType,
    /// Bytes of an element, bandwidth of the memory \[bytes/s\], fixed time of a GEMM \[s\].
    size: f64,
    hbm: f64,
    overhead: f64,
    /// By falling rate, and two side by side.
    tiles: Vec<Prepared>,
    pairs: Vec<Pair>,
    /// On all SMs, and on those that a library collective leaves.
    waves: [Waves; 2],
    table: table::Columns,
    /// The fastest of a library's algorithms.
    search: Option<Search>,
    /// What no shape beats, corrections aside: seconds per multiply-add, elements
    /// of k that every tile takes beside its own, seconds of a GEMM's fixed time, and per byte in
    /// memory.
    least: f64,
    fill: f64,
    least_overhead: f64,
    least_per_byte: f64,
}

impl Curve {
    /// `None` when the device lacks `dtype`.
    pub fn new(device: &Device, dtype: DType) -> Option<Self> {
        let rate = device.rate(dtype)? / f64::from(device.sms.max(1));
        let prepared = |(place, tile)| Prepared::new(rate, place, tile);
        let mut tiles: Vec<Prepared> = device.tiles.iter().enumerate().map(prepared).collect();
        tiles.sort_by(|a, b| b.rate.total_cmp(&a.rate));
        let table = table::Columns::new(&device.gemm_table, dtype);
        let sms = f64::from(device.sms.max(1));
        let each = |p: &Prepared| 2.0 / (p.rate * sms);
        let least = tiles.iter().map(each).fold(f64::INFINITY, f64::min);
        let left = device.sms.saturating_sub(device.library.sms).max(1);
        let overhead = device.gemm_overhead.get();
        let mut curve = Self {
            device: device.clone(),
            dtype,
            size: dtype.size() as f64,
            hbm: device.hbm.get(),
            overhead,
            waves: [device.sms.max(1), left].map(|sms| Waves::new(sms, &tiles)),
            least,
            fill: K_FILL,
            least_overhead: overhead,
            least_per_byte: 1.0 / device.hbm.get(),
            pairs: tiles.chunks(2).map(Pair::new).collect(),
            tiles,
            table,
            search: None,
        };
        if let Some(library) = listed(device, dtype) {
            curve.table = table::Columns::default();
            curve.fill = 0.0;
            curve.search = Search::new(library, device);
            let factor = 1.0 / library.best();
            let [arithmetic, memory, least] = library.bounds();
            curve.least = factor * 2.0 / (device.rate(dtype)? * arithmetic);
            curve.least_overhead = factor * overhead * least;
            curve.least_per_byte = factor / (device.hbm.get() * memory);
        }
        Some(curve)
    }

    /// The curve of GEMMs with `n` columns and depth `k`.
    #[inline]
    pub fn at(&self, n: u64, k: u64) -> Column<'_> {
        // Rows that are not aligned have another rate and go the long way.
        let blend = match self.device.aligned(self.dtype, n, k) == 1.0 {
            true => self.table.blend(n as f64, k as f64),
            false => None,
        };
        let library = listed(&self.device, self.dtype);
        let place = library.map(|library| library.place(n, k));
        Column {
            curve: self,
            n,
            k,
            factor: match (&blend, library.zip(place.as_ref())) {
                (_, Some((library, _))) => library.least(),
                (Some(blend), None) => blend.least,
                (None, None) => self.table.least(),
            },
            blend,
            place,
        }
    }

    /// The shape in numbers; `None` for one that has to go the long way.
    fn shape(&self, [m, n, k]: [u64; 3]) -> Option<wave::Shape> {
        const LARGEST: u64 = 1 << 31;
        let fits = |x: u64| x.wrapping_sub(1) < LARGEST;
        let [m64, n64, k64] = [m, n, k].map(|x| x as i64 as f64);
        (fits(m) && fits(n) && fits(k) && !self.tiles.is_empty()).then_some(wave::Shape {
            m: m64,
            n: n64,
            k: k64,
            size: self.size,
        })
    }

    /// The least arithmetic on each of some numbers of SMs.
    #[inline(always)]
    fn arithmetic<const S: usize>(&self, shape: &wave::Shape, on: [&Waves; S]) -> [Choice; S] {
        let none = Choice {
            compute: f64::INFINITY,
            tile: 0,
            place: 0,
            split: 1.0,
        };
        let mut best = [none; S];
        // Every tile fills its pipeline at least once.
        let work = 2.0 * shape.m * shape.n * (shape.k + K_FILL);
        for (at, pair) in self.pairs.iter().enumerate() {
            // A little slack against rounding; equals are tried, for the first of them wins.
            let beaten = |s: usize| {
                let least = work * on[s].per_sms;
                least > best[s].compute * pair.rate[0] * (1.0 + 1e-9)
            };
            if (0..S).all(beaten) {
                break;
            }
            // The same operations in the same order as in `wave`, so that ties fall alike.
            let (tiles, one) = pair.tiles(shape.m, shape.n, shape.k);
            let fewest = if tiles[1] < tiles[0] {
                tiles[1]
            } else {
                tiles[0]
            };
            for s in 0..S {
                let waves = tiles.map(|tiles| quotient(tiles, on[s].sms, on[s].per_sms));
                let compute = [waves[0] * one[0], waves[1] * one[1]];
                let some = compute[0] <= best[s].compute || compute[1] <= best[s].compute;
                if some || fewest * 2.0 <= on[s].sms {
                    self.either(&mut best[s], shape, on[s], (at, tiles, compute));
                }
            }
        }
        best
    }

    /// Takes either of two tile shapes, or one of their splits, where it is better.
    #[inline(always)]
    fn either(
        &self,
        best: &mut Choice,
        shape: &wave::Shape,
        on: &Waves,
        (at, tiles, compute): (usize, [f64; 2], [f64; 2]),
    ) {
        for (lane, prepared) in self.tiles[2 * at..].iter().take(2).enumerate() {
            let mut choice = Choice {
                compute: compute[lane],
                tile: 2 * at + lane,
                place: prepared.place,
                split: 1.0,
            };
            best.or(choice);
            while prepared.splits(tiles[lane], on.sms, shape.k, &mut choice.split) {
                choice.compute = prepared.one(part(shape.k, choice.split));
                best.or(choice);
            }
        }
    }

    /// A choice's bytes and the time of a wave; where memory takes longer than the arithmetic, those
    /// of the choice that takes the least of both.
    #[inline(always)]
    fn settle(&self, shape: &wave::Shape, choice: Choice, on: &Waves) -> GemmTime {
        let prepared = &self.tiles[choice.tile];
        let (rows, columns) = (prepared.rows(shape.m), prepared.columns(shape.n));
        let (square, per_across, per_down) = on.squares[choice.tile];
        let whole = rows * columns >= on.sms && square <= columns && square * rows >= on.sms;
        let bytes = match whole {
            true => {
                let part = (shape.m * prepared.per_m, per_down);
                let again = (rows * per_down, columns * per_across);
                wave::read_again(&self.device, shape, part, again)
            }
            false => self.traffic(shape, prepared, choice.split, on),
        };
        if bytes > choice.compute * self.hbm {
            return self.bound_by_memory(shape, on);
        }
        GemmTime {
            seconds: self.overhead + choice.compute,
            overhead: self.overhead,
            hbm_bytes: bytes,
            unquantised: self.overhead + choice.compute,
            wave: prepared.one(part(shape.k, choice.split)),
            alone: 0.0,
            tiles: rows * columns * choice.split,
            cluster: 0,
            cold: 0.0,
        }
    }
}
