use proptest::prelude::*;

use super::*;
use crate::device::{Tile, ideal, load, set};

/// 132 SMs of 1 TFLOP/s each, one tile shape, memory as stated.
fn toy(hbm: &str, overhead: &str) -> Device {
    let mut gpu = ideal();
    for (field, value) in [
        ("compute.sms", "132"),
        ("peak", "132 TFLOP/s"),
        ("hbm", hbm),
        ("l2", "0 B"),
        ("gemm.overhead", overhead),
    ] {
        set(&mut gpu, field, value).unwrap();
    }
    gpu.tiles = vec![Tile {
        m: 128,
        n: 128,
        efficiency: 1.0,
    }];
    gpu
}

fn time(gpu: &Device, m: u64, n: u64, k: u64) -> GemmTime {
    gemm(gpu, DType::Bf16, m, n, k, gpu.sms).unwrap()
}

fn near(value: f64, expected: f64) {
    assert!(
        (value - expected).abs() <= 1e-12 * expected,
        "{value} is not {expected}"
    );
}

#[test]
fn compute_bound_waves() {
    let gpu = toy("1000000 TB/s", "5 us");
    // t_tile = 2·128²·(k + K_FILL) / 1e12 with k = 8192.
    let tile = 2.0 * 128.0 * 128.0 * (8192.0 + K_FILL) / 1e12;
    // 132 tiles (11 × 12): one wave; 133 would need two.
    near(time(&gpu, 11 * 128, 12 * 128, 8192).seconds, 5e-6 + tile);
    near(
        time(&gpu, 11 * 128 + 1, 12 * 128, 8192).seconds,
        5e-6 + 2.0 * tile,
    );
    // Without quantisation the time is the share of the 132 SMs' rate.
    let smooth = (1000.0 / 128.0) * (3000.0 / 128.0) / 132.0 * tile;
    near(time(&gpu, 1000, 3000, 8192).unquantised, 5e-6 + smooth);
    // 100 SMs: ⌈132/100⌉ = 2 waves of the same tiles.
    let fewer = gemm(&gpu, DType::Bf16, 11 * 128, 12 * 128, 8192, 100).unwrap();
    near(fewer.seconds, 5e-6 + 2.0 * tile);
}

/// overhead + waves · t_tile / share, share by what 2·n and 2·k bytes are multiples of.
#[test]
fn rows_that_are_not_aligned_are_slower() {
    let mut gpu = toy("1000000 TB/s", "5 us");
    set(&mut gpu, "gemm.unaligned", "0.25").unwrap();
    let t = |k: f64, share: f64| 5e-6 + 2.0 * 128.0 * 128.0 * (k + K_FILL) / (1e12 * share);
    for (odd, [two, four, eight]) in [(None, [0.25; 3]), (Some("0.125"), [0.125, 0.25, 0.25])] {
        if let Some(odd) = odd {
            set(&mut gpu, "gemm.odd", odd).unwrap();
        }
        // One wave of 11 × 12 tiles; n or k alone is enough.
        near(time(&gpu, 1408, 1536, 8192).seconds, t(8192.0, 1.0));
        near(time(&gpu, 1408, 1536, 8191).seconds, t(8191.0, two));
        near(time(&gpu, 1408, 1535, 8192).seconds, t(8192.0, two));
        near(time(&gpu, 1408, 1534, 8192).seconds, t(8192.0, four));
        near(time(&gpu, 1408, 1536, 8188).seconds, t(8188.0, eight));
        // The number of rows does not matter.
        near(time(&gpu, 1407, 1536, 8192).seconds, t(8192.0, 1.0));
    }
    let error = set(&mut gpu, "gemm.odd", "1.5").unwrap_err();
    assert!(error.contains("at most 1"), "{error}");
}

#[test]
fn few_tiles_split_k() {
    let gpu = toy("1000000 TB/s", "0 us");
    // 8 × 8 tiles leave half of 132 SMs idle: k in two halves, still one wave.
    let tile = 2.0 * 128.0 * 128.0 * (4096.0 + K_FILL) / 1e12;
    near(time(&gpu, 1024, 1024, 8192).seconds, tile);
    // Pieces of k stay at 256 or longer: 511 is not split.
    let tile = 2.0 * 128.0 * 128.0 * (511.0 + K_FILL) / 1e12;
    near(time(&gpu, 128, 128, 511).seconds, tile);
}

