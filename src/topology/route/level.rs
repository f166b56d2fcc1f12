//! Shortest paths between memories over one set of admitted link kinds.

use super::super::LinkId;
use super::net::{Hop, Net};
use super::tree::{Length, Tree};

/// The links of the admitted kinds and the trees grown over them so far, by root.
#[derive(Debug)]
pub(super) struct Level {
    pub net: Net,
    trees: Vec<Option<Box<Tree>>>,
}

/// A question: two memories, and the receiver's number where ties are spread by it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Pair {
    pub from: u32,
    pub to: u32,
    pub digits: Option<u64>,
}

impl Pair {
    /// Which of `candidates` equal ways to take; uses up one digit of the receiver's number.
    fn choose(&mut self, candidates: usize) -> usize {
        match &mut self.digits {
            Some(digits) if candidates > 1 => {
                let count = candidates as u64;
                let digit = *digits % count;
                *digits /= count;
                digit as usize
            }
            _ => 0,
        }
    }
}

/// The end hops of a path.
#[derive(Copy, Clone, Debug)]
enum Ends {
    /// One link from memory to memory.
    Straight(Hop),
    /// Out over the first, in over the second, forwarders between.
    Through(Hop, Hop),
}

impl Level {
    pub fn new(net: Net, forwarders: usize) -> Self {
        let trees = (0..forwarders).map(|_| None).collect();
        Self { net, trees }
    }

    /// Visits every combination of end hops with the length of the best path that has them.
    fn each(&mut self, rank: &[u32], pair: Pair, mut visit: impl FnMut(Length, Ends)) {
        let Self { net, trees } = self;
        for hop in net.straight.between(pair.from, pair.to) {
            visit((hop.latency, 1), Ends::Straight(*hop));
        }
        let forwarders = trees.len();
        for entry in net.entries.at(pair.to) {
            for exit in net.exits.at(pair.from) {
                let tree = trees[rank[exit.node as usize] as usize]
                    .get_or_insert_with(|| Box::new(Tree::new(exit.node, forwarders, rank)));
                if let Some((latency, hops)) = tree.reach(net, rank, entry.node) {
                    let ends = exit.latency.saturating_add(entry.latency);
                    let length = (latency.saturating_add(ends), hops + 2);
                    visit(length, Ends::Through(*exit, *entry));
                }
            }
        }
    }

    /// Length of the shortest paths and how many pairs of end hops reach it.
    pub fn shortest(&mut self, rank: &[u32], pair: Pair) -> Option<(Length, usize)> {
        let mut best: Option<(Length, usize)> = None;
        self.each(rank, pair, |length, _| match &mut best {
            Some((known, count)) if *known == length => *count += 1,
            Some((known, _)) if *known < length => {}
            _ => best = Some((length, 1)),
        });
        best
    }

    /// Appends the links of the chosen shortest path; false when there is none.
    pub fn walk(&mut self, rank: &[u32], mut pair: Pair, links: &mut Vec<LinkId>) -> bool {
        let Some((best, count)) = self.shortest(rank, pair) else {
            return false;
        };
        let mut left = pair.choose(count);
        let mut chosen = None;
        self.each(rank, pair, |length, ends| {
            if length == best && chosen.is_none() {
                if left == 0 {
                    chosen = Some(ends);
                } else {
                    left -= 1;
                }
            }
        });
        let mut push = |hop: Hop| links.push(LinkId::new(hop.link as usize));
        match chosen {
            None => return false,
            Some(Ends::Straight(hop)) => push(hop),
            Some(Ends::Through(exit, entry)) => {
                // From the receiver back to the sender, then turned round.
                push(entry);
                let mut count = 2;
                let mut at = entry.node;
                if let Some(tree) = &self.trees[rank[exit.node as usize] as usize] {
                    loop {
                        let hops = tree.last_hops(rank, at);
                        if hops.is_empty() {
                            break;
                        }
                        let hop = hops[pair.choose(hops.len())];
                        push(hop);
                        count += 1;
                        at = hop.node;
                    }
                }
                push(exit);
                let start = links.len() - count;
                links[start..].reverse();
            }
        }
        true
    }
}
