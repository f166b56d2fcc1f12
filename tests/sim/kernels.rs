//! Compute against closed forms: pipelines whose stages are known, the costs of signals, SMs that
//! kernels take from one another, and explanations that add up.

use std::sync::Arc;

use duet::device::gemm::gemm;
use duet::device::{self, DType, Device, Tile};
use duet::operator::{Kind, Operator};
use duet::schedule::{
    Builder as ScheduleBuilder, Compute, GemmKernel, Lane, Mover, Rank, Schedule,
};
use duet::sim::{LaunchMode, Options, Streams, evaluate, simulate};
use duet::strategy;
use duet::timeline::Term;
use duet::topology::build::Builder;
use duet::topology::{self, Topology};
use duet::units::{BytesPerSecond, FlopsPerSecond, Seconds};

use crate::support::{GB, assert_close};

const EXACT: f64 = 1e-9;

/// A GPU of one SM with tiles of 64 × 64 and no other limits: GEMM time is proportional to the
/// number of tiles, so splitting by whole tiles costs nothing.
fn linear(tflops: f64) -> Device {
    Device {
        name: "linear".to_owned(),
        sms: 1,
        peak: vec![(DType::Bf16, FlopsPerSecond::of(tflops * 1e12))],
        tiles: vec![Tile {
            m: 64,
            n: 64,
            efficiency: 1.0,
        }],
        ..device::ideal()
    }
}

/// `n` such GPUs on a switch of 50 GB/s ports without latency.
fn machine(n: usize, device: Device) -> Topology {
    let mut b = Builder::with_device("linear", Arc::new(device));
    let gpus = b.gpus(n);
    let switch = b.switch("s");
    for gpu in gpus {
        b.link(gpu, switch, "nvlink", 50.0 * GB, 0.0);
    }
    b.build()
}

fn schedule(op: &Operator, strategy: &str, topology: &Topology) -> Schedule {
    let placement: Vec<u32> = (0..op.tp).collect();
    strategy::parse(strategy)
        .unwrap()
        .build(op, topology, &placement)
        .unwrap()
}

fn makespan(op: &Operator, strategy: &str, topology: &Topology) -> f64 {
    let schedule = schedule(op, strategy, topology);
    simulate(&schedule, topology, &Options::default())
        .unwrap()
        .makespan
}

/// Local GEMM time and all-gather time of AG+GEMM.
fn times(op: &Operator, (m, n, k): (u64, u64, u64), device: &Device) -> (f64, f64) {
    let tp = u64::from(op.tp);
    let compute = gemm(device, DType::Bf16, m, n / tp, k, 1).unwrap().seconds;
    let gathered = (m * k * 2) as f64;
    (compute, gathered * (1.0 - 1.0 / tp as f64) / (50.0 * GB))
}

const SHAPE: (u64, u64, u64) = (4096, 4096, 2048);

fn ag_gemm(tp: u32) -> Operator {
    Operator::gemm(Kind::AgGemm, SHAPE.0, SHAPE.1, SHAPE.2, tp, DType::Bf16).unwrap()
}

/// T = Tc + Tm.
#[test]
fn sequential_adds_up() {
    for tflops in [1.0, 100.0] {
        let (op, device) = (ag_gemm(4), linear(tflops));
        let (compute, comm) = times(&op, SHAPE, &device);
        let time = makespan(&op, "sequential", &machine(4, device));
        assert_close(time, compute + comm, EXACT);
    }
}

/// T(d) = max(Tc, Tm) + min(Tc, Tm)/d with stages that split evenly (Compass, without overhead).
#[test]
fn decomposition_is_max_plus_min_over_d() {
    for tflops in [1.0, 10.0, 100.0] {
        for d in [2u32, 4, 8] {
            let (op, device) = (ag_gemm(4), linear(tflops));
            let (compute, comm) = times(&op, SHAPE, &device);
            let time = makespan(&op, &format!("interdecom:d={d}"), &machine(4, device));
            let expected = compute.max(comm) + compute.min(comm) / f64::from(d);
            assert_close(time, expected, EXACT);
        }
    }
}

