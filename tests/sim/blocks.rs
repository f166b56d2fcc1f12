//! GEMMs beside collectives, as real GPUs perform them: a GEMM whose blocks do not all find an SM ends a
//! whole time of its own after the collective.

use std::sync::Arc;

use duet::device::{self, DType};
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
