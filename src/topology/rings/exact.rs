//! All rings, grouped by what they load, and all pairs of groups.
//!
//! Rings that load the same resources equally are equal in every pair, so one stands for all.
//! Resources too wide to limit any ring or pair are left out before grouping, which is what
//! makes the groups few: on a switched box all 5,040 rings of 8 GPUs are one group.

use rustc_hash::FxHashMap;

use super::super::route::RouteError;
use super::edges::{Edges, Use};
use super::limit::Limits;
use super::pair::{Constraint, Total};
use super::{Found, SAME, Two, reverse};

/// Fixed-point scale of loads in group keys.
const SCALE: f64 = (1_u64 << 32) as f64;

/// The resources that can matter, and each edge's use of them.
struct Narrow {
    count: usize,
    /// Local number → resource.
    resource: Vec<u32>,
    /// By local number: capacity at 0, 1, … flows of two rings.
    capacity: Vec<Vec<f64>>,
    /// By from · count + to.
    uses: Vec<Vec<Use>>,
    picoseconds: Vec<u64>,
}

impl Narrow {
    fn new(edges: &mut Edges<'_>, limits: Limits) -> Result<Self, RouteError> {
        let count = edges.len();
        let mut uses = Vec::with_capacity(count * count);
        let mut picoseconds = Vec::with_capacity(count * count);
        for from in 0..count as u32 {
            for to in 0..count as u32 {
                if from == to {
                    uses.push(Vec::new());
                    picoseconds.push(0);
                } else {
                    let edge = edges.edge(from, to)?;
                    uses.push(edges.uses(edge).to_vec());
                    picoseconds.push(edge.picoseconds);
                }
            }
        }
        // The most that one ring can load a resource: its heaviest edge from every GPU.
        let mut most = vec![(0.0_f64, 0_u32); edges.resources()];
        for row in uses.chunks(count) {
            let mut heaviest: FxHashMap<u32, (f64, u32)> = FxHashMap::default();
            for item in row.iter().flatten() {
                let entry = heaviest.entry(item.resource).or_default();
                *entry = (entry.0.max(item.load), entry.1.max(item.flows));
            }
            for (resource, (load, flows)) in heaviest {
                most[resource as usize].0 += load;
                most[resource as usize].1 += flows;
            }
        }
        let fastest = limits.pair.max(limits.single) * (1.0 + SAME);
        let mut local = vec![u32::MAX; most.len()];
        let mut resource = Vec::new();
        let mut capacity = Vec::new();
        for (r, &(load, flows)) in (0..).zip(&most) {
            let by_flows: Vec<f64> = (0..=2 * flows).map(|f| edges.capacity(r, f)).collect();
            let least = by_flows.iter().copied().fold(f64::INFINITY, f64::min);
            if load > 0.0 && least < load * fastest {
                local[r as usize] = resource.len() as u32;
                resource.push(r);
                capacity.push(by_flows);
            }
        }
        for list in &mut uses {
            list.retain(|item| local[item.resource as usize] != u32::MAX);
            for item in list {
                item.resource = local[item.resource as usize];
            }
        }
        Ok(Self {
            count,
            resource,
            capacity,
            uses,
            picoseconds,
        })
    }
}

/// Rings that load the same; the one ranked first stands for them.
struct Group {
    picoseconds: u64,
    order: Vec<u32>,
    load: Vec<f64>,
    flows: Vec<u32>,
    bandwidth: f64,
}

/// All groups, by depth-first search over orders in lexicographic order.
struct Walk<'n> {
    narrow: &'n Narrow,
    order: Vec<u32>,
    /// Load and flows of the first edges of `order`, one row per number of edges.
    load: Vec<f64>,
    flows: Vec<u32>,
    key: Vec<u64>,
    groups: Vec<Group>,
    known: FxHashMap<Box<[u64]>, usize>,
}

impl<'n> Walk<'n> {
    fn new(narrow: &'n Narrow) -> Self {
        let cells = (narrow.count + 1) * narrow.resource.len();
        Self {
            narrow,
            order: vec![0],
            load: vec![0.0; cells],
            flows: vec![0; cells],
            key: Vec::new(),
            groups: Vec::new(),
            known: FxHashMap::default(),
        }
    }

    fn extend(&mut self, used: u32, picoseconds: u64) {
        let narrow = self.narrow;
        let from = self.order[self.order.len() - 1];
        let closing = self.order.len() == narrow.count;
        for to in 0..narrow.count as u32 {
            let take = if closing {
                to == 0
            } else {
                used >> to & 1 == 0
            };
            if !take {
                continue;
            }
            let edge = from as usize * narrow.count + to as usize;
            let row = self.order.len() * narrow.resource.len();
            let last = row - narrow.resource.len();
            self.load.copy_within(last..row, row);
            self.flows.copy_within(last..row, row);
            for item in &narrow.uses[edge] {
                self.load[row + item.resource as usize] += item.load;
                self.flows[row + item.resource as usize] += item.flows;
            }
            let picoseconds = picoseconds.saturating_add(narrow.picoseconds[edge]);
            if closing {
                self.close(row, picoseconds);
            } else {
                self.order.push(to);
                self.extend(used | 1 << to, picoseconds);
                self.order.pop();
            }
        }
    }

