//! What begins once its conditions are met: tasks that start, wait and flow.

use super::{Engine, EngineKind, Event};
use crate::schedule::{CollectiveId, Mover, TaskId, Work};
use crate::sim::SimError;
use crate::sim::machine::Way;

impl Engine<'_> {
    pub(super) fn step_ready(&mut self, step: u32, now: f64) -> Result<(), SimError> {
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
                        Way::Direct(_) => {
                            let gpu = self.costs.gpu(step);
                            match self.take_engine(gpu, EngineKind::peer(gpu, src), step) {
                                true => self.begin_transfer(step, now),
                                false => Ok(()),
                            }
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

    pub(super) fn task_flows(&mut self, task: u32, now: f64) -> Result<(), SimError> {
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
}
