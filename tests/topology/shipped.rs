//! The shipped machines: they load, hang together, and their bandwidths are the published ones.

use duet::topology::route::Router;
use duet::topology::{self, Topology};
use duet::{device, units::BytesPerSecond};

fn load(name: &str) -> Topology {
    topology::load(name, &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// Bandwidth of one flow alone from GPU to GPU [GB/s]: the slowest link or shared capacity of the
/// path, contention curves at one flow.
fn alone(topology: &Topology, from: u32, to: u32) -> f64 {
    let mut router = Router::new(topology);
    let ends = (topology.gpus[from as usize], topology.gpus[to as usize]);
    let paths = router.paths(ends.0, ends.1).unwrap();
    let slowest = |leg: &topology::Leg| {
        let link = |id: &topology::LinkId| {
            let link = &topology.graph[*id];
            let curve = topology.contention[usize::from(link.kind)].as_ref();
            link.bandwidth.get() * curve.map_or(1.0, |curve| curve.efficiency(1))
        };
        leg.links.iter().map(link).fold(f64::INFINITY, f64::min)
    };
    let legs = paths.iter().flat_map(|path| &path.legs);
    legs.map(slowest).fold(f64::INFINITY, f64::min) / 1e9
}

/// Machines that can be relied upon by name.
const PROMISED: [&str; 23] = [
    "a6000-pairs-8",
    "a6000-pairs-4",
    "a100-pcie-8",
    "a100-nvswitch-8",
    "a800-nvswitch-8",
    "h800-nvswitch-8",
    "h100-nvswitch-8",
    "h200-nvswitch-8",
    "h200-box8",
    "h200-pair",
    "h200-pair-calibrated",
    "h200-pair-datasheet",
    "h20-nvswitch-8",
    "b200-nvswitch-8",
    "gb200-nvl72",
    "l20-pcie-8",
    "l40s-pcie-8",
    "rtx4090-pcie-8",
    "mi300x-mesh-8",
    "v100-dgx1-8",
    "v100-dgx2-16",
    "h100-rail-128",
    "fat-tree-1024",
];

#[test]
fn all_load_and_hang_together() {
    for name in PROMISED {
        assert!(topology::names().contains(&name), "{name}");
    }
    for name in topology::names() {
        let machine = load(name);
        assert_eq!(machine.name, name);
        assert!(!machine.about.is_empty(), "{name}");
        let count = machine.gpus.len() as u32;
        assert!(
            machine.default_tp >= 2 && machine.default_tp <= count,
            "{name}"
        );
        let mut router = Router::new(&machine);
        // All pairs of a box, a sample of large machines.
        let step = (count / 16).max(1);
        for from in (0..count).step_by(step as usize) {
            for to in (0..count).filter(|to| *to != from) {
                let ends = (machine.gpus[from as usize], machine.gpus[to as usize]);
                let paths = router.paths(ends.0, ends.1);
                assert!(
                    paths.is_ok_and(|paths| !paths.is_empty()),
                    "{name}: {from} → {to}"
                );
            }
        }
    }
}

#[test]
fn every_number_has_a_source() {
    for name in topology::names() {
        let machine = load(name);
        for link in machine.graph.edge_weights() {
            assert!(link.source.is_some(), "{name}: a link without a source");
        }
        for shared in &machine.shared {
            assert!(shared.source.is_some(), "{name}: {}", shared.name);
        }
        for curve in machine.contention.iter().flatten() {
            assert!(curve.efficiency(1) > 0.0, "{name}");
        }
    }
}

/// Published or measured rates of one transfer between two GPUs [GB/s].
#[test]
fn published_peer_bandwidths() {
    for (name, from, to, least, most, whence) in [
        (
            "h200-pair",
            0,
            1,
            382.0,
            396.0,
            "copy engine, 64 MiB to 1 GiB",
        ),
        ("h200-nvswitch-8", 2, 7, 382.0, 396.0, "the same"),
        (
            "h100-nvswitch-8",
            0,
            5,
            368.0,
            380.0,
            "copy engine; p2pBandwidthLatencyTest",
        ),
        ("h800-nvswitch-8", 0, 1, 155.0, 170.0, "about 160 of 200"),
        ("h20-nvswitch-8", 0, 1, 337.0, 380.0, "reported range"),
        (
            "a100-nvswitch-8",
            0,
            1,
            228.0,
            276.0,
            "copy engine; nvbandwidth sample",
        ),
        ("b200-nvswitch-8", 0, 1, 669.0, 726.0, "TMA; copy engine"),
        ("mi300x-mesh-8", 0, 7, 47.0, 49.0, "48 of 64"),
        ("a6000-pairs-8", 0, 2, 25.0, 26.5, "PCIe 4, same side"),
        ("a6000-pairs-8", 0, 7, 21.8, 22.6, "PCIe 4, across sockets"),
        ("l40s-pcie-8", 0, 1, 26.0, 26.5, "one hop"),
        ("l40s-pcie-8", 3, 4, 20.7, 22.6, "across sockets"),
        ("v100-dgx1-8", 0, 3, 47.0, 48.5, "two NVLinks"),
        ("v100-dgx1-8", 0, 1, 23.5, 24.5, "one NVLink"),
        ("v100-dgx2-16", 0, 15, 135.0, 147.0, "six NVLinks"),
        (
            "h100-rail-128",
            0,
            8,
            47.0,
            50.0,
            "one NDR port, within a rail",
        ),
    ] {
        let rate = alone(&load(name), from, to);
        assert!(
            (least..=most).contains(&rate),
            "{name} {from} → {to}: {rate} GB/s, published {least}–{most} ({whence})"
        );
    }
}

#[test]
fn four_flows_across_the_sockets() {
    // All flows of 8 L40S crossing the boundary: 9.70 GB/s each, four in each direction.
    let machine = load("l40s-pcie-8");
    let kind = machine
        .kinds
        .iter()
        .position(|kind| kind == "socket")
        .unwrap();
    let socket = machine
        .graph
        .edge_weights()
        .find(|link| usize::from(link.kind) == kind)
        .unwrap();
    let curve = machine.contention[kind].as_ref().unwrap();
    let each = socket.bandwidth.get() * curve.efficiency(4) / 4.0;
    assert!((each - 9.7e9).abs() < 0.01e9, "{each}");
}

#[test]
fn the_ring_of_the_compass_testbed_crosses_sockets_twice() {
    let machine = load("a6000-pairs-8");
    let mut router = Router::new(&machine);
    let socket = machine
        .kinds
        .iter()
        .position(|kind| kind == "socket")
        .unwrap();
    let crossing: Vec<u32> = (0..8)
        .filter(|&gpu| {
            let ends = (
                machine.gpus[gpu as usize],
                machine.gpus[(gpu as usize + 1) % 8],
            );
            let paths = router.paths(ends.0, ends.1).unwrap();
            let mut links = paths
                .iter()
                .flat_map(|path| &path.legs)
                .flat_map(|leg| &leg.links);
            links.any(|link| usize::from(machine.graph[*link].kind) == socket)
        })
        .collect();
    assert_eq!(crossing, [3, 7]);
}

#[test]
fn every_v100_of_a_dgx1_has_six_nvlinks() {
    let machine = load("v100-dgx1-8");
    let nvlink = machine
        .kinds
        .iter()
        .position(|kind| kind == "nvlink")
        .unwrap();
    for &gpu in &machine.gpus {
        let sum: f64 = machine
            .graph
            .edges(gpu)
            .filter(|edge| usize::from(edge.weight().kind) == nvlink)
            .map(|edge| edge.weight().bandwidth.get())
            .sum();
        // 6 links of 23.9 GB/s; pairs of links at 47.9.
        assert!((143e9..144e9).contains(&sum), "{sum}");
    }
}

#[test]
fn staged_pairs_pass_a_host() {
    for (name, from, to, legs) in [
        ("rtx4090-pcie-8", 0, 1, 2),
        ("v100-dgx1-8", 0, 5, 2),
        ("v100-dgx1-8", 0, 4, 1),
        ("a100-pcie-8", 0, 4, 1),
    ] {
        let machine = load(name);
        let mut router = Router::new(&machine);
        let ends = (machine.gpus[from], machine.gpus[to]);
        let paths = router.paths(ends.0, ends.1).unwrap();
        assert_eq!(paths[0].legs.len(), legs, "{name}: {from} → {to}");
    }
}

#[test]
fn large_machines_have_their_size() {
    assert_eq!(load("h100-rail-128").gpus.len(), 128);
    let tree = load("fat-tree-1024");
    assert_eq!(tree.gpus.len(), 1024);
    // 1024 × 2 directions to leaves, 32 × 32 × 2 to spines.
    assert_eq!(tree.graph.edge_count(), 2 * 1024 + 2 * 32 * 32);
    assert_eq!(tree.device(0).hbm, BytesPerSecond::INFINITE);
    assert_eq!(load("gb200-nvl72").gpus.len(), 72);
}

/// NCCL's all-gather by the library model: base + step + bytes / (efficiency · link), and the
/// launch, against the measured pair: 242 GB/s at 256 MiB per rank, 152 at 16 MiB, 74 at 4 MiB.
#[test]
fn library_collectives_of_the_measured_pair() {
    let machine = load("h200-pair");
    let gpu = device::load("h200").unwrap();
    let library = &gpu.library;
    let (_, efficiency) = library
        .efficiency
        .iter()
        .find(|(kind, _)| kind == "nvlink-pair")
        .unwrap();
    let rate = alone(&machine, 0, 1) * 1e9 * efficiency;
    let launch = gpu.costs.submit_kernel.get() + gpu.costs.kernel_start.get();
    let fixed = launch + library.base.get() + library.step.get();
    for (mib, published, tolerance) in
        [(256.0, 242e9, 0.01), (16.0, 152e9, 0.06), (4.0, 74e9, 0.04)]
    {
        let bytes: f64 = mib * 1024.0 * 1024.0;
        let reached = bytes / (fixed + bytes / rate);
        let error = reached / published - 1.0;
        assert!(
            error.abs() < tolerance,
            "{mib} MiB: {reached:e} ({error:+.3})"
        );
    }
}
