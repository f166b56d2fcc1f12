//! The fluid solver: weighted max-min fair speeds under capacities. Knows nothing of links or GPUs.
//!
//! Flow *i* runs at speed xᵢ ≥ 0 and uses aᵢᵣ·xᵢ of resource r:
//!
//! ```text
//! Σᵢ aᵢᵣ·xᵢ ≤ Cᵣ(nᵣ)   for every resource r (its capacity may depend on its number of flows nᵣ)
//! xᵢ ≤ bᵢ              for every flow i (its own bound)
//! ```
//!
//! Among all such speeds the *weighted max-min fair* ones are wanted: no flow's level xᵢ/wᵢ can be
//! raised without lowering one that is no higher. Progressive filling finds them: raise all levels
//! together; when a resource fills up, its flows freeze at that level; when a flow reaches its
//! bound, it freezes alone. The result is the only one in which every flow is at its own bound or
//! crosses a full resource on which its level is the highest (the *certificate*; Bertsekas and
//! Gallager, Data Networks, §6.5.2).
//!
//! Worked example: links of 10 and 4 bytes/s; flow 0 crosses the first, flow 1 both, flow 2 the
//! second. The second fills at level 2 (flows 1 and 2); the first then gives flow 0 the other 8.
//!
//! ```
//! use duet::sim::fluid::{Fluid, Usage};
//! let mut fluid = Fluid::new(&[10.0, 4.0]);
//! let on = |resource| Usage { resource, per_unit: 1.0 };
//! let flows = [
//!     fluid.add(100.0, 1.0, f64::INFINITY, &[on(0)], 0),
//!     fluid.add(100.0, 1.0, f64::INFINITY, &[on(0), on(1)], 1),
//!     fluid.add(100.0, 1.0, f64::INFINITY, &[on(1)], 2),
//! ];
//! fluid.solve(0.0);
//! assert_eq!(flows.map(|flow| fluid.rate(flow)), [8.0, 2.0, 2.0]);
//! assert_eq!(fluid.next_end(), Some(12.5)); // flow 0: 100 bytes at 8 bytes/s
//! ```
//!
//! Only what a change can reach is solved again. A flow that leaves, having been frozen at level ℓ,
//! leaves the filling below ℓ as it was; a flow that comes cannot freeze below the even share
//! C/Σ a·w of its resources. So filling restarts at the lowest such level: slower flows keep their
//! speed, and of the faster ones only those connected to the change (through one another) are
//! filled again. A ring of a thousand links costs a thousand solves of one flow.

mod certificate;
mod ends;
mod fill;
mod state;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use ordered_float::OrderedFloat;
use smallvec::SmallVec;

use ends::Ends;
use state::{Flow, History, Member, Resource, Use};

/// Ends closer than this (relative to the time) are one event.
pub const TIE: f64 = 1e-12;

/// Marks a flow that its own bound limits.
const OWN: u32 = u32::MAX;

/// A running flow.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FlowId(u32);

impl FlowId {
    /// A small number, used again after the flow is removed.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// How much of a resource a flow uses per unit of speed.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Usage {
    /// Each resource at most once per flow; its capacity must be finite.
    pub resource: u32,
    /// aᵢᵣ > 0.
    pub per_unit: f64,
}

/// What limits a flow.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Its own bound.
    Own,
    /// This resource, full.
    Resource(u32),
}

/// Flows over resources, with their speeds and ends.
#[derive(Debug)]
pub struct Fluid {
    resources: Vec<Resource>,
    /// Flows by resource; most links carry one or two.
    members: Vec<SmallVec<[Member; 2]>>,
    flows: Vec<Flow>,
    /// By flow.
    history: Vec<History>,
    usages: Vec<Use>,
    free_flows: Vec<u32>,
    /// Free stretches of `usages`, by length.
    free_usages: Vec<Vec<u32>>,
    /// Resources whose flows changed since the last solve.
    dirty: Vec<u32>,
    /// Resources whose last flow left since the last solve.
    emptied: Vec<u32>,
    /// Filling below this level is as it was at the last solve.
    restart: f64,
    /// Flows that use no resource and whose bound is new.
    loose: Vec<u32>,
    solves: u32,
    ends: Ends,
    /// Scratch of the component search and of filling.
    component: Vec<u32>,
    component_flows: Vec<u32>,
    levels: BinaryHeap<Reverse<(OrderedFloat<f64>, u32)>>,
    due: Vec<u32>,
    /// Resources of every component solved by the last `solve`, for recording.
    touched: Vec<u32>,
}

