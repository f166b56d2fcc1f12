//! All shortest paths from one forwarder to the others, found only as far as they are asked for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::net::{Hop, Net};

/// Length of a path: latency [ps], then hops.
pub(super) type Length = (u64, u32);

const UNSETTLED: u32 = u32::MAX;

/// Dijkstra's algorithm from one root, suspended whenever the node asked for is settled.
#[derive(Debug)]
pub(super) struct Tree {
    /// Best length known by forwarder rank.
    length: Vec<Length>,
    /// By forwarder rank: the last hops of its shortest paths, as (start, count) in `parents`.
    last: Vec<(u32, u32)>,
    parents: Vec<Hop>,
    heap: BinaryHeap<Reverse<(Length, u32)>>,
}

impl Tree {
    /// Nothing settled yet. `rank` numbers the forwarders among the nodes.
    pub fn new(root: u32, forwarders: usize, rank: &[u32]) -> Self {
        let mut length = vec![(u64::MAX, u32::MAX); forwarders];
        length[rank[root as usize] as usize] = (0, 0);
        Self {
            length,
            last: vec![(UNSETTLED, 0); forwarders],
            parents: Vec::new(),
            heap: BinaryHeap::from([Reverse(((0, 0), root))]),
        }
    }

    /// Length of the shortest path to `target`, if any.
    pub fn reach(&mut self, net: &Net, rank: &[u32], target: u32) -> Option<Length> {
        let at = rank[target as usize] as usize;
        while self.last[at].0 == UNSETTLED {
            let Reverse((length, node)) = self.heap.pop()?;
            self.settle(net, rank, length, node);
        }
        Some(self.length[at])
    }

    fn settle(&mut self, net: &Net, rank: &[u32], length: Length, node: u32) {
        let at = rank[node as usize] as usize;
        if self.last[at].0 != UNSETTLED {
            return;
        }
        let start = self.parents.len() as u32;
        // A node not settled yet is at least as far as this one, hence never before it.
        let before = |hop: &&Hop| {
            let (latency, hops) = self.length[rank[hop.node as usize] as usize];
            (latency.saturating_add(hop.latency), hops.saturating_add(1)) == length
        };
        self.parents
            .extend(net.inward.at(node).iter().filter(before));
        self.last[at] = (start, self.parents.len() as u32 - start);
        for hop in net.onward.at(node) {
            let next = (length.0.saturating_add(hop.latency), length.1 + 1);
            let known = &mut self.length[rank[hop.node as usize] as usize];
            if next < *known {
                *known = next;
                self.heap.push(Reverse((next, hop.node)));
            }
        }
    }

    /// The last hops of all shortest paths to settled `target`; empty at the root.
    pub fn last_hops(&self, rank: &[u32], target: u32) -> &[Hop] {
        let (start, count) = self.last[rank[target as usize] as usize];
        if start == UNSETTLED {
            return &[];
        }
        &self.parents[start as usize..(start + count) as usize]
    }
}
