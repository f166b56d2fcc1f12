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
//! let choice = strategy::parse("interdecom:d=2")?;
//! let schedule = choice.build(&op, &topology, &[0, 1, 2, 3])?;
//! assert_eq!(schedule.collectives.len(), 2); // one all-gather per chunk
//! let skip = strategy::parse("interdecom:d=32")?.build(&op, &topology, &[0, 1, 2, 3]);
//! assert_eq!(skip.unwrap_err().reason, "m = 64 cannot be cut into 32 chunks for 4 ranks (128 equal pieces)");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod direct;
mod direct_steps;
mod double_ring;
mod fused;
mod fused_ring;
mod fusion_alltoall;
mod fusion_double_ring;
mod fusion_ring;
mod groups;
mod hierarchical;
mod interdecom;
mod layout;
mod library;
mod params;
mod parse;
mod ring;
mod ring_accumulate;
mod ring_steps;
mod rings;
mod sequential;
mod site;
mod tree;

pub use params::{Param, Params, Value, Values};
pub use parse::{StrategyError, parse};
pub use site::Site;

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

    /// The parameter settings that a comparison of operators of this kind tries; each is written as
    /// on the command line.
    fn tried(&self, _kind: Kind) -> &'static [&'static str] {
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
        &interdecom::InterDecom,
        &fusion_alltoall::FusionAllToAll,
        &fusion_ring::FusionRing,
        &fusion_double_ring::FusionDoubleRing,
        &ring_accumulate::RingAccumulate,
        &library::Library,
        &ring::Ring,
        &double_ring::DoubleRing,
        &direct::Direct,
        &tree::Tree,
        &hierarchical::Hierarchical,
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
    pub site: &'a Site<'a>,
    pub params: &'a Params,
    /// The choice as written, the schedule's name.
    pub name: &'a str,
}

impl Job<'_> {
    fn ranks(&self) -> usize {
        self.site.placement.len()
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
        self.build_at(operator, &Site::new(topology, placement.to_vec()))
    }

    /// The same on a site; rings and groups are searched for once per site, so share it when
    /// several strategies are built.
    ///
    /// # Errors
    /// [`Skip`] with the reason when the strategy does not apply.
    pub fn build_at(&self, operator: &Operator, site: &Site<'_>) -> Result<Schedule, Skip> {
        operator
            .check()
            .map_err(|error| Skip::because(error.to_string()))?;
        site.check(operator.tp)?;
        if !self.strategy.applies(operator.kind) {
            return Err(Skip::because(format!(
                "`{}` does not perform {}",
                self.strategy.name(),
                operator.kind
            )));
        }
        self.strategy.build(&Job {
            operator,
            site,
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
            strategy.tried(operator.kind).iter().filter_map(|setting| {
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
        Mover::Sm { .. } | Mover::Epilogue | Mover::Loader => Via::KernelFlag,
    }
}
