//! A topology as a person would draw it: a small one node by node, a large one by its kinds of
//! node.
//!
//! Large machines are summarised by colour refinement: nodes start coloured by what they are, and
//! are told apart as long as the links at them lead to different colours or differ in kind,
//! bandwidth or latency. What is left are classes such as "128 GPUs, each with one link to one of
//! 16 switches".

use petgraph::visit::EdgeRef;
use petgraph::{Incoming, Outgoing};
use rustc_hash::FxHashMap;

use super::{NodeId, NodeKind, Topology};
use crate::units::{BytesPerSecond, Seconds};

/// Up to this many GPUs and nodes every node is drawn.
const DRAWN_GPUS: usize = 16;
const DRAWN_NODES: usize = 48;

/// A drawing's nodes and links.
#[derive(Clone, Debug, PartialEq)]
pub struct Sketch {
    pub parts: Vec<Part>,
    /// Each pair of parts and kind of link once.
    pub bundles: Vec<Bundle>,
    /// Whether parts stand for several nodes.
    pub summarised: bool,
}

/// A node, or a class of like nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// `gpu0`, or first and last of a class: `gpu0…gpu127`.
    pub name: String,
    pub role: Role,
    pub count: u32,
}

/// What a part is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Gpu,
    Host,
    Switch,
    Root,
}

impl Role {
    /// `GPU` or `GPUs`, and so on.
    pub const fn noun(self, count: u32) -> &'static str {
        match (self, count) {
            (Self::Gpu, 1) => "GPU",
            (Self::Gpu, _) => "GPUs",
            (Self::Host, 1) => "host memory",
            (Self::Host, _) => "host memories",
            (Self::Switch, 1) => "switch",
            (Self::Switch, _) => "switches",
            (Self::Root, 1) => "root complex",
            (Self::Root, _) => "root complexes",
        }
    }
}

/// Like links between two parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    /// Places in `parts`; `from` = `to` within a class.
    pub from: usize,
    pub to: usize,
    /// Link kind.
    pub kind: String,
    /// Per direction and link.
    pub bandwidth: BytesPerSecond,
    pub latency: Seconds,
    /// Links at each node of `from` and at each node of `to`.
    pub at_from: u32,
    pub at_to: u32,
    /// Whether the links run the other way too.
    pub both_ways: bool,
}

fn role(kind: NodeKind) -> Role {
    match kind {
        NodeKind::Gpu(_) => Role::Gpu,
        NodeKind::Host => Role::Host,
        NodeKind::Switch => Role::Switch,
        NodeKind::Root => Role::Root,
    }
}

/// A link's looks: link kind, bandwidth and latency (bit patterns, which order as the numbers do).
type Looks = (u16, u64, u64);

impl Sketch {
    /// Of all nodes where they are few, else of the classes.
    pub fn new(topology: &Topology) -> Self {
        let nodes = topology.graph.node_count();
        if topology.gpus.len() <= DRAWN_GPUS && nodes <= DRAWN_NODES {
            let class: Vec<u32> = (0..nodes as u32).collect();
            Self::of(topology, &class, false)
        } else {
            Self::of(topology, &refine(topology), true)
        }
    }

    fn of(topology: &Topology, class: &[u32], summarised: bool) -> Self {
        let graph = &topology.graph;
        let count = class.iter().max().map_or(0, |last| *last as usize + 1);
        let mut members: Vec<Vec<NodeId>> = vec![Vec::new(); count];
        for node in graph.node_indices() {
            members[class[node.index()] as usize].push(node);
        }
        let parts: Vec<Part> = (members.iter())
            .map(|nodes| {
                let name = |node: &NodeId| graph[*node].name.clone();
                Part {
                    name: match nodes.as_slice() {
                        [one] => name(one),
                        [first, .., last] => format!("{}…{}", name(first), name(last)),
                        [] => String::new(),
                    },
                    role: role(graph[nodes[0]].kind),
                    count: nodes.len() as u32,
                }
            })
            .collect();
        // Links counted by (from, to, looks).
        let mut links: Vec<(u32, u32, Looks, u32)> = Vec::new();
        let mut place: FxHashMap<(u32, u32, Looks), usize> = FxHashMap::default();
        for edge in graph.edge_references() {
            let ends = [edge.source(), edge.target()].map(|node| class[node.index()]);
            let key = (ends[0], ends[1], looks(topology, edge.id()));
            let at = *place.entry(key).or_insert_with(|| {
                links.push((key.0, key.1, key.2, 0));
                links.len() - 1
            });
            links[at].3 += 1;
        }
        let mut bundles = Vec::new();
        for &(from, to, looks, count) in &links {
            let back = place.get(&(to, from, looks)).map(|at| links[*at].3);
            let both_ways = from == to || back == Some(count);
            // Drawn once: as it was first met.
            if both_ways && from != to && place[&(to, from, looks)] < place[&(from, to, looks)] {
                continue;
            }
            bundles.push(Bundle {
                from: from as usize,
                to: to as usize,
                kind: topology.kinds[usize::from(looks.0)].clone(),
                bandwidth: BytesPerSecond::of(f64::from_bits(looks.1)),
                latency: Seconds::of(f64::from_bits(looks.2)),
                at_from: count.div_ceil(parts[from as usize].count),
                at_to: count.div_ceil(parts[to as usize].count),
                both_ways,
            });
        }
        Self {
            parts,
            bundles,
            summarised,
        }
    }
}

