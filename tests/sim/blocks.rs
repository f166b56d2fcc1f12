//! GEMMs beside collectives and sums, as real GPUs perform them: blocks that find no SM at first take tiles
//! later, and blocks of a library GEMM leave no SM before they have no tile.

use std::sync::Arc;

use duet::device::{self, DType, Scatter};
use duet::operator::{Kind, Operator};
use duet::sim::{Executed, executed};
use duet::strategy;
use duet::topology::Topology;
use duet::topology::build::Builder;

use crate::support::*;

const SHAPE: [u64; 3] = [8192, 8192, 8192];

fn machine(blocks: u32) -> Topology {
    let mut device = device::load("h200").unwrap();
    device.library.sms = blocks;
    let mut b = Builder::with_device("pair", Arc::new(device));
    let gpus = b.gpus(2);
    b.link(gpus[0], gpus[1], "nvlink", 400.0 * GB, 0.5 * US);
    b.build()
}

/// Gathers and GEMMs of rank 0 under `interdecom:d=2`: (start, end) of each.
fn gathered(topology: &Topology, [m, n, k]: [u64; 3]) -> [Vec<(f64, f64)>; 2] {
    let operator = Operator::gemm(Kind::AgGemm, m, n, k, 2, DType::Bf16).unwrap();
    let choice = strategy::parse("interdecom:d=2").unwrap();
    let schedule = choice.build(&operator, topology, &[0, 1]).unwrap();
    let timeline = executed(&schedule, topology, &Executed::default()).unwrap();
    [1, 0].map(|lane| {
        let spans = schedule.tasks.iter().zip(&timeline.spans);
        let spans = spans.filter(|(task, _)| task.rank.0 == 0 && task.lane.0 == lane);
        let spans: Vec<_> = spans.map(|(_, span)| (span.start, span.end)).collect();
        assert_eq!(spans.len(), 2);
        spans
    })
}

/// The first t with first · ⌊t/τ⌋ + late · ⌊(t − u)/τ⌋ ≥ tiles.
fn shared(tiles: u32, tile: f64, first: u32, late: u32, from: f64) -> f64 {
    let done = |t: f64| {
        let waves = |since: f64| ((t - since) / tile + 1e-9).floor().max(0.0);
        f64::from(first) * waves(0.0) + f64::from(late) * waves(from)
    };
    let ends = (1..=tiles).flat_map(|i| [f64::from(i) * tile, from + f64::from(i) * tile]);
    let ends = ends.filter(|&t| done(t) >= f64::from(tiles));
    ends.fold(f64::INFINITY, f64::min)
}

/// Two gathers, then two GEMMs: the first begins beside the second gather, on what it leaves, and its
/// other blocks take what tiles are left when that has ended.
#[test]
fn late_blocks_take_the_tiles_that_are_left() {
    let topology = machine(24);
    let device = topology.device(0);
    // Late blocks of the second end alone, and what they do then takes no longer.
    for (shape, alone_at_the_end) in [(SHAPE, false), ([2048, 8192, 8192], true)] {
        let [gathers, gemms] = gathered(&topology, shape);
        let [m, n, k] = shape;
        let alone = device::gemm::gemm(device, DType::Bf16, m / 2, n / 2, k, 132).unwrap();
        assert!(alone.tiles > 108.0, "{alone:?}");
        assert!(gemms[0].0 < gathers[1].1);
        let waves = (alone.tiles / 132.0).ceil();
        let (tile, from) = (alone.seconds / waves, gathers[1].1 - gemms[0].0);
        let expected = shared(alone.tiles as u32, tile, 108, 24, from);
        let took = gemms[0].1 - gemms[0].0;
        if alone_at_the_end {
            assert!(took < expected * 1.04 && took > alone.seconds, "{took}");
        } else {
            assert_close(took, expected, 0.04);
        }
        // The next, with the GPU to itself, takes its time and no more.
        assert_close(gemms[1].1 - gemms[1].0, alone.seconds, 0.02);
    }
}

/// Where gather and GEMM wait for the same gather, either may be first on each GPU. With p for the gather:
/// both first p², the gather's T and a GEMM whose late blocks follow it; both GEMMs (1 − p)², T' alone;
/// else the gather ends at c, and the late blocks of the GEMM that was second follow that.
#[test]
fn in_streams_gathers_race_with_gemms() {
    let p: f64 = 0.4;
    let mut device = device::load("h200").unwrap();
    device.library.sms = 24;
    device.scatter = Scatter {
        cluster: Some(4),
        places: Some(30),
        share: Some(SHARE),
        first: Some(p),
    };
    let mut b = Builder::with_device("pair", Arc::new(device));
    let gpus = b.gpus(2);
    b.link(gpus[0], gpus[1], "nvlink", 400.0 * GB, 0.5 * US);
    let topology = b.build();
    let [gathers, gemms] = gathered(&topology, SHAPE);
    let [m, n, k] = SHAPE;
    let alone = device::gemm::gemm(topology.device(0), DType::Bf16, m / 2, n / 2, k, 132).unwrap();
    let (tiles, time) = (alone.tiles as u32, alone.seconds);
    let (tile, idle) = (
        time / f64::from(tiles.div_ceil(132)),
        tiles.next_multiple_of(132) - tiles,
    );
    assert!(idle >= 4, "blocks of the last wave leave early");
    let first = gathers[0].1 - gathers[0].0;
    let block = alpha() + SHARE * (first - alpha());
    let second = (time - tile + f64::from(24_u32.div_ceil(idle)) * block).min(time + first);
    let expected = p * p * first + (1.0 - p * p) * second;
    assert_close(gathers[1].1 - gathers[1].0, expected, 0.02);
    let after = |from: f64| shared(tiles, tile, 96, 36, from);
    let (none, every) = (p * p, (1.0 - p) * (1.0 - p));
    let expected = none * after(first) + (1.0 - none - every) * after(second) + every * time;
    assert_close(gemms[0].1 - gemms[0].0, expected, 0.04);
}

