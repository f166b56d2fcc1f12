//! All rings, grouped by what they load, and all pairs of groups.
//!
//! Rings that load the same resources equally are equal in every pair, so one stands for all.
//! Resources too wide to limit any ring or pair are left out before grouping, which is what
//! makes the groups few: on a switched box all 5,040 rings of 8 GPUs are one group. A group is
//! told by a 128-bit sum of one random number per resource times its load and another times its
//! flows: equal loads give equal sums, and unequal ones differ but for a chance of 2^-100.

use rustc_hash::FxHashMap;

use super::edges::Edges;
use super::limit::Limits;
use super::narrow::{Loads, Narrow};
use super::pair::Total;
use super::{Found, SAME, Two, reverse};

/// Rings that load the same; the one ranked first stands for them.
struct Group {
    picoseconds: u64,
    order: Vec<u8>,
    bandwidth: f64,
}

/// All groups, by depth-first search over orders in lexicographic order.
struct Walk<'n> {
    narrow: &'n Narrow,
    order: Vec<u8>,
    loads: Loads,
    groups: Vec<Group>,
    known: FxHashMap<u128, usize>,
}

impl Walk<'_> {
    fn extend(&mut self, used: u32, sum: u128, picoseconds: u64) {
        let narrow = self.narrow;
        let from = self.order[self.order.len() - 1];
        let closing = self.order.len() == narrow.count;
        for to in 0..narrow.count as u8 {
            let take = if closing {
                to == 0
            } else {
                used >> to & 1 == 0
            };
            if !take {
                continue;
            }
            let edge = usize::from(from) * narrow.count + usize::from(to);
            let sum = sum.wrapping_add(narrow.sums[edge]);
            let picoseconds = picoseconds.saturating_add(narrow.picoseconds[edge]);
            if closing {
                self.close(sum, picoseconds);
            } else {
                self.order.push(to);
                self.extend(used | 1 << to, sum, picoseconds);
                self.order.pop();
            }
        }
    }

    /// Files the ring `order`.
    fn close(&mut self, sum: u128, picoseconds: u64) {
        let order = &self.order;
        if let Some(&known) = self.known.get(&sum) {
            let group = &mut self.groups[known];
            if picoseconds < group.picoseconds {
                group.picoseconds = picoseconds;
                group.order.clone_from(order);
            }
            return;
        }
        self.known.insert(sum, self.groups.len());
        self.narrow.load(order, &mut self.loads);
        let loads = self.loads.load.iter().zip(&self.loads.flows);
        let bandwidth = (loads.zip(&self.narrow.capacity))
            .filter(|((load, _), _)| **load > 0.0)
            .map(|((load, flows), capacity)| capacity[*flows as usize] / load)
            .fold(f64::INFINITY, f64::min);
        self.groups.push(Group {
            picoseconds,
            order: order.clone(),
            bandwidth,
        });
    }
}

/// Places as the callers count them.
fn wide(order: &[u8]) -> Vec<u32> {
    order.iter().map(|&place| place.into()).collect()
}

/// The best ring and the best pair over at most [`super::EXACT_GPUS`] GPUs.
pub(super) fn search(edges: &mut Edges<'_>) -> Found {
    let limits = Limits::of(edges);
    let narrow = Narrow::new(edges, limits);
    let mut walk = Walk {
        narrow: &narrow,
        order: vec![0],
        loads: Loads::default(),
        groups: Vec::new(),
        known: FxHashMap::default(),
    };
    walk.extend(1, 0, 0);
    let mut groups = walk.groups;
    groups.sort_by(|x, y| (x.picoseconds, &x.order).cmp(&(y.picoseconds, &y.order)));
    let best = groups.iter().map(|g| g.bandwidth).fold(0.0, f64::max);
    let single = (groups.iter())
        .find(|group| group.bandwidth >= best * (1.0 - SAME))
        .map_or_else(Vec::new, |group| wide(&group.order));
    let goal = Goal {
        best,
        limit: limits.pair.min(if limits.fading {
            2.0 * best
        } else {
            f64::INFINITY
        }),
        fading: limits.fading,
    };
    let pair = best_pair(edges, &narrow, groups.as_slice(), &single, goal);
    Found {
        single,
        pair,
        tried: groups.len(),
        limits: None,
    }
}

