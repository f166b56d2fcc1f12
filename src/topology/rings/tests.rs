//! Rings of known machines, and the search against brute force.

use proptest::prelude::*;

use super::super::build::Builder;
use super::super::{NodeId, Topology};
use super::*;

/// `pairs` NVLink-bridged GPU pairs; every GPU on its own port of its socket's root complex.
fn bridged(pairs: usize, sockets: usize, bridges: bool) -> Topology {
    let mut b = Builder::new("bridged");
    let gpus = b.gpus(2 * pairs);
    let roots: Vec<NodeId> = (0..sockets).map(|i| b.root(&format!("cpu{i}"))).collect();
    for (i, &gpu) in gpus.iter().enumerate() {
        b.link(gpu, roots[i * sockets / gpus.len()], "pcie", 24e9, 1e-6);
    }
    for pair in roots.windows(2) {
        b.link(pair[0], pair[1], "socket", 40e9, 0.5e-6);
    }
    for pair in gpus.chunks(2).filter(|_| bridges) {
        b.link(pair[0], pair[1], "nvlink", 52e9, 1.5e-6);
    }
    b.build()
}

fn all(topology: &Topology) -> Vec<u32> {
    (0..topology.gpus.len() as u32).collect()
}

fn found(topology: &Topology) -> Rings {
    find(topology, &all(topology))
}

fn close(got: BytesPerSecond, want: f64) {
    assert!((got.get() / want - 1.0).abs() < 1e-9, "{got} ≠ {want}");
}

#[test]
fn bridges_double_the_ring() {
    // m/T = (4/3)·B of one ring and (8/3)·B of two, with T = 3·(m/4)/x.
    let rings = found(&bridged(2, 1, true));
    close(rings.single.bandwidth, 24e9);
    assert_eq!(rings.single.order, [0, 1, 2, 3]);
    assert_eq!(rings.single.latency.get(), 2e-6);
    let pair = rings.pair.unwrap();
    assert_eq!(
        (pair.first.order, pair.second.order),
        (vec![0, 1, 2, 3], vec![0, 3, 2, 1])
    );
    close(pair.combined, 48e9);
    assert!((pair.share_first - 0.5).abs() < 1e-9);
    assert!(rings.exact);
}

#[test]
fn no_bridges_no_gain() {
    let rings = found(&bridged(2, 1, false));
    close(rings.single.bandwidth, 24e9);
    assert_eq!(rings.pair, None);
    assert_eq!(
        rings.no_pair_reason.unwrap(),
        "no pair beats one ring: forward and backward already share `gpu0->cpu0` (24 GB/s)"
    );
}

#[test]
fn a_shared_uplink_gives_no_gain() {
    // Both GPUs of a pair behind one switch: its uplink carries both rings.
    let mut b = Builder::new("uplink");
    let gpus = b.gpus(4);
    let root = b.root("cpu0");
    for i in 0..2 {
        let switch = b.switch(&format!("pcie{i}"));
        b.link(switch, root, "pcie", 24e9, 1e-6);
        b.link(gpus[2 * i], switch, "pcie", 24e9, 1e-6);
        b.link(gpus[2 * i + 1], switch, "pcie", 24e9, 1e-6);
        b.link(gpus[2 * i], gpus[2 * i + 1], "nvlink", 52e9, 1.5e-6);
    }
    let rings = found(&b.build());
    close(rings.single.bandwidth, 24e9);
    assert_eq!(rings.pair, None);
}

#[test]
fn half_duplex_gives_no_gain() {
    // One capacity over both directions of every port.
    let mut b = Builder::new("half");
    let gpus = b.gpus(4);
    let root = b.root("cpu0");
    for (i, &gpu) in gpus.iter().enumerate() {
        let (up, down) = b.link(gpu, root, "pcie", 24e9, 1e-6);
        b.shared(&format!("port{i}"), &[up, down], 24e9);
    }
    for pair in gpus.chunks(2) {
        b.link(pair[0], pair[1], "nvlink", 52e9, 1.5e-6);
    }
    let rings = found(&b.build());
    close(rings.single.bandwidth, 24e9);
    assert_eq!(rings.pair, None);
    assert!(
        rings
            .no_pair_reason
            .unwrap()
            .contains("the shared capacity `port")
    );
}

