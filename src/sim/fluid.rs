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
//! Only the connected components (flows joined by resources) that changed are solved again, so a
//! ring of a thousand links costs a thousand solves of one flow, not one of a thousand flows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ordered_float::OrderedFloat;

use super::queue::Queue;

/// Ends closer than this (relative to the time) are one event.
pub const TIE: f64 = 1e-12;
/// Levels closer than this (relative) count as equal while filling; far below [`TIE`].
const LEVEL_TIE: f64 = 1e-14;

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

/// What filling looks at: one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Flow {
    /// Speed since `since`.
    rate: f64,
    weight: f64,
    bound: f64,
    /// Work left at `since`.
    remaining: f64,
    since: f64,
    /// First of its usages in `Fluid::usages`.
    first: u32,
    len: u32,
    /// The solve that set `rate`; ends recorded by another are stale. 0: not in the model.
    solve: u32,
    /// Twice the last solve that collected it, plus 1 once frozen in that solve.
    mark: u32,
    limit: u32,
}

const _: () = assert!(size_of::<Flow>() == 64);

/// What a flow is asked about once, at its end.
#[derive(Copy, Clone, Debug)]
struct History {
    work: f64,
    tag: u32,
    /// Since when `Flow::limit` holds.
    limit_since: f64,
    /// The longest stretch of time with one limit, and that limit.
    longest: f64,
    longest_limit: u32,
}

impl Flow {
    /// Books the work done at the old speed and goes on at `rate`.
    fn set_rate(&mut self, rate: f64, limit: u32, now: f64, history: &mut History) {
        if limit != self.limit || self.since.is_nan() {
            history.leave(self.limit, now);
            self.limit = limit;
        }
        if self.since.is_nan() {
            self.since = now;
        } else if rate != self.rate {
            self.remaining = (self.remaining - self.rate * (now - self.since)).max(0.0);
            self.since = now;
        }
        self.rate = rate;
    }

    /// When it ends at its present speed.
    fn end(&self) -> f64 {
        self.since + self.remaining / self.rate
    }
}

impl History {
    /// The limit that held until `now` gives way to another.
    fn leave(&mut self, limit: u32, now: f64) {
        let stretch = now - self.limit_since;
        if stretch > self.longest {
            (self.longest, self.longest_limit) = (stretch, limit);
        }
        self.limit_since = now;
    }
}

/// A usage with its place in the resource's member list.
#[derive(Copy, Clone, Debug)]
struct Use {
    per_unit: f64,
    resource: u32,
    place: u32,
}

/// A flow in a resource's member list, and which of its usages this is.
#[derive(Copy, Clone, Debug)]
struct Member {
    flow: u32,
    usage: u32,
}

#[derive(Clone, Debug)]
struct Resource {
    capacity: f64,
    /// Capacity factor by number of flows (index n − 1, last one repeats); empty: always 1.
    curve: Box<[f64]>,
    dirty: bool,
    seen: u32,
    /// While filling: capacity not yet given away, Σ a·w of the flows not yet frozen, their number,
    /// and the number when `weight` was last summed afresh.
    left: f64,
    weight: f64,
    open: u32,
    fresh: u32,
}

impl Resource {
    fn capacity(&self, flows: usize) -> f64 {
        match self.curve.get(flows.min(self.curve.len()).wrapping_sub(1)) {
            Some(factor) => self.capacity * factor,
            None => self.capacity,
        }
    }
}

/// Flows over resources, with their speeds and ends.
#[derive(Debug)]
pub struct Fluid {
    resources: Vec<Resource>,
    members: Vec<Vec<Member>>,
    flows: Vec<Flow>,
    /// By flow.
    history: Vec<History>,
    usages: Vec<Use>,
    free_flows: Vec<u32>,
    /// Free stretches of `usages`, by length.
    free_usages: Vec<Vec<u32>>,
    dirty: Vec<u32>,
    /// Flows that use no resource and whose bound is new.
    loose: Vec<u32>,
    solves: u32,
    /// Predicted ends: (flow, solve that predicted it).
    ends: Queue<(u32, u32)>,
    due: Vec<(u32, u32)>,
    /// Scratch: ends of the component's flows.
    end_times: Vec<f64>,
    /// Scratch of the component search and of filling.
    component: Vec<u32>,
    component_flows: Vec<u32>,
    levels: BinaryHeap<Reverse<(OrderedFloat<f64>, u32)>>,
    /// Resources of every component solved by the last `solve`, for recording.
    touched: Vec<u32>,
}

