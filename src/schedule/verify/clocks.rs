//! Queries of happens-before.
//!
//! A set of predecessors that is closed under happens-before is given by one position per chain.
//! [`Clocks`] keeps, for each chain X and each other chain Y, how far into Y the tasks of X have
//! waited **directly**: a list of (position in X, position in Y) that grows with the sweep and
//! has one entry per edge at most. A query closes this relation chain by chain, backwards from v,
//! until u's position in u's chain is reached. In schedules whose tasks wait directly for what
//! they touch, that is at once.

use rustc_hash::FxHashMap;

use super::order::Order;

/// How far each chain is known to have waited into the others; grows with the sweep.
#[derive(Debug)]
pub(super) struct Clocks {
    /// By chain: other chain → (own position, other's position), both ascending.
    known: Vec<FxHashMap<u32, Vec<(u32, u32)>>>,
    /// Positions reached in the query for `target`; valid where `stamp` is the target's.
    reached: Vec<u32>,
    stamp: Vec<u32>,
    queue: Vec<(u32, u32)>,
    epoch: u32,
    target: Option<u32>,
    /// Steps taken so far, a measure of the work done.
    pub steps: u64,
}

impl Clocks {
    pub(super) fn new(order: &Order) -> Self {
        let chains = order.chains as usize;
        Self {
            known: vec![FxHashMap::default(); chains],
            reached: vec![0; chains],
            stamp: vec![0; chains],
            queue: Vec::new(),
            epoch: 0,
            target: None,
            steps: 0,
        }
    }

    /// Notes that `task` waits for `from`, or ends with it.
    pub(super) fn wait(&mut self, order: &Order, task: u32, from: u32) {
        let (chain, other) = (order.chain[task as usize], order.chain[from as usize]);
        if chain == other {
            return;
        }
        let (at, upto) = (order.position[task as usize], order.position[from as usize]);
        let list = self.known[chain as usize].entry(other).or_default();
        match list.last_mut() {
            Some(last) if last.1 >= upto => {}
            Some(last) if last.0 == at => last.1 = upto,
            _ => list.push((at, upto)),
        }
        self.steps += 1;
    }

    /// Whether `first` ends before `second` starts (or is a member of the same collective). The
    /// waits of `second` and of all that happens before it must have been noted.
    pub(super) fn ordered(&mut self, order: &Order, first: u32, second: u32) -> bool {
        let (chain, upto) = (order.chain[first as usize], order.position[first as usize]);
        self.start(order, second);
        self.steps += 1;
        if self.at(chain) >= upto {
            return true;
        }
        let own = order.chain[second as usize];
        let direct = self.lookup(own, order.position[second as usize], chain);
        if direct >= upto {
            return true;
        }
        // Most who wait for another's kernel do so through somebody whom its task releases.
        let through = |by: u32| {
            let (chain, upto) = (order.chain[by as usize], order.position[by as usize]);
            self.at(chain) >= upto
                || self.lookup(own, order.position[second as usize], chain) >= upto
        };
        if order.awaited(first).any(through) {
            return true;
        }
        self.close(Some((chain, upto)))
    }

    /// Position up to which each lane has ended before `node` starts; its own lane up to itself.
    /// Indexed by lane.
    pub(super) fn closure(&mut self, order: &Order, node: u32) -> Vec<u32> {
        self.start(order, node);
        self.close(None);
        (0..order.lanes).map(|lane| self.at(lane)).collect()
    }

    fn start(&mut self, order: &Order, target: u32) {
        if self.target == Some(target) {
            return;
        }
        self.target = Some(target);
        self.epoch += 1;
        self.queue.clear();
        self.reach(
            order.chain[target as usize],
            order.position[target as usize],
        );
    }

    fn at(&self, chain: u32) -> u32 {
        if self.stamp[chain as usize] == self.epoch {
            self.reached[chain as usize]
        } else {
            0
        }
    }

    fn reach(&mut self, chain: u32, position: u32) {
        self.stamp[chain as usize] = self.epoch;
        self.reached[chain as usize] = position;
        self.queue.push((chain, position));
    }

    /// How far `chain` has waited into `other` by its position `position`.
    fn lookup(&self, chain: u32, position: u32, other: u32) -> u32 {
        self.known[chain as usize]
            .get(&other)
            .map_or(0, |list| upto(list, position))
    }

    /// Goes on with the search from the target until `goal` is reached or nothing is left.
    fn close(&mut self, goal: Option<(u32, u32)>) -> bool {
        let mut next = 0;
        while next < self.queue.len() {
            let (chain, position) = self.queue[next];
            next += 1;
            if self.at(chain) > position {
                continue;
            }
            let known = std::mem::take(&mut self.known[chain as usize]);
            for (&other, list) in &known {
                let position = upto(list, position);
                self.steps += 1;
                if position > self.at(other) {
                    self.reach(other, position);
                }
            }
            self.known[chain as usize] = known;
            if goal.is_some_and(|(chain, upto)| self.at(chain) >= upto) {
                break;
            }
        }
        self.queue.drain(..next);
        goal.is_none_or(|(chain, upto)| self.at(chain) >= upto)
    }
}

/// The last entry at or before `position`.
fn upto(list: &[(u32, u32)], position: u32) -> u32 {
    match list.partition_point(|&(own, _)| own <= position) {
        0 => 0,
        n => list[n - 1].1,
    }
}
