//! What each key of the format means.

use duet::topology::{Contention, NodeKind, Ties};

use crate::{link_names, machine, mistakes, node_names, read};

const STAR: &str = "
nodes: { gpus: 2, hosts: 1, switches: [sw] }
links:
  - { between: [gpu0..1, sw], kind: pcie, bandwidth: 24 GB/s, latency: 1 us }
  - { between: [sw, dram0], kind: host, bandwidth: 30 GB/s, latency: 500 ns }
";

fn star(more: &str) -> String {
    format!("{STAR}{more}")
}

#[test]
fn gpus_come_first_then_the_rest_by_kind() {
    let t = machine(
        "nodes: { roots: 1, switches: 2, hosts: [a, b0..1], gpus: 2 }\nlinks: [{ between: [gpu0, gpu1], bandwidth: 1 GB/s, latency: 0 ns }]",
    );
    let names = [
        "gpu0", "gpu1", "a", "b0", "b1", "switch0", "switch1", "cpu0",
    ];
    assert_eq!(node_names(&t), names);
    let kinds: Vec<NodeKind> = t.graph.node_weights().map(|node| node.kind).collect();
    assert_eq!(kinds[1], NodeKind::Gpu(1));
    assert_eq!(kinds[2], NodeKind::Host);
    assert_eq!(kinds[5], NodeKind::Switch);
    assert_eq!(kinds[7], NodeKind::Root);
}

#[test]
fn links_have_two_directions_in_order() {
    let t = machine(&star(""));
    let names = [
        "gpu0->sw",
        "sw->gpu0",
        "gpu1->sw",
        "sw->gpu1",
        "sw->dram0",
        "dram0->sw",
    ];
    assert_eq!(link_names(&t), names);
    assert_eq!(t.kinds, ["pcie", "host"]);
    let last = t.graph.edge_weights().last().unwrap();
    assert_eq!(
        (last.kind, last.bandwidth.get(), last.latency.get()),
        (1, 30e9, 500e-9)
    );
}

#[test]
fn one_way_ranges_and_lists_of_pairs() {
    let t = machine(
        "
nodes: { gpus: 4 }
links:
  - { from: gpu0..1, to: gpu2..3, bandwidth: 1 GB/s, latency: 0 ns }
  - { from: gpu2..3, to: gpu0, bandwidth: 2 GB/s, latency: 0 ns }
  - { between: [[gpu0, gpu1], [gpu2, gpu3]], bandwidth: 3 GB/s, latency: 0 ns }
",
    );
    let names = [
        "gpu0->gpu2",
        "gpu1->gpu3",
        "gpu2->gpu0",
        "gpu3->gpu0",
        "gpu0->gpu1",
        "gpu1->gpu0",
        "gpu2->gpu3",
        "gpu3->gpu2",
    ];
    assert_eq!(link_names(&t), names);
}

#[test]
fn half_duplex_is_one_capacity_over_both_directions() {
    let t = machine(
        "nodes: { gpus: 2 }\nlinks: [{ between: [gpu0, gpu1], bandwidth: 5 GB/s, latency: 0 ns, duplex: half }]",
    );
    let shared = &t.shared[0];
    assert!(shared.half_duplex);
    assert_eq!(
        (shared.name.as_str(), shared.bandwidth.get()),
        ("gpu0<->gpu1", 5e9)
    );
    assert_eq!(shared.links.len(), 2);
}

#[test]
fn shared_capacities_and_contention() {
    let t = machine(&star(
        "
shared:
  - { name: up, links: [sw->dram0, gpu0->sw], bandwidth: 38 GB/s, source: assumed }
  - { links: [dram0->sw], bandwidth: 9 GB/s }
contention:
  pcie: { efficiency: { 4: 0.25, 2: 0.5 }, source: measured }
",
    ));
    let names: Vec<&str> = t.shared.iter().map(|shared| shared.name.as_str()).collect();
    assert_eq!(names, ["up", "shared1"]);
    let members: Vec<usize> = t.shared[0].links.iter().map(|link| link.index()).collect();
    assert_eq!(members, [4, 0]);
    // One flow alone has the whole link unless the file says otherwise.
    let curve = Contention(vec![(1, 1.0), (2, 0.5), (4, 0.25)]);
    assert_eq!(t.contention, [Some(curve), None]);
    let source = t.contention_source[0].map(|id| t.sources[id as usize].0.as_str());
    assert_eq!(source, Some("measured"));
}

