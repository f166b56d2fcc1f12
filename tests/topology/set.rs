//! Overrides.

use duet::device::{DType, gemm::gemm};
use duet::topology::{Topology, TopologyError, load, parse};

use crate::resolve;

const BOX: &str = "
name: box
gpu: ideal
nodes: { gpus: 2, hosts: 1, switches: [sw.0] }
links:
  - { between: [gpu0..1, sw.0], kind: pcie, bandwidth: 24 GB/s, latency: 1 us }
  - { between: [sw.0, dram0], kind: host, bandwidth: 30 GB/s, latency: 500 ns, duplex: half }
shared:
  - { name: up, links: [gpu0->sw.0], bandwidth: 10 GB/s }
routes:
  - { from: gpu0, to: gpu1, via: [sw.0] }
";

fn with(sets: &[&str]) -> Result<Topology, TopologyError> {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    parse(BOX, "box.yaml", &sets, &resolve)
}

fn bandwidths(sets: &[&str]) -> Vec<f64> {
    let topology = with(sets).unwrap_or_else(|error| panic!("{error}"));
    let links = topology.graph.edge_weights();
    links.map(|link| link.bandwidth.get() / 1e9).collect()
}

fn refusal(set: &str) -> String {
    with(&[set]).expect_err("accepted").to_string()
}

#[test]
fn bandwidths_by_kind_by_name_and_all() {
    assert_eq!(
        bandwidths(&["links.pcie.bandwidth=2x"]),
        [48., 48., 48., 48., 30., 30.]
    );
    assert_eq!(bandwidths(&["links.*.bandwidth=400 Gbit/s"]), [50.; 6]);
    assert_eq!(
        bandwidths(&["links.gpu0->sw.0.bandwidth=1 GB/s"]),
        [1., 24., 24., 24., 30., 30.]
    );
    assert_eq!(
        bandwidths(&["links.gpu1<->sw.0.bandwidth = 0.5x"]),
        [24., 24., 12., 12., 30., 30.]
    );
    assert_eq!(
        bandwidths(&["links.*->sw.0.bandwidth=1 GB/s", "links.*.bandwidth=2x"]),
        [2., 48., 2., 48., 60., 2.]
    );
}

#[test]
fn latencies_reach_explicit_routes() {
    let t = with(&["links.gpu0->sw.0.latency=3 us"]).unwrap();
    // 3 us + 1 us.
    assert_eq!(t.explicit[0].paths[0].legs[0].latency.get(), 3e-6 + 1e-6);
}

#[test]
fn half_duplex_capacities_follow_their_link() {
    let t = with(&["links.host.bandwidth=2x"]).unwrap();
    let of = |name: &str| {
        let shared = t.shared.iter().find(|shared| shared.name == name).unwrap();
        shared.bandwidth.get() / 1e9
    };
    assert_eq!((of("sw.0<->dram0"), of("up")), (60., 10.));
    let t = with(&["shared.up.bandwidth=2x", "shared.*.bandwidth=2x"]).unwrap();
    let all: Vec<f64> = t.shared.iter().map(|s| s.bandwidth.get() / 1e9).collect();
    assert_eq!(all, [60., 40.]);
}

#[test]
fn switches_chunks_and_gpus() {
    let t = with(&[
        "p2p=false",
        "staging_chunk=1 MiB",
        "default_tp=1",
        "ties=spread",
    ])
    .unwrap();
    assert!(!t.p2p && t.default_tp == 1 && t.staging_chunk.get() == 1 << 20);
    assert_eq!(t.explicit[0].paths[0].chunk.get(), 1 << 20);
    assert_eq!(
        with(&["staging_chunk=0.5x"]).unwrap().staging_chunk.get(),
        2 << 20
    );
    let t = with(&["gpu.sms=7"]).unwrap();
    assert_eq!(t.device(1).sms, 7);
}

