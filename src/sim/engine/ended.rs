//! Ends of tasks: giving back what they held, and telling everything that waits for them.

use super::{Engine, EngineKind, Event};
use crate::schedule::lowered::by_loader;
use crate::schedule::{Mover, Schedule, TaskId, Via, Work};
use crate::sim::fluid::TIE;
use crate::sim::graph::NONE;
use crate::sim::waits::{Signals, crosses};
use crate::sim::{LaunchMode, SimError, Submission};
use crate::timeline::Cause;

/// Whether GPUs wait for one another inside kernels alone: the executor then records a graph for each.
/// `staged`: whether transfers between GPUs go through the host, where each half waits for the other.
pub(super) fn apart(schedule: &Schedule, staged: bool) -> bool {
    let gpu = |task: TaskId| schedule.placement[usize::from(schedule.task(task).rank.0)];
    let mut tasks = (0..schedule.tasks.len() as u32).map(TaskId);
    schedule.collectives.is_empty()
        && tasks.all(|task| {
            let mut deps = schedule.deps(task).iter();
            !(staged && crosses(schedule, task))
                && deps.all(|dep| dep.via == Via::KernelFlag || gpu(dep.task) == gpu(task))
        })
}

impl Engine<'_> {
    /// Marks a task as ended at this instant.
    pub fn end_task(&mut self, task: u32) {
        self.ended_now.push(task);
    }

    pub(super) fn task_ended(&mut self, task: u32, now: f64) -> Result<(), SimError> {
        match self.schedule.tasks[task as usize].work {
            Work::Collective(id) => {
                self.scattered.ended(id);
                for k in 0..self.schedule.collectives[id.index()].members.len() {
                    let member = self.schedule.collectives[id.index()].members[k].task.0;
                    self.spans[member as usize].bound = self.spans[task as usize].bound;
                    self.release_kernel(member, now)?;
                    self.one_ended(member, now);
                }
            }
            Work::Transfer { from, to, mover } => {
                if self.store_waits(task, now) {
                    return Ok(());
                }
                let (src, dst) = (self.costs.gpu_of(&from), self.costs.gpu_of(&to));
                if !self.release_kernel(task, now)?
                    && mover == Mover::CopyEngine
                    && src != dst
                    && self.schedule.bytes(&from) > 0
                    && self.options.terms.communication
                    && !self.staging.was_staged(task)
                {
                    let gpu = self.costs.gpu(task);
                    let engine = (gpu, EngineKind::peer(gpu, src));
                    self.end_alone(task, now);
                    if self.copied(engine, task, task, now)? {
                        self.tell(task, now);
                    }
                    return Ok(());
                }
                self.one_ended(task, now);
            }
            Work::Compute(_) => {
                if self.sum_waits(task, now) {
                    return Ok(());
                }
                let done = self.last_tile(task, now);
                if done > now * (1.0 + TIE) && self.next_in_launch(task).is_none() {
                    self.events.push(done, Event::Drained(task));
                    return Ok(());
                }
                self.release_kernel(task, now)?;
                self.one_ended(task, now);
            }
        }
        Ok(())
    }

    /// Books the end of `task` and tells everything that waits for it.
    fn one_ended(&mut self, task: u32, now: f64) {
        self.end_alone(task, now);
        self.tell(task, now);
    }

    /// Books the end of `task`; the next in its queue may go on.
    fn end_alone(&mut self, task: u32, now: f64) {
        self.ended += 1;
        let gpu = self.staging.ended_on(task);
        let gpu = gpu.unwrap_or_else(|| self.costs.gpu(task));
        self.makespan = self.makespan.max(now + self.across(gpu));
        self.spans[task as usize].end = now;
        let cause = Cause::Task(TaskId(task));
        let next = self.graph.next_in_lane[task as usize];
        if let Some(next) = self.next_in_launch(task) {
            self.kernels.follows(task, next);
            self.condition(next, now, cause, now);
        } else if next != NONE && self.goes_on(task).is_none() {
            let gpu = self.costs.gpu(task);
            let mut after = self.graph.signals(task);
            if self.tells(task) {
                after.flag_writes = after.flag_writes.saturating_sub(1);
            }
            let before = self.graph.signals(self.first_of(next));
            // What ended on another GPU is known here by an event, recorded there before any flag.
            let gap = match self.staging.ended_on(task) {
                Some(end) if end != gpu => {
                    after = Signals::default();
                    self.costs.hand_off(Via::Event, end, gpu)
                }
                _ => self.costs.lane(gpu),
            };
            // A loader's warp goes on by itself.
            let by_product = self.stores.performs(next) || by_loader(self.schedule, TaskId(task));
            let gap = match by_product {
                true => 0.0,
                false => gap + self.costs.signals(gpu, after, before, self.copies(task)),
            };
            self.condition(next, now + gap, cause, now);
        }
    }

    /// Tells everything that waits for `task`.
    pub(super) fn tell(&mut self, task: u32, now: f64) {
        let cause = Cause::Task(TaskId(task));
        let done = self.last_tile(task, now);
        for place in self.graph.successors(task) {
            let (step, via) = self.graph.successor(place);
            // Sums of the slab before are in registers.
            if via == Via::Launch && self.kernels.slabs.of(step).before > 0.0 {
                self.condition(step, now, cause, now);
                continue;
            }
            let at = done + self.hand_off(task, step, via);
            if self.graph.brings(place) {
                self.sum_arrives(step, at, now);
                continue;
            }
            if step < self.graph.tasks {
                let launch = self.schedule.tasks[step as usize].launch;
                self.kernels.opens(step, launch, at);
            }
            self.condition(step, at, cause, now);
        }
    }

    /// Between the GPU where a graph of all GPUs is launched, that of the first task, and another: at both
    /// ends of a run [s].
    pub(super) fn across(&self, gpu: u32) -> f64 {
        let origin = self
            .schedule
            .tasks
            .first()
            .map_or(gpu, |_| self.costs.gpu(0));
        let graph = self.options.submission == Submission::Beforehand
            && self.options.launch == LaunchMode::Graph
            && !self.apart;
        match graph && origin != gpu {
            true => self.costs.hand_off(Via::Event, origin, gpu),
            false => 0.0,
        }
    }

    /// Whether a task is a copy by a copy engine.
    fn copies(&self, task: u32) -> bool {
        let work = self.schedule.tasks[task as usize].work;
        let mover = Mover::CopyEngine;
        matches!(work, Work::Transfer { mover: by, .. } if by == mover)
    }

    /// Whether a task is a copy by a kernel for which another waits inside, or by an epilogue: it writes that
    /// flag itself.
    fn tells(&self, task: u32) -> bool {
        let by_kernel = match self.schedule.tasks[task as usize].work {
            Work::Transfer { mover, .. } => match mover {
                Mover::CopyEngine => false,
                Mover::Sm { .. } | Mover::Loader => true,
                Mover::Epilogue => return true,
            },
            _ => false,
        };
        let mut told = self.graph.successors(task);
        by_kernel && told.any(|place| self.graph.successor(place).1 == Via::KernelFlag)
    }

    /// The next task in the lane, if it is of the same fused kernel.
    pub(in crate::sim) fn next_in_launch(&self, task: u32) -> Option<u32> {
        let launch = self.schedule.tasks[task as usize].launch?;
        let next = self.graph.next_in_lane[task as usize];
        let after = self.schedule.tasks.get(next as usize)?;
        (after.launch == Some(launch)).then_some(next)
    }

    /// When what `task` wrote is there, its share of the kernel's time being over at `now`.
    fn last_tile(&self, task: u32, now: f64) -> f64 {
        let t = &self.schedule.tasks[task as usize];
        match (t.launch, self.costs.gemm_shape(task)) {
            (Some(launch), Some(_)) => self.kernels.last_tile(task, launch, now),
            _ => now,
        }
    }

    /// From the end of `task` to `step` knowing of it [s].
    fn hand_off(&self, task: u32, step: u32, via: Via) -> f64 {
        if self.stores.performs(step) {
            return 0.0; // it is a part of the kernel
        }
        if via == Via::KernelFlag && by_loader(self.schedule, TaskId(task)) {
            return self.costs.counted();
        }
        let here = self.staging.ended_on(task);
        let here = here.unwrap_or_else(|| self.costs.gpu(task));
        let there = self.costs.gpu(self.first_of(step));
        let other =
            match self.split && via == Via::StreamFlag && crosses(self.schedule, TaskId(task)) {
                true => Signals {
                    flag_waits: 1,
                    ..Signals::default()
                },
                false => Signals::default(),
            };
        // The flag of the other part, which is there already, is awaited too.
        let other = self.costs.signals(there, Signals::default(), other, false);
        self.costs.hand_off(via, here, there) + other
    }

    /// The task that a step begins with.
    pub(super) fn first_of(&self, step: u32) -> u32 {
        match step.checked_sub(self.graph.tasks) {
            Some(launch) => self.graph.launch_first[launch as usize],
            None => step,
        }
    }
}
