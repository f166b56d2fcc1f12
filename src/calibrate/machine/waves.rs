//! The wave model's numbers, fitted to measured products.

use super::book::Product;
use super::estimate::Estimate;
use crate::device::{DType, Device, gemm};

/// Points that the wave model is fitted to, at most.
const MOST_POINTS: usize = 300;

/// Fits `compute.sustained` and `gemm.overhead` of the wave model to measured products, by the least
/// sum of |ln(model / measured)| over a grid; `launch` is what precedes each in a burst.
pub fn fit_waves(device: &Device, products: &[Product], launch: f64) -> Option<[Estimate; 2]> {
    let mut trial = device.clone();
    trial.gemm_table.clear();
    let every = products.len().div_ceil(MOST_POINTS).max(1);
    let mut best = (f64::INFINITY, [0.0; 2]);
    for percent in 50..=100 {
        trial.sustained = f64::from(percent) / 100.0;
        for half in 0..=30 {
            let overhead = f64::from(half) * 0.5e-6;
            let mut errors: Vec<f64> = Vec::with_capacity(products.len());
            trial.gemm_overhead = crate::units::Seconds::of(overhead);
            for product in products.iter().step_by(every) {
                let Product { m, n, k, time, .. } = *product;
                let model = gemm::model(&trial, DType::Bf16, m, n, k, trial.sms)?;
                errors.push((model.seconds / (time.value - launch).max(1e-9)).ln().abs());
            }
            let error = errors.iter().sum::<f64>();
            if error < best.0 {
                best = (error, [trial.sustained, overhead]);
            }
        }
    }
    let of = |value: f64, step: f64| Estimate {
        value,
        low: value - step,
        high: value + step,
        n: products.len(),
    };
    best.0
        .is_finite()
        .then(|| [of(best.1[0], 0.01), of(best.1[1], 0.5e-6)])
        .filter(|_| !products.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device;

    #[test]
    fn the_wave_model_is_recovered() {
        let mut device = device::load("h200").unwrap();
        device.sustained = 0.77;
        device.gemm_overhead = crate::units::Seconds::of(4.5e-6);
        let products: Vec<Product> = [
            (64, 8192, 8192),
            (512, 4096, 4096),
            (4096, 8192, 3584),
            (8192, 2048, 2048),
        ]
        .into_iter()
        .map(|(m, n, k)| {
            let time = gemm::model(&device, DType::Bf16, m, n, k, device.sms).unwrap();
            let time = Estimate::exact(time.seconds + 2e-6, 5);
            Product {
                m,
                n,
                k,
                time,
                alone: time,
                kernel: None,
            }
        })
        .collect();
        let start = device::load("h200").unwrap();
        let [sustained, overhead] = fit_waves(&start, &products, 2e-6).unwrap();
        assert!((sustained.value - 0.77).abs() < 1e-9);
        assert!((overhead.value - 4.5e-6).abs() < 1e-12);
        assert_eq!(fit_waves(&start, &[], 2e-6), None);
    }
}
