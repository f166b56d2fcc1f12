//! GEMM times where the library's choices are known.
//!
//! A profile may list which tile and which split of k the GEMM library takes for many shapes. The
//! time of one such kernel on P SMs is then not the best of many but that of the one chosen:
//!
//! ```text
//! tiles   = ⌈m/tm⌉ · ⌈n/tn⌉ · s,   waves = ⌈tiles / P⌉
//! step    = ‖ 2·tm·tn / arithmetic , (tm + tn)·size / load , latency ‖    one element of k of one tile
//! compute = waves · (step · ⌈k/s⌉ + epilogue · tm·tn / 256·128) · work
//! memory  = (m·k + m·n + k·n·miss)·size / bandwidth,   miss = 1 / (1 + (cached / k·n·size)⁴)
//! model   = (overhead + ‖compute, memory‖ + [s > 1] (8·m·n·s / partials + reduction)) / efficiency
//! ```
//!
//! with ‖a, b, …‖ = (a⁴ + b⁴ + …)^¼: what overlaps costs the larger, and a little more where both are
//! alike. `arithmetic` and `bandwidth` are the profile's rates of one SM and of the memory, `overhead`
//! its fixed time, each times a fitted factor; `load` is what one SM reads of its operands from level-2
//! cache, where a B smaller than `cached` stays for the next GEMM in a row; `work` is what a tile in a
//! cluster of some form takes over what the rates say: one of 64 × 448 leaves room for few stages and takes
//! twice as long, which memory hides where few tiles wait for much of B. `efficiency` is what is left of the
//! tile, split and cluster. A shape whose choice is not listed takes the choice for the same n and the nearest
//! k; where there is none the fastest of the choices for the nearest (n, k): see `lend`; and where few
//! are near the fastest of the algorithms met in `MET` measurements.
//!
//! Rows that are no multiples of 16 bytes (n or k no multiple of 8 elements of 2 bytes) make a library
//! leave its fast kernels, whatever their tile is called: algorithms, rates, choices and measurements
//! are told apart by the [`alignment`] of rows, padded ones included.
//!
//! Measured points correct it: see `near`.

mod choices;
mod floor;
mod lend;
mod model;
mod near;
mod search;
#[cfg(test)]
mod tests;

use super::GemmTime;
use crate::device::{DType, Device, MeasuredGemm};
use crate::units::{BytesPerSecond, Seconds};
pub use choices::Choices;
use choices::sorted;
use floor::Floor;
use lend::Lenders;
use model::Modelled;
pub(super) use near::Place;
use near::{Index, Measured};
pub(super) use search::Search;

/// Measurements of an algorithm that make it one to choose from.
const MET: u32 = 3;
/// Bytes that rows are multiples of for the fastest kernels: what a GPU loads at once.
pub const ALIGNED: u32 = 16;

/// A tile and a split of k.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Algorithm {
    /// Rows and columns of C that one SM computes.
    pub tile: (u32, u32),
    /// Parts of k that are summed at the end.
    pub split: u32,
    /// Tiles that start together and share what they load: over rows and columns of C.
    pub cluster: (u32, u32),
    /// What the bytes of rows are multiples of, at most [`ALIGNED`].
    pub align: u32,
    /// What its tiles take over what the rates say, memory apart: the same for all splits.
    pub work: f64,
    /// What the rates below say over what was measured, on average.
    pub efficiency: f64,
}

/// What the kernels reach.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Rates {
    /// Factors on the profile's sustained peak, on its memory bandwidth and on `gemm.overhead`.
    pub arithmetic: f64,
    pub memory: f64,
    pub overhead: f64,
    /// Operands that one SM reads.
    pub load: BytesPerSecond,
    /// Writing a tile of 256 × 128, and beginning the next.
    pub epilogue: Seconds,
    /// Partial sums written and read.
    pub partials: BytesPerSecond,
    /// The least time of an element of k of a tile.
    pub latency: Seconds,
    /// Bytes of B that stay in cache from one GEMM to the next.
    pub cached: f64,
    /// Beginning the sum of a split k.
    pub reduction: Seconds,
}

/// What is known of a GEMM library on one GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Library {
    pub dtype: DType,
    /// Of rows that are multiples of [`ALIGNED`] bytes, and of others without rates of their own.
    pub rates: Rates,
    /// By [`alignment`], ascending.
    pub unaligned: Vec<(u32, Rates)>,
    pub algorithms: Vec<Algorithm>,
    /// By (n, k).
    pub choices: Vec<Choices>,
    /// Where only so many SMs are left to a GEMM, and it is told so.
    pub left: u32,
    pub beside: Vec<Choices>,
    /// GEMMs that were timed so, by (k, n, m).
    pub fewer: Vec<MeasuredGemm>,
    /// Measured on all SMs, and on fewer.
    columns: [Vec<Measured>; 2],
    near: Index,
    /// The least ln(measured / modelled), 0 or below.
    least: f64,
    /// By algorithm: how often it was measured.
    met: Vec<u32>,
}