/// A sum beside a GEMM waits for its blocks where these stay on their SMs: it ends no sooner than those
/// that have no tile in the last wave leave. Beside one of unaligned rows it runs at once.
#[test]
fn sums_wait_for_blocks_that_stay() {
    let topology = machine(24);
    for (n, waits) in [(8192, true), (8190, false)] {
        let operator = Operator::gemm(Kind::GemmRs, 16_384, n, 8192, 2, DType::Bf16).unwrap();
        let choice = strategy::parse("interdecom:d=2,comm=direct").unwrap();
        let schedule = choice.build(&operator, &topology, &[0, 1]).unwrap();
        let timeline = executed(&schedule, &topology, &Executed::default()).unwrap();
        let of = |lane: u16, place: usize| {
            let spans = schedule.tasks.iter().zip(&timeline.spans);
            let mut spans = spans.filter(|(task, _)| task.rank.0 == 0 && task.lane.0 == lane);
            *spans.nth(place).unwrap().1
        };
        let (gemm, copy, sum) = (of(0, 1), of(1, 0), of(2, 0));
        assert!(copy.end < gemm.end, "it is there while the GEMM runs");
        let alone =
            device::gemm::gemm(topology.device(0), DType::Bf16, 8192, n, 4096, 132).unwrap();
        let wave = alone.seconds / (alone.tiles / 132.0).ceil();
        assert_eq!(sum.end > gemm.end - wave, waits, "{n}: {sum:?} {gemm:?}");
    }
}

/// First reduce-scatter of `interdecom:d=2` beside the second GEMM: (its start, its end, the GEMM's end).
fn reduced([m, n, k]: [u64; 3], scatter: Scatter) -> (f64, f64, f64) {
    let mut device = device::load("h200").unwrap();
    device.library.sms = 24;
    device.scatter = scatter;
    let mut b = Builder::with_device("pair", Arc::new(device));
    let gpus = b.gpus(2);
    b.link(gpus[0], gpus[1], "nvlink", 400.0 * GB, 0.5 * US);
    let topology = b.build();
    let operator = Operator::gemm(Kind::GemmRs, m, n, k, 2, DType::Bf16).unwrap();
    let choice = strategy::parse("interdecom:d=2").unwrap();
    let schedule = choice.build(&operator, &topology, &[0, 1]).unwrap();
    let timeline = executed(&schedule, &topology, &Executed::default()).unwrap();
    let of = |lane: u16, place: usize| {
        let spans = schedule.tasks.iter().zip(&timeline.spans);
        let mut spans = spans.filter(|(task, _)| task.rank.0 == 0 && task.lane.0 == lane);
        *spans.nth(place).unwrap().1
    };
    (of(1, 0).start, of(1, 0).end, of(0, 1).end)
}

/// Before the bytes of a reduce-scatter flow.
fn alpha() -> f64 {
    let device = device::load("h200").unwrap();
    let library = device.library;
    device.costs.kernel_start.get() + library.base.get() + library.step.get() + 0.5 * US
}

const SHARE: f64 = 0.8;

/// 27 of 32 places are the GEMM's, and five are left for six clusters.
const PAIR: Scatter = Scatter {
    cluster: Some(4),
    places: Some(32),
    share: Some(SHARE),
    first: None,
};

/// With b of the time T − α for a block and α before its bytes flow, a collective in two turns takes
/// 2·(α + b·(T − α)), or α + b·(T − α) from the GEMM's end on.
#[test]
fn clusters_that_find_no_place_follow_in_turns() {
    for k in [16_384, 256] {
        let shape = [8192, 8192, k];
        let (start, whole, _) = reduced(shape, Scatter::default());
        let block = alpha() + SHARE * (whole - start - alpha());
        let (start, end, gemm) = reduced(shape, PAIR);
        let expected = (start + 2.0 * block).min(gemm + block);
        assert_eq!(gemm < start + block, k == 256, "both cases are met");
        assert_close(end - start, expected - start, 1e-6);
        // With one place more all begin at once.
        let more = Scatter {
            places: Some(33),
            ..PAIR
        };
        assert_close(reduced(shape, more).1, whole, 1e-12);
    }
}

/// A collective that is first on one GPU in p of all runs, on both in p², takes T then and two turns
/// else; the GEMM ends p·T later, unless its last wave has room for what twelve late blocks leave.
#[test]
fn in_streams_the_mean_of_both_orders_is_simulated() {
    let p: f64 = 0.6;
    let first = Scatter {
        first: Some(p),
        ..PAIR
    };
    // 1,024 and 108 tiles on 108 SMs.
    for (shape, later) in [([8192, 8192, 16_384], false), ([13_824, 512, 65_536], true)] {
        let (start, whole, _) = reduced(shape, Scatter::default());
        let (time, block) = (whole - start, alpha() + SHARE * (whole - start - alpha()));
        let (_, _, gemm) = reduced(shape, PAIR);
        let (start, end, late) = reduced(shape, first);
        let mean = p * p * time + (1.0 - p * p) * 2.0 * block;
        assert!(late > start + mean, "the GEMM outlasts it");
        assert_close(end - start, mean, 1e-6);
        let expected = if later { p * time } else { 0.0 };
        assert!((late - gemm - expected).abs() < 1e-6 * gemm, "{shape:?}");
    }
}
