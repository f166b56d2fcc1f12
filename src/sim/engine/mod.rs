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
use super::orders::Race;
use super::pool::Pool;
use super::queue::Queue;
use super::scattered::Scattered;
use super::staging::Staging;
use super::stored::Stores;
use super::{Options, SimError};
use crate::schedule::lowered::Loaded;
use crate::schedule::{Schedule, TaskId, Work};
use crate::timeline::{Cause, LinkUse, Sample, Span, Timeline};
use crate::topology::Topology;

/// Flow tags and engine requests from here on are stretches of staged transfers; below, tasks.
pub(super) const STRETCH: u32 = 1 << 31;

/// Engine requests with this bit are no copies but what a queue does after one: telling others.
pub(super) const SIGNAL: u32 = 1 << 30;

mod begun;
mod ended;
mod flowing;
mod made;
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
    /// Of each the last copy that ended, and when [s].
    engine_last: Vec<Option<(u32, f64)>>,
    /// By task: when what is no copy of an engine last let it go: a kernel's end, the host [s].
    cold: Vec<f64>,
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

impl Engine<'_> {
    pub fn run(self) -> Result<Timeline, SimError> {
        Ok(self.run_noting()?.0)
    }

    /// As [`Self::run`], and who won the races of collectives and GEMMs.
    pub fn run_noting(mut self) -> Result<(Timeline, Vec<Race>), SimError> {
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
        let races = std::mem::take(&mut self.scattered.races);
        Ok((self.finish()?, races))
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
        let warm = matches!(cause, Cause::Task(task) if self.by_engine(task.0));
        if !warm && let Some(cold) = self.cold.get_mut(step as usize) {
            *cold = cold.max(at);
        }
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
