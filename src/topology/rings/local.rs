//! Good rings over many GPUs: file order, nearest neighbour, and iterated local search.
//!
//! The search stops at an upper bound or after a fixed number of routed edges, never by the clock,
//! so the same question always has the same answer. File order is kept unless another order is
//! faster.

use super::edges::{Edges, Load};
use super::limit::{Limits, ROUTED_GPUS};
use super::pair::{Constraint, Total};
use super::{Found, SAME, Two, reverse};

/// Edges and loads looked at in the search for one ring, and again for the pair.
const STEPS: u64 = 500_000;

/// What a ring or a pair costs: seconds per byte, then a sum that falls as load spreads.
type Cost = (f64, f64);

fn less(x: Cost, y: Cost) -> bool {
    let same = x.0 <= y.0 * (1.0 + SAME) && y.0 <= x.0 * (1.0 + SAME);
    if same {
        x.1 < y.1 * (1.0 - SAME)
    } else {
        x.0 < y.0
    }
}

/// An order under improvement, beside a fixed ring or alone.
struct Search<'e, 't> {
    edges: &'e mut Edges<'t>,
    scratch: Load,
    /// The other ring of the pair; empty in the search for one ring.
    fixed: Load,
    constraints: Vec<Constraint>,
    /// Seconds per byte at which nothing better can exist.
    target: f64,
    steps: u64,
    tried: usize,
}

impl Search<'_, '_> {
    fn cost(&mut self, order: &[u32]) -> Cost {
        self.tried += 1;
        self.scratch.set(self.edges, order);
        let constraints = &mut self.constraints;
        Total::collect(self.edges, &self.fixed, &self.scratch, constraints);
        let work = (order.len() + constraints.len()) as u64;
        self.steps = self.steps.saturating_sub(work);
        let rate = if self.fixed.touched.is_empty() {
            self.scratch.bandwidth(self.edges)
        } else {
            Total::best(constraints).rate
        };
        let square = |c: &Constraint| ((c.a + c.b) / c.capacity).powi(2);
        (1.0 / rate, constraints.iter().map(square).sum())
    }

    fn met(&self, cost: Cost) -> bool {
        cost.0 <= self.target * (1.0 + SAME)
    }

    /// Swaps, reversals and moves while they help.
    fn descend(&mut self, order: &mut Vec<u32>, cost: &mut Cost) {
        let count = order.len();
        let mut improved = true;
        while improved {
            improved = false;
            for i in 1..count {
                for j in i + 1..count {
                    for step in 0..3 {
                        if self.steps == 0 || self.met(*cost) {
                            return;
                        }
                        let mut next = order.clone();
                        match step {
                            0 => next.swap(i, j),
                            1 => next[i..=j].reverse(),
                            _ => next[i..=j].rotate_left(1),
                        }
                        let price = self.cost(&next);
                        if less(price, *cost) {
                            (*order, *cost, improved) = (next, price, true);
                        }
                    }
                }
            }
        }
    }

    /// Descends again and again from the best order with two stretches exchanged.
    fn improve(&mut self, order: &mut Vec<u32>, cost: &mut Cost) {
        self.descend(order, cost);
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut draw = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            ((state >> 33) % below as u64) as usize
        };
        while self.steps > 0 && !self.met(*cost) && order.len() > 4 {
            let mut cuts = [0; 3].map(|_| 1 + draw(order.len()));
            cuts.sort_unstable();
            let [a, b, c] = cuts;
            let parts = [&order[..a], &order[b..c], &order[a..b], &order[c..]];
            let mut next = parts.concat();
            let mut price = self.cost(&next);
            self.descend(&mut next, &mut price);
            if less(price, *cost) {
                (*order, *cost) = (next, price);
            }
        }
    }
}

/// From GPU to GPU: the unvisited one of greatest bandwidth, then least latency, then first.
fn nearest_neighbour(edges: &mut Edges<'_>) -> Vec<u32> {
    let count = edges.len() as u32;
    let mut order = vec![0];
    let mut left: Vec<u32> = (1..count).collect();
    while !left.is_empty() {
        let here = order[order.len() - 1];
        let mut best: Option<(usize, f64, u64)> = None;
        for (at, &there) in left.iter().enumerate() {
            let edge = edges.edge(here, there);
            let alone = edges.alone(edge);
            let better = best.is_none_or(|(_, bandwidth, latency)| {
                alone > bandwidth || (alone == bandwidth && edge.picoseconds < latency)
            });
            if better {
                best = Some((at, alone, edge.picoseconds));
            }
        }
        order.push(left.remove(best.map_or(0, |(at, ..)| at)));
    }
    order
}

/// A good ring and a good pair.
pub(super) fn search(edges: &mut Edges<'_>) -> Found {
    let limits = Limits::of(edges);
    let (scratch, fixed) = (Load::new(edges.resources()), Load::new(edges.resources()));
    let mut search = Search {
        edges,
        scratch,
        fixed,
        constraints: Vec::new(),
        target: 1.0 / limits.single,
        steps: STEPS,
        tried: 0,
    };
    let file: Vec<u32> = (0..search.edges.len() as u32).collect();
    let mut single = file.clone();
    let mut cost = search.cost(&single);
    if !search.met(cost) && file.len() <= ROUTED_GPUS {
        let near = nearest_neighbour(search.edges);
        let price = search.cost(&near);
        if less(price, cost) {
            (single, cost) = (near, price);
        }
    }
    search.improve(&mut single, &mut cost);

    let mut pair = None;
    if limits.pair * cost.0 > 1.0 + SAME {
        (search.target, search.steps) = (1.0 / limits.pair, STEPS);
        pair = Some(best_pair(&mut search, &single, &file));
    }
    let tried = search.tried;
    Found {
        single,
        pair,
        tried,
        limits: Some(limits),
    }
}

/// The best of the known rings in pairs, each then improved beside the other.
fn best_pair(search: &mut Search<'_, '_>, single: &[u32], file: &[u32]) -> Two {
    let pool = [
        single.to_vec(),
        reverse(single),
        file.to_vec(),
        reverse(file),
    ];
    let mut best = ((f64::INFINITY, f64::INFINITY), 0, 1);
    for i in 0..pool.len() {
        search.fixed = search.edges.load(&pool[i]);
        for (j, order) in pool.iter().enumerate().skip(i + 1) {
            let cost = search.cost(order);
            if less(cost, best.0) {
                best = (cost, i, j);
            }
        }
    }
    let (mut cost, i, j) = best;
    let (mut first, mut second) = (pool[i].clone(), pool[j].clone());
    let half = search.steps / 2;
    for round in 0..2 {
        search.steps = half;
        search.fixed = search.edges.load(&first);
        search.improve(&mut second, &mut cost);
        if round == 0 {
            // The other way round, so that the first ring is improved beside the second.
            std::mem::swap(&mut first, &mut second);
        }
    }
    (second, first)
}
