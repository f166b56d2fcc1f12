//! GEMM time: a wave model, corrected by measured points where the profile has them.
//!
//! `C (m × n) = A (m × k) · B (k × n)` is cut into tiles of `tm × tn`, each computed by one SM; the
//! P SMs take one tile each at a time, a *wave*:
//!
//! ```text
//! tiles   = ⌈m/tm⌉ · ⌈n/tn⌉ · s                  s: split of k (1, 2, 4, …) while tiles fit P
//! waves   = ⌈tiles / P⌉                          the last one costs as much as a full one
//! t_tile  = 2·tm·tn·(k/s + K_FILL) / rate        rate = peak/SMs · sustained · tile efficiency
//! compute = waves · t_tile
//! memory  = bytes / HBM bandwidth                bytes: see `wave`, every operand at least once
//! model   = overhead + min over tiles, s of max(compute, memory)
//! time    = model · correction(m, n, k)          measured / model, interpolated: see `table`
//! ```
//!
//! Fewer SMs (an SM copy kernel holds some) means more waves of the same tiles. A chunk of few rows
//! still reads all of B: that floor, the padding to whole tiles and the last wave are what cutting
//! a GEMM into pieces costs. `unquantised` is the same with fractional tiles and waves, so that
//! pieces add up to the whole.
//!
//! A GEMM library leaves its fast kernels where rows of n or k elements are no multiples of 16 bytes, and
//! slower ones again where they are none of 4: `rate` is then multiplied by `gemm.unaligned` or
//! `gemm.odd`, where the profile states them.
//!
//! Where the profile lists which algorithms the GPU's library takes, their time replaces the best of
//! all tiles: see [`library`].
//!
//! Assumed: one data-type-independent set of tile efficiencies; no interference from other kernels
//! (the performer shares memory bandwidth among them). Not modelled: cache misses beyond a grouped
//! raster with half of L2, stream-K, clocks that move with temperature.
//!
//! Worked example: 4 SMs of 1 TFLOP/s each, one tile shape 128 × 128, memory ample. 512 × 512 is 16
//! tiles, 4 waves; 513 rows are 20 tiles, 5 waves. With k = 1000 − `K_FILL` a tile takes
//! 2·128·128·1000 / 1e12 = 32.768 us.
//!
//! ```
//! use duet::device::{self, DType, Tile, gemm::{K_FILL, gemm}};
//! let mut gpu = device::ideal();
//! device::set(&mut gpu, "compute.sms", "4").unwrap();
//! device::set(&mut gpu, "peak.bf16", "4 TFLOP/s").unwrap();
//! gpu.tiles = vec![Tile { m: 128, n: 128, efficiency: 1.0 }];
//! let k = 1000 - K_FILL as u64;
//! let time = |m, sms| gemm(&gpu, DType::Bf16, m, 512, k, sms).unwrap();
//! assert!((time(512, 4).seconds - 4.0 * 32.768e-6).abs() < 1e-12);
//! assert!((time(513, 4).seconds - 5.0 * 32.768e-6).abs() < 1e-12);
//! assert!((time(512, 3).seconds - 6.0 * 32.768e-6).abs() < 1e-12); // ⌈16/3⌉ waves
//! let (whole, half) = (time(512, 4).unquantised, time(256, 4).unquantised);
//! assert!((whole - 2.0 * half).abs() < 1e-12);
//! ```

mod curve;
pub mod library;
mod ln;
mod table;
#[cfg(test)]
mod tests;
mod tiles;
mod wave;

use std::sync::Arc;

use super::{DType, Device, MeasuredGemm};

pub use curve::{Column, Curve};
pub use wave::K_FILL;

/// The time of one GEMM kernel and what it uses.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct GemmTime {
    /// Seconds on `sms` SMs with the memory to itself, launch excluded, fixed overhead included.
    pub seconds: f64,
    /// Part of `seconds` that does not scale with the work (prologue, epilogue).
    pub overhead: f64,
    /// Bytes read from and written to memory.
    pub hbm_bytes: f64,
    /// Seconds if waves were not quantised (tiles split without loss).
    pub unquantised: f64,
    /// Seconds of one wave: the least that any of its tiles takes.
    pub wave: f64,
    /// Seconds of a tile beside few others, which take nothing of the memory from it; 0: not known.
    pub alone: f64,
    /// Tiles, each as often as k is split: it uses no more SMs than that.
    pub tiles: f64,
    /// Blocks that begin together on SMs that lie together; 0: not known.
    pub cluster: u32,
    /// Seconds more where B is not in cache from the GEMM before; 0 where `seconds` say so already.
    pub cold: f64,
}