impl Fluid {
    /// Resources 0, 1, … with these capacities (> 0; infinite ones never limit).
    pub fn new(capacities: &[f64]) -> Self {
        let resource = |&capacity| Resource {
            capacity,
            curve: Box::default(),
            dirty: false,
            seen: 0,
            left: 0.0,
            weight: 0.0,
            open: 0,
            fresh: 0,
        };
        Self {
            resources: capacities.iter().map(resource).collect(),
            members: vec![Vec::new(); capacities.len()],
            flows: Vec::new(),
            history: Vec::new(),
            usages: Vec::new(),
            free_flows: Vec::new(),
            free_usages: Vec::new(),
            dirty: Vec::new(),
            loose: Vec::new(),
            solves: 0,
            ends: Queue::new(),
            due: Vec::new(),
            end_times: Vec::new(),
            component: Vec::new(),
            component_flows: Vec::new(),
            levels: BinaryHeap::new(),
            touched: Vec::new(),
        }
    }

    /// Makes the capacity of `resource` depend on its number of flows: × `factors[n − 1]`, the
    /// last factor for any more.
    pub fn set_curve(&mut self, resource: u32, factors: &[f64]) {
        self.resources[resource as usize].curve = factors.into();
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
        let len = usages.len() as u32;
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
            len,
            solve: 0,
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
            self.mark(usage.resource);
        }
        if usages.is_empty() {
            self.loose.push(id);
        }
        FlowId(id)
    }

    /// Takes a flow out, ended or not.
    pub fn remove(&mut self, id: FlowId) {
        let (first, len) = {
            let flow = &mut self.flows[id.0 as usize];
            flow.solve = 0;
            (flow.first, flow.len)
        };
        for at in first..first + len {
            let Use {
                resource, place, ..
            } = self.usages[at as usize];
            let members = &mut self.members[resource as usize];
            members.swap_remove(place as usize);
            if let Some(moved) = members.get(place as usize) {
                self.usages[moved.usage as usize].place = place;
            }
            self.mark(resource);
        }
        if len > 0 {
            let len = len as usize;
            if self.free_usages.len() <= len {
                self.free_usages.resize(len + 1, Vec::new());
            }
            self.free_usages[len].push(first);
        }
        self.free_flows.push(id.0);
    }

    /// Changes a flow's own bound, from the next [`Self::solve`] on.
    pub fn set_bound(&mut self, id: FlowId, bound: f64) {
        let flow = &mut self.flows[id.0 as usize];
        flow.bound = bound;
        for at in flow.first..flow.first + flow.len {
            let resource = self.usages[at as usize].resource;
            self.mark(resource);
        }
        if self.flows[id.0 as usize].len == 0 {
            self.loose.push(id.0);
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

    /// The flow's work left at time `now` ≥ the last solve.
    pub fn remaining(&self, id: FlowId, now: f64) -> f64 {
        let flow = &self.flows[id.0 as usize];
        if flow.since.is_nan() {
            return flow.remaining;
        }
        (flow.remaining - flow.rate * (now - flow.since)).max(0.0)
    }

    /// What limited the flow for its longest stretch of time up to `now`.
    pub fn limit_for_most(&self, id: FlowId, now: f64) -> Limit {
        let flow = &self.flows[id.0 as usize];
        let history = &self.history[id.0 as usize];
        let last_is_longest = now - history.limit_since >= history.longest;
        match if last_is_longest {
            flow.limit
        } else {
            history.longest_limit
        } {
            OWN => Limit::Own,
            resource => Limit::Resource(resource),
        }
    }

    /// The work that the flow was added with.
    pub fn work(&self, id: FlowId) -> f64 {
        self.history[id.0 as usize].work
    }

    /// What the flow uses.
    pub fn usages(&self, id: FlowId) -> impl Iterator<Item = Usage> {
        let flow = &self.flows[id.0 as usize];
        self.usages[flow.first as usize..(flow.first + flow.len) as usize]
            .iter()
            .map(|u| Usage {
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

    /// When the next flow ends, as things stand.
    pub fn next_end(&self) -> Option<f64> {
        self.ends.next_time()
    }

    /// Appends the flows that end no later than `until` to `out`; they stay until removed. Call
    /// [`Self::solve`] before asking again.
    pub fn take_due(&mut self, until: f64, out: &mut Vec<FlowId>) {
        while self.ends.next_time().is_some_and(|time| time <= until) {
            let mut due = std::mem::take(&mut self.due);
            self.ends.pop_into(&mut due);
            for &(flow, solve) in &due {
                if self.flows[flow as usize].solve == solve {
                    out.push(FlowId(flow));
                }
            }
            self.due = due;
        }
    }

    fn mark(&mut self, resource: u32) {
        let r = &mut self.resources[resource as usize];
        if !r.dirty {
            r.dirty = true;
            self.dirty.push(resource);
        }
    }

    /// Makes all speeds fair again from time `now` on.
    pub fn solve(&mut self, now: f64) {
        self.touched.clear();
        self.solves += 1;
        let solve = self.solves;
        for id in std::mem::take(&mut self.loose) {
            let flow = &mut self.flows[id as usize];
            let bound = flow.bound;
            flow.set_rate(bound, OWN, now, &mut self.history[id as usize]);
            flow.solve = solve;
            let end = flow.end();
            self.ends.push(end, (id, solve));
        }
        let mut dirty = std::mem::take(&mut self.dirty);
        for &root in &dirty {
            self.resources[root as usize].dirty = false;
            if self.resources[root as usize].seen == solve {
                continue;
            }
            if self.members[root as usize].is_empty() {
                self.touched.push(root);
            } else if !self.solve_alone(root, now) {
                self.collect(root);
                self.fill(now);
                self.predict();
                debug_assert_eq!(self.certificate(&self.component), Ok(()));
                self.touched.extend_from_slice(&self.component);
            }
        }
        dirty.clear();
        self.dirty = dirty;
    }

    /// The component of one flow that shares nothing: no search, no filling. Says whether `root`
    /// is in such a component.
    fn solve_alone(&mut self, root: u32, now: f64) -> bool {
        let [only] = self.members[root as usize][..] else {
            return false;
        };
        let flow = &self.flows[only.flow as usize];
        let usages = flow.first as usize..(flow.first + flow.len) as usize;
        let (mut rate, mut limit) = (flow.bound, OWN);
        for u in &self.usages[usages.clone()] {
            let r = u.resource as usize;
            if self.members[r].len() != 1 {
                return false;
            }
            let most = self.resources[r].capacity(1) / u.per_unit;
            if most < rate {
                (rate, limit) = (most, u.resource);
            }
        }
        for at in usages {
            let resource = self.usages[at].resource;
            self.resources[resource as usize].seen = self.solves;
            self.touched.push(resource);
        }
        let solve = self.solves;
        let flow = &mut self.flows[only.flow as usize];
        flow.set_rate(rate, limit, now, &mut self.history[only.flow as usize]);
        flow.solve = solve;
        let end = flow.end();
        self.ends.push(end, (only.flow, solve));
        true
    }

    /// Collects the component of `root`: its resources (with filling state set up) and flows.
    fn collect(&mut self, root: u32) {
        let search = self.solves;
        self.component.clear();
        self.component_flows.clear();
        self.component.push(root);
        self.resources[root as usize].seen = search;
        let mut next = 0;
        while let Some(&resource) = self.component.get(next) {
            next += 1;
            let members = &self.members[resource as usize];
            let mut weight = 0.0;
            for m in members {
                let flow = &mut self.flows[m.flow as usize];
                weight += self.usages[m.usage as usize].per_unit * flow.weight;
                if flow.mark == 2 * search {
                    continue;
                }
                flow.mark = 2 * search;
                self.component_flows.push(m.flow);
                for u in &self.usages[flow.first as usize..(flow.first + flow.len) as usize] {
                    let other = &mut self.resources[u.resource as usize];
                    if other.seen != search {
                        other.seen = search;
                        self.component.push(u.resource);
                    }
                }
            }
            let r = &mut self.resources[resource as usize];
            r.left = r.capacity(members.len());
            r.weight = weight;
            r.open = members.len() as u32;
            r.fresh = r.open;
        }
    }

    /// Progressive filling of the collected component. A resource's level never falls while
    /// others freeze, so a heap with late corrections finds the next one to fill up.
    fn fill(&mut self, now: f64) {
        let offset = self.resources.len() as u32;
        let mut levels = std::mem::take(&mut self.levels).into_vec();
        levels.clear();
        for &r in &self.component {
            let resource = &self.resources[r as usize];
            levels.push(Reverse((OrderedFloat(resource.left / resource.weight), r)));
        }
        for &f in &self.component_flows {
            let flow = &self.flows[f as usize];
            if flow.bound.is_finite() {
                levels.push(Reverse((
                    OrderedFloat(flow.bound / flow.weight),
                    offset + f,
                )));
            }
        }
        let mut levels = BinaryHeap::from(levels);
        let search = self.solves;
        let mut unfrozen = self.component_flows.len();
        // Rounding may put a level a hair below one that froze before; levels only rise.
        let mut floor: f64 = 0.0;
        while unfrozen > 0 {
            let Some(Reverse((OrderedFloat(level), id))) = levels.pop() else {
                break;
            };
            if let Some(f) = id.checked_sub(offset) {
                let flow = &self.flows[f as usize];
                if flow.mark == 2 * search {
                    let rate = flow.bound;
                    self.freeze(f, rate, OWN, now);
                    unfrozen -= 1;
                    floor = level;
                }
                continue;
            }
            if self.resources[id as usize].open == 0 {
                continue;
            }
            self.refresh(id);
            let resource = &self.resources[id as usize];
            let risen = (resource.left / resource.weight).max(floor);
            if risen > level * (1.0 + LEVEL_TIE)
                && levels
                    .peek()
                    .is_some_and(|Reverse((next, _))| risen > next.0)
            {
                levels.push(Reverse((OrderedFloat(risen), id)));
                continue;
            }
            floor = risen;
            for k in 0..self.members[id as usize].len() {
                let f = self.members[id as usize][k].flow;
                let flow = &self.flows[f as usize];
                if flow.mark == 2 * search {
                    let rate = flow.weight * risen;
                    self.freeze(f, rate, id, now);
                    unfrozen -= 1;
                }
            }
        }
        self.levels = levels;
    }

    /// Sums the open weight of `id` afresh once 15/16 of it froze, before subtraction has lost more
    /// than a digit or two.
    fn refresh(&mut self, id: u32) {
        let resource = &mut self.resources[id as usize];
        if resource.open * 16 > resource.fresh {
            return;
        }
        let search = self.solves;
        resource.weight = self.members[id as usize]
            .iter()
            .filter(|m| self.flows[m.flow as usize].mark == 2 * search)
            .map(|m| self.usages[m.usage as usize].per_unit * self.flows[m.flow as usize].weight)
            .sum();
        resource.fresh = resource.open;
    }

    /// Fixes a flow's speed and takes it out of the filling.
    fn freeze(&mut self, f: u32, rate: f64, limit: u32, now: f64) {
        let flow = &mut self.flows[f as usize];
        flow.mark = 2 * self.solves + 1;
        flow.set_rate(rate, limit, now, &mut self.history[f as usize]);
        let (first, len, weight) = (flow.first as usize, flow.len as usize, flow.weight);
        for u in &self.usages[first..first + len] {
            let r = &mut self.resources[u.resource as usize];
            r.left = (r.left - u.per_unit * rate).max(0.0);
            r.weight -= u.per_unit * weight;
            r.open -= 1;
        }
    }

    /// Queues the first end of the component, with all ends that tie with it; any change before
    /// then solves the component again and makes the entry stale.
    fn predict(&mut self) {
        let solve = self.solves;
        let mut first = f64::INFINITY;
        self.end_times.clear();
        for &f in &self.component_flows {
            let flow = &mut self.flows[f as usize];
            flow.solve = solve;
            let end = flow.end();
            self.end_times.push(end);
            first = first.min(end);
        }
        for (&f, &end) in self.component_flows.iter().zip(&self.end_times) {
            if end <= first * (1.0 + TIE) {
                self.ends.push(first, (f, solve));
            }
        }
    }

    /// Checks that the speeds on `resources` are the max-min fair ones: no capacity exceeded, and
    /// every flow at its bound or, on some full resource, at the highest level.
    ///
    /// # Errors
    /// What is violated, in words.
    pub fn certificate(&self, resources: &[u32]) -> Result<(), String> {
        const SLACK: f64 = 1e-9;
        let full = |r: u32| {
            let members = &self.members[r as usize];
            let capacity = self.resources[r as usize].capacity(members.len());
            (self.usage(r), capacity)
        };
        for &r in resources {
            let (usage, capacity) = full(r);
            if usage > capacity * (1.0 + SLACK) {
                return Err(format!("resource {r}: {usage} of {capacity} in use"));
            }
        }
        let level = |f: u32| self.flows[f as usize].rate / self.flows[f as usize].weight;
        let highest: Vec<f64> = resources
            .iter()
            .map(|&r| {
                let (usage, capacity) = full(r);
                if usage < capacity * (1.0 - SLACK) {
                    return f64::INFINITY; // not full: limits nobody
                }
                let levels = self.members[r as usize].iter().map(|m| level(m.flow));
                levels.fold(0.0, f64::max)
            })
            .collect();
        let mut satisfied: Vec<u32> = Vec::new();
        let mut all: Vec<u32> = Vec::new();
        for (&r, &top) in resources.iter().zip(&highest) {
            for m in &self.members[r as usize] {
                let flow = &self.flows[m.flow as usize];
                all.push(m.flow);
                if flow.rate >= flow.bound * (1.0 - SLACK) || level(m.flow) >= top * (1.0 - SLACK) {
                    satisfied.push(m.flow);
                }
            }
        }
        all.sort_unstable();
        all.dedup();
        satisfied.sort_unstable();
        match all.iter().find(|f| satisfied.binary_search(f).is_err()) {
            Some(f) => Err(format!(
                "flow {f} at {} could be faster",
                self.flows[*f as usize].rate
            )),
            None => Ok(()),
        }
    }

    /// [`Self::certificate`] over every resource.
    ///
    /// # Errors
    /// What is violated, in words.
    pub fn certificate_of_all(&self) -> Result<(), String> {
        let all: Vec<u32> = (0..self.resources.len() as u32).collect();
        self.certificate(&all)
    }
}