impl Fluid {
    /// Resources 0, 1, … with these capacities (> 0; infinite ones may not be used).
    pub fn new(capacities: &[f64]) -> Self {
        let resource = |&capacity| Resource {
            capacity,
            curve: Arc::default(),
            dirty: false,
            grew: false,
            seen: 0,
            left: 0.0,
            weight: 0.0,
            open: 0,
            fresh: 0,
        };
        Self {
            resources: capacities.iter().map(resource).collect(),
            members: vec![SmallVec::new(); capacities.len()],
            flows: Vec::new(),
            history: Vec::new(),
            usages: Vec::new(),
            free_flows: Vec::new(),
            free_usages: Vec::new(),
            dirty: Vec::new(),
            emptied: Vec::new(),
            restart: f64::INFINITY,
            loose: Vec::new(),
            solves: 0,
            ends: Ends::new(),
            component: Vec::new(),
            component_flows: Vec::new(),
            levels: BinaryHeap::new(),
            due: Vec::new(),
            touched: Vec::new(),
        }
    }

    /// Makes the capacity of `resource` depend on its number of flows: × `factors[n − 1]`, the
    /// last factor for any more.
    pub fn set_curve(&mut self, resource: u32, factors: Arc<[f64]>) {
        self.resources[resource as usize].curve = factors;
        self.mark(resource);
        self.restart = 0.0;
    }

    /// Adds a flow of `work` units (> 0) with `weight` (> 0) and `bound` (> 0, may be infinite if
    /// it uses a resource); `tag` is the caller's. It runs from the next [`Self::solve`] on.
    pub fn add(
        &mut self,
        work: f64,
        weight: f64,
        bound: f64,
        usages: &[Usage],
        tag: u32,
    ) -> FlowId {
        debug_assert!(work > 0.0 && weight > 0.0 && bound > 0.0);
        let first = self
            .free_usages
            .get_mut(usages.len())
            .and_then(Vec::pop)
            .unwrap_or(self.usages.len() as u32);
        let flow = Flow {
            rate: 0.0,
            weight,
            bound,
            remaining: work,
            since: f64::NAN,
            first,
            len: usages.len() as u32,
            mark: 0,
            limit: OWN,
        };
        let history = History {
            work,
            tag,
            limit_since: f64::NAN,
            longest: f64::NEG_INFINITY,
            longest_limit: OWN,
        };
        let id = match self.free_flows.pop() {
            Some(id) => {
                self.flows[id as usize] = flow;
                self.history[id as usize] = history;
                id
            }
            None => {
                self.flows.push(flow);
                self.history.push(history);
                self.flows.len() as u32 - 1
            }
        };
        for (k, usage) in usages.iter().enumerate() {
            debug_assert!(usage.per_unit > 0.0);
            let at = first as usize + k;
            let members = &mut self.members[usage.resource as usize];
            let entry = Use {
                per_unit: usage.per_unit,
                resource: usage.resource,
                place: members.len() as u32,
            };
            members.push(Member {
                flow: id,
                usage: at as u32,
            });
            match self.usages.get_mut(at) {
                Some(place) => *place = entry,
                None => self.usages.push(entry),
            }
            self.resources[usage.resource as usize].grew = true;
            self.mark(usage.resource);
        }
        self.restart = self.restart.min(bound / weight);
        if usages.is_empty() {
            self.loose.push(id);
        }
        FlowId(id)
    }

