//! GEMMs beside copies that slow them, against
//!
//! ```text
//! T' = T / (1 − r/R)         a copy of rate r that outlasts the GEMM
//! T' = T + Σ bytes/R         copies that end before it, whenever they run
//! ```

use std::sync::Arc;

use duet::device::{self, Beside, DType, Device, Tile, gemm::gemm};
use duet::operator::{Kind, Operator};
use duet::schedule::{
    Builder as ScheduleBuilder, CollectiveKind, CollectiveLibrary, Compute, Dep, GemmKernel, Lane,
    Mover, Rank, Schedule, Slice, TaskId,
};
use duet::sim::{Options, Terms, simulate};
use duet::topology::Topology;
use duet::topology::build::Builder;
use duet::units::{BytesPerSecond, FlopsPerSecond};
use proptest::prelude::*;

use crate::support::{GB, assert_close};

const EXACT: f64 = 1e-9;
/// Of the link.
const RATE: f64 = 50.0 * GB;
/// Rates S and R.
const SENT: f64 = 1000.0 * GB;
const RECEIVED: f64 = 800.0 * GB;
const GEMM: u64 = 4096;
/// Rows of a copy that outlasts it.
const LONG: u32 = 1 << 20;

fn gpu() -> Device {
    Device {
        sms: 1,
        peak: vec![(DType::Bf16, FlopsPerSecond::of(1e14))],
        tiles: vec![Tile {
            m: 64,
            n: 64,
            efficiency: 1.0,
        }],
        beside: Beside {
            sent: Some(BytesPerSecond::of(SENT)),
            received: Some(BytesPerSecond::of(RECEIVED)),
            ..Beside::default()
        },
        ..device::ideal()
    }
}

fn pair(device: Device) -> Topology {
    let mut b = Builder::with_device("pair", Arc::new(device));
    let gpus = b.gpus(2);
    b.link(gpus[0], gpus[1], "nvlink", RATE, 0.0);
    b.build()
}

/// A product of square matrices.
fn square(b: &mut ScheduleBuilder, rank: Rank, side: u32) -> Compute {
    let mut whole = |name: &str| {
        let tensor = b.tensor(name, side, side, 1);
        let buffer = b.scratch(name, tensor, rank, side, side, 1);
        b.whole(buffer)
    };
    Compute::Gemm {
        a: whole("A"),
        b: whole("B"),
        out: whole("C"),
        accumulate: false,
        kernel: GemmKernel::Library,
        sms: 0,
    }
}

/// A GEMM of each rank beside copies of so many rows of 1 KiB from it, one behind another.
fn schedule(copies: [&[u32]; 2], mover: Mover) -> (Schedule, [TaskId; 2]) {
    let side = GEMM as u32;
    let op = Operator::gemm(Kind::AgGemm, GEMM, GEMM, GEMM, 2, DType::Bf16).unwrap();
    let mut b = ScheduleBuilder::new(op, "GEMMs and copies", vec![0, 1]);
    let gemms = [Rank(0), Rank(1)].map(|rank| {
        let product = square(&mut b, rank, side);
        b.compute(rank, Lane(0), None, product, &[])
    });
    for (rank, rows) in [Rank(0), Rank(1)].into_iter().zip(copies) {
        for &rows in rows {
            let tensor = b.tensor("X", rows, 512, 1);
            let [from, to] = [rank, Rank(1 - rank.0)].map(|rank| {
                let buffer = b.scratch("X", tensor, rank, rows, 512, 1);
                b.whole(buffer)
            });
            b.transfer(rank, Lane(1), from, to, mover, &[]);
        }
    }
    (b.finish(), gemms)
}

/// When both GEMMs end.
fn ends(copies: [&[u32]; 2], mover: Mover, device: Device, options: &Options) -> [f64; 2] {
    let (schedule, gemms) = schedule(copies, mover);
    let timeline = simulate(&schedule, &pair(device), options).unwrap();
    gemms.map(|gemm| timeline.spans[gemm.index()].end)
}

fn alone() -> f64 {
    gemm(&gpu(), DType::Bf16, GEMM, GEMM, GEMM, 1)
        .unwrap()
        .seconds
}

