//! Which streams there are, and what follows what in them.

use super::{circle, own};
use crate::device::DType;
use crate::gpu::plan::{LowerError, Options, Path, Products, What, lower};
use crate::operator::{Kind, Operator};
use crate::strategy;

#[test]
fn chunks_through_the_host_follow_one_another_without_a_pause() {
    let operator = Operator::gemm(Kind::AgGemm, 64, 48, 16, 2, DType::Bf16).unwrap();
    let choice = strategy::parse("fusion-alltoall:chunks=4").unwrap();
    let schedule = choice.build(&operator, &circle(2), &[0, 1]).unwrap();
    let waits = |products| {
        let options = Options {
            products,
            // Each chunk of a shard in one piece; a ring has four slots.
            path: Path::Host { chunk: 1 << 20 },
            ..Options::default()
        };
        let plan = lower(&schedule, &options, None).unwrap();
        let leave = plan
            .steps
            .iter()
            .find(|s| matches!(s.what, What::ToHost { .. }));
        let leave = leave.unwrap().stream;
        let here = plan.steps.iter().filter(|step| step.stream == leave);
        here.filter(|step| matches!(step.what, What::Await(_)))
            .count()
    };
    // Own products: nothing leaves late. Others: each after the one before has entered.
    assert_eq!((waits(Products::Own), waits(Products::Library)), (0, 3));
}

#[test]
fn more_lanes_than_streams_are_refused_before_anything_is_lowered() {
    let operator = Operator::gemm(Kind::AgGemm, 144, 144, 8, 72, DType::Bf16).unwrap();
    let choice = strategy::parse("fusion-alltoall").unwrap();
    let placement: Vec<u32> = (0..72).collect();
    let schedule = choice.build(&operator, &circle(72), &placement).unwrap();
    // A lane for the product and one for each of 71 others.
    let refused = lower(&schedule, &Options::default(), None);
    let expected = LowerError::TooManyStreams {
        gpu: 71,
        streams: 72,
    };
    assert_eq!(refused, Err(expected));
    // Kernels that bring their rows need no others.
    let choice = strategy::parse("fusion-alltoall:mover=loader").unwrap();
    let operator = Operator::gemm(Kind::AgGemm, 60, 60, 8, 30, DType::Bf16).unwrap();
    let placement: Vec<u32> = (0..30).collect();
    let schedule = choice.build(&operator, &circle(30), &placement).unwrap();
    let options = own();
    assert!(lower(&schedule, &options, None).is_ok());
}
