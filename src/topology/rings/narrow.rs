//! The resources that can limit a ring or a pair, and each edge's use of them.

use rustc_hash::FxHashMap;

use super::SAME;
use super::edges::{Edges, Use};
use super::limit::Limits;
use super::pair::Constraint;

/// Fixed-point scale of loads in group keys.
const SCALE: f64 = (1_u64 << 32) as f64;

/// The resources that can matter, and each edge's use of them.
pub(super) struct Narrow {
    pub count: usize,
    /// Local number → resource.
    pub resource: Vec<u32>,
    /// By local number: capacity at 0, 1, … flows of two rings.
    pub capacity: Vec<Vec<f64>>,
    /// By from · count + to.
    uses: Vec<Vec<Use>>,
    /// By from · count + to: the edge's part of the sum that tells groups apart.
    pub sums: Vec<u128>,
    pub picoseconds: Vec<u64>,
}

impl Narrow {
    pub fn new(edges: &mut Edges<'_>, limits: Limits) -> Self {
        let count = edges.len();
        let mut uses = Vec::with_capacity(count * count);
        let mut picoseconds = Vec::with_capacity(count * count);
        for from in 0..count as u32 {
            for to in 0..count as u32 {
                if from == to {
                    uses.push(Vec::new());
                    picoseconds.push(0);
                } else {
                    let edge = edges.edge(from, to);
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
        let numbers: Vec<[u128; 2]> = (0..resource.len() as u64)
            .map(|r| [scatter(4 * r), scatter(4 * r + 2)])
            .collect();
        let sum = |list: &Vec<Use>| {
            list.iter().fold(0_u128, |sum, item| {
                let [load, flows] = numbers[item.resource as usize];
                let fixed = u128::from((item.load * SCALE).round() as u64);
                sum.wrapping_add(load.wrapping_mul(fixed))
                    .wrapping_add(flows.wrapping_mul(u128::from(item.flows)))
            })
        };
        Self {
            count,
            sums: uses.iter().map(sum).collect(),
            resource,
            capacity,
            uses,
            picoseconds,
        }
    }
}

/// 128 well-mixed bits from two consecutive numbers (the finaliser of SplitMix64).
fn scatter(number: u64) -> u128 {
    let mix = |number: u64| {
        let z = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        u128::from(z ^ (z >> 31))
    };
    mix(number) << 64 | mix(number + 1)
}

/// Loads and flows by local number.
#[derive(Default)]
pub(super) struct Loads {
    pub load: Vec<f64>,
    pub flows: Vec<u32>,
}

impl Narrow {
    /// Replaces `loads` by those of the ring `order`.
    pub fn load(&self, order: &[u8], loads: &mut Loads) {
        loads.load.clear();
        loads.load.resize(self.resource.len(), 0.0);
        loads.flows.clear();
        loads.flows.resize(self.resource.len(), 0);
        for (i, &from) in order.iter().enumerate() {
            let to = order[(i + 1) % order.len()];
            for item in &self.uses[usize::from(from) * self.count + usize::from(to)] {
                loads.load[item.resource as usize] += item.load;
                loads.flows[item.resource as usize] += item.flows;
            }
        }
    }

    /// What two rings with these loads must keep to.
    pub fn constraints(&self, first: &Loads, second: &Loads, constraints: &mut Vec<Constraint>) {
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