#[test]
fn two_sockets_are_crossed_twice() {
    let topology = bridged(4, 2, true);
    let rings = found(&topology);
    let order = &rings.single.order;
    assert_eq!(order, &[0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(order.len() - 1, 7); // steps of an all-gather
    let side = |gpu: u32| gpu / 4;
    let crossing: Vec<_> = (0..8)
        .map(|i| (order[i], order[(i + 1) % 8]))
        .filter(|(from, to)| side(*from) != side(*to))
        .collect();
    assert_eq!(crossing, [(3, 4), (7, 0)]);
    close(rings.single.bandwidth, 24e9);
    // The socket link carries one ring in either direction of each.
    let pair = rings.pair.unwrap();
    close(pair.combined, 40e9);
    assert_eq!(pair.second.order, [0, 7, 6, 5, 4, 3, 2, 1]);
}

#[test]
fn a_switch_has_one_ring() {
    let mut b = Builder::new("nvswitch");
    let gpus = b.gpus(8);
    let switch = b.switch("nvswitch");
    for &gpu in &gpus {
        b.link(gpu, switch, "nvlink", 450e9, 1e-6);
    }
    let rings = found(&b.build());
    close(rings.single.bandwidth, 450e9);
    assert_eq!((rings.pair, rings.exact), (None, true));
}

#[test]
fn a_mesh_has_disjoint_rings() {
    let mut b = Builder::new("mesh");
    let gpus = b.gpus(8);
    for i in 0..8 {
        for j in i + 1..8 {
            b.link(gpus[i], gpus[j], "xgmi", 48e9, 1e-6);
        }
    }
    let rings = found(&b.build());
    close(rings.single.bandwidth, 48e9);
    let pair = rings.pair.unwrap();
    close(pair.combined, 96e9);
    assert_eq!(pair.first.order, all(&no_links(8)));
}

/// A topology of `count` GPUs only, for its GPU list.
fn no_links(count: usize) -> Topology {
    let mut b = Builder::new("gpus");
    b.gpus(count);
    b.build()
}

#[test]
fn degenerate_sets_say_why() {
    let topology = bridged(2, 1, true);
    let two = find(&topology, &[2, 3]);
    assert_eq!(two.single.order, [2, 3]);
    close(two.single.bandwidth, 52e9);
    assert_eq!(two.pair, None);
    assert!(
        two.no_pair_reason
            .unwrap()
            .starts_with("two GPUs make one ring only")
    );
    assert!(find(&topology, &[1]).note.contains("at least two"));
    assert!(find(&topology, &[]).note.contains("at least two"));
    assert!(find(&topology, &[0, 9]).note.contains("no GPU 9"));
    let apart = find(&no_links(2), &[0, 1]);
    assert_eq!(apart.single.bandwidth.get(), 0.0);
    assert!(apart.note.contains("cannot reach"));
}

#[test]
fn many_gpus_meet_their_bounds() {
    // 16 hosts of 8 GPUs: a switch inside, one network port each.
    let mut b = Builder::new("rails");
    let gpus = b.gpus(128);
    let spine = b.switch("spine");
    for box_ in gpus.chunks(8) {
        let inside = b.switch("nvswitch");
        for &gpu in box_ {
            b.link(gpu, inside, "nvlink", 450e9, 0.5e-6);
            b.link(gpu, spine, "ib", 50e9, 2e-6);
        }
    }
    let rings = found(&b.build());
    close(rings.single.bandwidth, 50e9);
    close(rings.pair.unwrap().combined, 100e9);
    assert!(rings.exact, "{}", rings.note);
}

#[test]
fn sixteen_scattered_pairs_are_sorted_out() {
    // Bridges join i and i + 8, so file order uses none and has no fast reverse.
    let mut b = Builder::new("scattered");
    let gpus = b.gpus(16);
    let root = b.root("cpu0");
    for &gpu in &gpus {
        b.link(gpu, root, "pcie", 24e9, 1e-6);
    }
    for i in 0..8 {
        b.link(gpus[i], gpus[i + 8], "nvlink", 52e9, 1.5e-6);
    }
    let rings = found(&b.build());
    close(rings.single.bandwidth, 24e9);
    close(rings.pair.unwrap().combined, 48e9);
    assert!(rings.exact, "{}", rings.note);
}

/// Every order of 1…n−1 after 0.
fn orders(count: u32) -> Vec<Vec<u32>> {
    let mut orders = vec![vec![0]];
    for _ in 1..count {
        orders = (orders.iter())
            .flat_map(|order| {
                let left = (1..count).filter(move |gpu| !order.contains(gpu));
                left.map(move |gpu| [order.as_slice(), &[gpu]].concat())
            })
            .collect();
    }
    orders
}

/// The most of x + y over the corners of the constraints and axes.
fn by_corners(lines: &[(f64, f64, f64)]) -> f64 {
    let mut lines = lines.to_vec();
    lines.extend([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0)]);
    let bounds = &lines[..lines.len() - 2];
    let mut best = 0.0_f64;
    for (i, p) in lines.iter().enumerate() {
        for q in &lines[i + 1..] {
            let det = p.0 * q.1 - q.0 * p.1;
            if det.abs() > 1e-12 {
                let x = (p.2 * q.1 - q.2 * p.1) / det;
                let y = (p.0 * q.2 - q.0 * p.2) / det;
                let inside = |c: &(f64, f64, f64)| c.0 * x + c.1 * y <= c.2 * (1.0 + 1e-9);
                if x >= -1e-9 && y >= -1e-9 && bounds.iter().all(inside) {
                    best = best.max(x + y);
                }
            }
        }
    }
    best
}

fn brute_force(topology: &Topology, gpus: &[u32]) -> (f64, f64) {
    let mut edges = Edges::new(topology, gpus);
    let loads: Vec<Load> = (orders(gpus.len() as u32).iter())
        .map(|order| edges.load(order))
        .collect();
    let resources = edges.resources() as u32;
    let single = (loads.iter().map(|load| load.bandwidth(&edges))).fold(0.0, f64::max);
    let mut pair = 0.0_f64;
    for first in &loads {
        for second in &loads {
            let lines: Vec<_> = (0..resources)
                .map(|r| {
                    let at = r as usize;
                    let flows = first.flows[at] + second.flows[at];
                    (first.load[at], second.load[at], edges.capacity(r, flows))
                })
                .filter(|(a, b, _)| a + b > 0.0)
                .collect();
            pair = pair.max(by_corners(&lines));
        }
    }
    (single, pair)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn equals_brute_force(
        count in 2..6_usize,
        links in prop::collection::vec((0..5_usize, 0..5_usize, 1..5_u8), 0..9),
        ports in prop::collection::vec(1..4_u8, 5),
        shared in prop::collection::vec(any::<bool>(), 5),
        fade in prop::sample::select(vec![1.0, 0.7, 0.5]),
        p2p in any::<bool>(),
    ) {
        let mut b = Builder::new("random");
        let gpus = b.gpus(count);
        let switches = [b.switch("s0"), b.switch("s1")];
        b.link(switches[0], switches[1], "up", 3.0, 1e-6);
        for (i, &gpu) in gpus.iter().enumerate() {
            let (up, down) = b.link(gpu, switches[i % 2], "pcie", f64::from(ports[i]), 1e-6);
            if shared[i] {
                b.shared(&format!("port{i}"), &[up, down], f64::from(ports[i]) * 1.5);
            }
        }
        for (from, to, bandwidth) in links {
            if from % count != to % count {
                let (from, to) = (gpus[from % count], gpus[to % count]);
                b.one_way(from, to, "nvlink", f64::from(bandwidth), 1.5e-6);
            }
        }
        let host = b.host("dram0");
        b.link(host, switches[0], "ddr", 9.0, 0.1e-6);
        b.contention("pcie", &[(1, 1.0), (2, fade), (4, fade * 0.9)]);
        let mut topology = b.build();
        topology.p2p = p2p;
        let rings = found(&topology);
        let (single, pair) = brute_force(&topology, &all(&topology));
        prop_assert!((rings.single.bandwidth.get() / single - 1.0).abs() < 1e-9);
        match rings.pair {
            Some(found) => prop_assert!((found.combined.get() / pair - 1.0).abs() < 1e-6),
            None => prop_assert!(pair <= single * (1.0 + 1e-6), "{} {}", pair, single),
        }
    }

    #[test]
    fn shares_equal_the_best_corner(
        lines in prop::collection::vec((0..4_u8, 0..4_u8, 1..9_u8), 1..8),
    ) {
        let lines: Vec<_> = (lines.iter().map(|l| (l.0.into(), l.1.into(), l.2.into())))
            .chain([(1.0, 1.0, 30.0)])
            .collect();
        let constraints: Vec<_> = (lines.iter().zip(0..))
            .map(|(&(a, b, capacity), resource)| pair::Constraint { resource, a, b, capacity })
            .collect();
        let total = Total::best(&constraints);
        prop_assert!((total.rate / by_corners(&lines) - 1.0).abs() < 1e-6);
        let (x, y) = (total.rate * total.share, total.rate * (1.0 - total.share));
        for (a, b, capacity) in lines {
            prop_assert!(a * x + b * y <= capacity * (1.0 + 1e-9));
        }
    }
}

#[test]
#[ignore = "prints times; run with --release"]
fn speed() {
    let time = |what: &str, topology: &Topology| {
        let start = std::time::Instant::now();
        let rings = found(topology);
        let elapsed = start.elapsed().as_secs_f64() * 1e3;
        let pair = rings.pair.map_or(0.0, |pair| pair.combined.get());
        println!(
            "{what}: {elapsed:.2} ms, {} and {pair:e}, {}",
            rings.single.bandwidth, rings.note
        );
    };
    time("bridged 8", &bridged(4, 2, true));
    let mut b = Builder::new("mesh");
    let gpus = b.gpus(8);
    for i in 0..8 {
        for j in i + 1..8 {
            b.link(gpus[i], gpus[j], "xgmi", 48e9, 1e-6);
        }
    }
    time("mesh 8", &b.build());
    let mut b = Builder::new("uneven mesh");
    let gpus = b.gpus(8);
    for i in 0..8_usize {
        for j in i + 1..8 {
            let bandwidth = 20e9 + ((i * 37 + j * 101) % 29) as f64 * 1e9;
            b.link(gpus[i], gpus[j], "xgmi", bandwidth, 1e-6);
        }
    }
    time("uneven mesh 8", &b.build());
    for hosts in [16, 128] {
        let mut b = Builder::new("rails");
        let gpus = b.gpus(8 * hosts);
        let spine = b.switch("spine");
        for group in gpus.chunks(8) {
            let inside = b.switch("nvswitch");
            for &gpu in group {
                b.link(gpu, inside, "nvlink", 450e9, 0.5e-6);
                b.link(gpu, spine, "ib", 50e9, 2e-6);
            }
        }
        time(&format!("rails {}", 8 * hosts), &b.build());
    }
    for pairs in [8, 64, 512] {
        time(&format!("bridged {}", 2 * pairs), &bridged(pairs, 4, true));
    }
}

/// GPUs joined only to their neighbours: pairs that are no neighbours have no route, and the ring
/// goes round the neighbours, in whatever order they are numbered; backwards is the second ring.
#[test]
fn goes_round_where_only_neighbours_are_joined() {
    let mut b = Builder::new("neighbours");
    let gpus = b.gpus(6);
    let round = [0, 3, 1, 5, 2, 4];
    for i in 0..6 {
        b.link(
            gpus[round[i]],
            gpus[round[(i + 1) % 6]],
            "nvlink",
            50e9,
            1e-6,
        );
    }
    let topology = b.build();
    let rings = find(&topology, &[0, 1, 2, 3, 4, 5]);
    assert_eq!(rings.single.order, [0, 3, 1, 5, 2, 4]);
    close(rings.single.bandwidth, 50e9);
    close(rings.pair.unwrap().combined, 100e9);
}

/// A line has no ring: the message names the first pair without a route.
#[test]
fn says_why_there_is_no_ring() {
    let mut b = Builder::new("line");
    let gpus = b.gpus(3);
    b.link(gpus[0], gpus[1], "nvlink", 50e9, 1e-6);
    b.link(gpus[1], gpus[2], "nvlink", 50e9, 1e-6);
    let rings = find(&b.build(), &[0, 1, 2]);
    assert!(rings.pair.is_none());
    assert!(rings.note.starts_with("no ring: `gpu"), "{}", rings.note);
}
