use std::sync::Arc;

use super::super::tests::rates;
use super::super::{ALIGNED, Algorithm, Choices};
use super::*;
use crate::device::gemm::{correct, gemm};
use crate::device::{DType, load};
use crate::units::Seconds;

const ROWS_OF_A: u64 = 192;
const DEPTH: u64 = 4096;

/// The H200 with a tile in clusters of four columns and of two, and another; columns of `n`, the kernel
/// taken there, and what is measured over what is modelled.
fn device(measured: &[(u64, u16, f64)], asked: (u64, u16)) -> Device {
    let mut gpu = load("h200").unwrap();
    let rates = rates();
    let algorithm = |tile, cluster| Algorithm {
        tile,
        split: 1,
        cluster,
        align: ALIGNED,
        efficiency: 1.0,
    };
    let algorithms = vec![
        algorithm((64, 96), (1, 4)),
        algorithm((64, 96), (1, 2)),
        algorithm((128, 96), (1, 4)),
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

/// Σ c·w / (Σ w + PRIOR),  w = 1 / (Δ(ln n)² + WAVE·Δw² + BEYOND·Δo² + NEAR)².
///
/// n = 3520 are 36.7 tiles of 96 in ten clusters of four, 120 tiles with 3 rows of them, and 3.3 of the last
/// four lie beyond C. n = 3072 are 32 tiles, nothing beyond; 3136 are 32.7 in nine clusters, 108 tiles, and 3.3 beyond.
#[test]
fn clusters_beyond_c_are_alike() {
    let gpu = device(&[(3072, 0, 1.0), (3136, 0, 1.5)], (3520, 0));
    let weight = |n: f64, tiles: f64, beyond: f64| {
        let far = (n / 3520.0).ln().powi(2)
            + WAVE * ((tiles - 120.0) / 132.0).powi(2)
            + BEYOND * (beyond - (40.0 - 3520.0 / 96.0) / 4.0).powi(2)
            + NEAR;
        1.0 / (far * far)
    };
    let whole = weight(3072.0, 96.0, 0.0);
    let alike = weight(3136.0, 108.0, (36.0 - 3136.0 / 96.0) / 4.0);
    let wanted = 1.5_f64.ln() * alike / (whole + alike + PRIOR);
    let found = correction(&gpu, 3520, 0);
    assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
    assert!(alike > 30.0 * whole, "{alike} {whole}");
}

#[test]
fn other_clusters_are_further_away_and_other_tiles_more() {
    let of = |measured: u16| {
        let gpu = device(&[(3072, measured, 1.5)], (3456, 0));
        correction(&gpu, 3456, 0)
    };
    let [same, cluster, tile] = [0, 1, 2].map(of);
    assert!(
        same > 1.2 * cluster && cluster > 1.2 * tile && tile > 0.0,
        "{same} {cluster} {tile}"
    );
}

#[test]
fn tiles_beyond_many_waves_are_alike() {
    let gpu = device(&[], (3072, 0));
    let library = gpu.gemm_library.as_deref().unwrap();
    let fill = |m, n| library.fill(&gpu, Shape { m, n, k: DEPTH }, 0);
    assert_eq!(
        (fill(192, 3072).waves, fill(192, 3072).beyond),
        (96.0 / 132.0, 0.0)
    );
    assert_eq!(fill(64_000, 3072).waves, MANY);
    // No such kernel.
    let none = library.fill(
        &gpu,
        Shape {
            m: 64,
            n: 64,
            k: 64,
        },
        9,
    );
    assert_eq!(none, Fill::default());
}
