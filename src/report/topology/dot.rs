//! The machine in the DOT language of Graphviz, node by node.

use std::fmt::Write;

use petgraph::visit::EdgeRef;
use rustc_hash::FxHashMap;

use crate::topology::{NodeKind, Topology};

/// A string in DOT's quotes.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars().filter(|c| !c.is_control()) {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

/// A digraph; a link with equal directions is one edge with `dir=both`.
pub fn draw(topology: &Topology) -> String {
    let graph = &topology.graph;
    let mut out = format!("digraph {} {{\n", quoted(&topology.name));
    out.push_str("  rankdir=BT; node [fontname=\"sans-serif\"]; edge [fontname=\"sans-serif\"];\n");
    for node in graph.node_weights() {
        let shape = match node.kind {
            NodeKind::Gpu(_) => "box, style=filled, fillcolor=\"#cfe3f3\"",
            NodeKind::Host => "cylinder",
            NodeKind::Switch => "box, style=rounded",
            NodeKind::Root => "hexagon",
        };
        let _ = writeln!(out, "  {} [shape={shape}];", quoted(&node.name));
    }
    // By ends and looks, the directions that no equal one has met yet.
    let mut open: FxHashMap<_, Vec<usize>> = FxHashMap::default();
    let mut edges = Vec::new();
    for edge in graph.edge_references() {
        let link = edge.weight();
        let (bandwidth, latency) = (link.bandwidth.get(), link.latency.get());
        let looks = (link.kind, bandwidth.to_bits(), latency.to_bits());
        let (from, to) = (edge.source().index(), edge.target().index());
        match open.get_mut(&(to, from, looks)).and_then(Vec::pop) {
            Some(back) => {
                let (.., both): &mut (usize, usize, _, bool) = &mut edges[back];
                *both = true;
            }
            None => {
                open.entry((from, to, looks)).or_default().push(edges.len());
                edges.push((from, to, looks, false));
            }
        }
    }
    let names: Vec<String> = graph
        .node_weights()
        .map(|node| quoted(&node.name))
        .collect();
    for (from, to, (kind, bandwidth, _), both) in edges {
        let rate = crate::units::BytesPerSecond::of(f64::from_bits(bandwidth));
        let label = quoted(&format!("{} {rate}", topology.kinds[usize::from(kind)]));
        let both = if both { ", dir=both" } else { "" };
        let (from, to) = (&names[from], &names[to]);
        let _ = writeln!(out, "  {from} -> {to} [label={label}{both}];");
    }
    out.push_str("}\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::build::Builder;

    #[test]
    fn equal_directions_are_one_edge() {
        let mut b = Builder::new("say \"hi\"");
        let gpus = b.gpus(2);
        b.link(gpus[0], gpus[1], "x", 1e9, 0.0);
        b.link(gpus[0], gpus[1], "x", 1e9, 0.0);
        b.one_way(gpus[1], gpus[0], "x", 2e9, 0.0);
        insta::assert_snapshot!(draw(&b.build()), @r##"
        digraph "say \"hi\"" {
          rankdir=BT; node [fontname="sans-serif"]; edge [fontname="sans-serif"];
          "gpu0" [shape=box, style=filled, fillcolor="#cfe3f3"];
          "gpu1" [shape=box, style=filled, fillcolor="#cfe3f3"];
          "gpu0" -> "gpu1" [label="x 1 GB/s", dir=both];
          "gpu0" -> "gpu1" [label="x 1 GB/s", dir=both];
          "gpu1" -> "gpu0" [label="x 2 GB/s"];
        }
        "##);
    }
}