#[test]
fn memory_bound_reads_all_of_b() {
    let gpu = toy("0.5 TB/s", "0 us");
    // One tile row: each operand once, (m·k + k·n + m·n)·2 bytes at 0.5 TB/s.
    let (m, n, k) = (128.0, 16384.0, 1024.0);
    let bytes = (m * k + k * n + m * n) * 2.0;
    let whole = time(&gpu, 128, 16384, 1024);
    near(whole.hbm_bytes, bytes);
    near(whole.seconds, bytes / 0.5e12);
    // Half the rows cost almost as much: B is read again.
    let half = time(&gpu, 64, 16384, 1024);
    assert!(half.seconds > 0.85 * whole.seconds);
}

#[test]
fn traffic_of_a_grouped_raster() {
    // 16 × 16 tiles on 64 SMs, no L2: waves of 8 × 8 tiles, two groups of rows, two waves each.
    // A is read by both waves of a group, B by both groups.
    let mut gpu = toy("1 TB/s", "0 us");
    set(&mut gpu, "compute.sms", "64").unwrap();
    let n = 16.0 * 128.0;
    let bytes = (2.0 * n * n + 2.0 * n * n + n * n) * 2.0;
    near(time(&gpu, 2048, 2048, 2048).hbm_bytes, bytes);
    // With L2 for both operands, each is read once.
    set(&mut gpu, "l2", "1 GB").unwrap();
    near(time(&gpu, 2048, 2048, 2048).hbm_bytes, 3.0 * n * n * 2.0);
}

#[test]
fn ideal_takes_no_time_and_missing_types_are_none() {
    for dtype in DType::ALL {
        let time = gemm(&ideal(), dtype, 16384, 8192, 8192, 1).unwrap();
        assert_eq!(
            (time.seconds, time.unquantised, time.overhead),
            (0.0, 0.0, 0.0)
        );
    }
    let v100 = load("v100-sxm2").unwrap();
    assert_eq!(gemm(&v100, DType::Bf16, 128, 128, 128, 80), None);
    assert_eq!(
        time(&load("h200").unwrap(), 0, 128, 128),
        GemmTime::default()
    );
}

#[test]
fn exact_at_measured_points() {
    let gpu = load("h200").unwrap();
    assert_eq!(gpu.gemm_table.len(), 40);
    for point in &gpu.gemm_table {
        let modelled = gemm(&gpu, point.dtype, point.m, point.n, point.k, gpu.sms).unwrap();
        near(modelled.seconds, point.time.get());
    }
    // fp16 runs on the same units and borrows the points; fp8 does not.
    let with = |dtype| table::correction(&gpu.gemm_table, dtype, 4096, 8192, 8192);
    assert_eq!(with(DType::Fp16), with(DType::Bf16));
    assert_ne!(with(DType::Bf16), 1.0);
    assert_eq!(with(DType::Fp8), 1.0);
}

#[test]
fn corrections_are_continuous() {
    let gpu = load("h200").unwrap();
    let factor = |m, n, k| table::correction(&gpu.gemm_table, DType::Bf16, m, n, k);
    let mut before = factor(64, 8192, 8192);
    for m in 65..20_000 {
        let now = factor(m, 8192, 8192);
        // Adjacent points differ by at most a factor of two over a doubling of m.
        assert!(
            (now - before).abs() < 2.0 / m as f64,
            "{m}: {before} → {now}"
        );
        before = now;
    }
    // Towards a column the mean tends to the column.
    let at = factor(4096, 8192, 8192);
    assert!((factor(4096, 8192, 8193) - at).abs() < 1e-6);
}

/// Mean and largest |model / measured − 1| of the H200 table, launch included as it was measured.
fn errors(gpu: &Device, factor: impl Fn(usize) -> f64) -> (f64, f64) {
    const LAUNCH: f64 = 16e-6;
    let errors: Vec<f64> = (0..gpu.gemm_table.len())
        .map(|index| {
            let p = gpu.gemm_table[index];
            let modelled = model(gpu, p.dtype, p.m, p.n, p.k, gpu.sms).unwrap().seconds;
            let predicted = modelled * factor(index) + LAUNCH;
            (predicted / (p.time.get() + LAUNCH) - 1.0).abs()
        })
        .collect();
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    (mean, errors.iter().copied().fold(0.0, f64::max))
}