    /// Files the ring whose load is the row at `row`.
    fn close(&mut self, row: usize, picoseconds: u64) {
        let width = self.narrow.resource.len();
        let (load, flows) = (&self.load[row..row + width], &self.flows[row..row + width]);
        let part =
            |(load, flows): (&f64, &u32)| ((load * SCALE).round() as u64) << 16 | u64::from(*flows);
        self.key.clear();
        self.key.extend(load.iter().zip(flows).map(part));
        if let Some(&known) = self.known.get(self.key.as_slice()) {
            let group = &mut self.groups[known];
            if picoseconds < group.picoseconds {
                group.picoseconds = picoseconds;
                group.order.clone_from(&self.order);
            }
            return;
        }
        let key = self.key.clone().into_boxed_slice();
        self.known.insert(key, self.groups.len());
        let bandwidth = (load.iter().zip(flows).zip(&self.narrow.capacity))
            .filter(|((load, _), _)| **load > 0.0)
            .map(|((load, flows), capacity)| capacity[*flows as usize] / load)
            .fold(f64::INFINITY, f64::min);
        self.groups.push(Group {
            picoseconds,
            order: self.order.clone(),
            load: load.to_vec(),
            flows: flows.to_vec(),
            bandwidth,
        });
    }
}

/// The best ring and the best pair over at most [`super::EXACT_GPUS`] GPUs.
pub(super) fn search(edges: &mut Edges<'_>) -> Result<Found, RouteError> {
    let limits = Limits::of(edges)?;
    let narrow = Narrow::new(edges, limits)?;
    let mut walk = Walk::new(&narrow);
    walk.extend(1, 0);
    let mut groups = walk.groups;
    groups.sort_by(|x, y| (x.picoseconds, &x.order).cmp(&(y.picoseconds, &y.order)));
    let best = groups.iter().map(|g| g.bandwidth).fold(0.0, f64::max);
    let single = (groups.iter())
        .find(|group| group.bandwidth >= best * (1.0 - SAME))
        .map_or_else(Vec::new, |group| group.order.clone());
    let goal = Goal {
        best,
        limit: limits.pair.min(if limits.fading {
            2.0 * best
        } else {
            f64::INFINITY
        }),
        fading: limits.fading,
    };
    let pair = best_pair(edges, &narrow, groups.as_slice(), &single, goal)?;
    Ok(Found {
        single,
        pair,
        tried: groups.len(),
        limits: None,
    })
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

/// The first pair of groups, in rank order, of the greatest total, if it beats one ring.
fn best_pair(
    edges: &mut Edges<'_>,
    narrow: &Narrow,
    groups: &[Group],
    single: &[u32],
    goal: Goal,
) -> Result<Option<Two>, RouteError> {
    let mut beaten = goal.best * (1.0 + SAME);
    if goal.limit <= beaten {
        return Ok(None);
    }
    // A good total to begin with makes the quick test below reject more.
    let loads = [edges.load(single)?, edges.load(&reverse(single))?];
    let seed = Total::of(edges, &loads[0], &loads[1]).rate;
    beaten = beaten.max(seed * (1.0 - SAME));

    let mut found = None;
    let mut constraints = Vec::new();
    let mut masks = Masks::new(narrow, groups, beaten);
    let slow = |sum: f64, beaten: f64| goal.fading && sum <= beaten;
    for i in 0..groups.len() {
        if slow(groups[i].bandwidth + goal.best, beaten) {
            continue;
        }
        for j in i + 1..groups.len() {
            let sum = groups[i].bandwidth + groups[j].bandwidth;
            if slow(sum, beaten) || masks.meet(i, j) {
                continue;
            }
            narrow.constraints(&groups[i], &groups[j], &mut constraints);
            let total = Total::best(&constraints).rate;
            if total <= beaten {
                continue;
            }
            beaten = total * (1.0 + SAME);
            found = Some((groups[i].order.clone(), groups[j].order.clone()));
            if beaten >= goal.limit {
                return Ok(found);
            }
            masks = Masks::new(narrow, groups, beaten);
        }
    }
    Ok(found)
}

impl Narrow {
    fn constraints(&self, first: &Group, second: &Group, constraints: &mut Vec<Constraint>) {
        constraints.clear();
        for r in 0..self.resource.len() {
            let flows = (first.flows[r] + second.flows[r]) as usize;
            if flows > 0 {
                constraints.push(Constraint {
                    resource: self.resource[r],
                    a: first.load[r],
                    b: second.load[r],
                    capacity: self.capacity[r][flows],
                });
            }
        }
    }
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
        for r in 0..narrow.resource.len() {
            let shared = narrow.capacity[r].iter().skip(2);
            if shared.copied().fold(0.0, f64::max) <= beaten {
                for (i, group) in groups.iter().enumerate() {
                    if group.load[r] >= 1.0 {
                        bits[i * words + r / 64] |= 1 << (r % 64);
                    }
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
