//! Chosen ways between GPUs: through a ring of slots in host memory, and split over two paths.

use std::sync::Arc;

use duet::device::{self, Device};
use duet::operator::Kind;
use duet::topology::build::Builder;
use duet::topology::paths::with_path;
use duet::topology::{Shared, Topology};
use duet::units::{Bytes, BytesPerSecond, Seconds};

use crate::support::*;

const LINK: f64 = 400.0 * GB;
const PCIE: f64 = 50.0 * GB;
const EVENT: f64 = 5.0 * US;

/// Two GPUs with a direct link and a host, and an event between GPUs of 5 us.
fn pair(path: &str) -> Topology {
    pair_of(path, device::ideal())
}

fn pair_of(path: &str, mut device: Device) -> Topology {
    device.costs.event_peer = Seconds::of(EVENT);
    let mut b = Builder::with_device("pair", Arc::new(device));
    let gpus = b.gpus(2);
    let host = b.host("dram0");
    b.link(gpus[0], gpus[1], "nvlink", LINK, 0.0);
    for gpu in gpus {
        b.link(gpu, host, "pcie", PCIE, 0.0);
    }
    with_path(&b.build(), path.parse().unwrap())
}

fn message(bytes: u64, path: &str) -> f64 {
    let topology = pair(path);
    let schedule = collective(Kind::PointToPoint, bytes, 2, "direct", &topology);
    run(&schedule, &topology).makespan
}

#[test]
fn chunks_are_handed_over_by_events() {
    // Eight chunks of s: both ways are as fast, so slots come back in time. The last chunk leaves
    // after 8·s/B, is known 5 us later and arrives after another s/B.
    let chunk = MIB as f64 / PCIE;
    let expected = 9.0 * chunk + EVENT;
    assert_close(message(8 * MIB, "host:1MiB"), expected, 1e-9);
}

#[test]
fn the_first_chunk_has_a_start_of_its_own() {
    // Of eight chunks the first starts in 7 us at both ends, the others in 3 us: the last arrives after
    // 9·s/B + 5 us + 2·7 us + 7·3 us. Copies over the link start in 2 us.
    let mut device = device::ideal();
    device.costs.copy_start = Seconds::of(2.0 * US);
    let time = |device: &Device, path: &str| {
        let topology = pair_of(path, device.clone());
        let schedule = collective(Kind::PointToPoint, 8 * MIB, 2, "direct", &topology);
        run(&schedule, &topology).makespan
    };
    let flowing = 9.0 * MIB as f64 / PCIE + EVENT;
    assert_close(time(&device, "host:1MiB"), flowing + 18.0 * US, 1e-9);
    device.costs.more.host_copy_start = Some(Seconds::of(7.0 * US));
    assert_close(time(&device, "host:1MiB"), flowing + 63.0 * US, 1e-9);
    device.costs.more.host_copy_next = Some(Seconds::of(3.0 * US));
    assert_close(time(&device, "host:1MiB"), flowing + 35.0 * US, 1e-9);
    let link = 8.0 * MIB as f64 / LINK + 2.0 * US;
    assert_close(time(&device, "p2p"), link, 1e-9);
}

#[test]
fn few_slots_hold_up_small_chunks() {
    // A slot goes round in out + event + in + event; four of them bound the rate when that is more
    // than four chunks' time. Chunk 4·q + r of 64 ends leaving at q·round + (r + 1)·s/B.
    let size = 64.0 * 1024.0;
    let chunk = size / PCIE;
    let round = 2.0 * chunk + 2.0 * EVENT;
    assert!(round > 4.0 * chunk);
    let expected = 15.0 * round + 4.0 * chunk + EVENT + chunk;
    assert_close(message(64 * 64 * 1024, "host:64KiB"), expected, 1e-9);
}

#[test]
fn chunks_are_whole_rows() {
    // Rows of a message are 1024 elements of 2 bytes: 3000 bytes are one row.
    assert_close(message(MIB, "host:3000B"), message(MIB, "host:2KiB"), 1e-12);
}

#[test]
fn a_hybrid_ends_with_its_slower_part() {
    // 1/8 of 8 MiB through the host in one chunk: two stretches and one event.
    let host = 2.0 * MIB as f64 / PCIE + EVENT;
    let link = 7.0 * MIB as f64 / LINK;
    assert!(host > link);
    assert_close(message(8 * MIB, "hybrid:0.125:1MiB"), host, 1e-9);
    // Shares of 0 and 1 are the single paths.
    let whole = message(8 * MIB, "host:1MiB");
    assert_close(message(8 * MIB, "hybrid:1:1MiB"), whole, 1e-12);
    assert_close(
        message(8 * MIB, "hybrid:0:1MiB"),
        8.0 * MIB as f64 / LINK,
        1e-9,
    );
}

#[test]
fn the_library_keeps_its_own_way() {
    let library = |path: &str| {
        let topology = pair(path);
        let schedule = collective(Kind::AllGather, 64 * MIB, 2, "library", &topology);
        run(&schedule, &topology).makespan
    };
    assert_eq!(library("host:1MiB"), library("p2p"));
}

#[test]
fn memory_carries_less_the_more_is_staged() {
    // Host memory of 30 GB/s with rings of up to 8 MiB, 15 GB/s from 16 MiB on; both legs share it.
    let time = |path: &str| {
        let mut topology = pair(path);
        let links: Vec<_> = (topology.graph.edge_indices())
            .filter(|&link| topology.graph[link].kind == 1)
            .collect();
        topology.shared.push(Shared {
            name: "dram".to_owned(),
            links,
            bandwidth: BytesPerSecond::of(1e15),
            footprint: vec![
                (Bytes::new(8 * MIB), BytesPerSecond::of(30.0 * GB)),
                (Bytes::new(16 * MIB), BytesPerSecond::of(15.0 * GB)),
            ],
            half_duplex: false,
            source: None,
        });
        let schedule = collective(Kind::PointToPoint, 64 * MIB, 2, "direct", &topology);
        run(&schedule, &topology).makespan
    };
    // Two flows of 15 GB/s each while both legs work, one of 30 at the ends.
    let (small, large) = (time("host:2MiB"), time("host:4MiB"));
    let both = |rate: f64| 2.0 * 64.0 * MIB as f64 / rate;
    assert_close(small, both(30.0 * GB), 0.02);
    assert_close(large, both(15.0 * GB), 0.02);
}