/// T = (n − 1)·max(Tc/n, Tm/(n − 1)) + Tc/n: the own shard needs no communication.
#[test]
fn fusion_hides_all_but_one_stage() {
    for tflops in [1.0, 10.0, 100.0] {
        for strategy in ["fusion-ring:chunks=1", "fusion-alltoall:chunks=1"] {
            let (op, mut device) = (ag_gemm(4), linear(tflops));
            device.engines.peer = 1; // all-to-all in the order of arrival, one peer after another
            let (compute, comm) = times(&op, SHAPE, &device);
            let time = makespan(&op, strategy, &machine(4, device));
            let expected = 3.0 * (compute / 4.0).max(comm / 3.0) + compute / 4.0;
            assert_close(time, expected, EXACT);
        }
    }
}

/// A group of fewer tiles than SMs takes a whole tile's time t after its flag: with the second half
/// of A landing at Tm, T = Tm + t although its two tiles are half of the kernel's only wave.
#[test]
fn last_tiles_take_a_wave() {
    let device = Device {
        sms: 4,
        ..linear(1e3)
    };
    let op = Operator::gemm(Kind::AgGemm, 256, 128, 4096, 2, DType::Bf16).unwrap();
    let tile = gemm(&device, DType::Bf16, 256, 64, 4096, 4).unwrap();
    assert_close(tile.wave, tile.seconds, EXACT);
    let half = (128 * 4096 * 2) as f64 / (50.0 * GB);
    assert!(half > tile.seconds);
    let time = makespan(&op, "fusion-alltoall", &machine(2, device));
    assert_close(time, half + tile.seconds, EXACT);
}

/// The same with its rows in S slabs of k: they land at (i + 1)·Tm/S, and the tile, which takes t, gets
/// to slab i when i·t/S of it are done. T = maxᵢ((i + 1)·Tm/S − i·t/S) + t, that is Tm/S + t where
/// copies are faster than tiles, else Tm + t/S.
#[test]
fn tiles_begin_with_the_first_slab() {
    for (tflops, slabs) in [(1e3, 4), (1e2, 4), (1e3, 2), (1e2, 8)] {
        let device = Device {
            sms: 4,
            ..linear(tflops)
        };
        let op = Operator::gemm(Kind::AgGemm, 256, 128, 4096, 2, DType::Bf16).unwrap();
        let tile = gemm(&device, DType::Bf16, 256, 64, 4096, 4).unwrap().wave;
        let comm = (128 * 4096 * 2) as f64 / (50.0 * GB);
        let strategy = format!("fusion-alltoall:slabs={slabs}");
        let time = makespan(&op, &strategy, &machine(2, device));
        let expected = match comm < tile {
            true => comm / f64::from(slabs) + tile,
            false => comm + tile / f64::from(slabs),
        };
        assert_close(time, expected, EXACT);
    }
}

/// Where the own rows are several waves of t each, Tc/2 in all, only the first wave of the others meets
/// slabs that have not landed: T = max(Tc/2, maxᵢ((i + 1)·Tm/S − i·t/S)) + Tc/2.
#[test]
fn one_wave_waits_for_slabs() {
    let slabs = 4;
    for tflops in [1.0, 30.0, 1e3] {
        let (op, device) = (ag_gemm(2), linear(tflops));
        let (compute, comm) = times(&op, SHAPE, &device);
        let tile = gemm(&device, DType::Bf16, SHAPE.0, SHAPE.1 / 2, SHAPE.2, 1);
        let tile = tile.unwrap().wave;
        let strategy = format!("fusion-alltoall:slabs={slabs}");
        let time = makespan(&op, &strategy, &machine(2, device));
        let last = (0..slabs)
            .map(|i| {
                f64::from(i + 1) * comm / f64::from(slabs) - f64::from(i) * tile / f64::from(slabs)
            })
            .fold(0.0, f64::max);
        let expected = (compute / 2.0).max(last) + compute / 2.0;
        assert_close(time, expected, EXACT);
    }
}

/// Sequential with costs: submission of the collective and its kernel start, its base and 3 steps;
/// an event; the GEMM's start. Waves and bytes as before.
#[test]
fn fixed_costs_are_charged_once_each() {
    let us = |x: f64| Seconds::of(x * 1e-6);
    let mut device = linear(10.0);
    device.costs.submit_kernel = us(4.0);
    device.costs.submit_sync = us(0.5);
    device.costs.kernel_start = us(1.0);
    device.costs.event = us(2.0);
    device.library.base = us(10.0);
    device.library.step = us(3.0);
    let op = ag_gemm(4);
    let (compute, comm) = times(&op, SHAPE, &device);
    let topology = machine(4, device);
    let schedule = schedule(&op, "sequential", &topology);
    let run = |launch| {
        let options = Options {
            launch,
            ..Options::default()
        };
        simulate(&schedule, &topology, &options).unwrap().makespan
    };
    // Collective and GEMM share one lane or hand over by event, as the strategy chose.
    let hand_over = if schedule
        .deps
        .iter()
        .any(|d| d.via == duet::schedule::Via::Event)
    {
        2e-6
    } else {
        0.0
    };
    let device_side = 1e-6 + 10e-6 + 3.0 * 3e-6 + comm + hand_over + 1e-6 + compute;
    assert_close(run(LaunchMode::Graph), device_side, EXACT);
    assert_close(run(LaunchMode::Stream), 4e-6 + device_side, EXACT);
}

