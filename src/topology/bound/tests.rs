//! Bounds in closed form.

use super::super::build::Builder;
use super::*;

fn best(topology: &Topology, kind: Kind, bytes: f64) -> f64 {
    let gpus: Vec<u32> = (0..topology.gpus.len() as u32).collect();
    bounds(topology, kind, bytes, &gpus)[0].seconds.get()
}

fn close(got: f64, want: f64) {
    assert!((got / want - 1.0).abs() < 1e-8, "{got} ≠ {want}");
}

fn switch(count: usize, bandwidth: f64, latency: f64) -> Topology {
    let mut b = Builder::new("switch");
    let gpus = b.gpus(count);
    let switch = b.switch("s");
    for &gpu in &gpus {
        b.link(gpu, switch, "x", bandwidth, latency);
    }
    b.build()
}

#[test]
fn a_switch_bounds_by_its_ports() {
    for count in [2, 8, 100] {
        let t = switch(count, 50e9, 0.0);
        let (n, s) = (count as f64, 1e9);
        close(best(&t, Kind::AllGather, s), (n - 1.0) / n * s / 50e9);
        close(best(&t, Kind::ReduceScatter, s), (n - 1.0) / n * s / 50e9);
        close(best(&t, Kind::AllReduce, s), 2.0 * (n - 1.0) / n * s / 50e9);
        close(best(&t, Kind::AllToAll, s), (n - 1.0) / n * s / 50e9);
        close(best(&t, Kind::PointToPoint, s), s / 50e9);
    }
}

#[test]
fn the_least_latency_is_added() {
    let t = switch(4, 50e9, 1e-6);
    close(best(&t, Kind::PointToPoint, 5e4), 1e-6 + 2e-6);
    close(best(&t, Kind::AllGather, 4e5), 6e-6 + 2e-6);
}

#[test]
fn a_narrow_crossing_bounds_more_than_ports() {
    // Two boxes of 4 GPUs with ports of 50 and a crossing of 20 one way and 25 back.
    let mut b = Builder::new("boxes");
    let gpus = b.gpus(8);
    let boxes = [b.switch("s0"), b.switch("s1")];
    for (i, &gpu) in gpus.iter().enumerate() {
        b.link(gpu, boxes[i / 4], "x", 50e9, 0.0);
    }
    b.one_way(boxes[0], boxes[1], "y", 20e9, 0.0);
    b.one_way(boxes[1], boxes[0], "y", 25e9, 0.0);
    let t = b.build();
    // Four of eight parts cross at 20: S/2 / 20; the ports would allow (7/8)·S / 50.
    close(best(&t, Kind::AllGather, 1e9), 0.5 / 20.0);
    close(best(&t, Kind::ReduceScatter, 1e9), 0.5 / 20.0);
    close(best(&t, Kind::AllReduce, 1e9), 1.0 / 20.0);
    // 16 of the 64 blocks' pairs cross: 4·4·S/8 / 20.
    close(best(&t, Kind::AllToAll, 1e9), 2.0 / 20.0);
    close(best(&t, Kind::PointToPoint, 1e9), 1.0 / 50.0);
    let names: Vec<_> = (bounds(&t, Kind::AllGather, 1e9, &[0, 1, 2, 3, 4, 5, 6, 7]).into_iter())
        .map(|bound| (bound.name, bound.tight))
        .collect();
    assert_eq!(names[0], ("flow into gpu4".to_owned(), Some(true)));
}

#[test]
fn bridges_meet_the_double_ring() {
    // Two rings gather m at (8/3)·B. The worst cut parts the two bridged pairs: m/2 over two
    // ports, 4·B, so the double ring does not meet the bound.
    let mut b = Builder::new("bridges");
    let gpus = b.gpus(4);
    let pcie = b.switch("pcie0");
    for &gpu in &gpus {
        b.link(gpu, pcie, "pcie", 24e9, 0.0);
    }
    for pair in gpus.chunks(2) {
        b.link(pair[0], pair[1], "nvlink", 52e9, 0.0);
    }
    let t = b.build();
    let bound = best(&t, Kind::AllGather, 1e9);
    close(bound, 0.5 / 48.0);
    assert!(bound <= 3.0 / 8.0 / 24.0);
}

#[test]
fn contention_and_shared_capacities_are_relaxed() {
    let mut b = Builder::new("relaxed");
    let gpus = b.gpus(3);
    let s = b.switch("s");
    let mut links = Vec::new();
    for &gpu in &gpus {
        links.extend([b.link(gpu, s, "pcie", 10e9, 0.0).0]);
    }
    b.shared("all", &links, 10e9);
    b.contention("pcie", &[(1, 0.5), (2, 0.8), (3, 0.1)]);
    let t = b.build();
    let all = bounds(&t, Kind::AllGather, 3e9, &[0, 1, 2]);
    close(all[0].seconds.get(), 2.0 / 8.0);
    assert!(all.iter().all(|bound| bound.tight.is_none()));
}

#[test]
fn nothing_to_move_has_no_bound() {
    let t = switch(4, 1.0, 0.0);
    assert!(bounds(&t, Kind::AllGather, 1e9, &[2]).is_empty());
    assert!(bounds(&t, Kind::AllGather, 1e9, &[]).is_empty());
    assert!(bounds(&t, Kind::AllGather, 1e9, &[0, 9]).is_empty());
}
