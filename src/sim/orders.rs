//! Orders in which collectives and GEMMs take the SMs.
//!
//! In streams a collective and a GEMM that wait for the same end take the SMs of a GPU in either order, the
//! collective first in a share p of runs ([`Scatter::first`](crate::device::Scatter::first)), each GPU for
//! itself. One order decides the next races: a GEMM that came second is late for the next, and a collective
//! whose members differ holds SMs of one GPU until the other's are free. So times of such a schedule have
//! modes, and the mean of each race is no mean of them. A number of orders is drawn, each fixed beforehand. Orders
//! in which all races that took place fell alike are one *outcome*, which is simulated once and happens in a known
//! share of runs:
//!
//! ```text
//! share = Π p where the collective was first, 1 − p where the GEMM was        races that took place, each GPU's
//! ```
//!
//! A measured median lies in one mode or in another where they are about as frequent, so that what is expected is
//! between: the harmonic mean of the middle half of all times, which is as far, relative to what is measured, from
//! either of two modes. The timeline is that of the outcome nearest to it, stretched to that time.
//!
//! Who wins race r on GPU g in order i is a hash of the three, so that races are as good as independent. In a graph
//! GEMMs come first. A GEMM whose blocks come and go lets a collective in after one tile, as if it were first.

use super::engine::Engine;
use super::{LaunchMode, Options, SimError, Streams};
use crate::schedule::Schedule;
use crate::timeline::Timeline;
use crate::topology::Topology;

/// One of the orders, by its number.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Order(pub u32);

impl Order {
    /// How many are drawn at most. Three races on each of two GPUs have 64 outcomes or fewer, of which they find 63.
    pub const COUNT: u32 = 255;

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

/// Draws end when the outcomes found happen in this share of runs; assumed to be enough.
const ENOUGH: f64 = 0.99;

/// A race on a GPU, and who won it.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Race {
    /// The collective.
    pub id: u32,
    pub gpu: u32,
    /// How often the collective is first [0–1].
    pub p: f64,
    /// Whether it was.
    pub first: bool,
}

/// What came of an order.
struct Outcome {
    order: Order,
    /// Races that took place, each once.
    races: Vec<Race>,
    /// When all was done [s].
    time: f64,
}

impl Outcome {
    /// In what share of runs the races fall like this [0–1].
    fn share(&self) -> f64 {
        let falls = |race: &Race| if race.first { race.p } else { 1.0 - race.p };
        self.races.iter().map(falls).product()
    }

    /// Whether the same comes of another order.
    fn is_of(&self, order: Order) -> bool {
        (self.races.iter()).all(|race| order.first(race.id, race.gpu, race.p) == race.first)
    }
}

/// The harmonic mean of the middle half of times, each with its share of all.
fn middle(mut times: Vec<(f64, f64)>) -> f64 {
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: f64 = times.iter().map(|(_, share)| share).sum();
    let (from, to) = (0.25 * all, 0.75 * all);
    let (mut before, mut inverse) = (0.0_f64, 0.0);
    for (time, share) in times {
        inverse += ((before + share).min(to) - before.max(from)).max(0.0) / time;
        before += share;
    }
    (to - from) / inverse
}

/// The timeline of the outcome nearest to the middle of all, stretched to it.
pub(super) fn expected(
    schedule: &Schedule,
    topology: &Topology,
    options: &Options,
) -> Result<Timeline, SimError> {
    let run = |order: Order, record: bool| -> Result<(Timeline, Outcome), SimError> {
        let options = Options {
            order: Some(order),
            record,
            ..*options
        };
        let (timeline, races) = Engine::new(schedule, topology, options)?.run_noting()?;
        let outcome = Outcome {
            order,
            races,
            time: timeline.makespan,
        };
        Ok((timeline, outcome))
    };
    let (timeline, outcome) = run(Order(0), options.record)?;
    if outcome.races.is_empty() || options.launch == LaunchMode::Graph {
        return Ok(timeline);
    }
    let mut found = outcome.share();
    let mut outcomes = vec![outcome];
    for order in (1..Order::COUNT).map(Order) {
        if found >= ENOUGH {
            break;
        }
        if !outcomes.iter().any(|outcome| outcome.is_of(order)) {
            let (_, outcome) = run(order, false)?;
            found += outcome.share();
            outcomes.push(outcome);
        }
    }
    let times = (outcomes.iter()).map(|outcome| (outcome.time, outcome.share()));
    let middle = middle(times.collect());
    let far = |outcome: &&Outcome| (outcome.time - middle).abs();
    let nearest = (outcomes.iter())
        .min_by(|a, b| far(a).total_cmp(&far(b)))
        .map_or(Order(0), |outcome| outcome.order);
    let timeline = match nearest {
        Order(0) => timeline,
        other => run(other, options.record)?.0,
    };
    let factor = middle / timeline.makespan;
    Ok(timeline.stretched(factor))
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

    /// 1 and 2 as often: 2 · 1 · 2 / (1 + 2).
    #[test]
    fn the_middle_half_counts() {
        let alike = |times: &[f64]| middle(times.iter().map(|&time| (time, 0.2)).collect());
        assert!((alike(&[9.0, 1.0, 2.0, 4.0]) - 8.0 / 3.0).abs() < 1e-12);
        assert!((alike(&[5.0]) - 5.0).abs() < 1e-12);
        let two = alike(&[1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]);
        assert!((two - 4.0 / 3.0).abs() < 1e-12);
        // As far from either, relative to it.
        assert!(((two / 1.0 - 1.0) - (1.0 - two / 2.0)).abs() < 1e-12);
        // Half of the middle half of shares 1/2, 3/8 and 1/8.
        let shares = vec![(2.0, 0.375), (1.0, 0.5), (8.0, 0.125)];
        assert!((middle(shares) - 4.0 / 3.0).abs() < 1e-12);
    }

    /// Two races, the second of which takes place where the collective lost the first: every order has one
    /// outcome, and shares are p, (1 − p) · q and (1 − p) · (1 − q).
    #[test]
    fn outcomes_are_a_whole_and_every_order_has_one() {
        let race = |id, p, first| Race {
            id,
            gpu: 1,
            p,
            first,
        };
        let outcomes = [
            vec![race(1, 0.4, true)],
            vec![race(1, 0.4, false), race(2, 0.7, true)],
            vec![race(1, 0.4, false), race(2, 0.7, false)],
        ]
        .map(|races| Outcome {
            order: Order(0),
            races,
            time: 1.0,
        });
        let shares = outcomes.each_ref().map(Outcome::share);
        for (share, closed) in shares.iter().zip([0.4, 0.42, 0.18]) {
            assert!((share - closed).abs() < 1e-12, "{shares:?}");
        }
        for order in (0..Order::COUNT).map(Order) {
            let of = outcomes.iter().filter(|outcome| outcome.is_of(order));
            assert_eq!(of.count(), 1, "{order:?}");
        }
    }
}
