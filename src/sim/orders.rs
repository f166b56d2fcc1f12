//! Orders in which collectives and GEMMs take the SMs.
//!
//! In streams a collective and a GEMM that wait for the same end take the SMs of a GPU in either order, the
//! collective first in a share p of runs ([`Scatter::first`](crate::device::Scatter::first)), each GPU for
//! itself. One order decides the next races: a GEMM that came second is late for the next, and a collective
//! whose members differ holds SMs of one GPU until the other's are free. So times of such a schedule have
//! modes, and the mean of each race is no mean of them. A number of orders is simulated, each fixed beforehand.
//! A measured median lies in one mode or in another where they are about as frequent, so that what is expected is
//! between: the mean of the middle half of all times. The timeline is that of the order nearest to it, stretched to
//! that time.
//!
//! Who wins race r on GPU g in order i is a hash of the three, so that races are as good as independent. In a graph
//! GEMMs come first. A GEMM whose blocks come and go lets a collective in after one tile, as if it were first.

use super::engine::{Engine, Event};
use super::{LaunchMode, Options, SimError, Streams};
use crate::schedule::{CollectiveId, Schedule, Via, Work};
use crate::timeline::{Cause, Timeline};
use crate::topology::Topology;

/// How much later the second comes than the first \[s\]: enough to come later.
const AFTER: f64 = 1e-9;

/// One of the orders, by its number.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Order(pub u32);

impl Order {
    /// How many are simulated; assumed to be enough.
    pub const COUNT: u32 = 31;

    /// Whether the collective comes first in a race on a GPU, where it does in a share `p`.
    pub fn first(self, race: u32, gpu: u32, p: f64) -> bool {
        // As different for races and orders as a hash makes them.
        let mut hash = (u64::from(race) << 32) ^ (u64::from(gpu) << 16) ^ u64::from(self.0);
        for multiply in [0xbf58_476d_1ce4_e5b9_u64, 0x94d0_49bb_1331_11eb] {
            hash = (hash ^ (hash >> 30)).wrapping_add(0x9e37_79b9_7f4a_7c15);
            hash = (hash ^ (hash >> 27)).wrapping_mul(multiply);
        }
        let unit = (hash >> 11) as f64 / (1_u64 << 53) as f64;
        unit < p
    }
}

/// Whether collectives and GEMMs may race.
pub(super) fn races(schedule: &Schedule, topology: &Topology, options: &Options) -> bool {
    options.streams == Streams::PerGpu
        && options.terms.contention
        && !schedule.collectives.is_empty()
        && (0..topology.gpus.len() as u32).any(|gpu| topology.device(gpu).scatter.first.is_some())
}

/// The mean of the middle half of these times.
fn middle(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    let quarter = times.len() / 4;
    let middle = &times[quarter..times.len() - quarter];
    middle.iter().sum::<f64>() / middle.len().max(1) as f64
}

/// The timeline of the order nearest to the middle of all, stretched to it.
pub(super) fn expected(
    schedule: &Schedule,
    topology: &Topology,
    options: &Options,
) -> Result<Timeline, SimError> {
    let engine = |at: u32, record: bool| {
        let options = Options {
            order: Some(Order(at)),
            record,
            ..*options
        };
        Engine::new(schedule, topology, options)
    };
    let (first, raced) = engine(0, options.record)?.run_noting()?;
    if !raced || options.launch == LaunchMode::Graph {
        return Ok(first);
    }
    let mut times = vec![first.makespan];
    for at in 1..Order::COUNT {
        times.push(engine(at, false)?.run()?.makespan);
    }
    let middle = middle(&times);
    let far = |time: f64| (time - middle).abs();
    let nearest = (0..)
        .zip(&times)
        .min_by(|a, b| far(*a.1).total_cmp(&far(*b.1)));
    let timeline = match nearest {
        Some((at, _)) if at > 0 => engine(at, options.record)?.run()?,
        _ => first,
    };
    let factor = middle / timeline.makespan;
    Ok(timeline.stretched(factor))
}

impl Engine<'_> {
    /// Whether a collective comes first on a GPU before a GEMM, in the order that is simulated.
    fn collective_first(&self, id: CollectiveId, gpu: u32, gemm: u32) -> bool {
        let p = self.costs.device(gpu).scatter.first;
        let (Some(order), Some(p), LaunchMode::Stream) =
            (self.options.order, p, self.options.launch)
        else {
            return false;
        };
        let passes = self
            .whole_gemm(gemm)
            .is_some_and(|shape| !self.stays(shape));
        passes || order.first(id.index() as u32, gpu, p)
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
        self.scattered.met |= waits.is_some();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collective_is_first_in_its_share_of_orders() {
        let races = (0..40).flat_map(|race| (0..8).map(move |gpu| (race, gpu)));
        let all: Vec<bool> = races
            .flat_map(|(race, gpu)| {
                (0..Order::COUNT).map(move |at| Order(at).first(race, gpu, 0.3))
            })
            .collect();
        let share = all.iter().filter(|first| **first).count() as f64 / all.len() as f64;
        assert!((share - 0.3).abs() < 0.02, "{share}");
        let order = Order(3);
        assert!(order.first(1, 1, 1.0) && !order.first(1, 1, 0.0));
    }

    #[test]
    fn the_middle_half_counts() {
        assert_eq!(middle(&[9.0, 1.0, 2.0, 4.0]), 3.0);
        assert_eq!(middle(&[5.0]), 5.0);
        assert_eq!(middle(&[1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]), 1.5);
    }
}