#[test]
fn sources_are_kept_once_and_default_to_the_files() {
    let t = machine(
        "
source: datasheet, page 3
nodes: { gpus: 3 }
links:
  - { between: [gpu0, gpu1], bandwidth: 1 GB/s, latency: 0 ns }
  - { between: [gpu1, gpu2], bandwidth: 1 GB/s, latency: 0 ns, source: measured here }
  - { between: [gpu0, gpu2], bandwidth: 1 GB/s, latency: 0 ns, source: 'datasheet, page 3' }
",
    );
    let sources: Vec<&str> = t.sources.iter().map(|source| source.0.as_str()).collect();
    assert_eq!(sources, ["datasheet, page 3", "measured here"]);
    let of: Vec<_> = t
        .graph
        .edge_weights()
        .step_by(2)
        .map(|link| link.source)
        .collect();
    assert_eq!(of, [Some(0), Some(1), Some(0)]);
}

#[test]
fn preferences_and_defaults() {
    let t = machine(&star(""));
    assert!(t.p2p && t.prefer.is_empty() && t.ties == Ties::Lowest);
    assert_eq!((t.default_tp, t.staging_chunk.get()), (2, 4 << 20));
    let t = machine(&star(
        "prefer: [host, pcie]\nties: spread\np2p: false\nstaging_chunk: 1 MiB\ndefault_tp: 1\nabout: a box",
    ));
    assert!(!t.p2p && t.prefer == [1, 0] && t.ties == Ties::Spread);
    assert_eq!((t.default_tp, t.staging_chunk.get()), (1, 1 << 20));
    assert_eq!(t.about, "a box");
}

#[test]
fn routes_by_nodes_by_links_staged_and_split() {
    let t = machine(&star(
        "
routes:
  - { from: gpu0, to: gpu1, via: [sw, dram0, sw], chunk: 2 MiB, both: true }
  - from: gpu0
    to: dram0
    paths:
      - { share: 0.25, via: [gpu0->sw, sw->dram0] }
      - { share: 0.75, via: [sw] }
",
    ));
    assert_eq!(t.explicit.len(), 3);
    let staged = &t.explicit[0].paths[0];
    assert_eq!((staged.legs.len(), staged.chunk.get()), (2, 2 << 20));
    let ends: Vec<usize> = staged.legs.iter().map(|leg| leg.to.index()).collect();
    assert_eq!(ends, [2, 1]);
    // 1 us to the switch + 500 ns to the host.
    assert_eq!(staged.legs[0].latency.get(), 1e-6 + 500e-9);
    let back = &t.explicit[1];
    assert_eq!((back.from.index(), back.to.index()), (1, 0));
    assert_eq!(back.paths[0].legs[0].links[0].index(), 2);
    let shares: Vec<f64> = t.explicit[2].paths.iter().map(|path| path.share).collect();
    assert_eq!(shares, [0.25, 0.75]);
    assert_eq!(t.explicit[2].paths[0].legs, t.explicit[2].paths[1].legs);
}

#[test]
fn gpus_may_differ() {
    let text = "name: box\ngpu: { per_gpu: { gpu1..2: small, others: ideal } }\nnodes: { gpus: 4 }\nlinks: [{ between: [gpu0..2, gpu3], bandwidth: 1 GB/s, latency: 0 ns }]";
    let t = read(text).unwrap();
    let names: Vec<&str> = (0..4).map(|gpu| t.device(gpu).name.as_str()).collect();
    assert_eq!(names, ["ideal", "small", "small", "ideal"]);
    assert_eq!(t.devices.len(), 2);
}

#[test]
fn gpus_that_only_reach_each_other_through_gpus_are_accepted() {
    // Schedules pass data on from GPU to GPU; only one transfer cannot go that way.
    let t = machine(
        "nodes: { gpus: 3 }\nlinks: [{ between: [[gpu0, gpu1], [gpu1, gpu2]], bandwidth: 1 GB/s, latency: 0 ns }]",
    );
    assert_eq!(t.gpus.len(), 3);
}

#[test]
fn a_misspelt_key_is_reported_once() {
    let said = mistakes(
        "nodes: { gpus: 2 }\nlinks: [{ between: [gpu0, gpu1], bandwith: 1 GB/s, latency: 0 ns }]",
    );
    assert_eq!(said.matches("error:").count(), 1, "{said}");
    assert!(said.contains("did you mean `bandwidth`?"));
}

#[test]
fn the_same_text_gives_the_same_topology() {
    let text = star("shared: [{ links: [sw->dram0], bandwidth: 38 GB/s }]");
    let show = |t: &duet::topology::Topology| format!("{t:?}");
    assert_eq!(show(&machine(&text)), show(&machine(&text)));
}
