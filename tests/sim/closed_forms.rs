//! Networks whose time is known exactly: 50 GB/s links, 500 ns each, 1 MiB per message, GPUs
//! without limits of their own. t = 2^20 B / 50 GB/s = 20.97152 µs is one message's time.

use duet::operator::Kind;

use crate::support::{GB, MIB, US, assert_close, collective, gpu_ring, run, star, switch_ring};

const EXACT: f64 = 1e-9;
const T: f64 = MIB as f64 / 50e9;
const ALPHA: f64 = 0.5e-6;

/// 7 steps of one link each: 7·(α + t) = 150.30064 µs.
#[test]
fn ring_all_gather_over_8() {
    let topology = gpu_ring(8, 50.0 * GB, ALPHA);
    let schedule = collective(Kind::AllGather, 8 * MIB, 8, "ring", &topology);
    let timeline = run(&schedule, &topology);
    assert_close(timeline.makespan, 7.0 * (ALPHA + T), EXACT);
    assert_close(timeline.makespan, 150.300_64 * US, EXACT);
}

/// Every GPU sends 7 messages at once through its one link: 2α + 7t = 147.80064 µs.
#[test]
fn direct_all_to_all_over_8_on_a_switch() {
    let topology = star(8, 50.0 * GB, ALPHA);
    let schedule = collective(Kind::AllToAll, 8 * MIB, 8, "direct", &topology);
    let timeline = run(&schedule, &topology);
    assert_close(timeline.makespan, 2.0 * ALPHA + 7.0 * T, EXACT);
    assert_close(timeline.makespan, 147.800_64 * US, EXACT);
}

/// Each + link carries distances 1–4, 1 + 2 + 3 + 4 = 10 messages, and is never idle after the
/// first α: α + 10t = 210.21520 µs.
#[test]
fn all_to_all_over_a_ring_of_8_switches() {
    let topology = switch_ring(8, 50.0 * GB, ALPHA);
    let schedule = collective(Kind::AllToAll, 8 * MIB, 8, "direct", &topology);
    let timeline = run(&schedule, &topology);
    assert_close(timeline.makespan, ALPHA + 10.0 * T, EXACT);
    assert_close(timeline.makespan, 210.215_20 * US, EXACT);
}

/// Hop by hop between GPUs there are 4 rounds of 4, 3, 2 and 1 messages: 4α + 10t = 211.71520 µs.
#[test]
fn all_to_all_over_a_ring_of_8_gpus_hop_by_hop() {
    let topology = gpu_ring(8, 50.0 * GB, ALPHA);
    let schedule = collective(Kind::AllToAll, 8 * MIB, 8, "ring", &topology);
    let timeline = run(&schedule, &topology);
    assert_close(timeline.makespan, 4.0 * ALPHA + 10.0 * T, EXACT);
    assert_close(timeline.makespan, 211.715_20 * US, EXACT);
}

/// Where neighbours have links of their own, the library runs its channels both ways round; pairs
/// that are no neighbours need no route. 7 steps of α, and 7 messages at twice the bandwidth.
#[test]
fn library_uses_both_directions_between_neighbours() {
    let topology = gpu_ring(8, 50.0 * GB, ALPHA);
    let schedule = collective(Kind::AllGather, 8 * MIB, 8, "library", &topology);
    let timeline = run(&schedule, &topology);
    assert_close(timeline.makespan, 7.0 * (ALPHA + T / 2.0), EXACT);
}
