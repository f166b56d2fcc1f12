//! How well GEMMs of columns that were not measured are predicted: cross-validation.
//!
//! The columns (k, n) are dealt to [`FOLDS`] folds; each fold's are predicted by rates, efficiencies and
//! corrections from the others, once with the library's choices for them, as the profile has for
//! thousands of shapes, and once without, as for any other. The error is |predicted / measured − 1|.
//! Of n and k that are no multiples of 8 there are too few columns to leave any out.

use super::book::Product;
use super::estimate::Estimate;
use super::kernels::{Choices, fit, whole};
use super::products::DTYPE;
use crate::device::gemm::{correct, gemm};
use crate::device::{Device, MeasuredGemm};
use crate::units::Seconds;
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
    let mut columns: Vec<(u64, u64)> = products.iter().map(|p| (p.k, p.n)).collect();
    columns.sort_unstable();
    columns.dedup();
    let fold_of = |p: &Product| columns.binary_search(&(p.k, p.n)).unwrap_or(0) % FOLDS;
    let mut all = Vec::new();
    for fold in 0..FOLDS {
        let (own, others): (Vec<Product>, Vec<Product>) =
            products.iter().partition(|p| fold_of(p) == fold);
        let mut known = choices.clone();
        for product in &own {
            if let Some(kernel) = product.kernel {
                let column = known.entry((product.k, product.n)).or_default();
                column.insert(product.m, kernel);
            }
        }
        let mut unknown = known.clone();
        unknown.retain(|column, _| !own.iter().any(|p| (p.k, p.n) == *column));
        let time = |choices: &Choices| {
            let device = with(device, &others, choices, launch);
            move |p: &Product| {
                let time = gemm(&device, DTYPE, p.m, p.n, p.k, device.sms);
                time.map_or(0.0, |time| time.seconds) + launch
            }
        };
        let (listed, unlisted) = (time(&known), time(&unknown));
        all.extend(own.into_iter().map(|product| Prediction {
            product,
            listed: listed(&product),
            unlisted: unlisted(&product),
        }));
    }
    all
}

/// The device with these products measured.
fn with(device: &Device, products: &[Product], choices: &Choices, launch: f64) -> Device {
    let mut device = device.clone();
    device.gemm_library = fit(&device, products, choices, launch).map(Arc::new);
    let point = |p: &Product| MeasuredGemm {
        dtype: DTYPE,
        m: p.m,
        n: p.n,
        k: p.k,
        time: Seconds::of((p.time.value - launch).max(1e-9)),
        correction: 1.0,
    };
    device.gemm_table = products.iter().map(point).collect();
    correct(&mut device);
    device
}

