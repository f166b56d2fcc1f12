//! The time of one algorithm, by the formulas of [`super`].

use super::{Algorithm, Library, Rates, Shape};
use crate::device::Device;
use crate::device::gemm::wave;

/// Bytes written and read per element of C and part of a split k (fp32 partial sums).
pub(super) const PARTIAL: f64 = 8.0;
/// Area of the tile that `epilogue` is stated for \[elements\].
pub(super) const AREA: f64 = 256.0 * 128.0;

/// The time of one algorithm with its parts \[s\].
#[derive(Copy, Clone, Debug)]
pub(super) struct Modelled {
    pub seconds: f64,
    /// The same with all of B read from memory.
    pub cold: f64,
    pub overhead: f64,
    pub unquantised: f64,
    pub wave: f64,
    /// Arithmetic over memory.
    pub bound: f64,
}

impl Library {
    /// An element of k of a tile \[s\].
    pub(super) fn step(
        &self,
        device: &Device,
        rate: f64,
        rates: &Rates,
        (rows, columns): (u32, u32),
    ) -> f64 {
        let size = self.dtype.size() as f64;
        let all = f64::from(device.sms.max(1));
        let (rows, columns) = (f64::from(rows), f64::from(columns));
        let flow = both(
            2.0 * rows * columns / (rate * rates.arithmetic / all),
            (rows + columns) * size / rates.load.get(),
        );
        both(flow, rates.latency.get())
    }

    /// The share of B that is read from memory.
    pub(super) fn miss(&self, Shape { n, k, .. }: Shape) -> f64 {
        let rates = self.rates_of(self.align(n, k));
        let b = k as f64 * n as f64 * self.dtype.size() as f64;
        1.0 / (1.0 + (rates.cached / b).powi(4))
    }

    /// The time on some SMs.
    pub(super) fn one(
        &self,
        device: &Device,
        rate: f64,
        shape: Shape,
        algorithm: Algorithm,
        sms: u32,
    ) -> Modelled {
        let Shape { m, n, k } = shape;
        let rates = self.rates_of(self.align(n, k));
        let size = self.dtype.size() as f64;
        let [m, n, k] = [m, n, k].map(|x| x as f64);
        let (tm, tn) = (f64::from(algorithm.tile.0), f64::from(algorithm.tile.1));
        let split = f64::from(algorithm.split.max(1));
        let sms = f64::from(sms.clamp(1, device.sms.max(1)));
        let step = self.step(device, rate, rates, algorithm.tile);
        let tile = step * (k / split).ceil() + rates.epilogue.get() * tm * tn / AREA;
        let tile = tile * algorithm.work;
        let waves = ((m / tm).ceil() * (n / tn).ceil() * split / sms).ceil();
        let fraction = m * n * split / (tm * tn * sms);
        let (b, miss) = (k * n * size, self.miss(shape));
        let memory = |miss: f64| {
            let bytes = (m * k + m * n) * size + b * miss;
            bytes / (device.hbm.get() * rates.memory)
        };
        let partials = match algorithm.split > 1 {
            true => PARTIAL * m * n * split / rates.partials.get() + rates.reduction.get(),
            false => 0.0,
        };
        let overhead = device.gemm_overhead.get() * rates.overhead;
        let of = |waves: f64, miss: f64| {
            let work = both(waves * tile, memory(miss));
            (overhead + work + partials) / algorithm.efficiency
        };
        Modelled {
            seconds: of(waves, miss),
            cold: of(waves, 1.0),
            overhead: overhead / algorithm.efficiency,
            unquantised: of(fraction.min(waves), miss),
            wave: tile / algorithm.efficiency,
            bound: waves * tile / memory(miss).max(f64::MIN_POSITIVE),
        }
    }

    /// Tiles, each as often as k is split.
    pub(super) fn tiles(&self, Shape { m, n, .. }: Shape, algorithm: u16) -> f64 {
        self.algorithms
            .get(usize::from(algorithm))
            .map_or(0.0, |a| {
                let (rows, columns) = (m.div_ceil(a.tile.0.into()), n.div_ceil(a.tile.1.into()));
                (rows * columns) as f64 * f64::from(a.split.max(1))
            })
    }

    /// Bytes between memory and level-2 cache, as `wave` counts them.
    pub(super) fn traffic(
        &self,
        device: &Device,
        Shape { m, n, k }: Shape,
        algorithm: u16,
        sms: u32,
    ) -> f64 {
        let Some(algorithm) = self.algorithms.get(usize::from(algorithm)) else {
            return 0.0;
        };
        let shape = wave::Shape {
            m: m as f64,
            n: n as f64,
            k: k as f64,
            size: self.dtype.size() as f64,
        };
        let (tm, tn) = (f64::from(algorithm.tile.0), f64::from(algorithm.tile.1));
        let split = f64::from(algorithm.split.max(1));
        let (rows, columns) = ((shape.m / tm).ceil(), (shape.n / tn).ceil());
        let wave = (rows * columns * split).min(f64::from(sms.clamp(1, device.sms.max(1))));
        let square = (wave * tm / tn).sqrt();
        wave::traffic(device, &shape, tm, (rows, columns), split, (wave, square))
    }
}

/// (a⁴ + b⁴)^¼ without overflow.
pub(super) fn both(a: f64, b: f64) -> f64 {
    let most = a.max(b);
    if most <= 0.0 || !most.is_finite() {
        return most;
    }
    let ratio = a.min(b) / most;
    most * (1.0 + ratio.powi(4)).sqrt().sqrt()
}
