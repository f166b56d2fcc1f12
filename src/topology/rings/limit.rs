//! Upper bounds on what one ring and two rings can move.
//!
//! - Every ring leaves and enters every GPU, so x and x₁ + x₂ are at most a GPU's links together.
//! - Every ring crosses every cut that parts the GPUs (sought to 16 GPUs).
//! - A resource that every edge from (or to) some GPUs loads is loaded by every ring.
//! - Where routes are single paths, every link a ring uses carries x, and the ring joins all
//!   GPUs both ways: x is at most the greatest b for which the links of at least b still do.
//! - Two rings move at most twice the best one, unless flows make a link faster.

use petgraph::Direction::{self, Incoming, Outgoing};
use petgraph::visit::EdgeRef;

use super::super::NodeId;
use super::super::flow::Network;
use super::edges::{Edge, Edges};

/// Beyond this many GPUs, bounds that route every pair are not sought.
pub(super) const ROUTED_GPUS: usize = 128;

/// Beyond this many GPUs, least cuts are not sought.
const CUT_GPUS: usize = 16;

/// Upper bounds [bytes/s].
#[derive(Copy, Clone, Debug)]
pub(super) struct Limits {
    pub single: f64,
    pub pair: f64,
    /// Whether no contention curve rises: then a ring is never faster beside another than alone.
    pub fading: bool,
}

impl Limits {
    /// The bounds that need no ring.
    pub fn of(edges: &mut Edges<'_>) -> Self {
        let falls = |pair: &[(u32, f64)]| pair[1].1 <= pair[0].1;
        let curves = edges.topology.contention.iter().flatten();
        let mut limits = Self {
            single: connection(edges),
            pair: f64::INFINITY,
            fading: { curves }.all(|curve| curve.0.windows(2).all(falls)),
        };
        if edges.len() <= CUT_GPUS {
            limits.cuts(edges);
        }
        for place in 0..edges.len() {
            let node = edges.topology.gpus[edges.gpus[place] as usize];
            for direction in [Outgoing, Incoming] {
                limits.links_of(edges, node, direction);
            }
        }
        if edges.len() <= ROUTED_GPUS {
            for from_here in [true, false] {
                limits.routes(edges, from_here);
            }
        }
        if limits.fading {
            limits.pair = limits.pair.min(2.0 * limits.single);
        }
        limits
    }

    /// Every ring crosses every cut between the GPUs; the least cut is found by maximum flows.
    fn cuts(&mut self, edges: &Edges<'_>) {
        let node = |gpu: &u32| edges.topology.gpus[*gpu as usize];
        let first = node(&edges.gpus[0]);
        let mut network = Network::new(edges.topology, |link| edges.most(link.index() as u32, 1));
        for other in edges.gpus[1..].iter().map(node) {
            for (from, to) in [(first, other), (other, first)] {
                let cut = network.least_cut(from, to).capacity;
                self.single = self.single.min(cut);
                self.pair = self.pair.min(cut);
            }
        }
    }

    /// All links of one GPU in one direction.
    fn links_of(&mut self, edges: &Edges<'_>, node: NodeId, direction: Direction) {
        let graph = &edges.topology.graph;
        let links = || graph.edges_directed(node, direction);
        let sum = |flows| -> f64 {
            (links().map(|link| edges.most(link.id().index() as u32, flows))).sum()
        };
        self.single = self.single.min(sum(1));
        // Two rings on one link are two flows; over several links each may have its own.
        let flows = if links().count() == 1 { 2 } else { 1 };
        self.pair = self.pair.min(sum(flows));
    }

    /// What the routes from each GPU (or to each) have in common.
    fn routes(&mut self, edges: &mut Edges<'_>, from_here: bool) {
        let count = edges.len() as u32;
        let mut always = vec![(0.0_f64, 0_u32); edges.resources()];
        let mut widest = f64::INFINITY;
        // By resource: how many of this GPU's routes load it, and the least load and flows.
        let mut seen = vec![(0_u32, 0.0_f64, 0_u32); edges.resources()];
        for here in 0..count {
            let mut touched = Vec::new();
            let mut best = 0.0_f64;
            for there in (0..count).filter(|there| *there != here) {
                let edge: Edge = if from_here {
                    edges.edge(here, there)
                } else {
                    edges.edge(there, here)
                };
                best = best.max(edges.alone(edge));
                for item in edges.uses(edge) {
                    let entry = &mut seen[item.resource as usize];
                    if entry.0 == 0 {
                        touched.push(item.resource);
                        *entry = (0, f64::INFINITY, u32::MAX);
                    }
                    let (loads, load, flows) = *entry;
                    *entry = (loads + 1, load.min(item.load), flows.min(item.flows));
                }
            }
            widest = widest.min(best);
            for resource in touched {
                let (loads, load, flows) = std::mem::take(&mut seen[resource as usize]);
                if loads == count - 1 {
                    always[resource as usize].0 += load;
                    always[resource as usize].1 += flows;
                }
            }
        }
        self.single = self.single.min(widest);
        for (resource, (load, flows)) in (0..).zip(always) {
            if load > 0.0 {
                self.single = self.single.min(edges.most(resource, flows) / load);
                self.pair = self.pair.min(edges.most(resource, 2 * flows) / load);
            }
        }
    }
}

/// The greatest bandwidth whose links still join all GPUs both ways.
fn connection(edges: &Edges<'_>) -> f64 {
    let topology = edges.topology;
    let split = |route: &super::super::ExplicitRoute| route.paths.len() > 1;
    if topology.explicit.iter().any(split) {
        return f64::INFINITY;
    }
    let graph = &topology.graph;
    let most: Vec<f64> = (0..graph.edge_count() as u32)
        .map(|link| edges.most(link, 1))
        .collect();
    let mut steps = most.clone();
    steps.sort_by(f64::total_cmp);
    steps.dedup();
    let joined = |least: f64, direction: Direction| {
        let start = topology.gpus[edges.gpus[0] as usize];
        let mut seen = vec![false; graph.node_count()];
        let mut stack = vec![start];
        seen[start.index()] = true;
        while let Some(node) = stack.pop() {
            for link in graph.edges_directed(node, direction) {
                let next = match direction {
                    Outgoing => link.target(),
                    Incoming => link.source(),
                };
                if most[link.id().index()] >= least && !seen[next.index()] {
                    seen[next.index()] = true;
                    stack.push(next);
                }
            }
        }
        let all = |gpu: &u32| seen[topology.gpus[*gpu as usize].index()];
        edges.gpus.iter().all(all)
    };
    let reach = steps.partition_point(|&b| joined(b, Outgoing) && joined(b, Incoming));
    match reach.checked_sub(1) {
        Some(last) => steps[last],
        None => f64::INFINITY,
    }
}
