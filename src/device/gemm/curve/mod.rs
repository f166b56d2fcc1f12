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

mod memory;
#[cfg(test)]
mod tests;

use super::super::{DType, Device};
use super::library::Place;
use super::tiles::{Choice, Prepared, Waves, part, quotient};
use super::{GemmTime, K_FILL, gemm, listed, table, wave};

/// GEMM times of one GPU and element type.
#[derive(Clone, Debug)]
pub struct Curve {
    device: Device,
    dtype: DType,
    /// Bytes of an element, bandwidth of the memory \[bytes/s\], fixed time of a GEMM \[s\].
    size: f64,
    hbm: f64,
    overhead: f64,
    tiles: Vec<Prepared>,
    /// On all SMs, and on those that a library collective leaves.
    waves: [Waves; 2],
    table: table::Columns,
    /// What no shape beats, corrections aside: seconds per multiply-add, elements
    /// of k that every tile takes beside its own, seconds of a GEMM's fixed time, and per byte in
    /// memory.
    least: f64,
    fill: f64,
    least_overhead: f64,
    least_per_byte: f64,
}

/// A curve at fixed n and k.
#[derive(Clone, Debug)]
pub struct Column<'c> {
    curve: &'c Curve,
    n: u64,
    k: u64,
    /// Corrections at the table's rows; `None`: worked out by each call.
    factors: Option<[f64; table::MOST_ROWS]>,
    /// The least of them, whatever m.
    factor: f64,
    /// Where (n, k) lies among what the profile lists of the library's choices.
    place: Option<Place>,
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
            tiles,
            table,
        };
        if let Some(library) = listed(device, dtype) {
            curve.table = table::Columns::default();
            curve.fill = 0.0;
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
        let alike = self.device.aligned(self.dtype, n, k) == 1.0;
        let factors = self.table.blend(n as f64, k as f64).filter(|_| alike);
        let library = listed(&self.device, self.dtype);
        let place = library.map(|library| library.place(n, k));
        Column {
            curve: self,
            n,
            k,
            factor: match (&factors, library.zip(place.as_ref())) {
                (_, Some((library, place))) => library.least(place),
                (Some(factors), None) => self.table.least_of(factors),
                (None, None) => self.table.least(),
            },
            factors,
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
    #[inline]
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
        for (tile, prepared) in self.tiles.iter().enumerate() {
            // A little slack against rounding; equals are tried, for the first of them wins.
            let beaten = |best: &Choice, on: &Waves| {
                work * on.per_sms > best.compute * prepared.rate * (1.0 + 1e-9)
            };
            if best.iter().zip(on).all(|(best, on)| beaten(best, on)) {
                break;
            }
            let tiles = prepared.tiles(shape.m, shape.n);
            // The same operations in the same order as in `wave`, so that ties fall alike.
            let one = prepared.one(shape.k);
            for (best, on) in best.iter_mut().zip(on) {
                let mut choice = Choice {
                    compute: quotient(tiles, on.sms, on.per_sms) * one,
                    tile,
                    place: prepared.place,
                    split: 1.0,
                };
                best.or(choice);
                while prepared.splits(tiles, on.sms, shape.k, &mut choice.split) {
                    choice.compute = prepared.one(part(shape.k, choice.split));
                    best.or(choice);
                }
            }
        }
        best
    }

    /// A choice's bytes and the time of a wave; where memory takes longer than the arithmetic, those
    /// of the choice that takes the least of both.
    #[inline]
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
            tiles: rows * columns * choice.split,
            cold: 0.0,
        }
    }
}

impl Column<'_> {
    /// The arithmetic of `m` rows, in any number of pieces, takes no less \[s\].
    pub fn least(&self, m: u64) -> f64 {
        let depth = self.k as f64 + self.curve.fill;
        m as f64 * self.n as f64 * depth * self.curve.least * self.factor
    }

    /// No GEMM takes less beyond its arithmetic \[s\].
    pub fn least_overhead(&self) -> f64 {
        self.curve.least_overhead * self.factor
    }

    /// No cut of `m` rows takes the memory less: every piece reads all of B, all of them A and C
    /// \[s\].
    pub fn least_memory(&self, m: u64) -> (f64, f64) {
        let curve = self.curve;
        let per_element = curve.size * curve.least_per_byte * self.factor;
        let (n, k) = (self.n as f64, self.k as f64);
        (n * k * per_element, m as f64 * (n + k) * per_element)
    }

    /// The time of `m` rows on all SMs, as [`super::gemm`] gives it but for `unquantised`, which is
    /// not worked out.
    #[inline]
    pub fn time(&self, m: u64) -> GemmTime {
        let [all, _] = &self.curve.waves;
        let [time] = self.times(m, [all]);
        time
    }

    /// The same on all SMs, and on those that a library collective leaves.
    #[inline]
    pub fn time_with_and_beside(&self, m: u64) -> [GemmTime; 2] {
        let [all, left] = &self.curve.waves;
        self.times(m, [all, left])
    }

    /// Without short cuts.
    #[cold]
    fn long(&self, m: u64, sms: u32) -> GemmTime {
        let (curve, n, k) = (self.curve, self.n, self.k);
        let time = match self.place.as_ref().filter(|_| m > 0 && n > 0 && k > 0) {
            Some(place) => listed(&curve.device, curve.dtype)
                .and_then(|library| library.time(&curve.device, place, m, sms)),
            None => gemm(&curve.device, curve.dtype, m, n, k, sms),
        };
        time.unwrap_or_default()
    }

    #[inline]
    fn times<const S: usize>(&self, m: u64, on: [&Waves; S]) -> [GemmTime; S] {
        let (curve, n, k) = (self.curve, self.n, self.k);
        let (Some(factors), None, Some(shape)) =
            (&self.factors, &self.place, curve.shape([m, n, k]))
        else {
            return on.map(|on| self.long(m, on.sms as u32));
        };
        let factor = curve.table.along(factors, shape.m);
        let choices = curve.arithmetic(&shape, on);
        std::array::from_fn(|i| {
            let time = curve.settle(&shape, choices[i], on[i]);
            time.slower(factor)
        })
    }
}
