//! How an experiment is measured on real GPUs: `measure: { rounds: 60, warm: 0.4 ms, seed: 1 }`.

use std::time::Duration;

use crate::input::yaml::Node;
use crate::input::{Diagnostics, Fields};
use crate::units::Seconds;

/// Most rounds.
const ROUNDS: u64 = 10_000;
/// Longest heating \[s\].
const WARM: f64 = 1.0;

/// How often and how.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Rounds in which every strategy of a group is timed once.
    pub rounds: u32,
    /// How long every GPU multiplies before each measurement, after a rest; zero: neither.
    pub warm: Duration,
    /// Of the inputs and of the order of groups.
    pub seed: u64,
}

impl Default for Measure {
    fn default() -> Self {
        Self {
            rounds: 60,
            warm: Duration::from_micros(400),
            seed: 1,
        }
    }
}

/// Reads the key; mistakes are pushed.
pub(super) fn read(node: &Node, found: &mut Diagnostics) -> Option<Measure> {
    let usual = Measure::default();
    let mut fields = Fields::of(node, "the measurement", found)?;
    let rounds = fields.get("rounds");
    let rounds = rounds.map(|node| node.whole("rounds", 1, ROUNDS, found));
    let warm = fields.get("warm").map(|node| {
        let warm = node.parse::<Seconds>("warm", found)?.get();
        if warm > WARM {
            let mistake = node.wrong("`warm` is more than a second", "too long");
            found.push(mistake.help("heat for some milliseconds at most, e.g. `0.4 ms`"));
            return None;
        }
        Some(Duration::from_secs_f64(warm))
    });
    let seed = fields.get("seed");
    let seed = seed.map(|node| node.whole("seed", 0, u64::MAX, found));
    fields.finish(found);
    Some(Measure {
        rounds: rounds.map_or(Some(usual.rounds), |rounds| u32::try_from(rounds?).ok())?,
        warm: warm.unwrap_or(Some(usual.warm))?,
        seed: seed.unwrap_or(Some(usual.seed))?,
    })
}
