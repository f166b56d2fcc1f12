//! PCIe machines: staging through the host, shared uplinks, bridges and rings.

use duet::device::DType;
use duet::operator::{Kind, Operator};
use duet::schedule::{Builder as ScheduleBuilder, Lane, Mover, Rank, Schedule};
use duet::sim::{Options, simulate};
use duet::topology::build::Builder;
use duet::topology::{self, Topology};
use duet::units::Bytes;

use crate::support::{GB, MIB, assert_close, collective, run};

/// gpu0 and gpu1 under one switch on socket 0, gpu2 under a switch on socket 1; ample sockets and
/// memory. No peer access: everything is staged through dram0.
fn staged() -> Topology {
    let mut b = Builder::new("staged");
    let gpus = b.gpus(3);
    let switches = [b.switch("pcie0"), b.switch("pcie1")];
    let roots = [b.root("cpu0"), b.root("cpu1")];
    let dram = b.host("dram0");
    for (gpu, switch) in [(0, 0), (1, 0), (2, 1)] {
        b.link(gpus[gpu], switches[switch], "pcie", 24.0 * GB, 1e-7);
    }
    for s in 0..2 {
        b.link(switches[s], roots[s], "pcie", 24.0 * GB, 1e-7);
    }
    b.link(roots[0], roots[1], "socket", 500.0 * GB, 1e-7);
    b.link(roots[0], dram, "dram", 500.0 * GB, 1e-7);
    let mut topology = b.build();
    topology.p2p = false;
    topology.staging_chunk = Bytes::new(MIB);
    topology
}

/// One message of 64 MiB from each `(from, to)`, all at once.
fn messages(pairs: &[(u32, u32)]) -> Schedule {
    let bytes = 64 * MIB;
    let operator = Operator::collective(Kind::PointToPoint, Bytes::new(bytes), 2, DType::Bf16);
    let mut b = ScheduleBuilder::new(operator.unwrap(), "messages", vec![0, 1, 2]);
    let (rows, cols) = (1024, (bytes / 2 / 1024) as u32);
    let tensor = b.tensor("X", rows, cols, 1);
    for (lane, &(from, to)) in pairs.iter().enumerate() {
        let [from, to] = [from, to].map(|rank| Rank(rank as u16));
        let source = b.scratch("source", tensor, from, rows, cols, 1);
        let landing = b.scratch("landing", tensor, to, rows, cols, 1);
        let (a, z) = (b.whole(source), b.whole(landing));
        b.transfer(from, Lane(lane as u16), a, z, Mover::CopyEngine, &[]);
    }
    b.finish()
}

/// Both ways under one switch, each direction of its uplink carries two flows (one message going
/// up, the other's copy going on; likewise down); across sockets each uplink direction carries
/// one. So the near pair is slower, by almost a factor of two.
#[test]
fn staged_exchange_under_one_switch_is_slower_than_across_sockets() {
    let topology = staged();
    let near = run(&messages(&[(0, 1), (1, 0)]), &topology).makespan;
    let far = run(&messages(&[(0, 2), (2, 0)]), &topology).makespan;
    assert!(
        near > 1.9 * far && near < 2.0 * far,
        "near {near}, far {far}"
    );
}

/// One way only, on full duplex, the uplink carries one flow each way in both cases: equal but for
/// the one link of latency more.
#[test]
fn staged_one_way_is_the_same_near_and_far() {
    let topology = staged();
    let near = run(&messages(&[(0, 1)]), &topology).makespan;
    let far = run(&messages(&[(0, 2)]), &topology).makespan;
    assert_close(far, near, 1e-2);
}

/// c chunks of s bytes over two legs of one rate: (c + 1)·(α + s/B) with α the latency of a leg.
#[test]
fn staged_message_is_pipelined_in_chunks() {
    let topology = staged();
    let time = run(&messages(&[(0, 1)]), &topology).makespan;
    let step = 3e-7 + MIB as f64 / (24.0 * GB);
    assert_close(time, 65.0 * step, 1e-9);
}

/// 64 MiB in chunks of a byte would be 2²⁷ moves over two legs: refused at once, not performed.
#[test]
fn too_many_chunks_are_refused() {
    let mut topology = staged();
    topology.staging_chunk = Bytes::new(1);
    let error = simulate(&messages(&[(0, 1)]), &topology, &Options::default()).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("in chunks of 1 B"), "{said}");
    assert!(said.contains("staging_chunk"), "{said}");
}

