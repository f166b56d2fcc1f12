//! The strategies: operator × topology → [`Schedule`].
//!
//! A strategy is one file here and one line in [`registry`]; `docs/strategies.md` has a row for
//! each, and `tests/strategies.rs` fails until the row and a golden schedule exist. To add one:
//! copy the file nearest to it, implement [`Strategy`], add the line, run the tests.
//!
//! A strategy knows nothing of time. It may look at the topology for what is *connected* best (the
//! rings it can close, the groups it falls into), never for how long something takes.
//!
//! ```
//! use duet::device::DType;
//! use duet::operator::{Kind, Operator};
//! use duet::strategy;
//! use duet::topology::build::Builder;
//! let mut b = Builder::new("switch-4");
//! let gpus = b.gpus(4);
//! let switch = b.switch("s");
//! for gpu in gpus {
//!     b.link(gpu, switch, "nvlink", 50e9, 500e-9);
//! }
//! let topology = b.build();
//! let op = Operator::gemm(Kind::AgGemm, 64, 32, 16, 4, DType::Bf16)?;
//! let schedule = strategy::parse("sequential")?.build(&op, &topology, &[0, 1, 2, 3])?;
//! assert_eq!(schedule.collectives.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod direct;
mod direct_steps;
mod layout;
mod library;
mod params;
mod parse;
mod ring;
mod ring_steps;
mod rings;
mod sequential;

pub use params::{Param, Params, Value, Values};
pub use parse::{StrategyError, parse};

use crate::operator::{Kind, Operator};
use crate::schedule::{Mover, Rank, Schedule, Via};
use crate::topology::Topology;

/// A way of performing operators.
pub trait Strategy: std::fmt::Debug + Sync {
    /// The name on the command line, e.g. `fusion-ring`.
    fn name(&self) -> &'static str;

    /// What it does, in one or two sentences.
    fn summary(&self) -> &'static str;

    /// Its parameters with their defaults.
    fn params(&self) -> &'static [Param] {
        &[]
    }

    /// Whether it performs operators of this kind.
    fn applies(&self, kind: Kind) -> bool;

    /// The parameter settings that a comparison tries; each is written as on the command line.
    fn tried(&self) -> &'static [&'static str] {
        &[""]
    }

    /// Writes the schedule of `job.operator`.
    ///
    /// # Errors
    /// [`Skip`] when this operator on this machine cannot be performed so.
    fn build(&self, job: &Job<'_>) -> Result<Schedule, Skip>;
}

/// All strategies, in the order in which comparisons list equals.
pub fn registry() -> &'static [&'static dyn Strategy] {
    &[
        &sequential::Sequential,
        &library::Library,
        &ring::Ring,
        &direct::Direct,
    ]
}

/// Why a strategy was not tried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Skip {
    pub reason: String,
}

impl Skip {
    fn because(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }
}

/// A strategy with its parameters; prints as it is written on the command line.
#[derive(Clone, Debug)]
pub struct Choice {
    strategy: &'static dyn Strategy,
    params: Params,
}

impl PartialEq for Choice {
    fn eq(&self, other: &Self) -> bool {
        self.strategy.name() == other.strategy.name() && self.params == other.params
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = self.strategy.name().to_owned();
        for (i, setting) in self.params.shown().enumerate() {
            text.push(if i == 0 { ':' } else { ',' });
            text.push_str(&setting);
        }
        f.pad(&text)
    }
}

/// What a strategy is asked to perform; the operator is checked and the placement complete.
#[derive(Copy, Clone, Debug)]
pub struct Job<'a> {
    pub operator: &'a Operator,
    pub topology: &'a Topology,
    /// Rank → GPU number.
    pub placement: &'a [u32],
    pub params: &'a Params,
    /// The choice as written, the schedule's name.
    pub name: &'a str,
}

impl Job<'_> {
    fn ranks(&self) -> usize {
        self.placement.len()
    }
}

/// Schedules beyond this many tasks are not built; their simulation would not fit a memory.
const MOST_TASKS: u64 = 1 << 24;

/// Refuses a schedule of `tasks` tasks if that is too many.
fn affordable(tasks: u64) -> Result<(), Skip> {
    if tasks > MOST_TASKS {
        return Err(Skip::because(format!(
            "it would take {tasks} tasks, more than {MOST_TASKS}"
        )));
    }
    Ok(())
}

impl Choice {
    /// The strategy.
    pub fn strategy(&self) -> &'static dyn Strategy {
        self.strategy
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The schedule of `operator` with rank r on GPU `placement[r]`.
    ///
    /// # Errors
    /// [`Skip`] with the reason when the strategy does not apply.
    pub fn build(
        &self,
        operator: &Operator,
        topology: &Topology,
        placement: &[u32],
    ) -> Result<Schedule, Skip> {
        operator
            .check()
            .map_err(|error| Skip::because(error.to_string()))?;
        if placement.len() != operator.tp as usize {
            return Err(Skip::because(format!(
                "{} ranks are placed, but the operator has {}",
                placement.len(),
                operator.tp
            )));
        }
        let gpus = topology.gpus.len();
        if let Some(gpu) = placement.iter().find(|&&gpu| gpu as usize >= gpus) {
            return Err(Skip::because(format!(
                "GPU {gpu} is none of {}'s {gpus}",
                topology.name
            )));
        }
        if !self.strategy.applies(operator.kind) {
            return Err(Skip::because(format!(
                "`{}` does not perform {}",
                self.strategy.name(),
                operator.kind
            )));
        }
        self.strategy.build(&Job {
            operator,
            topology,
            placement,
            params: &self.params,
            name: &self.to_string(),
        })
    }
}

/// Everything that a comparison tries for `operator`.
pub fn candidates(operator: &Operator) -> Vec<Choice> {
    registry()
        .iter()
        .filter(|strategy| strategy.applies(operator.kind))
        .flat_map(|strategy| {
            strategy.tried().iter().filter_map(|setting| {
                let params = parse::settings(*strategy, setting).ok()?;
                Some(Choice {
                    strategy: *strategy,
                    params,
                })
            })
        })
        .collect()
}

/// How the end of a task of `from` is made known to a stream of `to`.
fn hand_over(from: Rank, to: Rank) -> Via {
    if from == to {
        Via::Event
    } else {
        Via::StreamFlag
    }
}

/// How a transfer of `mover` waits for another transfer or for a tile group of a running kernel:
/// a copy kernel spins on the flag, a copy engine's stream waits for it.
fn opens(mover: Mover) -> Via {
    match mover {
        Mover::CopyEngine => Via::StreamFlag,
        Mover::Sm { .. } => Via::KernelFlag,
    }
}