/// A GEMM \[elements\].
#[derive(Copy, Clone, Debug)]
pub(super) struct Shape {
    pub m: u64,
    pub n: u64,
    pub k: u64,
}

impl Library {
    /// Without measured points; choices may come in any order.
    pub fn new(
        dtype: DType,
        rates: Rates,
        algorithms: Vec<Algorithm>,
        choices: Vec<Choices>,
    ) -> Self {
        let choices = sorted(choices, algorithms.len());
        Self {
            left: 0,
            beside: Vec::new(),
            fewer: Vec::new(),
            dtype,
            rates,
            unaligned: Vec::new(),
            algorithms,
            choices,
            columns: [Vec::new(), Vec::new()],
            near: Index::default(),
            least: 0.0,
            met: Vec::new(),
        }
    }

    /// With rates of rows that are no multiples of [`ALIGNED`] bytes, by [`alignment`].
    #[must_use]
    pub fn with_unaligned(mut self, mut rates: Vec<(u32, Rates)>) -> Self {
        rates.sort_by_key(|(align, _)| *align);
        self.unaligned = rates;
        self
    }

    /// With choices where only `left` SMs are left to a GEMM; they may come in any order.
    #[must_use]
    pub fn with_beside(mut self, left: u32, choices: Vec<Choices>) -> Self {
        self.beside = sorted(choices, self.algorithms.len());
        self.left = left;
        self
    }

    /// With GEMMs timed where only so many SMs are left to them; they may come in any order.
    #[must_use]
    pub fn with_fewer(mut self, mut points: Vec<MeasuredGemm>) -> Self {
        points.sort_by_key(|point| (point.k, point.n, point.m));
        self.fewer = points;
        self
    }

    /// The rates of rows with this [`alignment`]: their own, else of the next lower one, else of the
    /// next higher.
    pub fn rates_of(&self, align: u32) -> &Rates {
        if align >= ALIGNED {
            return &self.rates;
        }
        let above = self.unaligned.partition_point(|(own, _)| *own <= align);
        let nearest = above.checked_sub(1).or(Some(above));
        let found = nearest.and_then(|at| self.unaligned.get(at));
        found.map_or(&self.rates, |(_, rates)| rates)
    }

    /// Makes everything that goes by the SMs' clock, but arithmetic, faster by a factor.
    pub(in crate::device) fn clock(&mut self, factor: f64) {
        let all = self.unaligned.iter_mut().map(|(_, rates)| rates);
        for rates in all.chain([&mut self.rates]) {
            rates.load = BytesPerSecond::of(rates.load.get() * factor);
            rates.epilogue = Seconds::of(rates.epilogue.get() / factor);
            rates.latency = Seconds::of(rates.latency.get() / factor);
        }
    }

    /// What the rows of B and C, or of A, are multiples of, whichever is less \[bytes\].
    fn align(&self, n: u64, k: u64) -> u32 {
        alignment(self.dtype, n, k)
    }

    /// Whether it serves an element type: its own, or one of the same size, which runs on the same
    /// units (bf16 and fp16).
    pub fn serves(&self, dtype: DType) -> bool {
        !self.algorithms.is_empty() && self.dtype.size() == dtype.size()
    }

    /// The modelled time of `[m, n, k]` by the algorithm at a place of the list, on all SMs, without
    /// corrections \[s\].
    pub fn seconds(&self, device: &Device, shape: [u64; 3], place: u16) -> Option<f64> {
        self.seconds_on(device, shape, place, device.sms)
    }

    /// The same on so many SMs.
    pub fn seconds_on(
        &self,
        device: &Device,
        [m, n, k]: [u64; 3],
        place: u16,
        sms: u32,
    ) -> Option<f64> {
        let algorithm = self.algorithms.get(usize::from(place))?;
        let rate = device.rate(self.dtype)?;
        let one = self.one(device, rate, Shape { m, n, k }, *algorithm, sms);
        Some(one.seconds)
    }

    /// The largest efficiency there is.
    pub(super) fn best(&self) -> f64 {
        let all = self.algorithms.iter().map(|a| a.efficiency);
        all.fold(0.0, f64::max)
    }

    /// The best of all rates: the largest factors of arithmetic, that of the tiles with the least work, and
    /// memory, the least of overhead.
    pub(super) fn bounds(&self) -> [f64; 3] {
        let work = self.algorithms.iter().map(|a| a.work).fold(1.0, f64::min);
        let all = self.unaligned.iter().map(|(_, rates)| rates);
        let of = |rates: &Rates| [rates.arithmetic / work, rates.memory, rates.overhead];
        all.fold(of(&self.rates), |[a, m, o], rates| {
            let [one, two, three] = of(rates);
            [a.max(one), m.max(two), o.min(three)]
        })
    }

