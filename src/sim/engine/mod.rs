//! The event engine: steps become ready, take what they hold, start, flow, and end.
//!
//! Events are handled in batches: everything within a relative [`TIE`] of the first event happens
//! at the same instant, all starts and ends of a batch are booked, and only then are the touched
//! components of the fluid model solved again.

use super::beside::Slowed;
use super::cost::Costs;
use super::fluid::{Fluid, TIE, Usage};
use super::graph::Graph;
use super::kernels::Kernels;
use super::machine::{Machine, Way};
use super::pool::Pool;
use super::queue::Queue;
use super::scattered::Scattered;
use super::staging::{Staging, staged_bytes};
use super::stored::Stores;
use super::{LaunchMode, Options, SimError, Streams, Submission, host};
use crate::schedule::lowered::{Loaded, loadable};
use crate::schedule::{CollectiveId, Mover, Schedule, TaskId, Work};
use crate::timeline::{Bound, Cause, LinkUse, Sample, Span, Timeline};
use crate::topology::Topology;

/// Flow tags and engine requests from here on are stretches of staged transfers; below, tasks.
pub(super) const STRETCH: u32 = 1 << 31;

/// Engine requests with this bit are no copies but what a queue does after one: telling others.
pub(super) const SIGNAL: u32 = 1 << 30;

mod ended;
mod flowing;
mod transfer;

pub(super) use transfer::EngineKind;

/// What happens at a point in time.
#[derive(Copy, Clone, Debug)]
pub(super) enum Event {
    /// A step's conditions are met.
    Ready(u32),
    /// A task's start-up is over, or a stretch's ([`STRETCH`]).
    Flow(u32),
    /// A fused kernel's first tile group may open.
    Open(u32),
    /// A stretch learns of a chunk that was filled, or of a slot that was emptied.
    Told(u32),
    /// Blocks of a GEMM that have no tile in its last wave leave.
    Left(u32),
    /// The last tiles of a fused kernel have ended, with its last task; what an epilogue stored is there.
    Drained(u32),
}

