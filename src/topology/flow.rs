//! Maximum flows and least cuts of a topology in which every node forwards.
//!
//! Shared capacities are left out and contention is taken at its best, so a cut never carries
//! less than in the simulator: times from it are lower bounds.

use petgraph::algo::dinics;
use petgraph::graph::DiGraph;
use petgraph::visit::EdgeRef;

use super::{LinkId, NodeId, Topology};

/// Capacities are whole bytes per second, rounded up (which keeps bounds valid), at most this.
const MOST: f64 = (1_u64 << 50) as f64;

/// A cut between sources and sinks.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    /// Bytes per second from the source side to the other.
    pub capacity: f64,
    /// By node: whether it is on the source side.
    pub inside: Vec<bool>,
}

/// A topology as a flow network, with one further node that supplies or drains several others.
#[derive(Debug)]
pub(super) struct Network {
    graph: DiGraph<(), u64, u32>,
    /// By link [bytes/s].
    capacity: Vec<f64>,
    nodes: usize,
}

/// A whole capacity of at least `rate`.
fn whole(rate: f64) -> u64 {
    rate.min(MOST).ceil() as u64
}

impl Network {
    /// The links of `topology` with the given capacities.
    pub fn new(topology: &Topology, capacity: impl Fn(LinkId) -> f64) -> Self {
        let capacity: Vec<f64> = topology.graph.edge_indices().map(capacity).collect();
        let graph = topology
            .graph
            .map(|_, _| (), |link, _| whole(capacity[link.index()]));
        Self {
            graph,
            capacity,
            nodes: topology.graph.node_count(),
        }
    }

    /// The same with every link turned round.
    pub fn reversed(mut self) -> Self {
        self.graph.reverse();
        self
    }

    /// The least cut between two nodes.
    pub fn least_cut(&mut self, from: NodeId, to: NodeId) -> Cut {
        let (_, flows) = dinics(&self.graph, from, to);
        let mut inside = vec![false; self.graph.node_count()];
        inside[from.index()] = true;
        let mut stack = vec![from];
        while let Some(node) = stack.pop() {
            let onward = (self.graph.edges(node))
                .filter(|link| flows[link.id().index()] < *link.weight())
                .map(|link| link.target());
            let back = (self.graph.edges_directed(node, petgraph::Incoming))
                .filter(|link| flows[link.id().index()] > 0)
                .map(|link| link.source());
            for next in onward.chain(back) {
                if !std::mem::replace(&mut inside[next.index()], true) {
                    stack.push(next);
                }
            }
        }
        let links = self.graph.raw_edges()[..self.capacity.len()].iter();
        let capacity = (links.zip(&self.capacity))
            .filter(|(link, _)| inside[link.source().index()] && !inside[link.target().index()])
            .map(|(_, capacity)| capacity)
            .sum();
        inside.truncate(self.nodes);
        Cut { capacity, inside }
    }

    /// Bytes per second from all of `sources` together to all of `sinks`.
    pub fn least_cut_between(&mut self, sources: &[NodeId], sinks: &[NodeId]) -> f64 {
        let drain = self.graph.add_node(());
        for &sink in sinks {
            self.graph.add_edge(sink, drain, whole(MOST));
        }
        let cut = self.least_cut_supplied(sources, MOST, drain);
        self.graph.remove_node(drain);
        cut.capacity
    }

    /// The least cut from the nodes of `sources`, each supplied with at most `rate` bytes/s, to
    /// `to`. Its capacity counts links only, not the supplies it cuts off.
    pub fn least_cut_supplied(&mut self, sources: &[NodeId], rate: f64, to: NodeId) -> Cut {
        let supply = self.graph.add_node(());
        for &source in sources {
            self.graph.add_edge(supply, source, whole(rate));
        }
        let cut = self.least_cut(supply, to);
        // The last node's edges are the last ones, so nothing is renumbered.
        self.graph.remove_node(supply);
        cut
    }
}

#[cfg(test)]
mod tests {
    use super::super::build::Builder;
    use super::*;

    #[test]
    fn the_narrowest_place_is_cut() {
        let mut b = Builder::new("two boxes");
        let gpus = b.gpus(4);
        let switches = [b.switch("s0"), b.switch("s1")];
        for (i, &gpu) in gpus.iter().enumerate() {
            b.link(gpu, switches[i / 2], "x", 10.0, 0.0);
        }
        b.one_way(switches[0], switches[1], "y", 4.0, 0.0);
        b.one_way(switches[1], switches[0], "y", 6.0, 0.0);
        let t = b.build();
        let mut network = Network::new(&t, |link| t.capacity(link, 1));
        let cut = network.least_cut(gpus[0], gpus[3]);
        assert_eq!(cut.capacity, 4.0);
        assert_eq!(cut.inside, [true, true, false, false, true, false]);
        assert_eq!(network.least_cut(gpus[3], gpus[0]).capacity, 6.0);
        // Supplied with 1 each, nothing is narrow: only the supplies are cut.
        let cut = network.least_cut_supplied(&gpus[..3], 1.0, gpus[3]);
        assert!(cut.inside.iter().all(|inside| !inside));
        // Supplied with 3 each, the two on the far side exceed the crossing.
        let cut = network.least_cut_supplied(&gpus[..3], 3.0, gpus[3]);
        assert_eq!(
            (cut.capacity, cut.inside[0], cut.inside[2]),
            (4.0, true, false)
        );
        assert_eq!(network.reversed().least_cut(gpus[0], gpus[3]).capacity, 6.0);
    }
}
