//! GEMMs beside collectives, as real GPUs perform them: a GEMM whose blocks do not all find an SM ends a
//! whole time of its own after the collective.

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

#[test]
fn late_blocks_take_a_whole_time_of_their_own() {
    // Two gathers, then two GEMMs: the first begins beside the second gather, on what it leaves.
    let topology = machine(24);
    let [m, n, k] = SHAPE;
    let operator = Operator::gemm(Kind::AgGemm, m, n, k, 2, DType::Bf16).unwrap();
    let choice = strategy::parse("interdecom:d=2").unwrap();
    let schedule = choice.build(&operator, &topology, &[0, 1]).unwrap();
    let timeline = executed(&schedule, &topology, &Executed::default()).unwrap();
    let of = |lane: u16| {
        let spans = schedule.tasks.iter().zip(&timeline.spans);
        let spans = spans.filter(move |(task, _)| task.rank.0 == 0 && task.lane.0 == lane);
        spans.map(|(_, span)| *span).collect::<Vec<_>>()
    };
    let (gathers, gemms) = (of(1), of(0));
    assert_eq!((gathers.len(), gemms.len()), (2, 2));
    let device = topology.device(0);
    let alone = device::gemm::gemm(device, DType::Bf16, m / 2, n / 2, k, 132).unwrap();
    assert!(alone.tiles > 108.0, "{alone:?}");
    // It begins at once, beside the second gather, and ends a whole time after it.
    assert!(gemms[0].start < gathers[1].end);
    let after = gemms[0].end - gathers[1].end;
    assert_close(after, alone.seconds, 0.02);
    // The next, with the GPU to itself, takes its time and no more.
    assert_close(gemms[1].end - gemms[1].start, alone.seconds, 0.02);
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