/// Mean, median and largest errors, as facts; none without products of some columns.
pub fn facts(
    device: &Device,
    products: &[Product],
    choices: &Choices,
    launch: f64,
) -> Vec<(String, Estimate)> {
    let products: Vec<Product> = products
        .iter()
        .filter(|p| whole(&[p.m, p.n, p.k]))
        .copied()
        .collect();
    let all = predict(device, &products, choices, launch);
    let mut found = Vec::new();
    for (name, listed) in [("listed", true), ("unlisted", false)] {
        for (size, least) in [("", 0.0), (".long", LONG)] {
            let long = all.iter().filter(|p| p.product.time.value >= least);
            let mut errors: Vec<f64> = long.map(|p| p.error(listed)).collect();
            errors.sort_by(f64::total_cmp);
            let (Some(&worst), n) = (errors.last(), errors.len()) else {
                continue;
            };
            let mean = errors.iter().sum::<f64>() / n as f64;
            for (kind, value) in [("mean", mean), ("median", errors[n / 2]), ("worst", worst)] {
                let name = format!("gemm.unseen.{name}{size}.{kind}");
                found.push((name, Estimate::exact(value, n)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::calibrate::machine::kernels::Kernel;
    use crate::device;

    /// GEMMs of an H200, 12 columns of 22 rows, measured before samples were heated.
    const SAMPLES: &str =
        include_str!("../../../experiments/calibration/measured/2026-11-30-h200-pair.csv");
    const LAUNCH: f64 = 1.365e-6;

    fn kernel(words: &str) -> Option<Kernel> {
        let tile = words.split("tile ").nth(1)?.split(';').next()?;
        let (rows, columns) = tile.split_once('×')?;
        let split = words
            .split("k in ")
            .nth(1)
            .and_then(|w| w.split(' ').next());
        Some(Kernel {
            tile: (rows.parse().ok()?, columns.parse().ok()?),
            split: split.map_or(Some(1), |parts| parts.parse().ok())?,
        })
    }

    fn column(text: &str) -> Option<(u64, u64)> {
        let (k, n) = text.strip_prefix('k')?.split_once('n')?;
        Some((k.parse().ok()?, n.parse().ok()?))
    }

    fn recorded() -> (Vec<Product>, Choices) {
        let (mut products, mut choices) = (Vec::new(), Choices::new());
        let mut runs: BTreeMap<(u64, u64), Vec<(u64, Kernel)>> = BTreeMap::new();
        for line in SAMPLES.lines() {
            let cells: Vec<&str> = line.split(',').collect();
            let [section, case, x, _, samples] = cells[..] else {
                continue;
            };
            if section != "gemm" {
                continue;
            }
            if let Some(words) = case.strip_prefix("lt ") {
                let (at, words) = words.split_once(' ').unwrap();
                let run = (x.parse().unwrap(), kernel(words).unwrap());
                runs.entry(column(at).unwrap()).or_default().push(run);
            } else if let Some((k, n)) = column(case) {
                let times: Vec<f64> = samples
                    .split(' ')
                    .map(|t| t.parse::<f64>().unwrap() * 1e-6)
                    .collect();
                let time = Estimate::median(&times).unwrap();
                products.push(Product {
                    m: x.parse().unwrap(),
                    n,
                    k,
                    time,
                    alone: time,
                    kernel: None,
                });
            }
        }
        // Asked for at multiples of 64 up to 2048 rows and of 256 up to 8192, noted where changed.
        products.retain(|p| p.m <= 8192 && p.m != 96);
        for product in &mut products {
            let runs = &runs[&(product.k, product.n)];
            let run = runs.iter().rfind(|(m, _)| *m <= product.m);
            product.kernel = run.map(|(_, kernel)| *kernel);
        }
        for (column, runs) in runs {
            choices.insert(column, runs.into_iter().collect());
        }
        // What was noted says where a run begins; here its end is needed: only rows measured count.
        choices.clear();
        (products, choices)
    }

    #[test]
    fn columns_left_out_of_recorded_samples() {
        let (products, choices) = recorded();
        assert_eq!(products.len(), 12 * 19);
        let base = device::load("h200").unwrap();
        let found = facts(&base, &products, &choices, LAUNCH);
        for (name, estimate) in &found {
            println!("{name} {:.2} %", 100.0 * estimate.value);
        }
        let of = |name: &str| {
            let name = format!("gemm.unseen.{name}");
            found.iter().find(|f| f.0 == name).unwrap().1.value
        };
        // From ten of twelve columns; a calibration measures a hundred.
        assert!(of("listed.mean") < 0.028, "{}", of("listed.mean"));
        assert!(of("listed.median") < 0.017);
        assert!(of("listed.long.mean") < 0.02);
        assert!(of("unlisted.mean") < 0.04);
        assert!(facts(&base, &[], &choices, LAUNCH).is_empty());
    }

    /// Made up by the model itself, everything is found again.
    #[test]
    fn what_the_model_makes_it_finds() {
        let (products, choices) = recorded();
        let base = device::load("h200").unwrap();
        let library = fit(&base, &products, &choices, LAUNCH).unwrap();
        let mut made = products;
        for p in &mut made {
            let wanted = p.kernel.unwrap();
            let same = |a: &device::gemm::library::Algorithm| {
                (a.tile, a.split) == (wanted.tile, wanted.split)
            };
            let place = library.algorithms.iter().position(same).unwrap();
            let time = library
                .seconds(&base, [p.m, p.n, p.k], place as u16)
                .unwrap();
            p.time = Estimate::exact(time + LAUNCH, 3);
        }
        // Kernels met once are not told from their rates.
        let often = |p: &Product| made.iter().filter(|o| o.kernel == p.kernel).count() > 8;
        let all = predict(&base, &made, &choices, LAUNCH);
        let met = all.iter().filter(|p| often(&p.product));
        let errors: Vec<f64> = met.map(|p| p.error(true)).collect();
        assert!(errors.len() > 100);
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let worst = errors.iter().copied().fold(0.0, f64::max);
        assert!(mean < 0.01 && worst < 0.12, "{mean} {worst}");
    }
}
