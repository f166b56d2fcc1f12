//! How well GEMMs of columns that were not measured are predicted: cross-validation.
//!
//! The columns (k, n) are dealt to [`FOLDS`] folds; each fold's are predicted by rates, efficiencies and
//! corrections from the others, once with the library's choices for them, as the profile has for
//! thousands of shapes, and once without, as for any other. The error is |predicted / measured − 1|.
//! Rows that are no multiples of 16 bytes have few columns: of each alignment that has two or more, every
//! one is predicted from the rest.

use super::book::Product;
use super::estimate::Estimate;
use super::kernels::{Choices, fit, whole};
use super::products::DTYPE;
use crate::device::gemm::library::{Library, alignment};
use crate::device::gemm::{correct, gemm};
use crate::device::{Device, MeasuredGemm};
use crate::units::Seconds;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Parts that columns are dealt to.
pub const FOLDS: usize = 6;
/// What counts as long \[s\].
const LONG: f64 = 100e-6;

/// A predicted product.
#[derive(Copy, Clone, Debug)]
pub struct Prediction {
    pub product: Product,
    /// By the profile of the other columns, launch included \[s\]; with the library's choices known
    /// and not known.
    pub listed: f64,
    pub unlisted: f64,
}

impl Prediction {
    /// |predicted / measured − 1|, choices known or not.
    pub fn error(&self, listed: bool) -> f64 {
        let predicted = if listed { self.listed } else { self.unlisted };
        (predicted / self.product.time.value - 1.0).abs()
    }
}

/// Predicts every product from the columns of the other folds; `launch` precedes each time \[s\].
pub fn predict(
    device: &Device,
    products: &[Product],
    choices: &Choices,
    launch: f64,
) -> Vec<Prediction> {
    dealt(device, products, choices, launch, FOLDS)
}

/// As [`predict`], with so many folds.
fn dealt(
    device: &Device,
    products: &[Product],
    choices: &Choices,
    launch: f64,
    folds: usize,
) -> Vec<Prediction> {
    let mut columns: Vec<(u64, u64)> = products.iter().map(|p| (p.k, p.n)).collect();
    columns.sort_unstable();
    columns.dedup();
    let fold_of = |p: &Product| columns.binary_search(&(p.k, p.n)).unwrap_or(0) % folds;
    let mut all = Vec::new();
    for fold in 0..folds {
        let (own, others): (Vec<Product>, Vec<Product>) =
            products.iter().partition(|p| fold_of(p) == fold);
        let mut known = choices.clone();
        for product in &own {
            if let Some(kernel) = product.kernel {
                let column = known.entry((product.k, product.n)).or_default();
                column.insert(product.m, kernel);
            }
        }
        let Some(library) = fit(device, &others, &known, launch) else {
            continue;
        };
        let mut unlisted = library.clone();
        unlisted
            .choices
            .retain(|c| !own.iter().any(|p| (p.k, p.n) == (c.k, c.n)));
        let time = |library: Library| {
            let device = with(device, &others, library, launch);
            move |p: &Product| {
                let time = gemm(&device, DTYPE, p.m, p.n, p.k, device.sms);
                time.map_or(0.0, |time| time.seconds) + launch
            }
        };
        let (listed, unlisted) = (time(library), time(unlisted));
        all.extend(own.into_iter().map(|product| Prediction {
            product,
            listed: listed(&product),
            unlisted: unlisted(&product),
        }));
    }
    all
}

/// The device with this library and these products measured.
fn with(device: &Device, products: &[Product], library: Library, launch: f64) -> Device {
    let mut device = device.clone();
    device.gemm_library = Some(Arc::new(library));
    device.gemm_table = points(products, launch);
    correct(&mut device);
    device
}

/// Products as a profile has them; `launch` precedes each time \[s\].
pub(super) fn points(products: &[Product], launch: f64) -> Vec<MeasuredGemm> {
    let point = |p: &Product| MeasuredGemm {
        dtype: DTYPE,
        m: p.m,
        n: p.n,
        k: p.k,
        time: Seconds::of((p.time.value - launch).max(1e-9)),
        correction: 1.0,
    };
    products.iter().map(point).collect()
}

/// Mean, median and largest errors, as facts; none without products of some columns.
pub fn facts(
    device: &Device,
    products: &[Product],
    choices: &Choices,
    launch: f64,
) -> Vec<(String, Estimate)> {
    let (aligned, others): (Vec<Product>, Vec<Product>) =
        products.iter().partition(|p| whole(&[p.m, p.n, p.k]));
    let all = predict(device, &aligned, choices, launch);
    let mut found = Vec::new();
    for (name, listed) in [("listed", true), ("unlisted", false)] {
        for (size, least) in [("", 0.0), (".long", LONG)] {
            let long = all.iter().filter(|p| p.product.time.value >= least);
            let errors = long.map(|p| p.error(listed)).collect();
            found.extend(summary(&format!("{name}{size}"), errors));
        }
    }
    let few = unaligned(device, &others, choices, launch);
    let errors = few.iter().map(|p| p.error(true)).collect();
    found.extend(summary("unaligned", errors));
    found
}

