use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::device::gemm::{Curve, correct, gemm};
use crate::device::{MeasuredGemm, load};

/// Rates near an H200's.
pub(super) fn rates() -> Rates {
    Rates {
        arithmetic: 0.95,
        memory: 0.98,
        overhead: 0.9,
        load: BytesPerSecond::of(110e9),
        epilogue: Seconds::of(2.5e-6),
        partials: BytesPerSecond::of(2.4e12),
        latency: Seconds::of(1.5e-9),
        cached: 20e6,
        reduction: Seconds::of(1.2e-6),
    }
}

/// The H200 with three tiles and the choices for one column.
fn device() -> Device {
    let mut gpu = load("h200").unwrap();
    let rates = rates();
    let algorithm = |tile, split, efficiency| Algorithm {
        tile,
        split,
        cluster: (1, 1),
        align: ALIGNED,
        work: 1.0,
        efficiency,
    };
    let all = vec![
        algorithm((64, 64), 1, 1.0),
        algorithm((128, 256), 1, 1.02),
        algorithm((64, 128), 4, 0.97),
    ];
    let choices = vec![Choices {
        n: 4096,
        k: 4096,
        rows: vec![(128, 2), (512, 0), (8192, 1)],
    }];
    gpu.gemm_library = Some(Arc::new(Library::new(DType::Bf16, rates, all, choices)));
    correct(&mut gpu);
    gpu
}

fn near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 1e-12, "{value} {expected}");
}

#[test]
fn one_kernel_by_hand() {
    let gpu = device();
    let library = gpu.gemm_library.as_deref().unwrap();
    let rate = gpu.rate(DType::Bf16).unwrap();
    // 1024 × 4096 in tiles of 128 × 256 are 8 · 16 = 128 tiles: one wave of 132 SMs.
    let mma = 2.0 * 128.0 * 256.0 / (rate * 0.95 / 132.0);
    let load = (128.0 + 256.0) * 2.0 / 110e9;
    let step = (f64::powi(mma, 4) + f64::powi(load, 4) + 1.5e-9_f64.powi(4)).powf(0.25);
    let compute = step * 4096.0 + 2.5e-6;
    let b = 2.0 * 4096.0 * 4096.0_f64;
    let miss = 1.0 / (1.0 + (20e6 / b).powi(4));
    let memory = (2.0 * 4096.0 * (1024.0 + 1024.0) + b * miss) / (gpu.hbm.get() * 0.98);
    let both = (compute.powi(4) + memory.powi(4)).powf(0.25);
    let wanted = (gpu.gemm_overhead.get() * 0.9 + both) / 1.02;
    near(
        library.seconds(&gpu, [1024, 4096, 4096], 1).unwrap(),
        wanted,
    );
    // A tile with more work takes as much longer, the memory does not.
    let mut more = library.clone();
    more.algorithms[1].work = 1.7;
    let both = ((1.7 * compute).powi(4) + memory.powi(4)).powf(0.25);
    near(
        more.seconds(&gpu, [1024, 4096, 4096], 1).unwrap(),
        (gpu.gemm_overhead.get() * 0.9 + both) / 1.02,
    );
    // k in four parts: 16 · 32 · 4 = 2048 tiles, 16 waves, and partial sums.
    let mma = 2.0 * 64.0 * 128.0 / (rate * 0.95 / 132.0);
    let load = (64.0 + 128.0) * 2.0 / 110e9;
    let step = (f64::powi(mma, 4) + f64::powi(load, 4) + 1.5e-9_f64.powi(4)).powf(0.25);
    let compute = 16.0 * (step * 1024.0 + 2.5e-6 / 4.0);
    let both = (compute.powi(4) + memory.powi(4)).powf(0.25);
    let partials = 8.0 * 1024.0 * 4096.0 * 4.0 / 2.4e12 + 1.2e-6;
    let wanted = (gpu.gemm_overhead.get() * 0.9 + both + partials) / 0.97;
    near(
        library.seconds(&gpu, [1024, 4096, 4096], 2).unwrap(),
        wanted,
    );
}