#[test]
fn error_against_the_h200_table() {
    let gpu = load("h200").unwrap();
    let (mean, worst) = errors(&gpu, |_| 1.0);
    println!(
        "wave model: MAPE {:.2} %, worst {:.1} %",
        mean * 100.0,
        worst * 100.0
    );
    assert!(mean < 0.04 && worst < 0.14, "{mean} {worst}");
    // Leave one out: each point is predicted from the 39 others.
    let (mean, worst) = errors(&gpu, |index| {
        let p = gpu.gemm_table[index];
        let mut others = gpu.gemm_table.clone();
        others.remove(index);
        table::correction(&others, p.dtype, p.m, p.n, p.k)
    });
    println!(
        "leave one out: MAPE {:.2} %, worst {:.1} %",
        mean * 100.0,
        worst * 100.0
    );
    assert!(mean < 0.03 && worst < 0.10, "{mean} {worst}");
    // A whole column left out: a new (k, n) predicted from the four others.
    let (mean, worst) = errors(&gpu, |index| {
        let p = gpu.gemm_table[index];
        let mut others = gpu.gemm_table.clone();
        others.retain(|other| (other.k, other.n) != (p.k, p.n));
        table::correction(&others, p.dtype, p.m, p.n, p.k)
    });
    println!(
        "column left out: MAPE {:.2} %, worst {:.1} %",
        mean * 100.0,
        worst * 100.0
    );
    assert!(mean < 0.05, "{mean} {worst}");
}

#[test]
fn published_gemms_of_other_gpus() {
    // Flux repository, 8 ranks, 4096 × 12288 × 49152 and back: GEMM part per rank [ms].
    for (name, column, row) in [
        ("a800", 2.438, 2.453),
        ("h800", 0.846, 0.818),
        ("l20", 5.746, 5.392),
    ] {
        let gpu = load(name).unwrap();
        for ((n, k), published) in [((6144, 12288), column), ((12288, 6144), row)] {
            let modelled = gemm(&gpu, DType::Fp16, 4096, n, k, gpu.sms)
                .unwrap()
                .seconds
                * 1e3;
            let ratio = modelled / published;
            println!("{name} 4096 × {n} × {k}: {modelled:.3} of {published} ms ({ratio:.3})");
            assert!(
                (0.93..1.07).contains(&ratio),
                "{name}: {modelled} of {published}"
            );
        }
    }
    // cuBLAS on an H100 (fast.cu): 716 TFLOP/s at 4096³, 795 at 8192³.
    let gpu = load("h100-sxm").unwrap();
    for (n, published) in [(4096u64, 716e12), (8192, 795e12)] {
        let rate = 2.0 * (n as f64).powi(3) / time(&gpu, n, n, n).seconds;
        assert!((0.93..1.07).contains(&(rate / published)), "{n}: {rate:e}");
    }
}

#[test]
fn overrides_keep_the_correction() {
    let mut gpu = load("h200").unwrap();
    let before = time(&gpu, 8192, 8192, 8192);
    set(&mut gpu, "peak", "2x").unwrap();
    let after = time(&gpu, 8192, 8192, 8192);
    let ratio = (before.seconds - before.overhead) / (after.seconds - after.overhead);
    near(ratio, 2.0);
}

proptest! {
    /// Whatever the shape: a positive, finite time; waves cost at least what they cost smoothly.
    #[test]
    fn positive_for_all_shapes(m in 1..=u64::MAX, n in 1..=u64::MAX, k in 1..=u64::MAX,
                               shift in 0..64u32, sms in 0..=u32::MAX) {
        let (m, n, k) = ((m >> shift).max(1), (n >> (shift / 2)).max(1), (k >> shift).max(1));
        for name in ["h200", "mi300x", "rtx-4090"] {
            let gpu = load(name).unwrap();
            let time = gemm(&gpu, DType::Bf16, m, n, k, sms).unwrap();
            prop_assert!(time.seconds > 0.0 && time.seconds.is_finite());
            prop_assert!(time.hbm_bytes >= 1.0 && time.hbm_bytes.is_finite());
            prop_assert!(time.unquantised <= time.seconds);
            prop_assert!(time.overhead <= time.unquantised);
        }
    }

    /// The wave model never gets faster with more rows, columns or depth, or with fewer SMs.
    #[test]
    fn monotone(m in 1..40_000u64, n in 1..40_000u64, k in 1..40_000u64,
                more in 1..5_000u64, sms in 1..132u32) {
        let gpu = load("h200").unwrap();
        let at = |m, n, k, sms| model(&gpu, DType::Bf16, m, n, k, sms).unwrap().seconds;
        let base = at(m, n, k, 132);
        prop_assert!(at(m + more, n, k, 132) >= base * (1.0 - 1e-12));
        prop_assert!(at(m, n, k, sms) >= base * (1.0 - 1e-12));
        prop_assert!(at(m, n, k + more, 132) >= base * (1.0 - 1e-12));
        prop_assert!(at(m, n + more, k, 132) >= base * (1.0 - 1e-12));
    }
}
