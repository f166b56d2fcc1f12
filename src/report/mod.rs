//! Tables, JSON, CSV, traces and drawings of results; computes no new numbers.
//!
//! The structs here are what the renderers show: plain numbers in seconds and bytes, already
//! computed by the rooms to the left. [`table`] draws for people, [`json`] and [`csv`] write the
//! stable formats of `docs/output.md`, [`trace`] writes what ui.perfetto.dev opens.

pub mod csv;
pub mod experiment;
pub mod figures;
pub mod fit;
#[cfg(test)]
mod fixture;
pub mod grid;
pub mod json;
pub mod list;
pub mod names;
pub mod plot;
pub mod png;
pub mod prediction;
pub mod sensitivity;
pub mod simulation;
pub mod table;
pub mod topology;
pub mod trace;
pub mod tune;
pub mod validation;

pub use crate::experiment::judge::Verification;
use crate::operator::Operator;
use crate::timeline::Term;

/// How sure a predicted time is.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedError {
    /// Expected relative error of a time; `None` where nothing was validated.
    pub relative: Option<f64>,
    /// Where it comes from.
    pub basis: String,
}

/// One strategy on one topology; times in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub strategy: String,
    pub makespan: f64,
    /// Makespan with communication free.
    pub gemm_only: f64,
    /// Makespan with computation free.
    pub comm_only: f64,
    /// `makespan − gemm_only`: what communication adds.
    pub exposed: f64,
    /// Effective communication time: makespan − time of the fastest unsplit GEMM.
    pub ect: f64,
    /// `1 − ECT / ECT of sequential`; `None` where sequential's is not positive or missing.
    pub overlap_efficiency: Option<f64>,
    /// Sequential's makespan over this one's; `None` where there is no sequential schedule.
    pub speedup: Option<f64>,
    /// For a bare collective: algbw and busbw as nccl-tests defines them [B/s].
    pub bandwidth: Option<(f64, f64)>,
    pub tasks: usize,
    /// What bounds most of the critical path.
    pub bottleneck: String,
    pub verification: Verification,
    /// Terms of the explanation; they add up to the makespan.
    pub terms: Vec<(Term, f64)>,
    /// One sentence of why.
    pub why: String,
}

/// A strategy that was not simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    pub strategy: String,
    pub reason: String,
}

/// What the closed forms choose, to be held against the simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Selected {
    pub strategy: String,
    /// Its predicted time \[s\].
    pub predicted: f64,
    pub runner_up: Option<String>,
    /// How much longer the runner-up is predicted to take, relative to the choice.
    pub margin: Option<f64>,
}

/// All strategies on one topology.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub topology: String,
    pub operator: Operator,
    /// `stream` or `graph`.
    pub launch: String,
    /// Fastest unsplit GEMM of one rank \[s\]; 0 for a bare collective.
    pub unsplit_gemm: f64,
    /// No strategy can be faster \[s\].
    pub lower_bound: Option<f64>,
    pub expected_error: ExpectedError,
    /// Ascending by makespan; equal ones in the order of the registry.
    pub results: Vec<Outcome>,
    pub skipped: Vec<Skipped>,
    /// The closed forms' choice; `None` where they do not choose, and the fastest is taken.
    pub selected: Option<Selected>,
}

impl Comparison {
    /// How much longer the selected strategy takes than the fastest, relative to the fastest; `None`
    /// where it was not simulated.
    pub fn regret(&self) -> Option<f64> {
        let selected = self.selected.as_ref()?;
        let chosen = (self.results.iter()).find(|outcome| outcome.strategy == selected.strategy)?;
        let fastest = self.results.first()?.makespan;
        (fastest > 0.0).then(|| chosen.makespan / fastest - 1.0)
    }

    /// How far the second is behind the best, relative to the best; `None` with fewer than two.
    pub fn margin(&self) -> Option<f64> {
        match self.results.as_slice() {
            [best, second, ..] if best.makespan > 0.0 => {
                let margin = second.makespan / best.makespan - 1.0;
                // Sums of the same times in another order are the same time.
                Some(if margin < 1e-12 { 0.0 } else { margin })
            }
            _ => None,
        }
    }
}
