//! Generators: sizes, structure and names.

use std::time::Instant;

use duet::topology::generate::GENERATORS;
use duet::topology::route::Router;
use duet::topology::{Ties, Topology};

use crate::{link_names, machine, node_names, read};

const LINK: &str = "bandwidth: 50 GB/s, latency: 1 us";

fn generate(text: &str) -> Topology {
    machine(&format!("generate:\n  - {}\n", text.replace("LINK", LINK)))
}

/// Nodes and link directions.
fn size(t: &Topology) -> (usize, usize) {
    (t.graph.node_count(), t.graph.edge_count())
}

/// Links on the way between two GPUs.
fn hops(t: &Topology, from: usize, to: usize) -> usize {
    let mut links = Vec::new();
    let mut router = Router::new(t);
    let direct = router.direct(t.gpus[from], t.gpus[to], &mut links).unwrap();
    assert!(direct.is_some());
    links.len()
}

#[test]
fn switch_of_new_gpus_or_of_known_nodes() {
    let t = generate("switch: { gpus: 8, name: nvswitch, kind: nvlink, LINK }");
    assert_eq!(size(&t), (9, 16));
    assert_eq!(
        (node_names(&t)[8], t.kinds[0].as_str()),
        ("nvswitch", "nvlink")
    );
    assert_eq!(hops(&t, 0, 7), 2);
    let t = machine(&format!(
        "nodes: {{ gpus: 2, hosts: 1 }}\ngenerate: [{{ switch: {{ connect: [gpu0..1, dram0], {LINK} }} }}]"
    ));
    assert_eq!(size(&t), (4, 6));
}

#[test]
fn full_mesh_joins_every_two() {
    let t = generate("full_mesh: { gpus: 5, LINK }");
    // n(n − 1) directions.
    assert_eq!(size(&t), (5, 20));
    assert_eq!(hops(&t, 4, 0), 1);
}

#[test]
fn torus_wraps_around() {
    // A ring of 8 switches: 8 GPUs, 8 switches; 2·8 local and 2·8 ring directions.
    let ring = generate("torus: { dims: [8], LINK }");
    assert_eq!(size(&ring), (16, 32));
    assert_eq!((hops(&ring, 0, 4), hops(&ring, 0, 7)), (6, 3));
    // The local link carries all that the two ring links can.
    let local = ring.graph.edge_weights().next().unwrap();
    assert_eq!((local.bandwidth.get(), local.latency.get()), (100e9, 0.0));
    // 4 × 2: the dimension of size 2 has one link per pair: 8 + 4 links.
    let t = generate("torus: { dims: [4, 2], routers: false, LINK }");
    assert_eq!(size(&t), (8, 24));
    let names = link_names(&t);
    assert!(names.contains(&"gpu3->gpu0".to_owned()) && names.contains(&"gpu1->gpu5".to_owned()));
    let t = generate("torus: { dims: [3, 3, 3], gpus_per_router: 2, local: { LINK }, LINK }");
    assert_eq!(size(&t), (27 * 3, 2 * (54 + 81)));
    // Farthest apart: one step in each dimension, and in and out.
    assert_eq!(hops(&t, 0, 53), 5);
}

#[test]
fn fat_tree_has_full_bisection_and_spreads() {
    let t = generate("fat_tree: { arity: 4, levels: 3, LINK }");
    // k^h leaves, h·k^(h−1) switches, h·k^h links.
    assert_eq!(size(&t), (64 + 48, 2 * 192));
    assert_eq!(t.ties, Ties::Spread);
    let ways = [hops(&t, 0, 1), hops(&t, 0, 4), hops(&t, 0, 63)];
    assert_eq!(ways, [2, 4, 6]);
    // Two levels, half the bandwidth upwards: 16 leaf switches of 16 GPUs with 8 spines.
    let t = generate("fat_tree: { down: [16, 16], up: [1, 8], LINK }");
    assert_eq!(size(&t), (256 + 16 + 8, 2 * (256 + 128)));
    let receivers = (16..24).map(|to| {
        let mut links = Vec::new();
        Router::new(&t)
            .direct(t.gpus[0], t.gpus[to], &mut links)
            .unwrap();
        links[1]
    });
    let spines: std::collections::BTreeSet<_> = receivers.collect();
    assert_eq!(
        spines.len(),
        8,
        "consecutive receivers come through different spines"
    );
}

#[test]
fn every_leaf_of_a_fat_tree_sees_the_same_tree() {
    // Three levels with different arities; distances must be those of the tree.
    let t = generate("fat_tree: { down: [2, 3, 2], up: [1, 2, 3], LINK }");
    // Switches: 3·2·1 = 6, then 2·1·2 = 4, then 1·2·3 = 6.
    assert_eq!(size(&t).0, 12 + 6 + 4 + 6);
    for a in 0..12 {
        for b in 0..12 {
            let expected = match (a / 2 == b / 2, a / 6 == b / 6) {
                _ if a == b => continue,
                (true, _) => 2,
                (_, true) => 4,
                _ => 6,
            };
            assert_eq!(hops(&t, a, b), expected, "{a} to {b}");
        }
    }
}

