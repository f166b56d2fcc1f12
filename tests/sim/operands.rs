//! What a GEMM reads beyond its plain time, against closed forms: a B that is not in cache, and the C that
//! it accumulates onto. The GPU has the calibrated H200's library of GEMMs and no other costs.

use std::sync::Arc;

use duet::device::gemm::{correct, gemm};
use duet::device::{Costs, DType, Device};
use duet::operator::{Kind, Operator};
use duet::sim::{Options, simulate};
use duet::strategy;
use duet::topology::{self, Topology, build::Builder};
use duet::units::BytesPerSecond;

use crate::support::{GB, assert_close};

const EXACT: f64 = 1e-9;

/// Without measured GEMMs; `cached` bytes of a B stay in cache.
fn device(cached: f64) -> Device {
    let machine = topology::load("h200-pair-calibrated", &[]).unwrap();
    let mut device = Device::clone(machine.device(0));
    device.costs = Costs::FREE;
    device.gemm_accumulate = None;
    device.gemm_table.clear();
    let mut library = device.gemm_library.as_deref().unwrap().clone();
    library.rates.cached = cached;
    library.fewer.clear();
    device.gemm_library = Some(Arc::new(library));
    correct(&mut device);
    device
}

fn pair(device: &Device) -> Topology {
    let mut b = Builder::with_device("pair", Arc::new(device.clone()));
    let gpus = b.gpus(2);
    b.link(gpus[0], gpus[1], "nvlink", 5000.0 * GB, 0.0);
    b.build()
}

fn makespan(kind: Kind, [m, n, k]: [u64; 3], strategy: &str, device: &Device) -> f64 {
    let topology = pair(device);
    let operator = Operator::gemm(kind, m, n, k, 2, DType::Bf16).unwrap();
    let choice = strategy::parse(strategy).unwrap();
    let schedule = choice.build(&operator, &topology, &[0, 1]).unwrap();
    let timeline = simulate(&schedule, &topology, &Options::default()).unwrap();
    timeline.makespan
}

/// T(nothing cached) − T(B cached): nothing where a rank multiplies once, for its B is not there yet;
/// `cold` of the second chunk where it multiplies twice.
#[test]
fn the_first_gemm_reads_its_b() {
    let (some, none) = (device(26e6), device(0.0));
    // B of a rank is 4096 × 1024.
    let shape = [128, 2048, 4096];
    let time = |strategy, device| makespan(Kind::AgGemm, shape, strategy, device);
    assert_close(time("sequential", &none), time("sequential", &some), EXACT);
    let two = "interdecom:d=2,comm=direct";
    let saved = time(two, &none) - time(two, &some);
    let chunk = gemm(&some, DType::Bf16, 64, 1024, 4096, some.sms).unwrap();
    assert!(chunk.cold > 1e-7, "{chunk:?}");
    assert_close(saved, chunk.cold, 1e-6);
}

/// C of a rank, m/2 × n of 2 bytes, over the rate: the last GEMM accumulates onto what has arrived.
#[test]
fn accumulating_reads_c() {
    let plain = device(26e6);
    let rate = 1e11;
    let slow = Device {
        gemm_accumulate: Some(BytesPerSecond::of(rate)),
        ..plain.clone()
    };
    let time = |device| {
        makespan(
            Kind::GemmRs,
            [4096, 4096, 8192],
            "ring-accumulate:chunks=1",
            device,
        )
    };
    let bytes = 2048.0 * 4096.0 * 2.0;
    assert_close(time(&slow) - time(&plain), bytes / rate, 1e-6);
    let sequential = |device| makespan(Kind::GemmRs, [4096, 4096, 8192], "sequential", device);
    assert_close(sequential(&slow), sequential(&plain), EXACT);
}
