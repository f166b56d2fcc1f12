//! Partial sums that a fused kernel adds to what arrives.
//!
//! On real GPUs its tiles are multiplied before; what waits for the arrival is that they are added and
//! stored. An SM holds the sums of one tile: while that waits, it takes no other, so that a group gets as far
//! as one wave. With s and e the begin and end of the group's share of the kernel's time, t that time by
//! itself, w a wave, f the time at which its sums are known to be there, and C its bytes, at most those of
//! a wave,
//!
//! ```text
//! end = e                                               where f ≤ min(e, s + w)
//! end = max(e, f + 2 C / memory's rate + max(t − w, 0))  else: all tiles that wait read and write C at once
//! ```

use super::engine::{Engine, Event};
use crate::schedule::{Compute, Schedule, Task, TaskId, Work};

/// What a group adds to.
#[derive(Copy, Clone, Debug, Default)]
struct Sum {
    /// Arrivals that are not known yet, and the latest of those that are [s].
    left: u32,
    at: f64,
    /// Its share is over and it waits; it has waited.
    waits: bool,
    over: bool,
}

/// By task; empty without any.
#[derive(Debug, Default)]
pub(super) struct Sums(Vec<Sum>);

impl Sums {
    /// One more arrival that a task waits for before it adds.
    pub fn expect(&mut self, task: u32, tasks: usize) {
        self.0.resize(tasks, Sum::default());
        self.0[task as usize].left += 1;
    }

    fn of(&mut self, task: u32) -> Option<&mut Sum> {
        self.0.get_mut(task as usize)
    }

    /// Whether a task adds to what arrives.
    pub fn adds(&self, task: u32) -> bool {
        let sum = self.0.get(task as usize);
        sum.is_some_and(|sum| sum.left > 0 || sum.at > 0.0)
    }
}

/// Whether `before` brings what a group of a fused kernel adds to.
pub(super) fn brings(schedule: &Schedule, task: &Task, before: TaskId) -> bool {
    let (Some(_), Work::Compute(c)) = (task.launch, task.work) else {
        return false;
    };
    match (
        &schedule.computes[c.index()],
        schedule.tasks[before.index()].work,
    ) {
        (
            Compute::Gemm {
                out,
                accumulate: true,
                ..
            },
            Work::Transfer { to, .. },
        ) => (to.buffer, to.slot) == (out.buffer, out.slot),
        _ => false,
    }
}

impl Engine<'_> {
    /// What a task adds to is known to be there from `at` on.
    pub(super) fn sum_arrives(&mut self, task: u32, at: f64, now: f64) {
        let Some(sum) = self.graph.sums.of(task) else {
            return;
        };
        sum.left = sum.left.saturating_sub(1);
        sum.at = sum.at.max(at);
        if sum.left == 0 && sum.waits {
            sum.over = true;
            let at = sum.at.max(now);
            let done = at + self.after_arrival(task);
            self.events.push(done, Event::Drained(task));
        }
    }

    /// The share of a task is over: whether it still waits for what it adds to.
    pub(super) fn sum_waits(&mut self, task: u32, now: f64) -> bool {
        let Some(sum) = self.graph.sums.of(task) else {
            return false;
        };
        if sum.over {
            return false;
        }
        sum.waits = true;
        let (left, at) = (sum.left, sum.at);
        if left > 0 {
            return true;
        }
        sum.over = true;
        let launch = self.schedule.tasks[task as usize].launch;
        let wave = launch.map_or(0.0, |launch| self.kernels.wave(launch));
        let done = at + self.after_arrival(task);
        let first = self.spans[task as usize].start + wave;
        let late = at > first.min(now) && done > now;
        if late {
            self.events.push(done, Event::Drained(task));
        }
        late
    }

    /// What a group that waited takes once its sums are there: its first tiles are added and stored, the
    /// others multiplied too [s].
    fn after_arrival(&self, task: u32) -> f64 {
        let t = &self.schedule.tasks[task as usize];
        let (Some(launch), Work::Compute(c)) = (t.launch, t.work) else {
            return 0.0;
        };
        let Compute::Gemm { out, .. } = &self.schedule.computes[c.index()] else {
            return 0.0;
        };
        let shape = self.costs.gemm_shape(task).unwrap_or_default();
        let products: f64 = shape.iter().map(|&size| size as f64).product();
        let wave = (self.kernels.of_wave(launch) / products).min(1.0);
        let hbm = self.costs.device(self.costs.gpu(task)).hbm.get();
        let added = 2.0 * self.schedule.bytes(out) as f64 * wave / hbm;
        let rest = self.kernels.alone(launch, products) - self.kernels.wave(launch);
        added + rest.max(0.0)
    }
}