impl GemmTime {
    /// The same work by other tiles: `time` times as slow, in waves that are a share `wave` of it.
    pub fn tiled(self, time: f64, wave: f64) -> Self {
        let work = (self.seconds - self.overhead) * time;
        Self {
            seconds: self.overhead + work,
            wave: work * wave,
            ..self
        }
    }

    /// The same work, `factor` times as slow.
    fn slower(self, factor: f64) -> Self {
        Self {
            seconds: self.seconds * factor,
            overhead: self.overhead * factor,
            unquantised: self.unquantised * factor,
            wave: self.wave * factor,
            alone: self.alone * factor,
            cold: self.cold * factor,
            ..self
        }
    }
}

/// A GEMM `m × k` times `k × n` on `sms` SMs of `device` (at least one, at most all it has);
/// `None` when the device lacks `dtype`. An empty GEMM takes no time.
pub fn gemm(device: &Device, dtype: DType, m: u64, n: u64, k: u64, sms: u32) -> Option<GemmTime> {
    if let Some(library) = listed(device, dtype).filter(|_| m > 0 && n > 0 && k > 0) {
        return library.time(device, None, (&library.place(n, k), m), sms);
    }
    let model = model(device, dtype, m, n, k, sms)?;
    let factor = table::correction(&device.gemm_table, dtype, m, n, k);
    Some(model.slower(factor))
}

/// How unsure [`gemm`] is on all SMs, as a relative standard deviation: more where nothing measured is near, or
/// what is near differs. `None` where no library's choices are listed.
pub fn doubt(device: &Device, dtype: DType, m: u64, n: u64, k: u64) -> Option<f64> {
    let library = listed(device, dtype).filter(|_| m > 0 && n > 0 && k > 0)?;
    library.doubt(device, (&library.place(n, k), m))
}

/// What is known of the library's choices for `dtype`.
fn listed(device: &Device, dtype: DType) -> Option<&library::Library> {
    let library = device.gemm_library.as_deref()?;
    device.rate(dtype)?;
    library.serves(dtype).then_some(library)
}

/// The wave model alone, without measured corrections.
pub fn model(device: &Device, dtype: DType, m: u64, n: u64, k: u64, sms: u32) -> Option<GemmTime> {
    let rate = device.rate(dtype)? * device.aligned(dtype, n, k);
    if m == 0 || n == 0 || k == 0 {
        return Some(GemmTime::default());
    }
    let shape = wave::Shape {
        m: m as f64,
        n: n as f64,
        k: k as f64,
        size: dtype.size() as f64,
    };
    let sms = f64::from(sms.clamp(1, device.sms.max(1)));
    let overhead = device.gemm_overhead.get();
    let choices = device
        .tiles
        .iter()
        .flat_map(|tile| wave::choices(device, &shape, tile, rate, sms));
    let mut best: Option<wave::Choice> = None;
    let mut unquantised = f64::INFINITY;
    for choice in choices {
        unquantised = unquantised.min(choice.unquantised);
        if best.is_none_or(|best| choice.seconds < best.seconds) {
            best = Some(choice);
        }
    }
    let best = best?;
    Some(GemmTime {
        seconds: overhead + best.seconds,
        overhead,
        hbm_bytes: best.bytes,
        unquantised: overhead + unquantised,
        wave: best.seconds / best.waves,
        alone: 0.0,
        tiles: best.tiles,
        cluster: 0,
        cold: 0.0,
    })
}

/// Fills in the corrections of a profile's measured points: measured over modelled time on all SMs.
/// Points of an element type that the profile has no peak for are dropped. A profile that is read has
/// them; one whose points or library were replaced needs them anew.
pub fn correct(device: &mut Device) {
    let mut points = std::mem::take(&mut device.gemm_table);
    points.retain_mut(|point| {
        let MeasuredGemm { dtype, m, n, k, .. } = *point;
        let modelled = model(device, dtype, m, n, k, device.sms).map_or(0.0, |time| time.seconds);
        if modelled > 0.0 {
            point.correction = point.time.get() / modelled;
        }
        modelled > 0.0
    });
    device.gemm_table = table::sorted(points);
    if let Some(library) = &device.gemm_library {
        let mut library = library::Library::clone(library);
        let mut points = std::mem::take(&mut device.gemm_table);
        library.learn(device, &mut points);
        device.gemm_table = points;
        device.gemm_library = Some(Arc::new(library));
    }
}
