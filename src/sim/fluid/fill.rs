//! Solving: finding what a change can reach, and progressive filling of that part.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ordered_float::OrderedFloat;

use super::{Fluid, OWN};

/// Levels closer than this (relative) count as equal while filling; far below [`super::TIE`].
const LEVEL_TIE: f64 = 1e-14;
/// The restart level is lowered by this much (relative), so that rounding never keeps a flow that
/// ought to be filled again.
const RESTART_SLACK: f64 = 1e-9;

impl Fluid {
    /// Makes all speeds fair again from time `now` on.
    pub fn solve(&mut self, now: f64) {
        self.touched.clear();
        let empty = |r: &u32| self.members[*r as usize].is_empty();
        self.touched.extend(self.emptied.drain(..).filter(empty));
        self.solves += 1;
        for id in std::mem::take(&mut self.loose) {
            let flow = &mut self.flows[id as usize];
            let bound = flow.bound;
            flow.set_rate(bound, OWN, now, &mut self.history[id as usize]);
            self.ends.set(id, flow.end());
        }
        let mut dirty = std::mem::take(&mut self.dirty);
        for &r in &dirty {
            self.lower_restart(r);
        }
        for &root in &dirty {
            if self.resources[root as usize].seen == self.solves {
                continue;
            }
            if !self.members[root as usize].is_empty() && !self.solve_alone(root, now) {
                self.collect(root);
                self.fill(now);
                debug_assert_eq!(self.certificate(&self.component_flows), Ok(()));
                self.touched.extend_from_slice(&self.component);
            }
        }
        dirty.clear();
        self.dirty = dirty;
        self.restart = f64::INFINITY;
    }

    /// Takes resource `r` off the dirty list; if flows came, none of its flows can freeze below
    /// the even share.
    fn lower_restart(&mut self, r: u32) {
        let members = &self.members[r as usize];
        let resource = &mut self.resources[r as usize];
        resource.dirty = false;
        if !std::mem::replace(&mut resource.grew, false) || members.len() == 1 {
            return;
        }
        let weight = |m: &super::Member| {
            self.usages[m.usage as usize].per_unit * self.flows[m.flow as usize].weight
        };
        let share = resource.capacity(members.len()) / members.iter().map(weight).sum::<f64>();
        self.restart = self.restart.min(share);
    }

    /// A flow that shares nothing: no search, no filling. Says whether `root` has just that one.
    fn solve_alone(&mut self, root: u32, now: f64) -> bool {
        let [only] = self.members[root as usize][..] else {
            return false;
        };
        let range = self.flows[only.flow as usize].range();
        let (mut rate, mut limit) = (self.flows[only.flow as usize].bound, OWN);
        for u in &self.usages[range.clone()] {
            let r = u.resource as usize;
            if self.members[r].len() != 1 {
                return false;
            }
            let most = self.resources[r].capacity(1) / u.per_unit;
            if most < rate {
                (rate, limit) = (most, u.resource);
            }
        }
        for at in range {
            let resource = self.usages[at].resource;
            self.resources[resource as usize].seen = self.solves;
            self.touched.push(resource);
        }
        let flow = &mut self.flows[only.flow as usize];
        flow.set_rate(rate, limit, now, &mut self.history[only.flow as usize]);
        self.ends.set(only.flow, flow.end());
        true
    }

    /// Collects what is connected to `root` through flows at or above the restart level: resources
    /// (with their filling state set up, slower flows' use taken off) and those flows.
    fn collect(&mut self, root: u32) {
        let search = self.solves;
        let restart = self.restart * (1.0 - RESTART_SLACK);
        self.component.clear();
        self.component_flows.clear();
        self.component.push(root);
        self.resources[root as usize].seen = search;
        let mut next = 0;
        while let Some(&resource) = self.component.get(next) {
            next += 1;
            let members = &self.members[resource as usize];
            let (mut used, mut weight, mut open) = (0.0, 0.0, 0);
            for m in members {
                let flow = &mut self.flows[m.flow as usize];
                let per_unit = self.usages[m.usage as usize].per_unit;
                if flow.rate < restart * flow.weight && !flow.since.is_nan() {
                    used += per_unit * flow.rate;
                    continue;
                }
                weight += per_unit * flow.weight;
                open += 1;
                if flow.mark == 2 * search {
                    continue;
                }
                flow.mark = 2 * search;
                self.component_flows.push(m.flow);
                for u in &self.usages[flow.range()] {
                    let other = &mut self.resources[u.resource as usize];
                    if other.seen != search {
                        other.seen = search;
                        self.component.push(u.resource);
                    }
                }
            }
            let r = &mut self.resources[resource as usize];
            r.left = (r.capacity(members.len()) - used).max(0.0);
            r.weight = weight;
            r.open = open;
            r.fresh = open;
        }
    }

    /// Progressive filling of the collected flows. A resource's level never falls while others
    /// freeze, so a heap with late corrections finds the next one to fill up.
    fn fill(&mut self, now: f64) {
        let offset = self.resources.len() as u32;
        let mut levels = std::mem::take(&mut self.levels).into_vec();
        levels.clear();
        for &r in &self.component {
            let resource = &self.resources[r as usize];
            if resource.open > 0 {
                let level = resource.left / resource.weight;
                levels.push(Reverse((OrderedFloat(level), r)));
            }
        }
        for &f in &self.component_flows {
            let flow = &self.flows[f as usize];
            if flow.bound.is_finite() {
                let level = flow.bound / flow.weight;
                levels.push(Reverse((OrderedFloat(level), offset + f)));
            }
        }
        let mut levels = BinaryHeap::from(levels);
        let mut unfrozen = self.component_flows.len();
        // Rounding may put a level a hair below one that froze before; levels only rise.
        let mut floor: f64 = 0.0;
        while unfrozen > 0 {
            let Some(Reverse((OrderedFloat(level), id))) = levels.pop() else {
                break;
            };
            if let Some(f) = id.checked_sub(offset) {
                let flow = &self.flows[f as usize];
                if flow.mark == 2 * self.solves {
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
                && (levels.peek()).is_some_and(|Reverse((next, _))| risen > next.0)
            {
                levels.push(Reverse((OrderedFloat(risen), id)));
                continue;
            }
            floor = risen;
            for k in 0..self.members[id as usize].len() {
                let f = self.members[id as usize][k].flow;
                let flow = &self.flows[f as usize];
                if flow.mark == 2 * self.solves {
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
        let open = 2 * self.solves;
        resource.weight = self.members[id as usize]
            .iter()
            .filter(|m| self.flows[m.flow as usize].mark == open)
            .map(|m| self.usages[m.usage as usize].per_unit * self.flows[m.flow as usize].weight)
            .sum();
        resource.fresh = resource.open;
    }

    /// Fixes a flow's speed and takes it out of the filling.
    fn freeze(&mut self, f: u32, rate: f64, limit: u32, now: f64) {
        let flow = &mut self.flows[f as usize];
        flow.mark = 2 * self.solves + 1;
        let before = (flow.rate, flow.since);
        flow.set_rate(rate, limit, now, &mut self.history[f as usize]);
        if before.0 != rate || before.1.is_nan() {
            self.ends.set(f, flow.end());
        }
        for u in &self.usages[flow.range()] {
            let r = &mut self.resources[u.resource as usize];
            r.left = (r.left - u.per_unit * rate).max(0.0);
            r.weight -= u.per_unit * flow.weight;
            r.open -= 1;
        }
    }
}
