//! SMs asked for, granted, given back and handed on.

use super::Growing;
use crate::schedule::{Compute, Mover, TaskId, Work};
use crate::sim::blocks::LATE;
use crate::sim::cost::Costs;
use crate::sim::engine::Engine;
use crate::sim::pool::Request;
use crate::sim::tiles::blocks;
use crate::sim::{SimError, Streams};
use crate::timeline::Cause;

impl Engine<'_> {
    /// How many SMs a task asks for: (want, all or nothing).
    fn wanted(&self, task: u32, gpu: u32) -> Result<(u32, bool), SimError> {
        let sms = self.costs.device(gpu).sms;
        let (want, fixed) = match self.schedule.tasks[task as usize].work {
            Work::Transfer {
                mover: Mover::Sm { blocks },
                ..
            } => (u32::from(blocks.max(1)), true),
            Work::Transfer { .. } => (Costs::local_sms(self.costs.device(gpu)), false),
            Work::Collective(id) => {
                let collective = &self.schedule.collectives[id.index()];
                (self.costs.collective_sms(collective, gpu), true)
            }
            Work::Compute(id) => match self.schedule.computes[id.index()] {
                // A margin left for others counts as contention.
                Compute::Gemm { sms: limit, .. } if limit > 0 && self.options.terms.contention => {
                    (u32::from(limit), false)
                }
                _ => (sms, false),
            },
        };
        if let Some(shape) = self.whole_gemm(task) {
            let want = want.min(sms);
            let tiles = self.costs.gemm_tiles(gpu, shape, want)?;
            let (of, _) = match self.options.tiling {
                None => self.costs.gemm_blocks(gpu, shape, want)?,
                Some(_) => (1, None),
            };
            return Ok((blocks(tiles, want, of), false));
        }
        if fixed && want > sms {
            return Err(SimError::TooManySms {
                task: self.schedule.describe(TaskId(task)),
                want,
                have: sms,
                device: self.costs.device(gpu).name.clone(),
            });
        }
        Ok((want.min(sms), fixed))
    }

    /// A kernel's conditions are met: take SMs or queue for them.
    pub fn kernel_ready(&mut self, task: u32, now: f64) -> Result<(), SimError> {
        let t = &self.schedule.tasks[task as usize];
        if t.launch.is_some() {
            return self.kernel_begins(task, now); // its fused kernel holds the SMs
        }
        if self.lets_first(task, now) {
            return Ok(());
        }
        let gpu = self.costs.gpu(task);
        let (want, fixed) = self.wanted(task, gpu)?;
        if self.beside(task) {
            self.kernels.beside.insert(task, want);
            return self.kernel_begins(task, now);
        }
        let request = Request {
            who: task,
            want,
            fixed,
        };
        match self.kernels.pools[gpu as usize].request(request) {
            Some(got) => self.granted(task, got, now),
            None => Ok(()),
        }
    }

    pub(super) fn granted(&mut self, step: u32, got: u32, now: f64) -> Result<(), SimError> {
        if self.options.streams == Streams::PerGpu && step & LATE != 0 {
            return self.blocks_follow(step & !LATE, got, now);
        }
        self.kernels.held.insert(step, got);
        if let Some(launch) = step.checked_sub(self.graph.tasks) {
            let (gpu, want) = self.launch_wants(launch);
            if self.options.streams == Streams::PerGpu && got < want {
                let growing = Growing { task: step, want };
                self.kernels.growing[gpu as usize].push(growing);
            }
            return self.launch_opens(launch, got, now);
        }
        let gpu = self.costs.gpu(step);
        if let Work::Collective(id) = self.schedule.tasks[step as usize].work {
            self.scatters(id, (gpu, got))?;
        }
        let (want, fixed) = self.wanted(step, gpu)?;
        if self.whole_gemm(step).is_some() {
            self.blocks_begin(step, (want, got), now)?;
        } else if !fixed && got < want {
            let growing = Growing { task: step, want };
            self.kernels.growing[gpu as usize].push(growing);
        }
        self.kernel_begins(step, now)
    }

    /// Gives back the SMs of an ended task (and of its fused kernel after its last task), and
    /// hands them on. Says whether the task held any.
    pub fn release_kernel(&mut self, task: u32, now: f64) -> Result<bool, SimError> {
        if self.kernels.beside.remove(&task).is_some() {
            return Ok(true);
        }
        if self.kernels.held.is_empty() {
            return Ok(false);
        }
        self.kernels.flows.remove(&task);
        let t = &self.schedule.tasks[task as usize];
        let mut holder = task;
        if let Some(launch) = t.launch {
            let left = &mut self.graph.launch_left[launch.index()];
            *left -= 1;
            if *left > 0 {
                return Ok(true);
            }
            holder = self.graph.launch_step(launch);
        }
        let Some(held) = self.kernels.held.remove(&holder) else {
            return Ok(false);
        };
        let gpu = self.costs.gpu(task) as usize;
        self.kernels.growing[gpu].retain(|growing| growing.task != holder);
        self.blocks_done(task);
        self.kernels.waves.remove(&task);
        self.leaves_turns(task, now);
        self.hand_on(task, held, now)?;
        Ok(true)
    }

    /// Gives SMs of `task` to whoever waits for some.
    pub(in crate::sim) fn hand_on(
        &mut self,
        task: u32,
        sms: u32,
        now: f64,
    ) -> Result<(), SimError> {
        let gpu = self.costs.gpu(task) as usize;
        self.kernels.pools[gpu].release(sms);
        while let Some((step, got)) = self.kernels.pools[gpu].next() {
            if let Some(span) = self.spans.get_mut(step as usize) {
                span.cause = Cause::Resource(TaskId(task));
            }
            self.granted(step, got, now)?;
        }
        self.grow(gpu)
    }

    /// Gives free SMs to running kernels that started on fewer than they asked for.
    fn grow(&mut self, gpu: usize) -> Result<(), SimError> {
        let mut growing = std::mem::take(&mut self.kernels.growing[gpu]);
        for kernel in &growing {
            let held = self.kernels.held(kernel.task);
            let more = self.kernels.pools[gpu].take_free(kernel.want - held);
            if more == 0 {
                continue;
            }
            self.kernels.held.insert(kernel.task, held + more);
            if let Some(launch) = kernel.task.checked_sub(self.graph.tasks) {
                self.launch_grows(launch, held + more)?;
            } else if let Some(&flow) = self.kernels.flows.get(&kernel.task) {
                let bound = match self.schedule.tasks[kernel.task as usize].work {
                    Work::Transfer { .. } => self.transfer_cost(kernel.task)?.bound,
                    _ => self.kernel_cost(kernel.task)?.bound,
                };
                self.rebound(flow, bound);
            }
        }
        growing.retain(|kernel| self.kernels.held(kernel.task) < kernel.want);
        self.kernels.growing[gpu] = growing;
        Ok(())
    }
}