#[test]
fn the_listed_choice_is_taken_and_others_the_fastest() {
    let mut gpu = device();
    gpu.gemm_table.clear();
    correct(&mut gpu);
    let library = gpu.gemm_library.as_deref().unwrap();
    let time = |m, n| {
        gemm(&gpu, DType::Bf16, m, n, 4096, gpu.sms)
            .unwrap()
            .seconds
    };
    let by = |m, n, place| library.seconds(&gpu, [m, n, 4096], place).unwrap();
    for (m, place) in [(1, 2), (128, 2), (129, 0), (512, 0), (513, 1), (100_000, 1)] {
        near(time(m, 4096), by(m, 4096, place));
    }
    // Another k within a factor of two borrows the choice; beyond, and for another n, none.
    let at = |k| {
        gemm(&gpu, DType::Bf16, 128, 4096, k, gpu.sms)
            .unwrap()
            .seconds
    };
    near(
        at(8192),
        library.seconds(&gpu, [128, 4096, 8192], 2).unwrap(),
    );
    let least = |k| {
        let all = (0..3).map(|place| library.seconds(&gpu, [128, 4096, k], place).unwrap());
        all.fold(f64::INFINITY, f64::min)
    };
    near(at(8200), least(8200));
    // Rows of odd length are another kind.
    near(at(4099), least(4099));
    for m in [100, 5000] {
        let least = (0..3)
            .map(|place| by(m, 3000, place))
            .fold(f64::INFINITY, f64::min);
        near(time(m, 3000), least);
    }
    // With SMs held by others the library chooses anew.
    let fewer = gemm(&gpu, DType::Bf16, 512, 4096, 4096, 66).unwrap();
    assert!(fewer.seconds > time(512, 4096));
}

#[test]
fn rows_by_what_their_bytes_are_multiples_of() {
    let align = |n, k| alignment(DType::Bf16, n, k);
    assert_eq!(
        [align(8, 64), align(4, 64), align(64, 6), align(3, 4)],
        [16, 8, 4, 2]
    );
    assert_eq!(alignment(DType::Fp8, 24, 40), 8);
    assert_eq!(alignment(DType::Fp32, 4, 12), 16);
    let mut gpu = device();
    gpu.gemm_table.clear();
    let library = Library::clone(gpu.gemm_library.as_deref().unwrap());
    let slow = |factor| Rates {
        arithmetic: 0.95 * factor,
        ..library.rates
    };
    let with = library
        .clone()
        .with_unaligned(vec![(8, slow(0.3)), (2, slow(0.2))]);
    // Its own, the next lower, the next higher; aligned rows keep theirs.
    let arithmetic = |align| with.rates_of(align).arithmetic;
    near(arithmetic(8), 0.95 * 0.3);
    near(arithmetic(4), 0.95 * 0.2);
    near(arithmetic(2), 0.95 * 0.2);
    near(arithmetic(16), 0.95);
    let only = library.clone().with_unaligned(vec![(8, slow(0.3))]);
    near(only.rates_of(2).arithmetic, 0.95 * 0.3);
    near(library.rates_of(2).arithmetic, 0.95);
    let [most, _, _] = with.bounds();
    near(most, 0.95);
    // 128 × 256 on n = 4095 and k = 4096: one wave of 16 · 8 tiles, a fifth of the arithmetic.
    let rate = gpu.rate(DType::Bf16).unwrap();
    let mma = 2.0 * 128.0 * 256.0 / (rate * 0.95 * 0.2 / 132.0);
    let load = (128.0 + 256.0) * 2.0 / 110e9;
    let step = (f64::powi(mma, 4) + f64::powi(load, 4) + 1.5e-9_f64.powi(4)).powf(0.25);
    let compute = step * 4096.0 + 2.5e-6;
    let found = with.seconds(&gpu, [1024, 4095, 4096], 1).unwrap();
    assert!(
        (compute..1.05 * compute).contains(&(found * 1.02)),
        "{found} {compute}"
    );
    // Without algorithms of its own kind it takes the others, with them only those.
    let fastest = |library: Library| {
        let mut gpu = gpu.clone();
        gpu.gemm_library = Some(Arc::new(library));
        correct(&mut gpu);
        gemm(&gpu, DType::Bf16, 512, 4095, 4096, gpu.sms)
            .unwrap()
            .seconds
    };
    let all = (0..3).map(|place| with.seconds(&gpu, [512, 4095, 4096], place).unwrap());
    near(fastest(with.clone()), all.fold(f64::INFINITY, f64::min));
    let mut own = with.clone();
    own.algorithms[0].align = 2;
    let time = with.seconds(&gpu, [512, 4095, 4096], 0).unwrap();
    near(fastest(own), time);
}

#[test]
fn a_b_that_is_not_in_cache_takes_longer() {
    let mut gpu = device();
    gpu.gemm_table.clear();
    correct(&mut gpu);
    let library = gpu.gemm_library.as_deref().unwrap();
    // 16 × 4096 × 1024, 8 MB of B in cache of 20 MB: with all of it read the memory takes longer.
    let time = gemm(&gpu, DType::Bf16, 16, 1024, 4096, gpu.sms).unwrap();
    let mut none = library.clone();
    none.rates.cached = 0.0;
    gpu.gemm_library = Some(Arc::new(none));
    let all = gemm(&gpu, DType::Bf16, 16, 1024, 4096, gpu.sms).unwrap();
    near(time.seconds + time.cold, all.seconds);
    assert!(time.cold > 0.0 && all.cold == 0.0);
}