/// Two GEMMs of 1024 × 512 × 512 in lanes of their own on one GPU, each on at most `limit` SMs
/// (0: all), written by hand.
fn two_gemms(limit: u16, device: &Device) -> f64 {
    let op = Operator::gemm(Kind::AgGemm, 1024, 1024, 512, 2, DType::Bf16).unwrap();
    let mut b = ScheduleBuilder::new(op, "two gemms", vec![0, 0]);
    for rank in [Rank(0), Rank(1)] {
        let gemm = gemm_on(&mut b, rank, (1024, 512, 512), limit);
        b.compute(rank, Lane(0), None, gemm, &[]);
    }
    let topology = machine(1, device.clone());
    simulate(&b.finish(), &topology, &Options::default())
        .unwrap()
        .makespan
}

/// A library GEMM of `m × n × k` on fresh buffers of `rank`.
fn gemm_on(b: &mut ScheduleBuilder, rank: Rank, (m, n, k): (u32, u32, u32), sms: u16) -> Compute {
    let mut whole = |name: &str, rows, cols| {
        let tensor = b.tensor(name, rows, cols, 1);
        let buffer = b.scratch(name, tensor, rank, rows, cols, 1);
        b.whole(buffer)
    };
    Compute::Gemm {
        a: whole("A", m, k),
        b: whole("B", k, n),
        out: whole("C", m, n),
        accumulate: false,
        kernel: GemmKernel::Library,
        sms,
    }
}

/// The first GEMM takes both SMs and the second waits: 2·T(2 SMs). On one SM each they run side by
/// side: T(1 SM), which is the same where tiles divide evenly. On three SMs and at most two each,
/// the second starts on the one that is left and grows when the first ends.
#[test]
fn kernels_on_one_gpu_share_its_sms() {
    let on = |sms: u32| {
        let device = Device {
            sms,
            ..linear(10.0)
        };
        // The peak is the GPU's, so an SM's share falls with their number.
        let time = |used| {
            gemm(&device, DType::Bf16, 1024, 512, 512, used)
                .unwrap()
                .seconds
        };
        (time(1), time(2), device.clone())
    };
    let (one, two, device) = on(2);
    assert_close(one, 2.0 * two, EXACT);
    assert_close(two_gemms(0, &device), 2.0 * two, EXACT);
    assert_close(two_gemms(1, &device), one, EXACT);
    let (one, two, device) = on(3);
    // While the first runs (two), the second does two/one of its work; the rest on two SMs.
    let rest = (1.0 - two / one) * two;
    assert_close(two_gemms(2, &device), two + rest, EXACT);
}

/// A fused kernel begins on three of four SMs, as a copy of time c holds the other. On real GPUs its last block
/// begins when that ends: with T(s) the time on s SMs, (3/4)·c of T(4) is done by then, T(4) + c/4 in all. A
/// kernel that is given its SMs once takes T(3).
#[test]
fn blocks_of_a_fused_kernel_follow_when_sms_come_free() {
    let device = Device {
        sms: 4,
        ..linear(10.0)
    };
    let time = |sms| {
        let time = gemm(&device, DType::Bf16, 1024, 768, 512, sms);
        time.unwrap().seconds
    };
    assert_close(time(3), time(4) * 4.0 / 3.0, EXACT);
    let op = Operator::gemm(Kind::AgGemm, 1024, 1536, 512, 2, DType::Bf16).unwrap();
    let mut b = ScheduleBuilder::new(op, "copy and kernel", vec![0, 1]);
    let tensor = b.tensor("X", 256, 256, 1);
    let [from, to] = [Rank(0), Rank(1)].map(|rank| {
        let buffer = b.scratch("X", tensor, rank, 256, 256, 1);
        b.whole(buffer)
    });
    b.transfer(Rank(0), Lane(1), from, to, Mover::Sm { blocks: 1 }, &[]);
    let mut gemm = gemm_on(&mut b, Rank(0), (1024, 768, 512), 0);
    if let Compute::Gemm { kernel, .. } = &mut gemm {
        *kernel = GemmKernel::Gated;
    }
    let launch = b.launch("gemm", Rank(0), 0);
    let task = b.compute(Rank(0), Lane(0), Some(launch), gemm, &[]);
    let (schedule, topology) = (b.finish(), machine(2, device.clone()));
    let end = |streams| {
        let options = Options {
            streams,
            ..Options::default()
        };
        let timeline = simulate(&schedule, &topology, &options).unwrap();
        timeline.spans[task.index()].end
    };
    let copy = f64::from(256 * 256 * 2) / (50.0 * GB);
    assert!(copy < time(4));
    assert_close(end(Streams::PerGpu), time(4) + copy / 4.0, EXACT);
    assert_close(end(Streams::PerLane), time(3), EXACT);
}

