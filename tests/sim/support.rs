//! Machines and runs that several tests need.

use duet::device::DType;
use duet::operator::{Kind, Operator, Shape};
use duet::schedule::Schedule;
use duet::sim::{Options, simulate};
use duet::strategy;
use duet::timeline::Timeline;
use duet::topology::build::Builder;
use duet::topology::{ExplicitRoute, Leg, NodeId, Path, Topology};
use duet::units::{Bytes, Seconds};

pub const GB: f64 = 1e9;
pub const US: f64 = 1e-6;
pub const MIB: u64 = 1 << 20;

/// `n` ideal GPUs on one non-blocking switch.
pub fn star(n: usize, bandwidth: f64, latency: f64) -> Topology {
    let mut b = Builder::new("star");
    let gpus = b.gpus(n);
    let switch = b.switch("s");
    for gpu in gpus {
        b.link(gpu, switch, "link", bandwidth, latency);
    }
    b.build()
}

/// `n` ideal GPUs in a bidirectional ring of direct links.
pub fn gpu_ring(n: usize, bandwidth: f64, latency: f64) -> Topology {
    let mut b = Builder::new("ring");
    let gpus = b.gpus(n);
    for i in 0..n {
        b.link(gpus[i], gpus[(i + 1) % n], "link", bandwidth, latency);
    }
    b.build()
}

/// A bidirectional ring of `n` switches with one GPU behind each on an ample link without
/// latency; antipodal pairs all go in + direction.
pub fn switch_ring(n: usize, bandwidth: f64, latency: f64) -> Topology {
    let mut b = Builder::new("switch-ring");
    let gpus = b.gpus(n);
    let switches: Vec<NodeId> = (0..n).map(|i| b.switch(&format!("s{i}"))).collect();
    for i in 0..n {
        b.link(gpus[i], switches[i], "ample", 1e15, 0.0);
    }
    for i in 0..n {
        b.link(
            switches[i],
            switches[(i + 1) % n],
            "ring",
            bandwidth,
            latency,
        );
    }
    let mut topology = b.build();
    for i in 0..n {
        let mut nodes = vec![gpus[i]];
        nodes.extend((0..=n / 2).map(|d| switches[(i + d) % n]));
        nodes.push(gpus[(i + n / 2) % n]);
        let links = nodes
            .windows(2)
            .map(|pair| topology.graph.find_edge(pair[0], pair[1]).unwrap())
            .collect();
        let leg = Leg {
            from: gpus[i],
            to: gpus[(i + n / 2) % n],
            links,
            latency: Seconds::of(latency * (n / 2) as f64),
        };
        topology.explicit.push(ExplicitRoute {
            from: leg.from,
            to: leg.to,
            paths: vec![Path {
                share: 1.0,
                legs: vec![leg],
                chunk: Bytes::ZERO,
                slots: 0,
            }],
        });
    }
    topology
}

/// A bare collective of `bytes` over the first `tp` GPUs by `strategy`.
pub fn collective(
    kind: Kind,
    bytes: u64,
    tp: u32,
    strategy: &str,
    topology: &Topology,
) -> Schedule {
    let operator = Operator {
        kind,
        shape: Shape::Bytes(Bytes::new(bytes)),
        tp,
        dtype: DType::Bf16,
    };
    let placement: Vec<u32> = (0..tp).collect();
    strategy::parse(strategy)
        .unwrap()
        .build(&operator, topology, &placement)
        .unwrap()
}

/// Its timeline with default options.
pub fn run(schedule: &Schedule, topology: &Topology) -> Timeline {
    simulate(schedule, topology, &Options::default()).unwrap()
}

/// Relative difference.
#[track_caller]
pub fn assert_close(actual: f64, expected: f64, tolerance: f64) {
    let difference = ((actual - expected) / expected).abs();
    assert!(
        difference <= tolerance,
        "{actual} is not {expected}: relative difference {difference:e}"
    );
}
