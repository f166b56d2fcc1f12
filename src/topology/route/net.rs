//! The links of one set of kinds, sorted for routing.
//!
//! Only switches and roots forward, so a path is either one link between two memories, or an
//! exit (memory → forwarder), any number of crossings (forwarder → forwarder) and an entry
//! (forwarder → memory). Shortest paths are therefore sought among forwarders alone, and all
//! memories behind one forwarder share them.

use super::super::Topology;

/// A link as seen from one of its ends.
#[derive(Copy, Clone, Debug)]
pub(super) struct Hop {
    /// The node at the other end.
    pub node: u32,
    /// The link.
    pub link: u32,
    /// Latency [ps].
    pub latency: u64,
}

/// Hops grouped by the node they belong to, each group sorted by (node, latency, link).
#[derive(Debug)]
pub(super) struct Hops {
    start: Vec<u32>,
    hops: Vec<Hop>,
}

impl Hops {
    fn new(nodes: usize, mut list: Vec<(u32, Hop)>) -> Self {
        list.sort_unstable_by_key(|(at, hop)| (*at, hop.node, hop.latency, hop.link));
        let mut start = vec![0_u32; nodes + 1];
        for (at, _) in &list {
            start[*at as usize + 1] += 1;
        }
        for i in 0..nodes {
            start[i + 1] += start[i];
        }
        let hops = list.into_iter().map(|(_, hop)| hop).collect();
        Self { start, hops }
    }

    /// The hops at `node`.
    pub fn at(&self, node: u32) -> &[Hop] {
        let node = node as usize;
        &self.hops[self.start[node] as usize..self.start[node + 1] as usize]
    }

    /// The hops at `node` whose other end is `other`.
    pub fn between(&self, node: u32, other: u32) -> &[Hop] {
        let hops = self.at(node);
        let first = hops.partition_point(|hop| hop.node < other);
        let count = hops[first..].partition_point(|hop| hop.node == other);
        &hops[first..first + count]
    }
}

/// The admitted links.
#[derive(Debug)]
pub(super) struct Net {
    /// Memory → memory, by sender.
    pub straight: Hops,
    /// Memory → forwarder, by memory.
    pub exits: Hops,
    /// Forwarder → memory, by memory.
    pub entries: Hops,
    /// Forwarder → forwarder, by sender.
    pub onward: Hops,
    /// Forwarder → forwarder, by receiver.
    pub inward: Hops,
}

/// Latency in whole picoseconds, so that equal paths compare equal whatever the order of summing.
fn picoseconds(seconds: f64) -> u64 {
    (seconds * 1e12).round() as u64
}

impl Net {
    /// The links of `topology` whose kind is `admitted`.
    pub fn new(topology: &Topology, admitted: impl Fn(u16) -> bool) -> Self {
        let graph = &topology.graph;
        let mut lists: [Vec<(u32, Hop)>; 5] = Default::default();
        for edge in graph.raw_edges().iter().zip(0_u32..) {
            let (edge, link) = edge;
            if !admitted(edge.weight.kind) {
                continue;
            }
            let (from, to) = (edge.source(), edge.target());
            let hop = |node: u32| Hop {
                node,
                link,
                latency: picoseconds(edge.weight.latency.get()),
            };
            let (u, v) = (from.index() as u32, to.index() as u32);
            match (graph[from].kind.is_memory(), graph[to].kind.is_memory()) {
                (true, true) => lists[0].push((u, hop(v))),
                (true, false) => lists[1].push((u, hop(v))),
                (false, true) => lists[2].push((v, hop(u))),
                (false, false) => {
                    lists[3].push((u, hop(v)));
                    lists[4].push((v, hop(u)));
                }
            }
        }
        let nodes = graph.node_count();
        let [straight, exits, entries, onward, inward] = lists.map(|list| Hops::new(nodes, list));
        Self {
            straight,
            exits,
            entries,
            onward,
            inward,
        }
    }
}