/// A GEMM that needs all of the memory's 100 GB/s meets a copy that brings 50 GB/s: each gets 50,
/// and when the copy is done the GEMM has it all again. Memory is never idle, so everything takes
/// (GEMM's bytes + copy's bytes)/100 GB/s, and the copy is not slowed at all.
#[test]
fn memory_is_shared_in_bytes() {
    let mut device = linear(1e6);
    device.hbm = BytesPerSecond::of(100.0 * GB);
    let shape = (4096, 4096, 4096);
    let time = gemm(&device, DType::Bf16, 4096, 4096, 4096, 1).unwrap();
    assert_close(time.seconds, time.hbm_bytes / (100.0 * GB), 1e-3);
    let op = Operator::gemm(Kind::AgGemm, 4096, 4096, 4096, 2, DType::Bf16).unwrap();
    let mut b = ScheduleBuilder::new(op, "gemm and copy", vec![0, 1]);
    let gemm = gemm_on(&mut b, Rank(1), shape, 0);
    let compute = b.compute(Rank(1), Lane(0), None, gemm, &[]);
    let tensor = b.tensor("X", 1024, 1024, 1);
    let [from, to] = [Rank(0), Rank(1)].map(|rank| {
        let buffer = b.scratch("X", tensor, rank, 1024, 1024, 1);
        b.whole(buffer)
    });
    let copy = b.transfer(Rank(0), Lane(1), from, to, Mover::CopyEngine, &[]);
    let topology = machine(2, device);
    let timeline = simulate(&b.finish(), &topology, &Options::default()).unwrap();
    let copied = f64::from(1024 * 1024 * 2);
    assert_close(
        timeline.spans[copy.index()].end,
        copied / (50.0 * GB),
        EXACT,
    );
    // Half of the copy's time is lost to the GEMM.
    let expected = time.seconds + copied / (100.0 * GB);
    assert_close(timeline.spans[compute.index()].end, expected, 1e-3);
}

/// The terms of every strategy's explanation add up to its makespan.
#[test]
fn explanations_telescope() {
    for name in ["h200-nvswitch-8", "a6000-pairs-8", "l20-pcie-8"] {
        let topology = topology::load(name, &[]).unwrap();
        for kind in [Kind::AgGemm, Kind::GemmRs, Kind::GemmAr] {
            let op = Operator::gemm(kind, 2048, 8192, 8192, 8, DType::Bf16).unwrap();
            let mut tried = 0;
            for candidate in strategy::candidates(&op) {
                let placement: Vec<u32> = (0..8).collect();
                let Ok(schedule) = candidate.build(&op, &topology, &placement) else {
                    continue;
                };
                let e = evaluate(&schedule, &topology, &Options::default()).unwrap();
                let sum: f64 = e.explanation.terms.iter().map(|(_, seconds)| seconds).sum();
                assert_close(sum, e.timeline.makespan, 1e-12);
                assert_eq!(e.explanation.terms.len(), Term::ALL.len());
                assert!(e.explanation.get(Term::Compute) > 0.0);
                // Even with reductions beside GEMMs no GPU computes for longer than all takes.
                assert!(e.explanation.get(Term::Idle) > -1e-12, "{candidate}");
                tried += 1;
            }
            assert!(tried >= 5, "{name} {kind:?}: {tried}");
        }
    }
}
