//! The cuts behind the bounds.

use petgraph::Direction::{self, Incoming, Outgoing};

use super::super::flow::Network;
use super::super::{NodeId, Topology};
use super::{Bound, FLOW_GPUS};
use crate::units::{Bytes, BytesPerSecond, Seconds};

/// Rounds of the search for the worst cut of a receiver; each raises the bound or ends it.
const ROUNDS: usize = 64;

/// Collects bounds for one question.
pub(super) struct Cuts<'t> {
    topology: &'t Topology,
    nodes: Vec<NodeId>,
    bytes: f64,
    pub bounds: Vec<Bound>,
}

impl<'t> Cuts<'t> {
    pub fn new(topology: &'t Topology, gpus: &[u32], bytes: f64) -> Self {
        let node = |gpu: &u32| topology.gpus[*gpu as usize];
        Self {
            topology,
            nodes: gpus.iter().map(node).collect(),
            bytes,
            bounds: Vec::new(),
        }
    }

    fn push(&mut self, name: String, bytes: f64, rate: f64, tight: Option<bool>) {
        let rate_text = BytesPerSecond::of(rate);
        self.bounds.push(Bound {
            name,
            seconds: Seconds::of(if rate > 0.0 {
                bytes / rate
            } else {
                f64::INFINITY
            }),
            tight,
            why: format!("{} at {rate_text}", Bytes::new(bytes.round() as u64)),
        });
    }