    /// The time of `m` rows at a place; `None` without a peak. With a `search` of this library and device
    /// it is found sooner.
    pub(super) fn time(
        &self,
        device: &Device,
        search: Option<&Search>,
        (place, m): (&Place, u64),
        sms: u32,
    ) -> Option<GemmTime> {
        let shape = Shape {
            m,
            n: place.n,
            k: place.k,
        };
        let (algorithm, modelled) = self.modelled(device, search, shape, &place.lenders, sms)?;
        let factor = self.correction(device, (place, m), (algorithm, modelled), sms);
        // No kernel computes more than the peak.
        let peak = device.rate(self.dtype)? / device.sustained;
        let share = f64::from(sms.clamp(1, device.sms.max(1))) / f64::from(device.sms.max(1));
        let products: f64 = [m, place.n, place.k].map(|x| x as f64).iter().product();
        let least = 2.0 * products / (peak * share) / modelled.seconds;
        let factor = factor.exp().max(least);
        Some(GemmTime {
            seconds: modelled.seconds * factor,
            overhead: modelled.overhead * factor,
            hbm_bytes: self.traffic(device, shape, algorithm, sms),
            unquantised: modelled.unquantised * factor,
            wave: modelled.wave * factor,
            // What a GEMM takes longer than modelled is of what all tiles wait for.
            alone: modelled.wave * factor.min(1.0),
            tiles: self.tiles(shape, algorithm),
            cluster: (self.algorithms.get(usize::from(algorithm)))
                .map_or(0, |a| a.cluster.0 * a.cluster.1),
            cold: (modelled.cold - modelled.seconds) * factor,
        })
    }

    /// The algorithm taken and its time: the listed one, or the fastest of those lent, else the fastest of
    /// all. On fewer SMs those lent are for as many rows, and for so many that all SMs had as much to do each.
    fn modelled(
        &self,
        device: &Device,
        search: Option<&Search>,
        shape: Shape,
        lenders: &Lenders,
        sms: u32,
    ) -> Option<(u16, Modelled)> {
        let rate = device.rate(self.dtype)?;
        let of = |place: u16| {
            let algorithm = self.algorithms.get(usize::from(place))?;
            Some((place, self.one(device, rate, shape, *algorithm, sms)))
        };
        let fewer = sms < device.sms;
        if fewer && sms == self.left {
            let at = self
                .beside
                .binary_search_by_key(&(shape.n, shape.k), |c| (c.n, c.k));
            let told = at.ok().and_then(|at| self.beside.get(at)?.of(shape.m));
            if let Some(found) = told.and_then(of) {
                return Some(found);
            }
        }
        let more = fewer.then(|| shape.m * u64::from(device.sms) / u64::from(sms.max(1)));
        let rows = [Some(shape.m), more].into_iter().flatten();
        let lent = rows.flat_map(|m| lenders.of(&self.choices, m));
        let fastest = lent
            .filter_map(of)
            .min_by(|a, b| a.1.seconds.total_cmp(&b.1.seconds));
        if fastest.is_some() {
            return fastest;
        }
        if let Some(search) = search {
            return search.fastest((self, device), shape, sms);
        }
        let align = self.align(shape.n, shape.k);
        let all = || self.algorithms.iter().enumerate();
        let met = |place: usize| self.met.get(place).is_some_and(|met| *met >= MET);
        let own = all().any(|(_, a)| a.align == align);
        let fits = |a: &Algorithm| !own || a.align == align;
        let any = all().any(|(place, a)| fits(a) && met(place));
        let floor = Floor::new(self, device, rate, shape, sms);
        let mut best: Option<(u16, Modelled)> = None;
        for (place, algorithm) in all().filter(|(_, a)| fits(a)) {
            if any && !met(place) {
                continue;
            }
            // Most are seen to be too slow at once.
            if best.is_some_and(|(_, best)| floor.of(algorithm) > best.seconds) {
                continue;
            }
            let time = self.one(device, rate, shape, *algorithm, sms);
            if best.is_none_or(|(_, best)| time.seconds < best.seconds) {
                best = Some((place as u16, time));
            }
        }
        best
    }
}

/// The power of two, up to [`ALIGNED`], that the bytes of rows of n and of k elements are multiples of.
pub fn alignment(dtype: DType, n: u64, k: u64) -> u32 {
    let bytes = (n | k).wrapping_mul(dtype.size()) | u64::from(ALIGNED);
    1 << bytes.trailing_zeros()
}
