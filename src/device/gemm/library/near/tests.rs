use std::sync::Arc;

use proptest::prelude::*;

use super::super::tests::rates;
use super::super::{ALIGNED, Algorithm, Choices};
use super::*;
use crate::device::gemm::{correct, gemm};
use crate::device::{DType, load};
use crate::units::Seconds;

const ROWS_OF_A: u64 = 192;
const DEPTH: u64 = 4096;

/// The H200 with a tile in clusters of four columns and of two, and two others; columns of `n`, the kernel
/// taken there, and what is measured over what is modelled.
fn device(measured: &[(u64, u16, f64)], asked: (u64, u16)) -> Device {
    let mut gpu = load("h200").unwrap();
    let rates = rates();
    let algorithm = |tile, cluster| Algorithm {
        tile,
        split: 1,
        cluster,
        align: ALIGNED,
        work: 1.0,
        efficiency: 1.0,
    };
    let algorithms = vec![
        algorithm((64, 96), (1, 4)),
        algorithm((64, 96), (1, 2)),
        algorithm((72, 96), (1, 4)),
        algorithm((192, 96), (1, 4)),
    ];
    let column = |n, place| Choices {
        n,
        k: DEPTH,
        rows: vec![(ROWS_OF_A, place)],
    };
    let mut choices: Vec<Choices> = measured.iter().map(|&(n, at, _)| column(n, at)).collect();
    choices.push(column(asked.0, asked.1));
    let library = Library::new(DType::Bf16, rates, algorithms, choices);
    let point = |&(n, place, factor): &(u64, u16, f64)| MeasuredGemm {
        dtype: DType::Bf16,
        m: ROWS_OF_A,
        n,
        k: DEPTH,
        time: Seconds::of(factor * library.seconds(&gpu, [ROWS_OF_A, n, DEPTH], place).unwrap()),
        correction: 1.0,
    };
    gpu.gemm_table = measured.iter().map(point).collect();
    gpu.gemm_library = Some(Arc::new(library));
    correct(&mut gpu);
    gpu
}

/// ln(time / modelled) of a shape by the kernel asked for.
fn correction(gpu: &Device, n: u64, place: u16) -> f64 {
    let library = gpu.gemm_library.as_deref().unwrap();
    let modelled = library.seconds(gpu, [ROWS_OF_A, n, DEPTH], place).unwrap();
    let time = gemm(gpu, DType::Bf16, ROWS_OF_A, n, DEPTH, gpu.sms).unwrap();
    (time.seconds / modelled).ln()
}

/// Σ c·w / (Σ w + PRIOR),  w = 1 / (Σ WEIGHTS·Δ² + NEAR)⁴ − 1 / FAR⁴.
///
/// n = 3520 are 36.7 tiles of 96 in ten clusters of four, 120 tiles with 3 rows of them, and 3.3 of the last
/// four lie beyond C. n = 3072 are 32 tiles, nothing beyond; 3136 are 32.7 in nine clusters, 108 tiles, and 3.3 beyond.
#[test]
fn clusters_beyond_c_are_alike() {
    let gpu = device(&[(3072, 0, 1.0), (3136, 0, 1.5)], (3520, 0));
    let library = gpu.gemm_library.as_deref().unwrap();
    let rate = gpu.rate(DType::Bf16).unwrap();
    let bound = |n| {
        let shape = Shape {
            m: ROWS_OF_A,
            n,
            k: DEPTH,
        };
        library
            .one(&gpu, rate, shape, library.algorithms[0], gpu.sms)
            .bound
            .ln()
            .clamp(-BOUND, BOUND)
    };
    let weight = |n: u64, tiles: f64, columns: f64, beyond: f64| {
        let far = WEIGHTS[2] * ((tiles - 120.0) / 132.0).powi(2)
            + WEIGHTS[3] * (beyond - (40.0 - 3520.0 / 96.0) / 4.0).powi(2)
            + WEIGHTS[7] * (n as f64 / 3520.0).ln().powi(2)
            + WEIGHTS[9] * (bound(n) - bound(3520)).powi(2)
            + WEIGHTS[11] * ((3.0 * columns - 111.0) / 132.0).powi(2)
            + NEAR;
        (far.powi(-4) - FAR.powi(-4)).max(0.0)
    };
    let whole = weight(3072, 96.0, 32.0, 0.0);
    let alike = weight(3136, 108.0, 33.0, (36.0 - 3136.0 / 96.0) / 4.0);
    let wanted = 1.5_f64.ln() * alike / (whole + alike + PRIOR);
    let found = correction(&gpu, 3520, 0);
    // Features are single numbers.
    assert!((found - wanted).abs() < 1e-6, "{found} {wanted}");
    assert!(alike > 100.0 && whole < 0.01 * alike, "{alike} {whole}");
}

/// The same kernel at the same shape counts most, then another tile; one of more than twice the rows not at
/// all, nor one in other clusters.
#[test]
fn other_tiles_are_further_away_and_other_clusters_do_not_count() {
    let of = |measured: u16| {
        let gpu = device(&[(3072, measured, 1.5)], (3456, 0));
        correction(&gpu, 3456, 0)
    };
    let [same, cluster, tile, far] = [0, 1, 2, 3].map(of);
    assert!(same > 1.01 * tile && tile > 0.0, "{same} {tile}");
    assert_eq!((cluster, far), (0.0, 0.0));
}

