//! Golden timelines: every task of every strategy's schedule of one small operator, on a machine
//! with a bridge, a PCIe switch and round numbers. A change of the model shows as a changed digit.

use std::fmt::Write as _;

use duet::device::{DType, load};
use duet::operator::{Kind, Operator};
use duet::schedule::TaskId;
use duet::sim::{Options, simulate};
use duet::strategy;
use duet::timeline::critical_path;
use duet::topology::Topology;
use duet::topology::build::Builder;
use duet::units::Bytes;

/// Two pairs of H200 joined by NVLink of 200 GB/s; PCIe of 50 GB/s between pairs.
fn machine() -> Topology {
    let device = load("h200").unwrap();
    let mut b = Builder::with_device("golden", std::sync::Arc::new(device));
    let gpus = b.gpus(4);
    let switch = b.switch("pcie0");
    b.link(gpus[0], gpus[1], "nvlink", 200e9, 1e-6);
    b.link(gpus[2], gpus[3], "nvlink", 200e9, 1e-6);
    for gpu in gpus {
        b.link(gpu, switch, "pcie", 50e9, 1e-6);
    }
    let mut topology = b.build();
    topology.prefer = vec![0, 1];
    topology
}

fn fused(kind: Kind) -> String {
    timelines(&Operator::gemm(kind, 1024, 4096, 2048, 4, DType::Bf16).unwrap())
}

fn bare(kind: Kind) -> String {
    timelines(&Operator::collective(kind, Bytes::new(4 << 20), 4, DType::Bf16).unwrap())
}

fn timelines(op: &Operator) -> String {
    let topology = machine();
    let mut text = String::new();
    for candidate in strategy::candidates(op) {
        let schedule = match candidate.build(op, &topology, &[0, 1, 2, 3]) {
            Ok(schedule) => schedule,
            Err(skip) => {
                writeln!(text, "{candidate}: skipped, {}\n", skip.reason).unwrap();
                continue;
            }
        };
        let timeline = simulate(&schedule, &topology, &Options::default()).unwrap();
        let critical = critical_path(&timeline);
        let us = |seconds: f64| seconds * 1e6;
        writeln!(text, "{candidate}: {:.3} us", us(timeline.makespan)).unwrap();
        for (t, span) in timeline.spans.iter().enumerate() {
            let id = TaskId(t as u32);
            let mark = if critical.contains(&id) { '*' } else { ' ' };
            writeln!(
                text,
                "  {mark} {:9.3} {:9.3}  {} bound by {:?}",
                us(span.start),
                us(span.end),
                schedule.describe(id),
                span.bound
            )
            .unwrap();
        }
        text.push('\n');
    }
    text
}

#[test]
fn all_gather_gemm() {
    insta::assert_snapshot!(fused(Kind::AgGemm));
}

#[test]
fn gemm_reduce_scatter() {
    insta::assert_snapshot!(fused(Kind::GemmRs));
}

#[test]
fn gemm_all_reduce() {
    insta::assert_snapshot!(fused(Kind::GemmAr));
}

#[test]
fn all_gather() {
    insta::assert_snapshot!(bare(Kind::AllGather));
}

#[test]
fn reduce_scatter() {
    insta::assert_snapshot!(bare(Kind::ReduceScatter));
}

#[test]
fn all_reduce() {
    insta::assert_snapshot!(bare(Kind::AllReduce));
}

#[test]
fn all_to_all() {
    insta::assert_snapshot!(bare(Kind::AllToAll));
}
