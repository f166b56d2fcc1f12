//! An engine before anything has happened, and what the host submits.

use super::{Engine, ended};
use crate::schedule::Schedule;
use crate::schedule::lowered::loadable;
use crate::sim::beside::Slowed;
use crate::sim::cost::Costs;
use crate::sim::graph::Graph;
use crate::sim::kernels::Kernels;
use crate::sim::machine::Machine;
use crate::sim::pool::Pool;
use crate::sim::queue::Queue;
use crate::sim::scattered::Scattered;
use crate::sim::staging::{Staging, staged_bytes};
use crate::sim::stored::Stores;
use crate::sim::{LaunchMode, Options, SimError, Streams, Submission, host};
use crate::timeline::{Bound, Cause, LinkUse, Span};
use crate::topology::Topology;

impl<'a> Engine<'a> {
    pub fn new(
        schedule: &'a Schedule,
        topology: &'a Topology,
        options: Options,
    ) -> Result<Self, SimError> {
        let gpus = topology.gpus.len();
        if let Some((rank, &gpu)) =
            (schedule.placement.iter().enumerate()).find(|(_, gpu)| **gpu as usize >= gpus)
        {
            return Err(SimError::Placement {
                rank,
                gpu,
                topology: topology.name.clone(),
                gpus,
            });
        }
        let brought = loadable(schedule).map_err(|no| SimError::Loader {
            transfer: schedule.describe(no.transfer),
            why: no.why,
        })?;
        let machine = Machine::new(topology, options.terms, staged_bytes(schedule, topology));
        let host = topology.path.host().map_or(0.0, |(share, _)| share);
        let split = host > 0.0 && host < 1.0;
        let graph = Graph::new(schedule, brought, options.streams, (split, host));
        let unstarted = Span {
            ready: 0.0,
            start: 0.0,
            end: 0.0,
            cause: Cause::Start,
            bound: Bound::Nothing,
        };
        let engines = (0..gpus as u32).flat_map(|gpu| {
            let e = topology.device(gpu).engines;
            [e.peer, e.peer, e.h2d, e.d2h].map(Pool::new)
        });
        let links = machine.links;
        let beside = (0..gpus as u32).any(|gpu| topology.device(gpu).beside.any());
        Ok(Self {
            schedule,
            topology,
            options,
            fluid: machine.fluid(),
            kernels: Kernels::new(schedule, topology, options.terms)?,
            costs: Costs::new(schedule, machine, options),
            events: Queue::new(),
            spans: vec![unstarted; graph.waiting.len()],
            graph,
            real_graph: options.launch == LaunchMode::Graph && options.streams == Streams::PerGpu,
            apart: options.launch == LaunchMode::Graph && ended::apart(schedule, host > 0.0),
            split,
            flowing_since: Vec::new(),
            engines: engines.collect(),
            engine_last: vec![None; gpus * 4],
            cold: Vec::new(),
            staging: Staging::default(),
            slowed: Slowed::new(beside),
            scattered: Scattered::default(),
            stores: Stores::new(schedule)?,
            ready_now: Vec::new(),
            ended_now: Vec::new(),
            settling: Default::default(),
            absent: (schedule.collectives.iter())
                .map(|c| c.members.len() as u32)
                .collect(),
            links: vec![LinkUse::default(); links],
            busy_since: vec![0.0; links],
            samples: Vec::new(),
            usages: Vec::new(),
            ended: 0,
            makespan: 0.0,
        })
    }

    /// Enters the host's submissions and starts what waits for nothing.
    pub(super) fn submit(&mut self) {
        let ready = (0..self.graph.waiting.len() as u32).map(|step| {
            let gpu = self.costs.gpu(self.first_of(step));
            self.costs.run_start(gpu) + self.across(gpu)
        });
        let ready: Vec<f64> = match self.options.submission {
            Submission::Along => Vec::new(),
            Submission::Beforehand => ready.collect(),
        };
        for (span, ready) in self.spans.iter_mut().zip(ready) {
            (span.ready, span.cause) = (ready, Cause::Host);
        }
        if self.options.terms.sync_and_launch
            && self.options.submission == Submission::Along
            && let Some(times) =
                host::submissions(self.schedule, self.topology, self.options.launch)
        {
            for (t, time) in times.into_iter().enumerate() {
                let task = &self.schedule.tasks[t];
                let step = match task.launch {
                    Some(launch) if self.graph.launch_first[launch.index()] == t as u32 => {
                        self.graph.launch_step(launch)
                    }
                    _ => t as u32,
                };
                let span = &mut self.spans[step as usize];
                if time > span.ready {
                    span.ready = time;
                    span.cause = Cause::Host;
                }
            }
        }
        let tasks = &self.spans[..self.schedule.tasks.len()];
        self.cold = tasks.iter().map(|span| span.ready).collect();
        for step in 0..self.graph.waiting.len() as u32 {
            if self.graph.waiting[step as usize] == 0 {
                self.conditions_met(step, 0.0);
            }
        }
    }
}
