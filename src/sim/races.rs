//! A collective and a GEMM that wait for the same end: the order that is simulated says which begins first
//! ([`orders`](super::orders)).

use smallvec::SmallVec;

use super::LaunchMode;
use super::engine::{Engine, Event};
use super::orders::Race;
use crate::schedule::{CollectiveId, Via, Work};
use crate::timeline::Cause;

/// How much later the second comes than the first \[s\]: enough to come later.
const AFTER: f64 = 1e-9;

impl Engine<'_> {
    /// Whether a collective comes first on a GPU before a GEMM, in the order that is simulated.
    fn collective_first(&mut self, id: CollectiveId, gpu: u32, gemm: u32) -> bool {
        let p = self.costs.device(gpu).scatter.first;
        let (Some(order), Some(p), LaunchMode::Stream) =
            (self.options.order, p, self.options.launch)
        else {
            return false;
        };
        let passes = self
            .whole_gemm(gemm)
            .is_some_and(|shape| !self.stays(shape));
        if passes {
            return true;
        }
        let id = id.index() as u32;
        let first = order.first(id, gpu, p);
        let race = Race { id, gpu, p, first };
        if !self.scattered.races.contains(&race) {
            self.scattered.races.push(race);
        }
        first
    }

    /// Whether a step waits because another comes first whose last condition is the same end: a collective for a
    /// GEMM, or a GEMM for a collective. It becomes ready once more, behind it.
    pub fn lets_first(&mut self, task: u32, now: f64) -> bool {
        if self.options.order.is_none() {
            return false;
        }
        let gpu = self.costs.gpu(task);
        if self.costs.device(gpu).scatter.first.is_none() {
            return false;
        }
        let collective = |task: u32| match self.schedule.tasks.get(task as usize)?.work {
            Work::Collective(id) => Some(id),
            _ => None,
        };
        // Only these race; most steps need no look at all others.
        if collective(task).is_none() && self.whole_gemm(task).is_none() {
            return false;
        }
        // All members of a collective end at once.
        let end = |step: u32| match self.spans[step as usize].cause {
            Cause::Task(task) => match collective(task.index() as u32) {
                Some(id) => Some((true, id.index())),
                None => Some((false, task.index())),
            },
            _ => None,
        };
        let Some(before) = end(task) else {
            return false;
        };
        let others = (0..self.graph.tasks).filter(|&step| {
            step != task
                && self.costs.gpu(step) == gpu
                && self.graph.waiting[step as usize] == 0
                && self.spans[step as usize].start <= 0.0
                && end(step) == Some(before)
        });
        let others: SmallVec<[u32; 4]> = others.collect();
        let mut waits = None;
        for step in others {
            let race = match (collective(task), collective(step)) {
                (Some(id), None) if self.whole_gemm(step).is_some() => {
                    Some(!self.collective_first(id, gpu, step))
                }
                (None, Some(id)) if self.whole_gemm(task).is_some() => {
                    Some(self.collective_first(id, gpu, task))
                }
                _ => None,
            };
            waits = waits.or(race);
        }
        if waits != Some(true) || !self.scattered.passed.insert(task) {
            return false;
        }
        // What follows in a queue is ready sooner by this.
        let later = self.costs.hand_off(Via::Event, gpu, gpu) - self.costs.lane(gpu);
        self.events
            .push(now + later.max(0.0) + AFTER, Event::Ready(task));
        true
    }
}