#[test]
fn measured_points_are_met_and_carry_over() {
    let mut gpu = device();
    for point in &gpu.gemm_table {
        let MeasuredGemm { m, n, k, time, .. } = *point;
        near(
            gemm(&gpu, DType::Fp16, m, n, k, gpu.sms).unwrap().seconds,
            time.get(),
        );
    }
    // Everything measured 10 % slower than modelled: so is what lies near, but for the prior, and what lies
    // far from all of it is not.
    let library = Library::clone(gpu.gemm_library.as_deref().unwrap());
    let mut points = gpu.gemm_table.clone();
    for point in &mut points {
        let at = library.lenders(point.n, point.k);
        let shape = Shape {
            m: point.m,
            n: point.n,
            k: point.k,
        };
        let (_, modelled) = library.modelled(&gpu, None, shape, &at, gpu.sms).unwrap();
        point.time = Seconds::of(1.1 * modelled.seconds);
    }
    gpu.gemm_table = points;
    correct(&mut gpu);
    let ratio = |m, n, k| {
        let none = Lenders::default();
        let shape = Shape { m, n, k };
        let (_, modelled) = library.modelled(&gpu, None, shape, &none, gpu.sms).unwrap();
        let found = gemm(&gpu, DType::Bf16, m, n, k, gpu.sms).unwrap();
        found.seconds / modelled.seconds
    };
    let most = gpu.gemm_table.iter().max_by_key(|point| point.m).unwrap();
    let near = ratio(most.m, most.n - 8, most.k);
    assert!((1.09..=1.1).contains(&near), "{near}");
    let far = ratio(64, 72, 64);
    assert!((far - 1.0).abs() < 1e-12, "{far}");
}

/// On the SMs that are left: what is listed for them; else the faster of the choices for the rows and for
/// so many more as there are SMs; on another number of SMs likewise.
#[test]
fn fewer_sms_take_what_is_listed_for_them() {
    let mut gpu = device();
    // Without measured points.
    let known = Library::clone(gpu.gemm_library.as_deref().unwrap());
    let bare = Library::new(DType::Bf16, known.rates, known.algorithms, known.choices);
    let on = |gpu: &Device, m, sms| {
        let time = gemm(gpu, DType::Bf16, m, 4096, 4096, sms).unwrap();
        time.seconds
    };
    let by = |library: &Library, place: usize, m, sms| {
        let rate = gpu.rate(DType::Bf16).unwrap();
        let shape = Shape {
            m,
            n: 4096,
            k: 4096,
        };
        library
            .one(&gpu, rate, shape, library.algorithms[place], sms)
            .seconds
    };
    // 500 rows take 64 × 64, 611 = 500 · 132 / 108 take 128 × 256.
    let both = [0, 1].map(|place| by(&bare, place, 500, 108));
    let told = vec![Choices {
        n: 4096,
        k: 4096,
        rows: vec![(8192, 2)],
    }];
    let with = bare.clone().with_beside(108, told);
    let listed = by(&with, 2, 500, 108);
    gpu.gemm_library = Some(Arc::new(bare));
    near(on(&gpu, 500, 108), both[0].min(both[1]));
    gpu.gemm_library = Some(Arc::new(with));
    near(on(&gpu, 500, 108), listed);
    assert!(on(&gpu, 500, 116) < listed);
}

proptest! {
    #[test]
    fn positive_and_as_the_curve(
        m in 0u64..50_000, n in 0u64..50_000, k in 0u64..50_000, beside in any::<bool>(),
        listed in any::<bool>(), shift in 0u32..40,
    ) {
        let gpu = device();
        let (n, k) = if listed { (4096, 4096) } else { (n << shift, k) };
        let left = gpu.sms.saturating_sub(gpu.library.sms).max(1);
        let sms = if beside { left } else { gpu.sms };
        let slow = gemm(&gpu, DType::Bf16, m, n, k, sms).unwrap();
        let curve = Curve::new(&gpu, DType::Bf16).unwrap();
        let column = curve.at(n, k);
        prop_assert_eq!(column.time_with_and_beside(m)[usize::from(beside)], slow);
        prop_assert!(slow.seconds.is_finite() && slow.hbm_bytes.is_finite());
        prop_assert!(slow.unquantised <= slow.seconds * (1.0 + 1e-12));
        prop_assert!(slow.overhead <= slow.unquantised || m * n * k == 0);
        if m > 0 && n > 0 && k > 0 {
            prop_assert!(slow.seconds > 0.0);
            let least = column.least_overhead() + column.least(m);
            prop_assert!(slow.seconds >= least * (1.0 - 1e-12), "{} {}", slow.seconds, least);
        }
    }
}