/// Predictions of columns whose rows are no multiples of 16 bytes, each from the others of its alignment.
fn unaligned(
    device: &Device,
    products: &[Product],
    choices: &Choices,
    launch: f64,
) -> Vec<Prediction> {
    let mut by: BTreeMap<u32, Vec<Product>> = BTreeMap::new();
    for product in products {
        let align = alignment(DTYPE, product.n, product.k);
        by.entry(align).or_default().push(*product);
    }
    let of = |alike: &Vec<Product>| {
        let columns: BTreeSet<_> = alike.iter().map(|p| (p.k, p.n)).collect();
        let enough = columns.len() > 1;
        enough.then(|| dealt(device, alike, choices, launch, columns.len()))
    };
    by.values().filter_map(of).flatten().collect()
}

/// Mean, median and largest of errors; none without any.
fn summary(name: &str, mut errors: Vec<f64>) -> Vec<(String, Estimate)> {
    errors.sort_by(f64::total_cmp);
    let (Some(&worst), n) = (errors.last(), errors.len()) else {
        return Vec::new();
    };
    let mean = errors.iter().sum::<f64>() / n as f64;
    let all = [("mean", mean), ("median", errors[n / 2]), ("worst", worst)];
    all.map(|(kind, value)| {
        let name = format!("gemm.unseen.{name}.{kind}");
        (name, Estimate::exact(value, n))
    })
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::machine::recorded::products;
    use crate::calibrate::machine::told::chosen;
    use crate::device::gemm::library::Algorithm;
    use crate::topology;

    /// Samples of two H200.
    const SAMPLES: &str =
        include_str!("../../../experiments/calibration/measured/2026-11-30-h200-pair-fourth.csv");

    /// The machine that the samples are from, what its library takes, what precedes a kernel, and the
    /// products as the calibration kept them.
    fn recorded() -> (Device, Choices, f64, Vec<Product>) {
        let found = topology::load("h200-pair-calibrated", &[]).unwrap();
        let mut device = Device::clone(found.device(0));
        device.gemm_table.clear();
        device.gemm_library = None;
        let choices = chosen(SAMPLES).unwrap();
        let launch = device.costs.lane.get() + device.costs.kernel_start.get();
        let products = products(SAMPLES, "gemm", &choices).unwrap();
        (device, choices, launch, products)
    }

    #[test]
    fn columns_left_out_of_recorded_samples() {
        let (device, choices, launch, products) = recorded();
        assert!(products.len() > 4000, "{}", products.len());
        let found = facts(&device, &products, &choices, launch);
        for (name, estimate) in &found {
            println!("{name} {:.2} %, n {}", 100.0 * estimate.value, estimate.n);
        }
        let of = |name: &str| {
            let name = format!("gemm.unseen.{name}");
            found.iter().find(|f| f.0 == name).unwrap().1.value
        };
        // Nine columns, from 16 rows on; three columns from 64 rows on gave 4 %.
        assert!(of("unaligned.mean") < 0.05, "{}", of("unaligned.mean"));
        assert!(of("listed.mean") < 0.024, "{}", of("listed.mean"));
        assert!(of("listed.median") < 0.011);
        assert!(of("listed.long.mean") < 0.0075);
        assert!(of("unlisted.mean") < 0.035);
        assert!(of("unlisted.long.mean") < 0.016);
        assert!(facts(&device, &[], &Choices::new(), launch).is_empty());
    }

    /// Made up by the model itself, everything is found again.
    #[test]
    fn what_the_model_makes_it_finds() {
        let (device, _, launch, mut made) = recorded();
        made.retain(|p| whole(&[p.m, p.n, p.k]));
        made = made.into_iter().step_by(3).collect();
        let library = fit(&device, &made, &Choices::new(), launch).unwrap();
        for p in &mut made {
            let wanted = p.kernel.unwrap();
            let same = |a: &Algorithm| {
                (a.tile, a.split, a.cluster) == (wanted.tile, wanted.split, wanted.cluster)
            };
            let place = library.algorithms.iter().position(same).unwrap();
            let shape = [p.m, p.n, p.k];
            let time = library.seconds(&device, shape, place as u16).unwrap();
            p.time = Estimate::exact(time + launch, 3);
        }
        // Kernels met once are not told from their rates.
        let often = |p: &Product| made.iter().filter(|o| o.kernel == p.kernel).count() > 8;
        let all = predict(&device, &made, &Choices::new(), launch);
        let met = all.iter().filter(|p| often(&p.product));
        let errors: Vec<f64> = met.map(|p| p.error(true)).collect();
        assert!(errors.len() > 300);
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let worst = errors.iter().copied().fold(0.0, f64::max);
        assert!(mean < 0.01 && worst < 0.12, "{mean} {worst}");
    }
}
