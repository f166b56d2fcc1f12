//! GEMMs whose times are in doubt: what to time next.
//!
//! [`TRIED`] GEMMs are drawn from the columns whose choices a calibration lists, with rows that pieces of operators
//! have: a number of rows is drawn as often as the odd part of it is small. In `BATCHES` batches those are taken that
//! have the greatest
//!
//! ```text
//! doubt · min(time / 60 us, 1)
//! ```
//!
//! one of a column in a batch; then they count as measured, with the times that are predicted, so that the next
//! batch lies elsewhere. What was timed is fitted (`duet calibrate --refit … --other`) and the rest asked for again.

use std::collections::BTreeSet;

use super::products::DTYPE;
use super::shapes::{asked_rows, fits};
use crate::device::gemm::{correct, doubt, gemm};
use crate::device::{Device, MeasuredGemm};
use crate::units::Seconds;

/// GEMMs that are looked at.
pub const TRIED: usize = 20_000;
/// Parts that are taken one after another.
const BATCHES: usize = 16;
/// Shorter GEMMs count less \[s\].
const LONG: f64 = 60e-6;
/// Extents below are those of no layer.
const LEAST: u64 = 512;
/// Fewest rows, and the largest odd part that makes a number of rows rarer.
const FEW: u64 = 32;
const ODD: u64 = 31;

/// A GEMM with its time \[s\].
type Drawn = ([u64; 3], f64);

/// At most `count` GEMMs `[m, n, k]` of a device that lists its library's choices, none of the columns (k, n)
/// `without`; the same ones for the same device.
pub fn doubted(device: &Device, count: usize, without: &BTreeSet<(u64, u64)>) -> Vec<[u64; 3]> {
    let mut device = device.clone();
    let mut left = drawn(&device, without);
    let mut all = Vec::new();
    while all.len() < count && !left.is_empty() {
        let score = |(shape, time): &Drawn| {
            let [m, n, k] = *shape;
            let doubt = doubt(&device, DTYPE, m, n, k).unwrap_or(0.0);
            doubt * (time / LONG).min(1.0)
        };
        let mut scored: Vec<(f64, Drawn)> = left.iter().map(|d| (score(d), *d)).collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        let most = count.div_ceil(BATCHES).min(count - all.len());
        let mut columns = BTreeSet::new();
        let (mut batch, mut rest) = (Vec::new(), Vec::new());
        for (_, drawn) in scored {
            let ([_, n, k], _) = drawn;
            match batch.len() < most && columns.insert((k, n)) {
                true => batch.push(drawn),
                false => rest.push(drawn),
            }
        }
        let point = |&([m, n, k], time): &Drawn| MeasuredGemm {
            dtype: DTYPE,
            m,
            n,
            k,
            time: Seconds::of(time),
            correction: 1.0,
        };
        device.gemm_table.extend(batch.iter().map(point));
        correct(&mut device);
        all.extend(batch.into_iter().map(|(shape, _)| shape));
        left = rest;
    }
    all
}

/// GEMMs to look at, none of them measured.
fn drawn(device: &Device, without: &BTreeSet<(u64, u64)>) -> Vec<Drawn> {
    let Some(library) = device.gemm_library.as_deref() else {
        return Vec::new();
    };
    let wide = |(k, n): &(u64, u64)| *k.min(n) >= LEAST && !without.contains(&(*k, *n));
    let columns = library.choices.iter().map(|choice| (choice.k, choice.n));
    let columns: Vec<(u64, u64)> = columns.filter(wide).collect();
    let rows: Vec<u64> = asked_rows().into_iter().filter(|m| *m >= FEW).collect();
    if columns.is_empty() {
        return Vec::new();
    }
    let measured = device.gemm_table.iter().map(|p| [p.m, p.n, p.k]);
    let mut met: BTreeSet<[u64; 3]> = measured.collect();
    let mut random = fastrand::Rng::with_seed(12);
    let mut all = Vec::new();
    // Most draws are rows that are left out for their odd part.
    for _ in 0..TRIED * 64 {
        if all.len() == TRIED {
            break;
        }
        let m = rows[random.usize(0..rows.len())];
        let odd = (m >> m.trailing_zeros()).min(ODD);
        if random.f64() * odd as f64 > 1.0 {
            continue;
        }
        let (k, n) = columns[random.usize(0..columns.len())];
        if !fits([m, n, k]) || !met.insert([m, n, k]) {
            continue;
        }
        if let Some(time) = gemm(device, DTYPE, m, n, k, device.sms) {
            all.push(([m, n, k], time.seconds));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology;

    #[test]
    fn what_is_in_doubt_is_taken_first_and_spread() {
        let shipped = topology::load("h200-pair-calibrated", &[]).unwrap();
        let device = shipped.device(0);
        let library = device.gemm_library.as_deref().unwrap();
        let choice = &library.choices[library.choices.len() / 2];
        let without: BTreeSet<_> = [(choice.k, choice.n)].into();
        let all = doubted(device, 64, &without);
        assert_eq!(all.len(), 64);
        let distinct: BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), 64);
        let known: BTreeSet<_> = device.gemm_table.iter().map(|p| [p.m, p.n, p.k]).collect();
        assert!(all.iter().all(|shape| !known.contains(shape)));
        assert!(all.iter().all(|[_, n, k]| !without.contains(&(*k, *n))));
        // Several times as much in doubt as those that are drawn.
        let of = |shapes: &mut dyn Iterator<Item = [u64; 3]>| {
            let doubts: Vec<f64> = shapes
                .filter_map(|[m, n, k]| doubt(device, DTYPE, m, n, k))
                .collect();
            doubts.iter().sum::<f64>() / doubts.len() as f64
        };
        let taken = of(&mut all.iter().copied());
        let drawn = of(&mut drawn(device, &without).iter().take(500).map(|d| d.0));
        assert!(taken > 3.0 * drawn, "{taken} {drawn}");
        assert_eq!(doubted(device, 8, &without), doubted(device, 8, &without));
        // Without a library nothing is known to be in doubt.
        let plain = topology::load("h200-pair", &[]).unwrap();
        assert!(doubted(plain.device(0), 8, &without).is_empty());
    }
}