#[test]
fn rails_join_equal_gpus() {
    let spec = "intra: { kind: nvlink, bandwidth: 450 GB/s, latency: 1 us }, rail: { LINK }";
    let t = generate(&format!("rail_optimized: {{ hosts: 4, {spec} }}"));
    assert_eq!(size(&t), (32 + 4 + 8, 4 * 32));
    assert_eq!(t.default_tp, 8);
    assert_eq!(t.kinds, ["nvlink", "ib"]);
    // Same host; same rail.
    assert_eq!((hops(&t, 0, 7), hops(&t, 0, 8)), (2, 2));
    let t = generate(&format!(
        "rail_optimized: {{ hosts: 4, group: 2, {spec}, spine: {{ switches: 3, LINK }} }}"
    ));
    assert_eq!(size(&t), (32 + 4 + 16 + 3, 4 * 32 + 2 * 16 * 3));
    assert!(node_names(&t).contains(&"group1-rail7"));
    assert_eq!((hops(&t, 0, 8), hops(&t, 0, 16), hops(&t, 0, 9)), (2, 4, 4));
}

#[test]
fn dragonfly_joins_every_two_groups_once() {
    // a = 4 routers, p = 2 GPUs, h = 2 global links, g = a·h + 1 = 9 groups: the balanced case.
    let spec = "terminal: { LINK }, local: { LINK }, global: { LINK }";
    let t = generate(&format!(
        "dragonfly: {{ groups: 9, routers: 4, gpus_per_router: 2, {spec} }}"
    ));
    let global = t.kinds.iter().position(|kind| kind == "global").unwrap();
    assert_eq!(size(&t).0, 72 + 36);
    // 2·72 terminal, 9·4·3 local, 9·8 global directions.
    assert_eq!(size(&t).1, 144 + 108 + 72);
    // Every router has h = 2 global links.
    for router in t.graph.node_indices().skip(72) {
        let edges = t.graph.edges(router);
        let globals = edges.filter(|edge| usize::from(edge.weight().kind) == global);
        assert_eq!(globals.count(), 2);
    }
    // At most GPU, router, gate, gate, router, GPU.
    assert!((1..72).all(|to| hops(&t, 0, to) <= 5));
}

#[test]
fn replicate_prefixes_names() {
    let t = machine(
        "
nodes: { switches: [core] }
generate:
  - replicate:
      count: 2
      nodes: { gpus: 1, switches: [nic] }
      generate: [{ switch: { gpus: 1, bandwidth: 9 GB/s, latency: 1 us } }]
      links:
        - { between: [[gpu0, nic], [nic, switch], [nic, core]], bandwidth: 9 GB/s, latency: 1 us, duplex: half }
      shared: [{ name: x, links: [nic->core], bandwidth: 5 GB/s }]
links:
  - { between: [box0..1.gpu1, core], bandwidth: 9 GB/s, latency: 1 us }
",
    );
    let names = [
        "core",
        "box0.gpu0",
        "box0.nic",
        "box0.gpu1",
        "box0.switch",
        "box1.gpu0",
        "box1.nic",
        "box1.gpu1",
        "box1.switch",
    ];
    assert_eq!(node_names(&t), names);
    assert_eq!(t.default_tp, 2);
    let shared: Vec<&str> = t.shared.iter().map(|shared| shared.name.as_str()).collect();
    assert!(shared.contains(&"box1.x") && shared.contains(&"box1.nic<->core"));
}

#[test]
fn copies_without_gpus_leave_the_default_size_alone() {
    let t = machine(&format!(
        "nodes: {{ gpus: 2, switches: [core] }}
generate:
  - replicate: {{ count: 2, nodes: {{ hosts: 1 }}, links: [{{ between: [dram0, core], {LINK} }}] }}
links:
  - {{ between: [gpu0..1, core], {LINK} }}
"
    ));
    assert_eq!(t.default_tp, 2);
}

/// The YAML blocks of the documentation.
fn examples() -> Vec<String> {
    let docs = include_str!("../../docs/topology.md");
    let blocks = docs.split("```yaml\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn every_example_of_the_documentation_is_right() {
    let sizes: Vec<usize> = examples()
        .iter()
        .map(|text| {
            read(text)
                .unwrap_or_else(|error| panic!("{error}"))
                .gpus
                .len()
        })
        .collect();
    assert_eq!(sizes, [4, 2, 2, 16384, 32]);
}

#[test]
fn every_generator_is_documented_and_says_what_it_makes() {
    let docs = include_str!("../../docs/topology.md");
    for generator in GENERATORS {
        let row = format!("| `{}` |", generator.name);
        assert!(docs.contains(&row), "no row for {}", generator.name);
        assert!(!generator.about.is_empty());
    }
}

#[test]
fn sixteen_thousand_gpus_in_ten_lines_and_no_time() {
    let text = &examples()[3];
    assert!(text.lines().count() <= 10);
    let start = Instant::now();
    let t = read(text).unwrap();
    // 0.5 s in release; the bound here is for the development profile on a busy machine.
    assert!(start.elapsed().as_secs_f64() < 5.0, "{:?}", start.elapsed());
    assert_eq!((t.gpus.len(), t.default_tp), (16384, 8));
}