#[test]
fn refusals_name_the_remedy() {
    let cases = [
        ("links.pcie.bandwidth", "no `=`: write PATH=VALUE"),
        (
            "links.pcei.bandwidth=2x",
            "no link is of kind `pcei`: did you mean `pcie`?",
        ),
        (
            "links.pcie.bandwith=2x",
            "`bandwith` is not a field of a link: did you mean `bandwidth`?",
        ),
        (
            "links.pcie=2x",
            "`links.pcie` names no field: add `.bandwidth` or `.latency`",
        ),
        (
            "links.gpu9->sw.0.latency=1 us",
            "`gpu9` is not a node: did you mean `gpu0`?",
        ),
        (
            "links.gpu0->gpu1.latency=1 us",
            "there is no link `gpu0->gpu1`",
        ),
        ("links.gpu0->.latency=1 us", "write `from->to`"),
        (
            "links.pcie.bandwidth=2",
            "`2` has no unit: write e.g. `2 GB/s`",
        ),
        ("links.pcie.bandwidth=0x", "`0x` is no factor"),
        ("links.pcie.bandwidth=-1x", "`-1x` is no factor"),
        ("links.pcie.bandwidth=1e300x", "infinite"),
        ("links.pcie.bandwidth=0 GB/s", "a bandwidth of zero"),
        (
            "links.pcie.bandwidth=1e-320x",
            "below 1 B/s: write at least",
        ),
        (
            "shared.upp.bandwidth=2x",
            "there is no shared capacity `upp`: did you mean `up`?",
        ),
        (
            "shared.up.latency=2x",
            "`latency` is not a field of a shared capacity",
        ),
        ("gpu.smss=7", "did you mean `sms`?"),
        ("p2p=yes", "`yes` is not a value: write false or true"),
        ("staging_chunk=0 B", "zero"),
        ("staging_chunk=1e30x", "too many bytes"),
        ("default_tp=3", "write a number from 1 to 2"),
        ("link.pcie.bandwidth=2x", "did you mean `links`?"),
        ("speed=2x", "paths are `links.KIND.bandwidth`"),
    ];
    for (set, words) in cases {
        let said = refusal(set);
        assert!(said.starts_with(&format!("`--set {set}`: ")), "{said}");
        assert!(said.contains(words), "{said}\nlacks {words}");
    }
}

/// Arithmetic takes 1/0.8 of its time, what memory bounds stays as it was.
#[test]
fn a_sustained_clock_slows_arithmetic_alone() {
    let time = |sets: &[&str], m| {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let topology = load("h200-pair", &sets).unwrap_or_else(|error| panic!("{error}"));
        let gpu = topology.device(0);
        let time = gemm(gpu, DType::Bf16, m, 8192, 8192, gpu.sms).unwrap();
        (time.seconds - time.overhead, gpu.hbm.get())
    };
    let loaded = ["gpu.gemm.loaded=0.8", "clock=sustained"];
    let (boost, hbm) = time(&[], 8192);
    let (slow, same) = time(&loaded, 8192);
    assert!((slow / boost * 0.8 - 1.0).abs() < 1e-9, "{slow} {boost}");
    assert_eq!(hbm, same);
    let few = |sets: &[&str]| time(sets, 16).0;
    assert!((few(&loaded) / few(&[]) - 1.0).abs() < 1e-9);
    // There and back, and twice is once.
    let back = [&loaded[..], &["clock=boost"]].concat();
    assert!((time(&back, 8192).0 / boost - 1.0).abs() < 1e-9);
    let twice = [&loaded[..], &["clock=sustained"]].concat();
    assert_eq!(time(&twice, 8192).0, slow);
    // In any order with what it goes with.
    let orders = [
        ["gpu.gemm.loaded=0.8", "clock=sustained", "gpu.peak=0.5x"],
        ["gpu.peak=0.5x", "gpu.gemm.loaded=0.8", "clock=sustained"],
        [
            "gpu.gemm.loaded=0.5",
            "clock=sustained",
            "gpu.gemm.loaded=0.8",
        ],
    ];
    let [one, two, three] = orders.map(|sets| time(&sets, 8192).0);
    assert!((one / two - 1.0).abs() < 1e-9);
    assert!((three / slow - 1.0).abs() < 1e-9);
    let said = refusal("clock=sustained");
    assert!(
        said.contains("profile `ideal` does not say how fast it is under load"),
        "{said}"
    );
    assert!(refusal("clock=fast").contains("write boost or sustained"));
}

/// 8192³ of a calibrated machine takes longer by the measured share, a GEMM of few rows as before.
#[test]
fn the_measured_share_is_what_a_large_gemm_loses() {
    let time = |sets: &[String], m| {
        let topology = load("h200-pair-calibrated", sets).unwrap();
        let gpu = topology.device(0);
        let time = gemm(gpu, DType::Bf16, m, 8192, 8192, gpu.sms).unwrap();
        (time.seconds, gpu.gemm_loaded.unwrap())
    };
    let sustained = ["clock=sustained".to_owned()];
    let (boost, share) = time(&[], 8192);
    let (slow, _) = time(&sustained, 8192);
    assert!(
        (boost / slow / share - 1.0).abs() < 0.005,
        "{boost} {slow} {share}"
    );
    let few = time(&sustained, 16).0 / time(&[], 16).0;
    assert!((1.0..1.03).contains(&few), "{few}");
}
