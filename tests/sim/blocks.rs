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

/// Where gather and GEMM wait for the same gather and the gather is first on all GPUs, it takes T and the GEMM's
/// late blocks follow it; where the GEMM is, it takes its time alone and the gather waits for its last wave.
/// In between lies the middle of all orders.
#[test]
fn in_streams_gathers_race_with_gemms() {
    let ends = |p: f64| {
        let mut device = device::load("h200").unwrap();
        device.library.sms = 24;
        device.scatter = Scatter {
            cluster: Some(4),
            places: Some(30),
            share: Some(SHARE),
            first: Some(p),
            ..Scatter::default()
        };
        let mut b = Builder::with_device("pair", Arc::new(device));
        let gpus = b.gpus(2);
        b.link(gpus[0], gpus[1], "nvlink", 400.0 * GB, 0.5 * US);
        gathered(&b.build(), SHAPE)
    };
    let [m, n, k] = SHAPE;
    let device = device::load("h200").unwrap();
    let alone = device::gemm::gemm(&device, DType::Bf16, m / 2, n / 2, k, 132).unwrap();
    let (tiles, time) = (alone.tiles as u32, alone.seconds);
    let tile = time / f64::from(tiles.div_ceil(132));
    let took = |(start, end): (f64, f64)| end - start;
    let [gathers, gemms] = ends(1.0);
    assert_close(took(gathers[1]), took(gathers[0]), 0.02);
    let expected = shared(tiles, tile, 96, 36, took(gathers[0]));
    assert_close(took(gemms[0]), expected, 0.06);
    let [gathers, gemms] = ends(0.0);
    assert_close(took(gemms[0]), time, 0.02);
    assert!(gathers[1].1 > gemms[0].1 - tile + took(gathers[0]) * 0.9);
    // In between are orders of both kinds, and the timeline ends with its last task.
    let last = |[gathers, gemms]: [Vec<(f64, f64)>; 2]| gathers[1].1.max(gemms[1].1);
    let (gather_first, gemm_first, mixed) = (last(ends(1.0)), last(ends(0.0)), last(ends(0.5)));
    assert!(
        mixed > gather_first.min(gemm_first) * (1.0 - 1e-9),
        "{mixed}"
    );
}

/// Where orders differ the timeline is one order's, stretched to the middle of all: its makespan is its last end.
#[test]
fn a_timeline_of_many_orders_ends_with_its_last_task() {
    let mut device = device::load("h200").unwrap();
    device.library.sms = 24;
    device.scatter = Scatter {
        first: Some(0.5),
        ..PAIR
    };
    let mut b = Builder::with_device("pair", Arc::new(device));
    let gpus = b.gpus(2);
    b.link(gpus[0], gpus[1], "nvlink", 400.0 * GB, 0.5 * US);
    let topology = b.build();
    for (kind, d) in [(Kind::AgGemm, 4), (Kind::GemmRs, 4), (Kind::GemmAr, 2)] {
        let operator = Operator::gemm(kind, 8192, 8192, 8192, 2, DType::Bf16).unwrap();
        let choice = strategy::parse(&format!("interdecom:d={d}")).unwrap();
        let schedule = choice.build(&operator, &topology, &[0, 1]).unwrap();
        let timeline = executed(&schedule, &topology, &Executed::default()).unwrap();
        let last = timeline
            .spans
            .iter()
            .fold(0.0, |last: f64, span| last.max(span.end));
        assert_close(timeline.makespan, last, 1e-9);
        assert_eq!(
            timeline,
            executed(&schedule, &topology, &Executed::default()).unwrap(),
            "the same again"
        );
    }
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
    wide: None,
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

/// A collective that is first on all GPUs takes T, and the GEMM ends no sooner; one that is first on none takes
/// its turns, and the GEMM the time that it takes where orders are not known.
#[test]
fn in_streams_either_is_first() {
    let shape = [8192, 8192, 16_384];
    let (start, whole, _) = reduced(shape, Scatter::default());
    let (_, turns, gemm) = reduced(shape, PAIR);
    let of = |p: f64| {
        let first = Some(p);
        reduced(shape, Scatter { first, ..PAIR })
    };
    let (began, end, late) = of(1.0);
    assert_close(end - began, whole - start, 1e-6);
    assert!(late >= gemm * (1.0 - 1e-9), "{late} {gemm}");
    let (_, end, same) = of(0.0);
    assert_close(end, turns, 1e-6);
    assert_close(same, gemm, 1e-6);
}