/// What a pair has to beat and cannot exceed [bytes/s].
#[derive(Copy, Clone)]
struct Goal {
    /// The best single ring.
    best: f64,
    limit: f64,
    /// Whether a ring is never faster beside another than alone.
    fading: bool,
}

/// The best ring and its reverse, or the first pair of groups, in rank order, of a greater total;
/// none where no pair beats one ring.
fn best_pair(
    edges: &mut Edges<'_>,
    narrow: &Narrow,
    groups: &[Group],
    single: &[u32],
    goal: Goal,
) -> Option<Two> {
    let mut beaten = goal.best * (1.0 + SAME);
    if goal.limit <= beaten {
        return None;
    }
    // Forward and backward is the pair to beat; equally good ones do not replace it.
    let backward = reverse(single);
    let loads = [edges.load(single), edges.load(&backward)];
    let seed = Total::of(edges, &loads[0], &loads[1]).rate;
    let mut found = None;
    if backward != single && seed > beaten {
        found = Some((single.to_vec(), backward));
        beaten = seed * (1.0 + SAME);
        if beaten >= goal.limit {
            return found;
        }
    }
    let mut constraints = Vec::new();
    let (mut first, mut second) = (Loads::default(), Loads::default());
    let mut masks = Masks::new(narrow, groups, beaten);
    let slow = |sum: f64, beaten: f64| goal.fading && sum <= beaten;
    for i in 0..groups.len() {
        if slow(groups[i].bandwidth + goal.best, beaten) {
            continue;
        }
        narrow.load(&groups[i].order, &mut first);
        for j in i + 1..groups.len() {
            let sum = groups[i].bandwidth + groups[j].bandwidth;
            if slow(sum, beaten) || masks.meet(i, j) {
                continue;
            }
            narrow.load(&groups[j].order, &mut second);
            narrow.constraints(&first, &second, &mut constraints);
            let total = Total::best(&constraints).rate;
            if total <= beaten {
                continue;
            }
            beaten = total * (1.0 + SAME);
            found = Some((wide(&groups[i].order), wide(&groups[j].order)));
            if beaten >= goal.limit {
                return found;
            }
            masks = Masks::new(narrow, groups, beaten);
        }
    }
    found
}

/// By group, the resources it loads at least fully and that carry no more than the total to be
/// beaten: two groups with one of these in common cannot beat it.
struct Masks {
    words: usize,
    bits: Vec<u64>,
}

impl Masks {
    fn new(narrow: &Narrow, groups: &[Group], beaten: f64) -> Self {
        let words = narrow.resource.len().div_ceil(64);
        let mut bits = vec![0; words * groups.len()];
        let narrow_enough: Vec<bool> = (narrow.capacity.iter())
            .map(|capacity| capacity.iter().skip(2).copied().fold(0.0, f64::max) <= beaten)
            .collect();
        let mut loads = Loads::default();
        for (i, group) in groups.iter().enumerate() {
            narrow.load(&group.order, &mut loads);
            for (r, load) in loads.load.iter().enumerate() {
                if narrow_enough[r] && *load >= 1.0 {
                    bits[i * words + r / 64] |= 1 << (r % 64);
                }
            }
        }
        Self { words, bits }
    }

    fn meet(&self, i: usize, j: usize) -> bool {
        let row = |i: usize| &self.bits[i * self.words..(i + 1) * self.words];
        row(i).iter().zip(row(j)).any(|(x, y)| x & y != 0)
    }
}
