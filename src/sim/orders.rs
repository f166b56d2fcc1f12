//! Orders in which collectives and GEMMs take the SMs.
//!
//! In a graph GEMMs come first. In streams a collective and a GEMM that wait for the same end take the SMs of a GPU in either order, the
//! collective first in a share p of runs ([`Scatter::first`](crate::device::Scatter::first)), each GPU for
//! itself. One order decides the next races: a GEMM that came second is late for the next, and a collective
//! whose members differ holds SMs of one GPU until the other's are free. So times of such a schedule have
//! modes, and their mean is no mean of single races. A number of orders is simulated, each fixed beforehand,
//! and of their makespans the middle half counts.
//!
//! Who wins race r on GPU g in order i is a hash of the three, so that races are as good as independent.

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
    /// How many are simulated.
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

/// The mean of the middle half of these times.
fn middle(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    let quarter = times.len() / 4;
    let middle = &times[quarter..times.len() - quarter];
    middle.iter().sum::<f64>() / middle.len().max(1) as f64
}

/// Whether collectives and GEMMs may race.
pub(super) fn races(schedule: &Schedule, topology: &Topology, options: &Options) -> bool {
    options.streams == Streams::PerGpu
        && options.terms.contention
        && schedule.collectives.len() > 1
        && (0..topology.gpus.len() as u32).any(|gpu| topology.device(gpu).scatter.first.is_some())
}

/// The timeline of the order that is nearest to the middle of all, with the makespan of that middle.
pub(super) fn all(
    schedule: &Schedule,
    topology: &Topology,
    options: &Options,
) -> Result<Timeline, SimError> {
    // In a graph the GEMM is first.
    let orders = match options.launch {
        LaunchMode::Stream => Order::COUNT,
        LaunchMode::Graph => 1,
    };
    let timelines = (0..orders)
        .map(Order)
        .map(|order| {
            let order = Some(order);
            Engine::new(schedule, topology, Options { order, ..*options })?.run()
        })
        .collect::<Result<Vec<_>, _>>()?;
    let times: Vec<f64> = timelines.iter().map(|timeline| timeline.makespan).collect();
    let makespan = middle(&times);
    let far = |timeline: &Timeline| (timeline.makespan - makespan).abs();
    let nearest = timelines
        .into_iter()
        .min_by(|a, b| far(a).total_cmp(&far(b)));
    match nearest {
        Some(timeline) => Ok(Timeline {
            makespan,
            ..timeline
        }),
        None => Engine::new(schedule, topology, *options)?.run(),
    }
}

impl Engine<'_> {
    /// Whether a collective comes first on a GPU in the order that is simulated; `None`: the mean is.
    pub fn ordered(&self, id: CollectiveId, gpu: u32) -> Option<bool> {
        let order = self.options.order?;
        let p = self.costs.device(gpu).scatter.first?;
        // Blocks that come and go let a collective in after one tile.
        let mut gemms =
            (0..self.schedule.tasks.len() as u32).filter_map(|task| self.costs.gemm_shape(task));
        if gemms.next().is_some_and(|shape| !self.stays(shape)) {
            return Some(true);
        }
        let stream = self.options.launch == LaunchMode::Stream;
        Some(stream && order.first(id.index() as u32, gpu, p))
    }

    /// Whether a step waits because another comes first that waits for the same: a collective for a GEMM, or
    /// a GEMM for a collective. It becomes ready once more, behind it.
    pub fn lets_first(&mut self, task: u32, now: f64) -> bool {
        if self.options.order.is_none() {
            return false;
        }
        let Cause::Task(before) = self.spans[task as usize].cause else {
            return false;
        };
        let (gpu, before) = (self.costs.gpu(task), before.index() as u32);
        let collective = |task: u32| match self.schedule.tasks.get(task as usize)?.work {
            Work::Collective(id) => Some(id),
            _ => None,
        };
        let waits = match (collective(task), collective(before)) {
            // Behind a collective the next comes before a GEMM.
            (Some(id), Some(_)) => self.ordered(id, gpu) == Some(false),
            // Behind a GEMM the next comes before a collective.
            (None, None) if self.whole_gemm(task).is_some() => {
                let mut others = self.graph.successors(before);
                others.any(|place| {
                    let (step, _) = self.graph.successor(place);
                    let here = step < self.graph.tasks && self.costs.gpu(step) == gpu;
                    here && collective(step).is_some_and(|id| self.ordered(id, gpu) == Some(true))
                })
            }
            _ => false,
        };
        if !waits || !self.scattered.passed.insert(task) {
            return false;
        }
        let lane = self.costs.lane(gpu);
        let event = self.costs.hand_off(Via::Event, gpu, gpu);
        let later = match collective(task) {
            Some(_) => event,
            None => event - lane,
        };
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