    /// Takes a flow out, ended or not.
    pub fn remove(&mut self, id: FlowId) {
        let flow = &self.flows[id.0 as usize];
        let range = flow.range();
        self.restart = self.restart.min(flow.rate / flow.weight);
        self.ends.set(id.0, f64::INFINITY);
        for at in range.clone() {
            let Use {
                resource, place, ..
            } = self.usages[at];
            let members = &mut self.members[resource as usize];
            members.swap_remove(place as usize);
            if let Some(moved) = members.get(place as usize) {
                self.usages[moved.usage as usize].place = place;
            }
            if members.is_empty() {
                self.emptied.push(resource); // nobody is left to be solved
            } else {
                self.mark(resource);
            }
        }
        if !range.is_empty() {
            let len = range.len();
            if self.free_usages.len() <= len {
                self.free_usages.resize(len + 1, Vec::new());
            }
            self.free_usages[len].push(range.start as u32);
        }
        self.free_flows.push(id.0);
    }

    /// Changes a flow's own bound, from the next [`Self::solve`] on.
    pub fn set_bound(&mut self, id: FlowId, bound: f64) {
        let flow = &mut self.flows[id.0 as usize];
        flow.bound = bound;
        let lower = flow.rate.min(bound) / flow.weight;
        self.restart = self.restart.min(lower);
        let range = flow.range();
        if range.is_empty() {
            self.loose.push(id.0);
        }
        for at in range {
            let resource = self.usages[at].resource;
            self.mark(resource);
        }
    }

    fn mark(&mut self, resource: u32) {
        let r = &mut self.resources[resource as usize];
        if !r.dirty {
            r.dirty = true;
            self.dirty.push(resource);
        }
        if !r.curve.is_empty() {
            self.restart = 0.0; // its capacity may have changed either way
        }
    }

    /// The caller's tag of a flow.
    pub fn tag(&self, id: FlowId) -> u32 {
        self.history[id.0 as usize].tag
    }

    /// The flow's speed.
    pub fn rate(&self, id: FlowId) -> f64 {
        self.flows[id.0 as usize].rate
    }

    /// The work that is left of a flow, solved before.
    pub fn left(&self, id: FlowId, now: f64) -> f64 {
        let flow = &self.flows[id.0 as usize];
        match flow.since.is_nan() {
            true => flow.remaining,
            false => (flow.remaining - flow.rate * (now - flow.since)).max(0.0),
        }
    }

    /// The work that the flow was added with.
    pub fn work(&self, id: FlowId) -> f64 {
        self.history[id.0 as usize].work
    }

    /// What limited the flow for its longest stretch of time up to `now`.
    pub fn limit_for_most(&self, id: FlowId, now: f64) -> Limit {
        let history = &self.history[id.0 as usize];
        let last_is_longest = now - history.limit_since >= history.longest;
        match if last_is_longest {
            self.flows[id.0 as usize].limit
        } else {
            history.longest_limit
        } {
            OWN => Limit::Own,
            resource => Limit::Resource(resource),
        }
    }

    /// What the flow uses.
    pub fn usages(&self, id: FlowId) -> impl Iterator<Item = Usage> {
        let range = self.flows[id.0 as usize].range();
        self.usages[range].iter().map(|u| Usage {
            resource: u.resource,
            per_unit: u.per_unit,
        })
    }

    /// Number of flows on a resource.
    pub fn flows_on(&self, resource: u32) -> usize {
        self.members[resource as usize].len()
    }

    /// Use of a resource now.
    pub fn usage(&self, resource: u32) -> f64 {
        self.members[resource as usize]
            .iter()
            .map(|m| self.usages[m.usage as usize].per_unit * self.flows[m.flow as usize].rate)
            .sum()
    }

    /// Resources whose use may have changed in the last [`Self::solve`].
    pub fn touched(&self) -> &[u32] {
        &self.touched
    }

    /// When the next flow ends, as things stand after [`Self::solve`].
    pub fn next_end(&mut self) -> Option<f64> {
        let first = self.ends.first();
        (first < f64::INFINITY).then_some(first)
    }

    /// Appends the flows that end no later than `until` to `out`; they stay until removed.
    pub fn take_due(&mut self, until: f64, out: &mut Vec<FlowId>) {
        self.due.clear();
        self.ends.due(until, &mut self.due);
        out.extend(self.due.iter().map(|&slot| FlowId(slot)));
    }
}