#[test]
fn copies_that_outlast_a_gemm() {
    let time = alone();
    assert!(f64::from(LONG) * 1024.0 / RATE > 2.0 * time);
    let run =
        |copies: [&'static [u32]; 2]| ends(copies, Mover::CopyEngine, gpu(), &Options::default());
    let [sender, receiver] = run([&[LONG], &[]]);
    assert_close(sender, time / (1.0 - RATE / SENT), EXACT);
    assert_close(receiver, time / (1.0 - RATE / RECEIVED), EXACT);
    let both = time / (1.0 - RATE / SENT - RATE / RECEIVED);
    for end in run([&[LONG], &[LONG]]) {
        assert_close(end, both, EXACT);
    }
}

#[test]
fn what_slows_nothing() {
    let copies: [&[u32]; 2] = [&[LONG], &[LONG]];
    let time = alone();
    let silent = Device {
        beside: Beside::default(),
        ..gpu()
    };
    let without = Options {
        terms: Terms {
            contention: false,
            ..Terms::default()
        },
        ..Options::default()
    };
    let engine = Mover::CopyEngine;
    for (mover, device, options) in [
        (engine, silent, Options::default()),
        (engine, gpu(), without),
    ] {
        for end in ends(copies, mover, device, &options) {
            assert_close(end, time, EXACT);
        }
    }
    // However much copies would take, a GEMM goes on.
    let greedy = Device {
        beside: Beside {
            sent: Some(BytesPerSecond::of(RATE / 2.0)),
            ..Beside::default()
        },
        ..gpu()
    };
    let [end, _] = ends([&[1000], &[]], engine, greedy, &Options::default());
    let copied = 1000.0 * 1024.0 / RATE;
    assert_close(end, time + 0.99 * copied, EXACT);
}

/// Where memory is short too, copies between GPUs 2 and 3, of whatever sizes, change nothing on 0 and 1.
#[test]
fn speeds_do_not_depend_on_what_was_solved_before() {
    let time = gemm(&gpu(), DType::Bf16, GEMM, GEMM, GEMM, 1).unwrap();
    let device = Device {
        // Enough for the GEMM, or for the copies and half of it.
        hbm: BytesPerSecond::of(2.0 * RATE + 0.5 * time.hbm_bytes / time.seconds),
        ..gpu()
    };
    let mut builder = Builder::with_device("four", Arc::new(device));
    let gpus = builder.gpus(4);
    for pair in gpus.chunks(2) {
        builder.link(pair[0], pair[1], "nvlink", RATE, 0.0);
    }
    let topology = builder.build();
    let run = |others: &[u32]| {
        let op = Operator::gemm(Kind::AgGemm, GEMM, GEMM, GEMM, 4, DType::Bf16).unwrap();
        let mut b = ScheduleBuilder::new(op, "two pairs", vec![0, 1, 2, 3]);
        let mut tasks: Vec<TaskId> = [Rank(0), Rank(1)]
            .into_iter()
            .map(|rank| {
                let product = square(&mut b, rank, GEMM as u32);
                b.compute(rank, Lane(0), None, product, &[])
            })
            .collect();
        let sizes = [
            (0, &[1_u32 << 19][..]),
            (1, &[1 << 18, 1 << 17]),
            (2, others),
        ];
        for (from, sizes) in sizes {
            for &rows in sizes {
                let tensor = b.tensor("X", rows, 512, 1);
                let [source, target] = [from, from ^ 1].map(|rank| {
                    let buffer = b.scratch("X", tensor, Rank(rank), rows, 512, 1);
                    b.whole(buffer)
                });
                let engine = Mover::CopyEngine;
                let copy = b.transfer(Rank(from), Lane(1), source, target, engine, &[]);
                if from < 2 {
                    tasks.push(copy);
                }
            }
        }
        let timeline = simulate(&b.finish(), &topology, &Options::default()).unwrap();
        let end = |task: TaskId| timeline.spans[task.index()].end;
        tasks.into_iter().map(end).collect::<Vec<f64>>()
    };
    let alone = run(&[]);
    let others: Vec<u32> = (1..200).map(|i| 37 * i).collect();
    for (end, quiet) in run(&others).into_iter().zip(alone) {
        assert_close(end, quiet, EXACT);
    }
}

/// A collective that keeps 3/5 of its speed beside GEMMs: T/0.6 beside those that outlast it, and
/// T + 0.4·g beside those that end after g.
#[test]
fn a_collective_beside_gemms() {
    let (time, keeps) = (alone(), 0.6);
    let run = |rows: u32, collectives: [Option<f64>; 4]| {
        let side = GEMM as u32;
        let op = Operator::gemm(Kind::AgGemm, GEMM, GEMM, GEMM, 2, DType::Bf16).unwrap();
        let mut b = ScheduleBuilder::new(op, "GEMMs and a collective", vec![0, 1]);
        let ranks = [Rank(0), Rank(1)];
        for rank in ranks {
            let product = square(&mut b, rank, side);
            b.compute(rank, Lane(0), None, product, &[]);
        }
        let tensor = b.tensor("X", 2 * rows, 512, 1);
        let members: Vec<(Rank, Slice, Slice, &[Dep])> = ranks
            .into_iter()
            .map(|rank| {
                let part = b.scratch("X", tensor, rank, rows, 512, 1);
                let all = b.scratch("Y", tensor, rank, 2 * rows, 512, 1);
                (rank, b.whole(part), b.whole(all), &[][..])
            })
            .collect();
        let (gather, ring) = (CollectiveKind::AllGather, CollectiveLibrary::Ring);
        let tasks = b.collective(gather, ring, 0, Lane(1), &members);
        let device = Device {
            beside: Beside {
                collectives,
                ..Beside::default()
            },
            ..gpu()
        };
        let timeline = simulate(&b.finish(), &pair(device), &Options::default()).unwrap();
        timeline.spans[tasks[0].index()].end
    };
    for rows in [1_u32 << 10, 1 << 20] {
        let whole = f64::from(rows) * 1024.0 / RATE;
        let expected = match whole / keeps < time {
            true => whole / keeps,
            false => whole + (1.0 - keeps) * time,
        };
        assert_close(run(rows, [Some(keeps), None, None, None]), expected, EXACT);
        assert_close(run(rows, [None, Some(keeps), None, None]), whole, EXACT);
    }
}

proptest! {
    /// What copies take that end before the GEMM does not depend on when they run or whether at once.
    #[test]
    fn copies_that_end_before(
        sent in prop::collection::vec(1_u32..4000, 0..6),
        received in prop::collection::vec(1_u32..4000, 0..6),
    ) {
        let bytes = |rows: &[u32]| rows.iter().map(|&rows| f64::from(rows) * 1024.0).sum::<f64>();
        let time = alone();
        prop_assume!(bytes(&sent).max(bytes(&received)) / RATE < time);
        let copies: [&[u32]; 2] = [&sent, &received];
        let found = ends(copies, Mover::CopyEngine, gpu(), &Options::default());
        let (s, r) = (bytes(&sent), bytes(&received));
        for (end, (out, into)) in found.into_iter().zip([(s, r), (r, s)]) {
            let expected = time + out / SENT + into / RECEIVED;
            prop_assert!((end / expected - 1.0).abs() < 1e-9, "{end} is not {expected}");
        }
    }
}
