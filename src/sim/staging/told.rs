//! Who learns of a chunk that has landed and when, and which transfer follows.

use crate::schedule::{Mover, Via, Work};
use crate::sim::engine::{Engine, Event};

impl Engine<'_> {
    /// Whether transfers through the host follow one another as those beside Duet's own products do: one leaves
    /// its GPU while the one before still enters the other, and queues of their own tell of them (plans leave those out
    /// where a GPU would have too many streams, which is not simulated).
    pub(super) fn pipelined(&self) -> bool {
        self.options.tiling.is_some() && self.host_only()
    }

    /// The next transfer of a transfer's lane, where that goes on when this has left its GPU.
    pub fn goes_on(&self, task: u32) -> Option<u32> {
        let next = self.graph.next_in_lane[task as usize];
        let ends = |step: u32| match self.schedule.tasks.get(step as usize)?.work {
            Work::Transfer { from, to, mover }
                if !matches!(mover, Mover::Epilogue | Mover::Loader)
                    && self.schedule.bytes(&from) > 0 =>
            {
                let gpus = (self.costs.gpu_of(&from), self.costs.gpu_of(&to));
                (gpus.0 != gpus.1).then_some(gpus)
            }
            _ => None,
        };
        let alike = || ends(task).is_some_and(|gpus| ends(next) == Some(gpus));
        (self.pipelined() && self.options.terms.communication && alike()).then_some(next)
    }

    /// Tells the other end of a chunk that has landed, and all when the task is done.
    pub fn stretch_tells(&mut self, id: u32, now: f64) {
        let s = &self.staging.stretches[id as usize];
        let (task, first, last, to) = (s.task, s.first, s.last, s.leg.to);
        let ring = s.slots > 0;
        let landed = last && s.done == s.chunks;
        if ring {
            let at = now + self.told_after(id);
            if !last {
                self.events.push(at, Event::Told(id + 1));
            }
            if !first {
                self.events.push(at, Event::Told(id - 1));
            }
        } else if !last {
            self.next_chunk(id + 1, now);
        }
        if landed && let Some(left) = self.staging.paths_left.get_mut(&task) {
            *left -= 1;
            if *left == 0 {
                if ring && let Some(gpu) = self.costs.machine.gpu_of(to) {
                    self.staging.ended_on.insert(task, gpu);
                }
                self.end_task(task);
            }
        }
    }

    /// From the end of a chunk on a ring to the GPU at the other end knowing of it [s].
    fn told_after(&self, id: u32) -> f64 {
        let gpu = self.issuer(&self.staging.stretches[id as usize]);
        let s = &self.staging.stretches[id as usize];
        let other = match s.first {
            true => s.ends.1,
            false => s.ends.0,
        };
        self.costs.hand_off(Via::Event, gpu, other)
    }

    /// A stretch learns of a chunk that was filled, or of a slot that was emptied.
    pub fn stretch_told(&mut self, id: u32, now: f64) {
        self.staging.stretches[id as usize].told += 1;
        self.next_chunk(id, now);
    }
}
