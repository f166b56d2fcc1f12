//! Small made-up results for the tests of the renderers.

use super::{Comparison, ExpectedError, Outcome, Skipped, Verification};
use crate::device::DType;
use crate::operator::{Kind, Operator};
use crate::schedule::{
    Buffer, Builder, Compute, Extent, GemmKernel, Lane, Mover, Piece, Rank, Role, Schedule, TaskId,
    Via,
};
use crate::timeline::{Bound, Cause, Counter, LinkUse, Sample, Span, Term, Timeline};
use crate::topology::{LinkId, Topology, build};

pub fn operator() -> Operator {
    Operator::gemm(Kind::AgGemm, 1024, 512, 256, 2, DType::Bf16).unwrap()
}

/// Two GPUs on one wire.
pub fn pair() -> Topology {
    let mut builder = build::Builder::new("pair");
    let gpus = builder.gpus(2);
    builder.link(gpus[0], gpus[1], "nvlink", 50e9, 1e-6);
    builder.build()
}

/// Each rank pushes its rows of A to the other and multiplies when the other's have come.
pub fn schedule() -> Schedule {
    let mut b = Builder::new(operator(), "toy", vec![0, 1]);
    b.name_lane(Lane(1), "copy");
    let (a, w, c) = (
        b.tensor("A", 1024, 256, 1),
        b.tensor("B", 256, 512, 1),
        b.tensor("C", 1024, 512, 256),
    );
    let mut buffers = Vec::new();
    for rank in b.ranks() {
        let mut buffer = |name: &str, tensor, rows, cols, role| {
            b.buffer(Buffer {
                name: name.into(),
                tensor,
                rank,
                rows,
                cols,
                slots: 1,
                role,
                pieces: vec![Piece {
                    rows: Extent::new(0, rows),
                    cols: Extent::new(0, cols),
                    global_row: 0,
                    global_col: 0,
                    initial: Extent::new(0, 1),
                }],
            })
        };
        buffers.push([
            buffer("A", a, 1024, 256, Role::Input),
            buffer("B", w, 256, 256, Role::Input),
            buffer("C", c, 1024, 256, Role::Output),
        ]);
    }
    for rank in 0..2_u16 {
        let (own, other) = (buffers[usize::from(rank)], buffers[1 - usize::from(rank)]);
        let first = u32::from(rank) * 512;
        let (from, to) = (
            b.rows(own[0], 0, first, 512),
            b.rows(other[0], 0, first, 512),
        );
        b.transfer(Rank(rank), Lane(1), from, to, Mover::CopyEngine, &[]);
    }
    for rank in 0..2_u16 {
        let own = buffers[usize::from(rank)];
        let compute = Compute::Gemm {
            a: b.whole(own[0]),
            b: b.whole(own[1]),
            out: b.whole(own[2]),
            accumulate: false,
            kernel: GemmKernel::Library,
            sms: 0,
        };
        let arrived = (TaskId(1 - u32::from(rank)), Via::Event).into();
        b.compute(Rank(rank), Lane(0), None, compute, &[arrived]);
    }
    b.finish()
}

/// The toy as some performer might report it.
pub fn timeline() -> Timeline {
    let link = LinkId::new(0);
    let copy = |cause| Span {
        ready: 0.0,
        start: 1e-6,
        end: 7.242_88e-6,
        cause,
        bound: Bound::Link(link),
    };
    let gemm = |copy: u32| Span {
        ready: 7.242_88e-6,
        start: 9.242_88e-6,
        end: 12e-6,
        cause: Cause::Task(TaskId(copy)),
        bound: Bound::Compute,
    };
    let sample = |time, counter, value| Sample {
        time,
        counter,
        value,
    };
    Timeline {
        spans: vec![copy(Cause::Start), copy(Cause::Start), gemm(1), gemm(0)],
        makespan: 12e-6,
        links: vec![
            LinkUse {
                bytes: 262_144.0,
                busy: 6.242_88e-6,
            };
            2
        ],
        samples: vec![
            sample(1e-6, Counter::Link(link), 42e9),
            sample(7.242_88e-6, Counter::Link(link), -0.0),
            sample(9.242_88e-6, Counter::Sms(0), 4.0),
            sample(12e-6, Counter::Sms(0), 0.0),
        ],
    }
}

pub fn outcome(strategy: &str, makespan: f64, sequential: f64) -> Outcome {
    let gemm = 100e-6;
    Outcome {
        strategy: strategy.into(),
        makespan,
        gemm_only: gemm * 1.02,
        comm_only: 48e-6,
        exposed: makespan - gemm * 1.02,
        ect: makespan - gemm,
        overlap_efficiency: Some(1.0 - (makespan - gemm) / (sequential - gemm)),
        speedup: Some(sequential / makespan),
        bandwidth: None,
        tasks: 4,
        bottleneck: "compute".into(),
        verification: Verification::Verified,
        terms: vec![(Term::Compute, gemm), (Term::FillAndDrain, makespan - gemm)],
        why: format!(
            "{strategy} hides what it can of the copies behind the GEMM, and waits for the rest."
        ),
    }
}

pub fn comparison(topology: &str) -> Comparison {
    let sequential = 150e-6;
    let mut unproved = outcome("late", 160e-6, sequential);
    unproved.verification = Verification::NotVerified("over 100,000 tasks".into());
    Comparison {
        topology: topology.into(),
        operator: operator(),
        launch: "stream".into(),
        unsplit_gemm: 100e-6,
        lower_bound: Some(90e-6),
        expected_error: ExpectedError {
            relative: None,
            basis: "not validated".into(),
        },
        results: vec![
            outcome("interdecom:d=4", 110e-6, sequential),
            outcome("sequential", sequential, sequential),
            unproved,
        ],
        skipped: vec![
            Skipped {
                strategy: "tree".into(),
                reason: "only for bare collectives".into(),
            },
            Skipped {
                strategy: "direct".into(),
                reason: "only for bare collectives".into(),
            },
        ],
        selected: None,
    }
}