/// State of one simulation.
pub(super) struct Engine<'a> {
    pub schedule: &'a Schedule,
    pub topology: &'a Topology,
    pub options: Options,
    pub costs: Costs<'a>,
    pub fluid: Fluid,
    pub events: Queue<Event>,
    pub graph: Graph,
    /// Whether a graph runs on real GPUs.
    real_graph: bool,
    /// Whether each GPU has a graph of its own.
    apart: bool,
    /// Whether transfers between GPUs go in two parts, over the link and through a host.
    split: bool,
    /// One per step; `ready` is the latest condition so far until the step starts.
    pub spans: Vec<Span>,
    /// Start of the flow phase by flow slot [s], to tell latency from bandwidth.
    flowing_since: Vec<f64>,
    /// Copy engines: 4 per GPU in the order of [`EngineKind`].
    engines: Vec<Pool<u32>>,
    /// When each last ended a copy [s].
    engine_ended: Vec<f64>,
    pub kernels: Kernels,
    pub staging: Staging,
    pub slowed: Slowed,
    pub scattered: Scattered,
    pub stores: Stores,
    /// Steps to handle at this instant.
    ready_now: Vec<u32>,
    /// Tasks that ended at this instant.
    ended_now: Vec<u32>,
    /// Emptied lists of both, to be filled again.
    settling: (Vec<u32>, Vec<u32>),
    /// Members of each collective that have not arrived.
    absent: Vec<u32>,
    links: Vec<LinkUse>,
    busy_since: Vec<f64>,
    samples: Vec<Sample>,
    pub usages: Vec<Usage>,
    ended: usize,
    /// End of the last task so far.
    makespan: f64,
}

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
            apart: options.launch == LaunchMode::Graph && ended::apart(schedule),
            split,
            flowing_since: Vec::new(),
            engines: engines.collect(),
            engine_ended: vec![f64::NEG_INFINITY; gpus * 4],
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

    pub fn run(self) -> Result<Timeline, SimError> {
        Ok(self.run_noting()?.0)
    }

    /// As [`Self::run`], and whether a collective and a GEMM raced.
    pub fn run_noting(mut self) -> Result<(Timeline, bool), SimError> {
        self.submit();
        let (mut batch, mut due) = (Vec::new(), Vec::new());
        let mut now = 0.0;
        self.settle(now)?;
        self.solve(now);
        loop {
            let next = [self.events.next_time(), self.fluid.next_end()];
            let Some(time) = next.into_iter().flatten().reduce(f64::min) else {
                break;
            };
            if time.is_infinite() {
                break; // flows that never end: reported below
            }
            now = time.max(now);
            let until = now * (1.0 + TIE);
            due.clear();
            self.fluid.take_due(until, &mut due);
            for &flow in &due {
                self.flow_ended(flow, now)?;
            }
            self.settle(now)?;
            while self.events.next_time().is_some_and(|time| time <= until) {
                self.events.pop_into(&mut batch);
                for &event in &batch {
                    self.handle(event, now)?;
                }
                self.settle(now)?;
            }
            self.solve(now);
        }
        let met = self.scattered.met;
        Ok((self.finish()?, met))
    }

    /// Enters the host's submissions and starts what waits for nothing.
    fn submit(&mut self) {
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
        for step in 0..self.graph.waiting.len() as u32 {
            if self.graph.waiting[step as usize] == 0 {
                self.conditions_met(step, 0.0);
            }
        }
    }

    fn conditions_met(&mut self, step: u32, now: f64) {
        let ready = self.spans[step as usize].ready;
        if ready > now {
            self.events.push(ready, Event::Ready(step));
        } else {
            self.ready_now.push(step);
        }
    }

    /// Handles steps that became ready and tasks that ended until this instant brings no more;
    /// those of one instant in task order, whatever order they were found in.
    fn settle(&mut self, now: f64) -> Result<(), SimError> {
        let (mut steps, mut tasks) = std::mem::take(&mut self.settling);
        while !self.ready_now.is_empty() || !self.ended_now.is_empty() {
            std::mem::swap(&mut tasks, &mut self.ended_now);
            tasks.sort_unstable();
            for task in tasks.drain(..) {
                self.task_ended(task, now)?;
            }
            std::mem::swap(&mut steps, &mut self.ready_now);
            steps.sort_unstable_by_key(|&step| self.in_order(step));
            for step in steps.drain(..) {
                self.step_ready(step, now)?;
            }
        }
        self.settling = (steps, tasks);
        Ok(())
    }

    /// The order of steps that become ready at one instant: task order, but in a graph on real GPUs
    /// collectives begin after all others, as section `race` of calibrations shows.
    fn in_order(&self, step: u32) -> (bool, u32) {
        let collective = (self.schedule.tasks.get(step as usize))
            .is_some_and(|task| matches!(task.work, Work::Collective(_)));
        (self.real_graph && collective, step)
    }

    fn handle(&mut self, event: Event, now: f64) -> Result<(), SimError> {
        match event {
            Event::Ready(step) => self.step_ready(step, now),
            Event::Flow(unit) if unit >= STRETCH => self.stretch_flows(unit - STRETCH, now),
            Event::Flow(task) => self.task_flows(task, now),
            Event::Told(stretch) => {
                self.stretch_told(stretch, now);
                Ok(())
            }
            Event::Left(task) => self.blocks_left(task, now),
            Event::Drained(task) => {
                self.ended_now.push(task);
                Ok(())
            }
            Event::Open(launch) => {
                let first = self.graph.launch_first[launch as usize];
                self.condition(first, now, Cause::Start, now);
                for at in 0..self.graph.brought.len() {
                    let Loaded { transfer, product } = self.graph.brought[at];
                    if product == launch {
                        self.condition(transfer.0, now, Cause::Start, now);
                    }
                }
                Ok(())
            }
        }
    }

    /// One condition of `step` is met, effective at `at`.
    pub fn condition(&mut self, step: u32, at: f64, cause: Cause, now: f64) {
        let span = &mut self.spans[step as usize];
        if at > span.ready || (at == span.ready && span.cause == Cause::Start) {
            span.ready = at;
            span.cause = cause;
        }
        let waiting = &mut self.graph.waiting[step as usize];
        *waiting -= 1;
        if *waiting == 0 {
            self.conditions_met(step, now);
        }
    }

    fn step_ready(&mut self, step: u32, now: f64) -> Result<(), SimError> {
        if step >= self.graph.tasks {
            return self.launch_ready(step - self.graph.tasks, now);
        }
        let work = self.schedule.tasks[step as usize].work;
        match work {
            Work::Transfer { from, to, mover } => {
                let bytes = self.schedule.bytes(&from);
                let (src, dst) = (self.costs.gpu_of(&from), self.costs.gpu_of(&to));
                if mover == Mover::Epilogue {
                    return self.store_computed(step, now);
                }
                if bytes == 0 || !self.options.terms.communication {
                    self.start(step, now);
                    self.ended_now.push(step);
                    return Ok(());
                }
                match mover {
                    // A kernel that has its SMs brings it.
                    Mover::Loader => {
                        let way = (src != dst).then(|| self.costs.machine.way(src, dst));
                        if let Some(Way::Paths(_)) = way.transpose()? {
                            let task = self.schedule.describe(TaskId(step));
                            return Err(SimError::NotDirect { task, gpu: src });
                        }
                        self.begin_transfer(step, now)
                    }
                    _ if src == dst => self.kernel_ready(step, now),
                    Mover::Sm { .. } if !self.host_only() => self.kernel_ready(step, now),
                    _ => match self.costs.machine.way(src, dst)? {
                        Way::Direct(latency) => {
                            let gpu = self.costs.gpu(step);
                            let kind = EngineKind::peer(gpu, src);
                            if self.take_engine(gpu, kind, step) {
                                self.start(step, now);
                                let behind = self.right_behind((gpu, kind), now);
                                let alpha = self.costs.start_up(gpu, mover, behind) + latency;
                                return self.begin(step, alpha, now);
                            }
                            Ok(())
                        }
                        Way::Paths(paths) => {
                            self.start(step, now);
                            self.start_paths(step, &paths, bytes as f64, mover, now)
                        }
                    },
                }
            }
            Work::Compute(_) | Work::Collective(_) => self.kernel_ready(step, now),
        }
    }

    /// Marks a task as started.
    pub fn start(&mut self, task: u32, now: f64) {
        self.spans[task as usize].start = now;
    }

    /// Waits `alpha`, then lets the task flow.
    pub fn begin(&mut self, task: u32, alpha: f64, now: f64) -> Result<(), SimError> {
        if alpha > 0.0 {
            self.events.push(now + alpha, Event::Flow(task));
            Ok(())
        } else {
            self.task_flows(task, now)
        }
    }

    fn task_flows(&mut self, task: u32, now: f64) -> Result<(), SimError> {
        let cost = match self.schedule.tasks[task as usize].work {
            Work::Transfer { .. } => self.transfer_cost(task)?,
            _ => {
                let cost = self.kernel_cost(task)?;
                let cost = self.on_first_blocks(task, cost)?;
                let cost = self.in_turns(task, cost);
                self.before_last_wave(task, &cost, now)?;
                cost
            }
        };
        match self.flow(&cost, task, now) {
            Some(flow) => {
                let launch = self.schedule.tasks[task as usize].launch;
                let holder = launch.map_or(task, |launch| self.graph.launch_step(launch));
                self.kernels.flows(task, holder, flow);
                self.turns_flow(task, flow, (cost.alpha, now));
            }
            None => self.ended_now.push(task),
        }
        Ok(())
    }

    /// A member of a collective has its SMs; the last one starts it for all.
    pub fn member_arrived(
        &mut self,
        id: CollectiveId,
        task: u32,
        now: f64,
    ) -> Result<(), SimError> {
        self.start(task, now);
        self.absent[id.index()] -= 1;
        if self.absent[id.index()] > 0 {
            return Ok(());
        }
        let collective = &self.schedule.collectives[id.index()];
        // All waited for what the last one waited for.
        let cause = self.spans[task as usize].cause;
        for member in &collective.members {
            self.spans[member.task.index()].cause = cause;
        }
        let first = collective.members[0].task.0;
        if !self.options.terms.communication {
            self.ended_now.push(first);
            return Ok(());
        }
        let cost = self.costs.collective(collective, &mut self.usages)?;
        self.begin(first, cost.alpha, now)
    }

    fn finish(mut self) -> Result<Timeline, SimError> {
        let tasks = self.schedule.tasks.len();
        if self.ended < tasks {
            let stuck = (0..tasks).find(|&t| self.graph.waiting[t] > 0 || self.spans[t].end == 0.0);
            return Err(SimError::Deadlock {
                count: tasks - self.ended,
                first: stuck.map_or_else(String::new, |t| self.schedule.describe(TaskId(t as u32))),
            });
        }
        self.spans.truncate(tasks);
        Ok(Timeline {
            spans: self.spans,
            makespan: self.makespan,
            links: self.links,
            samples: self.samples,
        })
    }
}