    fn name(&self, node: NodeId) -> &'t str {
        &self.topology.graph[node].name
    }

    /// Bytes/s of all links of `node` in one direction, contention at its best.
    fn links_of(&self, node: NodeId, direction: Direction) -> f64 {
        (self.topology.graph.edges_directed(node, direction))
            .map(|link| {
                self.topology
                    .best_capacity(petgraph::visit::EdgeRef::id(&link))
            })
            .sum()
    }

    fn network(&self) -> Network {
        Network::new(self.topology, |link| self.topology.best_capacity(link))
    }

    /// Whether cuts are attained: nothing that they relax is there.
    fn nothing_relaxed(&self) -> bool {
        self.topology.shared.is_empty() && self.topology.contention.iter().all(Option::is_none)
    }

    /// All-gather, or reduce-scatter with the links turned round.
    pub fn gather(&mut self, reverse: bool) {
        let (count, share) = (self.nodes.len(), self.bytes / self.nodes.len() as f64);
        let (direction, verb) = match reverse {
            false => (Incoming, "into"),
            true => (Outgoing, "out of"),
        };
        let alone = |cuts: &Self, node| cuts.links_of(node, direction);
        let narrowest =
            (self.nodes.iter().copied()).min_by(|x, y| alone(self, *x).total_cmp(&alone(self, *y)));
        if let Some(node) = narrowest {
            let name = format!("links {verb} {}", self.name(node));
            self.push(name, share * (count - 1) as f64, alone(self, node), None);
        }
        if count > FLOW_GPUS {
            return;
        }
        let mut network = self.network();
        if reverse {
            network = network.reversed();
        }
        let mut worst: Option<(f64, f64, usize)> = None;
        for (at, &sink) in self.nodes.iter().enumerate() {
            let sources: Vec<_> = self.nodes.iter().copied().filter(|n| *n != sink).collect();
            let mut time = 0.0_f64;
            // Start from unlimited supplies; each cut found is a bound, and limits the supplies
            // of the next round to what that bound allows.
            for _ in 0..ROUNDS {
                let supply = if time > 0.0 {
                    share / time
                } else {
                    f64::INFINITY
                };
                let cut = network.least_cut_supplied(&sources, supply, sink);
                let inside = sources.iter().filter(|n| cut.inside[n.index()]).count();
                let next = share * inside as f64 / cut.capacity;
                if inside == 0 || next.is_nan() || next <= time * (1.0 + 1e-12) {
                    break;
                }
                time = next;
                if worst.is_none_or(|(known, ..)| time > known * (1.0 + 1e-12)) {
                    worst = Some((time, share * inside as f64, at));
                }
            }
        }
        if let Some((time, bytes, at)) = worst {
            let name = format!("flow {verb} {}", self.name(self.nodes[at]));
            // Packed spanning trees attain the worst cut.
            let tight = self.nothing_relaxed().then_some(true);
            self.push(name, bytes, bytes / time, tight);
        }
    }

    pub fn all_reduce(&mut self) {
        let count = self.nodes.len() as f64;
        for (direction, verb) in [(Outgoing, "out of"), (Incoming, "into")] {
            let sum = self
                .nodes
                .iter()
                .map(|n| self.links_of(*n, direction))
                .sum();
            let name = format!("sum of links {verb} the GPUs");
            self.push(name, 2.0 * (count - 1.0) * self.bytes, sum, None);
        }
        let mut least = f64::INFINITY;
        if self.nodes.len() > FLOW_GPUS {
            for direction in [Outgoing, Incoming] {
                let links = self.nodes.iter().map(|n| self.links_of(*n, direction));
                least = links.fold(least, f64::min);
            }
            self.push("narrowest GPU".to_owned(), self.bytes, least, None);
            return;
        }
        let mut network = self.network();
        for i in 1..self.nodes.len() {
            for (from, to) in [(0, i), (i, 0)] {
                let cut = network.least_cut(self.nodes[from], self.nodes[to]);
                least = least.min(cut.capacity);
            }
        }
        self.push("least cut".to_owned(), self.bytes, least, None);
    }

    pub fn point_to_point(&mut self) {
        let [from, to] = [self.nodes[0], self.nodes[1]];
        let cut = self.network().least_cut(from, to).capacity;
        let name = format!("flow from {} to {}", self.name(from), self.name(to));
        let tight = self.nothing_relaxed().then_some(true);
        self.push(name, self.bytes, cut, tight);
    }

    pub fn all_to_all(&mut self) {
        let count = self.nodes.len();
        let share = self.bytes / count as f64;
        for (direction, verb) in [(Outgoing, "out of"), (Incoming, "into")] {
            let links = |node: &NodeId| self.links_of(*node, direction);
            let narrowest = self.nodes.iter().copied();
            let narrowest = narrowest.min_by(|x, y| links(x).total_cmp(&links(y)));
            if let Some(node) = narrowest {
                let rate = links(&node);
                let name = format!("links {verb} {}", self.name(node));
                self.push(name, share * (count - 1) as f64, rate, None);
            }
        }
        let mut worst: Option<(f64, f64, String)> = None;
        for (group, name) in self.groups() {
            let outside: Vec<_> = (self.nodes.iter().copied())
                .filter(|node| !group.contains(node))
                .collect();
            let bytes = share * group.len() as f64 * outside.len() as f64;
            for (from, to, way) in [(&group, &outside, "out of"), (&outside, &group, "into")] {
                let cut = self.network().least_cut_between(from, to);
                let time = bytes / cut;
                if worst.as_ref().is_none_or(|(known, ..)| time > *known) {
                    worst = Some((time, bytes, format!("cut {way} {name}")));
                }
            }
        }
        if let Some((time, bytes, name)) = worst {
            self.push(name, bytes, bytes / time, None);
        }
    }

    /// Groups of GPUs that may be parted by slow links: the first half, and the pieces left when
    /// the links below each bandwidth are taken away.
    fn groups(&self) -> Vec<(Vec<NodeId>, String)> {
        let graph = &self.topology.graph;
        let mut groups = vec![self.nodes[..self.nodes.len() / 2].to_vec()];
        let best = |link| self.topology.best_capacity(link);
        let mut steps: Vec<f64> = graph.edge_indices().map(best).collect();
        steps.sort_by(f64::total_cmp);
        steps.dedup();
        for &step in steps.iter().rev().take(16) {
            let mut pieces = petgraph::unionfind::UnionFind::new(graph.node_count());
            for link in graph.edge_indices().filter(|link| best(*link) >= step) {
                if let Some((from, to)) = graph.edge_endpoints(link) {
                    pieces.union(from.index(), to.index());
                }
            }
            let label = |node: &NodeId| pieces.find(node.index());
            let mut labels: Vec<_> = self.nodes.iter().map(label).collect();
            labels.sort_unstable();
            labels.dedup();
            // The first few pieces: big machines repeat the same one.
            for piece in labels.into_iter().take(4) {
                let members = self.nodes.iter().filter(|node| label(node) == piece);
                groups.push(members.copied().collect());
            }
        }
        groups.retain(|group| group.len() > 1 && group.len() < self.nodes.len());
        groups.sort();
        groups.dedup();
        let name = |group: &[NodeId]| {
            let (first, last) = (group[0], group[group.len() - 1]);
            format!(
                "the {} GPUs {}…{}",
                group.len(),
                self.name(first),
                self.name(last)
            )
        };
        (groups.into_iter())
            .map(|group| {
                let name = name(&group);
                (group, name)
            })
            .collect()
    }
}