fn looks(topology: &Topology, link: super::LinkId) -> Looks {
    let link = &topology.graph[link];
    let bits = |value: f64| value.to_bits();
    (
        link.kind,
        bits(link.bandwidth.get()),
        bits(link.latency.get()),
    )
}

/// By node, its class; classes are numbered by their first node.
fn refine(topology: &Topology) -> Vec<u32> {
    let graph = &topology.graph;
    let mut class: Vec<u32> = (graph.node_weights().map(|node| role(node.kind) as u32)).collect();
    let mut classes = 0;
    loop {
        let mut known: FxHashMap<Vec<(u32, u32, Looks)>, u32> = FxHashMap::default();
        let next: Vec<u32> = (graph.node_indices())
            .map(|node| {
                let mut signature = vec![(2, class[node.index()], (0, 0, 0))];
                for direction in [Outgoing, Incoming] {
                    signature.extend(graph.edges_directed(node, direction).map(|edge| {
                        let other = match direction {
                            Outgoing => edge.target(),
                            Incoming => edge.source(),
                        };
                        let looks = looks(topology, edge.id());
                        (direction as u32, class[other.index()], looks)
                    }));
                }
                signature.sort_unstable();
                let fresh = known.len() as u32;
                *known.entry(signature).or_insert(fresh)
            })
            .collect();
        class = next;
        // Refining only ever splits classes, so an equal number means nothing changed.
        if known.len() == classes {
            return class;
        }
        classes = known.len();
    }
}

#[cfg(test)]
mod tests {
    use super::super::build::Builder;
    use super::*;

    #[test]
    fn a_large_machine_becomes_its_kinds_of_node() {
        let mut b = Builder::new("pods");
        let gpus = b.gpus(32);
        let leaves: Vec<_> = (0..8).map(|i| b.switch(&format!("leaf{i}"))).collect();
        let spines = [b.switch("spine0"), b.switch("spine1")];
        for (i, &gpu) in gpus.iter().enumerate() {
            b.link(gpu, leaves[i / 4], "ib", 50e9, 1e-6);
        }
        for &leaf in &leaves {
            for &spine in &spines {
                b.link(leaf, spine, "ib", 100e9, 1e-6);
            }
        }
        let sketch = Sketch::new(&b.build());
        let parts: Vec<_> = (sketch.parts.iter())
            .map(|part| (part.name.as_str(), part.count))
            .collect();
        assert_eq!(
            parts,
            [("gpu0…gpu31", 32), ("leaf0…leaf7", 8), ("spine0…spine1", 2)]
        );
        let links: Vec<_> = (sketch.bundles.iter())
            .map(|bundle| (bundle.from, bundle.to, bundle.at_from, bundle.at_to))
            .collect();
        assert_eq!(links, [(0, 1, 1, 4), (1, 2, 2, 8)]);
        assert!(sketch.bundles.iter().all(|bundle| bundle.both_ways));
    }

    #[test]
    fn a_small_machine_keeps_every_node() {
        let mut b = Builder::new("pair");
        let gpus = b.gpus(2);
        b.link(gpus[0], gpus[1], "x", 1e9, 0.0);
        b.link(gpus[0], gpus[1], "x", 1e9, 0.0);
        b.one_way(gpus[1], gpus[0], "y", 2e9, 0.0);
        let sketch = Sketch::new(&b.build());
        assert_eq!((sketch.parts.len(), sketch.summarised), (2, false));
        let links: Vec<_> = (sketch.bundles.iter())
            .map(|bundle| (bundle.from, bundle.at_from, bundle.both_ways))
            .collect();
        assert_eq!(links, [(0, 2, true), (1, 1, false)]);
    }
}
