//! Which streams there are, and what follows what in them.

use super::{circle, own};
use crate::device::DType;
use crate::gpu::plan::{LowerError, Options, Path, Products, Step, What, lower};
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
        let awaits = here.filter(|step| matches!(step.what, What::Await(_)));
        let enters = |step: &&Step| matches!(step.what, What::FromHost { .. });
        let enter = plan.steps.iter().find(enters).unwrap().stream;
        let here = plan.steps.iter().filter(|step| step.stream == enter);
        let writes = here.filter(|step| matches!(step.what, What::WriteFlag(_)));
        (awaits.count(), writes.count())
    };
    // Own products: nothing leaves late, and no flag is written between two chunks. Others: each leaves after the
    // one before has entered.
    assert_eq!(waits(Products::Own), (0, 0));
    assert_eq!(waits(Products::Library), (3, 4));
}

/// Sums that come through the host are awaited where they are added, inside the kernel that has computed what goes
/// the other way: the product's stream waits for nothing.
#[test]
fn products_do_not_wait_as_a_whole_for_sums_through_the_host() {
    let operator = Operator::gemm(Kind::GemmRs, 1024, 48, 16, 2, DType::Bf16).unwrap();
    let choice = strategy::parse("fusion-ring:chunks=2").unwrap();
    let schedule = choice.build(&operator, &circle(2), &[0, 1]).unwrap();
    let options = Options {
        products: Products::Own,
        path: Path::Host { chunk: 1 << 20 },
        ..Options::default()
    };
    let plan = lower(&schedule, &options, None).unwrap();
    let is_product = |step: &Step| matches!(step.what, What::Gated { .. });
    let streams = plan.steps.iter().filter(|step| is_product(step));
    let streams: Vec<_> = streams.map(|step| step.stream).collect();
    let waits = |step: &Step| matches!(step.what, What::Await(_) | What::AwaitFlag(_));
    let here = |step: &Step| streams.contains(&step.stream) && step.stream != plan.origin;
    assert!(!plan.steps.iter().any(|step| here(step) && waits(step)));
    // One launch on each GPU.
    assert_eq!(plan.joined.len(), 2);
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