/// Four GPUs bridged in pairs, everything else over PCIe ports into one root; no latency.
fn bridged() -> Topology {
    let mut b = Builder::new("bridged");
    let gpus = b.gpus(4);
    let root = b.root("cpu0");
    b.link(gpus[0], gpus[1], "nvlink", 52.0 * GB, 0.0);
    b.link(gpus[2], gpus[3], "nvlink", 52.0 * GB, 0.0);
    for gpu in gpus {
        b.link(gpu, root, "pcie", 24.0 * GB, 0.0);
    }
    let mut topology = b.build();
    topology.prefer = vec![0, 1];
    topology
}

/// Single ring: 3 steps of m/4 over PCIe edges, m/T = (4/3)·B. Two counter-rotating rings with
/// half of the data each: m/T = (8/3)·B.
#[test]
fn double_ring_gathers_twice_as_fast_over_bridged_pairs() {
    let topology = bridged();
    let bytes = 256 * MIB;
    for (strategy, factor) in [("ring", 4.0 / 3.0), ("double-ring", 8.0 / 3.0)] {
        let schedule = collective(Kind::AllGather, bytes, 4, strategy, &topology);
        let rate = bytes as f64 / run(&schedule, &topology).makespan;
        assert_close(rate, factor * 24.0 * GB, 1e-9);
    }
}

/// Sent directly, each GPU puts m/2 through its PCIe port and m/4 over its bridge. Two copy engines
/// per GPU take them in order of rank, so the last port is done after (1/2)·m/B and, for half of
/// the GPUs, the bridge's (1/4)·m/52 GB/s on top: 0.63·m/B against the ring's 0.75·m/B. The
/// contention curve turns that around.
#[test]
fn direct_loses_to_a_ring_where_the_contention_curve_says_so() {
    let mut topology = topology::load("a6000-pairs-4", &[]).unwrap();
    let time = |strategy, topology: &Topology| {
        let schedule = collective(Kind::AllGather, 256 * MIB, 4, strategy, topology);
        run(&schedule, topology).makespan
    };
    let ring = time("ring", &topology);
    assert!(time("direct", &topology) > 1.2 * ring);
    topology.contention.fill(None);
    assert!(time("direct", &topology) < 0.9 * ring);
    assert_close(time("ring", &topology), ring, 1e-12);
}

/// The library's all-to-all is one flow to the solver, but two of its pairs share each port, so
/// S/2 goes through it at 0.8 of 0.35 of 26.3 GB/s; its ring has every port to itself.
#[test]
fn library_all_to_all_is_crowded_too() {
    let mut topology = topology::load("a6000-pairs-4", &[]).unwrap();
    let time = |topology: &Topology| {
        let schedule = collective(Kind::AllToAll, 256 * MIB, 4, "library", topology);
        run(&schedule, topology).makespan
    };
    let half = (128 * MIB) as f64;
    assert_close(time(&topology), half / (0.8 * 0.35 * 26.3 * GB), 0.01);
    topology.contention.fill(None);
    assert_close(time(&topology), half / (0.8 * 26.3 * GB), 0.01);
}

/// Eight GPUs on two NUMA domains: the ring takes 7 steps and crosses the socket link only between
/// gpu3 and gpu4 and between gpu7 and gpu0, once per step and direction.
#[test]
fn ring_of_8_crosses_the_numa_boundary_at_two_edges() {
    let topology = topology::load("a6000-pairs-8", &[]).unwrap();
    let bytes = 64 * MIB;
    let schedule = collective(Kind::AllGather, bytes, 8, "ring", &topology);
    assert_eq!(schedule.tasks.len(), 8 * 7);
    let timeline = run(&schedule, &topology);
    let numa = |gpu: u32| gpu / 4;
    let mut crossings: Vec<(u32, u32)> = Vec::new();
    for task in &schedule.tasks {
        let duet::schedule::Work::Transfer { from, to, .. } = task.work else {
            panic!("a ring consists of transfers");
        };
        let gpu = |slice| schedule.placement[schedule.rank_of(slice).0 as usize];
        let (from, to) = (gpu(&from), gpu(&to));
        if numa(from) != numa(to) {
            crossings.push((from, to));
        }
    }
    crossings.sort_unstable();
    let counted = crossings.len();
    crossings.dedup();
    assert_eq!(counted, 2 * 7);
    assert_eq!(crossings, [(3, 4), (7, 0)]);
    let graph = &topology.graph;
    for edge in graph.edge_indices() {
        let (a, z) = graph.edge_endpoints(edge).unwrap();
        if graph[a].name.starts_with("cpu") && graph[z].name.starts_with("cpu") {
            // 7 chunks of m/8: 0.875·m per direction.
            assert_close(
                timeline.links[edge.index()].bytes,
                0.875 * bytes as f64,
                1e-12,
            );
        }
    }
}
