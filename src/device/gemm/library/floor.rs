//! What an algorithm takes at least, in few operations.
//!
//! ‖a, b, …‖ is no less than the largest of them, and a sum's parts are those of [`Library::one`]
//! otherwise.

use super::model::{AREA, PARTIAL};
use super::{Algorithm, Library, Shape};
use crate::device::Device;
use crate::device::gemm::tiles::quotient;

/// What all algorithms have in common for one shape on some SMs.
pub(super) struct Floor {
    m: f64,
    n: f64,
    k: f64,
    sms: f64,
    /// Seconds per element of a tile and of k, per row and column of a tile and element of k, and of an
    /// element of k.
    arithmetic: f64,
    load: f64,
    latency: f64,
    /// Seconds per element of a tile.
    epilogue: f64,
    /// Of all; of sums, by the split and at once \[s\].
    overhead: f64,
    memory: f64,
    partials: f64,
    reduction: f64,
}

impl Floor {
    pub fn new(library: &Library, device: &Device, rate: f64, shape: Shape, sms: u32) -> Self {
        let rates = library.rates_of(library.align(shape.n, shape.k));
        let size = library.dtype.size() as f64;
        let [m, n, k] = [shape.m, shape.n, shape.k].map(|x| x as f64);
        let all = f64::from(device.sms.max(1));
        Self {
            m,
            n,
            k,
            sms: f64::from(sms.clamp(1, device.sms.max(1))),
            arithmetic: 2.0 * all / (rate * rates.arithmetic),
            load: size / rates.load.get(),
            latency: rates.latency.get(),
            epilogue: rates.epilogue.get() / AREA,
            overhead: device.gemm_overhead.get() * rates.overhead,
            memory: (m * k + m * n) * size / (device.hbm.get() * rates.memory),
            partials: PARTIAL * m * n / rates.partials.get(),
            reduction: rates.reduction.get(),
        }
    }

    /// The algorithm takes no less \[s\].
    #[inline]
    pub fn of(&self, algorithm: &Algorithm) -> f64 {
        let (tm, tn) = (f64::from(algorithm.tile.0), f64::from(algorithm.tile.1));
        let split = f64::from(algorithm.split.max(1));
        let greater = |a: f64, b: f64| if a < b { b } else { a };
        let step = greater(tm * tn * self.arithmetic, (tm + tn) * self.load);
        let tile = greater(step, self.latency) * (self.k / split) + self.epilogue * tm * tn;
        let tile = tile * algorithm.work;
        let tiles = quotient(self.m, tm, 1.0 / tm) * quotient(self.n, tn, 1.0 / tn) * split;
        let waves = quotient(tiles, self.sms, 1.0 / self.sms);
        let sums = match algorithm.split > 1 {
            true => self.partials * split + self.reduction,
            false => 0.0,
        };
        let work = greater(waves * tile, self.memory);
        // A little slack against rounding.
        (self.overhead + work + sums) / algorithm.efficiency * (1.0 - 1e-12)
    }
}
