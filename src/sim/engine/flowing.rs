//! Between the event engine and the fluid model: putting flows in, taking ended ones out, and
//! keeping the books of links and of what bound each task.

use super::{Engine, STRETCH};
use crate::schedule::{Mover, Work};
use crate::sim::SimError;
use crate::sim::beside::SWEEPS;
use crate::sim::cost::Cost;
use crate::sim::fluid::{FlowId, Limit, Usage};
use crate::timeline::{Bound, Counter, Sample};
use crate::topology::LinkId;

impl Engine<'_> {
    /// Puts a cost with the current `usages` into the fluid model; `None`: it takes no time.
    pub fn flow(&mut self, cost: &Cost, tag: u32, now: f64) -> Option<FlowId> {
        if cost.work <= 0.0 || (self.usages.is_empty() && cost.bound.is_infinite()) {
            return None;
        }
        for usage in &self.usages {
            let r = usage.resource as usize;
            if r < self.links.len() && self.fluid.flows_on(usage.resource) == 0 {
                self.busy_since[r] = now;
            }
        }
        let flow = self
            .fluid
            .add(cost.work, cost.weight, cost.bound, &self.usages, tag);
        let slot = flow.index();
        if self.flowing_since.len() <= slot {
            self.flowing_since.resize(slot + 1, 0.0);
        }
        self.flowing_since[slot] = now;
        if tag < STRETCH {
            self.slows(tag, flow, cost.bound);
        }
        Some(flow)
    }

    pub(super) fn flow_ended(&mut self, flow: FlowId, now: f64) -> Result<(), SimError> {
        let tag = self.fluid.tag(flow);
        let limit = self.fluid.limit_for_most(flow, now);
        let work = self.fluid.work(flow);
        let flowing = now - self.flowing_since[flow.index()];
        self.usages.clear();
        self.usages.extend(self.fluid.usages(flow));
        self.fluid.remove(flow);
        self.slowed.leaves(flow);
        let task = if tag >= STRETCH {
            self.staging.task(tag - STRETCH)
        } else {
            tag
        };
        let same_on_all = self.payload(task);
        for k in 0..self.usages.len() {
            let Usage { resource, per_unit } = self.usages[k];
            let r = resource as usize;
            if r < self.links.len() {
                let payload = same_on_all.unwrap_or_else(|| self.library_payload(task, resource));
                self.links[r].bytes += work * per_unit * payload;
                if self.fluid.flows_on(resource) == 0 {
                    self.links[r].busy += now - self.busy_since[r];
                }
            }
        }
        if tag >= STRETCH {
            self.stretch_ended(tag - STRETCH, now)?;
        } else {
            self.ended_now.push(task);
        }
        self.set_bound(task, limit, flowing, now);
        Ok(())
    }

    /// Payload bytes per byte of link use: copy engines 1, SM copies their efficiency; `None` for
    /// the collective library, whose efficiency depends on the link.
    fn payload(&self, task: u32) -> Option<f64> {
        match self.schedule.tasks[task as usize].work {
            Work::Transfer {
                mover: Mover::CopyEngine,
                ..
            } => Some(1.0),
            Work::Collective(_) => None,
            _ => Some(self.costs.device(self.costs.gpu(task)).sm_copy_efficiency),
        }
    }

    fn library_payload(&self, task: u32, link: u32) -> f64 {
        let link = LinkId::new(link as usize);
        self.costs.library_efficiency(self.costs.gpu(task), link)
    }

    /// Records what bound a task: what limited its flow for most of the time, or its start-up if
    /// that took longer than the flow.
    fn set_bound(&mut self, task: u32, limit: Limit, flowing: f64, now: f64) {
        let span = &mut self.spans[task as usize];
        let starting = (now - span.start) - flowing;
        span.bound = if starting > flowing {
            Bound::Latency
        } else {
            match (limit, self.schedule.tasks[task as usize].work) {
                (Limit::Resource(resource), _) => self.costs.machine.bound(resource),
                (Limit::Own, Work::Compute(_)) => Bound::Compute,
                (Limit::Own, _) => Bound::Mover,
            }
        };
    }

    pub(super) fn solve(&mut self, now: f64) {
        self.fluid.solve(now);
        self.record(now);
        for _ in 0..SWEEPS {
            if self.slowed.is_empty() || !self.slow() {
                return;
            }
            self.fluid.solve(now);
            self.record(now);
        }
    }

    fn record(&mut self, now: f64) {
        if !self.options.record {
            return;
        }
        for k in 0..self.fluid.touched().len() {
            let resource = self.fluid.touched()[k];
            if (resource as usize) < self.links.len() {
                self.samples.push(Sample {
                    time: now,
                    counter: Counter::Link(LinkId::new(resource as usize)),
                    value: self.fluid.usage(resource),
                });
            }
        }
        self.kernels.record(now, &mut self.samples);
    }
}