#[test]
fn a_measured_point_is_met_and_none_is_faster_than_the_least() {
    let gpu = device(&[(3072, 0, 0.8), (3136, 0, 1.5)], (3520, 0));
    assert!((correction(&gpu, 3072, 0) - 0.8_f64.ln()).abs() < 1e-12);
    let library = gpu.gemm_library.as_deref().unwrap();
    assert!((library.least() - 0.8).abs() < 1e-12);
    assert!(correction(&gpu, 3520, 0) >= library.least().ln());
}

#[test]
fn tiles_beyond_many_waves_are_alike() {
    let gpu = device(&[], (3072, 0));
    let library = gpu.gemm_library.as_deref().unwrap();
    let of = |m, n| {
        let shape = Shape { m, n, k: DEPTH };
        features(gpu.sms, shape, library.algorithms[0], 1.0)
    };
    let at = |part: usize, value: f64| value * WEIGHTS[part].sqrt();
    let found = of(192, 3072);
    assert_eq!(found[2], at(2, 96.0 / 132.0));
    // Nothing beyond C either way; three rows of tiles are an odd number, and half as wide as wide ones.
    assert_eq!((found[3], found[4], found[10]), (0.0, 0.0, at(10, 1.0)));
    assert_eq!(found[11], at(11, 1.0 - 96.0 / 132.0));
    assert_eq!(of(64_000, 3072)[2], at(2, MANY));
    assert_eq!(of(64_000, 3072)[5], of(128_000, 3072)[5]);
    // 200 rows are 3.125 of 64, in four of them.
    assert_eq!(of(200, 3072)[4], at(4, 4.0 - 200.0 / 64.0));
}

/// Measurements of some kinds, many of them at the same place.
fn samples() -> impl Strategy<Value = Vec<(Kind, Sample)>> {
    let kind = (0..2u32, 0..3u32, 1..4u32).prop_map(|(align, rows, split)| Kind {
        align: 8 << align,
        cluster: (1 << rows, 1),
        split,
        fewer: split == 2,
    });
    let sample = (features_near(), -0.5..0.5).prop_map(|(features, correction)| Sample {
        features: row(&features),
        align: ALIGNED,
        correction,
    });
    prop::collection::vec((kind, sample), 0..300)
}

/// Features on a coarse lattice.
fn features_near() -> impl Strategy<Value = Features> {
    prop::array::uniform12((-8..8i32).prop_map(|x| f64::from(x) * 0.11))
}

proptest! {
    /// Found with the tree or by a look at each: the same measurements in the same order.
    #[test]
    fn the_index_finds_what_a_look_at_each_finds(all in samples(), here in features_near(), most in 0.0..3.0_f32) {
        let index = Index::new(all.clone());
        let here = row(&here);
        let most = |kind: &Kind| (kind.split != 3).then_some(most / kind.split as f32);
        let (mut fast, mut naive) = (Vec::new(), Vec::new());
        index.within(&here, most, |far, kind, sample| fast.push((far, *kind, *sample)));
        index.within_by_all(&here, most, |far, kind, sample| naive.push((far, *kind, *sample)));
        prop_assert_eq!(&fast, &naive);
        let all = all.iter().filter(|(kind, sample)| {
            let far = sample.features.iter().zip(&here).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
            most(kind).is_some_and(|most| far < 0.999 * most)
        });
        prop_assert!(all.count() <= naive.len());
    }
}

/// Near what the shipped calibration measured: a sum over what is found is the same, to the last bit, as by a look
/// at each measurement.
#[test]
fn sums_near_what_is_shipped_are_those_of_a_look_at_each() {
    let found = crate::topology::load("h200-pair-calibrated", &[]).unwrap();
    let device = found.device(0);
    let library = device.gemm_library.as_deref().unwrap();
    let (mut seen, mut found) = (0, 0);
    for point in device.gemm_table.iter().step_by(3) {
        // Near a measured shape.
        let (m, n, k) = (point.m, point.n + 64, point.k - point.k / 16 / 8 * 8);
        let shape = Shape { m, n, k };
        let lenders = library.lenders(n, k);
        let Some((place, modelled)) = library.modelled(device, None, shape, &lenders, device.sms)
        else {
            continue;
        };
        let own = library.algorithms[usize::from(place)];
        let here = row(&features(device.sms, shape, own, modelled.bound));
        let most = |kind: &Kind| (kind.cluster == own.cluster).then_some(FAR as f32);
        let (mut fast, mut naive) = (0.0, 0.0);
        library.near.within(&here, most, |far, _, sample| {
            fast += sample.correction / f64::from(far + 0.1);
            seen += 1;
        });
        library.near.within_by_all(&here, most, |far, _, sample| {
            naive += sample.correction / f64::from(far + 0.1);
        });
        assert_eq!(fast.to_bits(), naive.to_bits());
        found += usize::from(fast != 0.0);
    }
    assert!(found > 600 && seen > 6000, "{found} {seen}");
}
