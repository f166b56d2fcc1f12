//! The selector: shape in, strategy out.
//!
//! Everything that does not depend on the shape is worked out by [`Selector::new`]. A choice then
//! evaluates `sequential`, the fusions that apply, and `interdecom` at the best pieces around
//! d* = √(C/A), and takes the least: O(1), and no memory is allocated.

use super::Terms;
use super::closed::{self, Closed, REGISTRY};
use super::machine::{Machine, model};
use super::model::{Case, Setting};
use super::parameters::Parameters;
use crate::device::DType;
use crate::operator::{Kind, Operator, Shape};
use crate::strategy;

/// A strategy that the selector can choose; prints as it is written on the command line.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Pick {
    Sequential,
    /// With this many pieces.
    InterDecom(u32),
    FusionAllToAll,
    FusionRing,
    FusionDoubleRing,
}

impl Pick {
    /// The strategy's name without parameters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::InterDecom(_) => "interdecom",
            Self::FusionAllToAll => "fusion-alltoall",
            Self::FusionRing => "fusion-ring",
            Self::FusionDoubleRing => "fusion-double-ring",
        }
    }
}

impl std::fmt::Display for Pick {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::InterDecom(d) => f.pad(&format!("interdecom:d={d}")),
            other => f.pad(other.name()),
        }
    }
}

/// What was chosen.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Selection {
    pub pick: Pick,
    /// Its predicted time \[s\].
    pub seconds: f64,
    /// The second best and its time \[s\].
    pub runner_up: Option<(Pick, f64)>,
    /// How much longer the second best takes, relative to the best; 0 without one.
    pub margin: f64,
}

/// A candidate with its closed form, settings and fitted overhead.
#[derive(Copy, Clone, Debug)]
struct Candidate {
    pick: Pick,
    form: Closed,
    setting: Setting,
    alpha: f64,
    beta: f64,
}

/// Chooses for one machine, operator and element type.
#[derive(Clone, Debug)]
pub struct Selector {
    machine: Machine,
    kind: Kind,
    dtype: DType,
    terms: Terms,
    candidates: Vec<Candidate>,
}

const PICKS: [Pick; 5] = [
    Pick::Sequential,
    Pick::InterDecom(1),
    Pick::FusionAllToAll,
    Pick::FusionRing,
    Pick::FusionDoubleRing,
];

impl Selector {
    /// A selector for operators of a `kind` with a GEMM.
    pub fn new(
        machine: &Machine,
        kind: Kind,
        dtype: DType,
        terms: &Terms,
        parameters: &Parameters,
    ) -> Self {
        let pair = machine.network(*terms).is_ok_and(|net| net.pair.is_ok());
        let alone = machine.network(*terms).is_err();
        let candidates = PICKS.into_iter().filter_map(|pick| {
            let applies = match pick {
                Pick::Sequential => true,
                Pick::FusionDoubleRing => pair,
                _ => !alone,
            };
            let (name, form) = REGISTRY.iter().find(|(name, _)| *name == pick.name())?;
            let choice = strategy::parse(name).ok().filter(|_| applies)?;
            let found = parameters.get(machine.name(), kind, machine.ranks(), name);
            let overhead = found.filter(|_| terms.overhead);
            Some(Candidate {
                pick,
                form: *form,
                setting: Setting::new(&choice, kind),
                alpha: overhead.map_or(0.0, |o| o.alpha),
                beta: overhead.map_or(0.0, |o| o.beta),
            })
        });
        Self {
            kind,
            dtype,
            terms: *terms,
            candidates: candidates.collect(),
            machine: machine.clone(),
        }
    }

    /// The fastest strategy for the global shape `m × k` times `k × n`; rows that the ranks cannot
    /// share leave `sequential`.
    pub fn choose(&self, m: u64, n: u64, k: u64) -> Selection {
        let operator = Operator {
            kind: self.kind,
            shape: Shape::Gemm { m, n, k },
            tp: self.machine.ranks(),
            dtype: self.dtype,
        };
        let case = Case::new(&operator);
        let mut best = Selection {
            pick: Pick::Sequential,
            seconds: f64::INFINITY,
            runner_up: None,
            margin: 0.0,
        };
        let ranks = u64::from(operator.tp).max(1);
        let Ok(net) = self.machine.network(self.terms) else {
            return best;
        };
        for candidate in &self.candidates {
            let step = candidate.alpha + candidate.beta * case.message;
            let seconds = |setting: Setting| {
                let mut slowest = 0f64;
                for gpu in &self.machine.gpus {
                    let model = model(gpu, net, self.terms, &operator, case);
                    let form = (candidate.form)(&model, setting)?;
                    slowest = slowest.max(form.seconds() + form.steps * step);
                }
                Some(slowest)
            };
            if let Pick::InterDecom(_) = candidate.pick {
                let gpu = &self.machine.gpus[0];
                let model = model(gpu, net, self.terms, &operator, case);
                let Some(form) = closed::interdecom::decomposition(&model, candidate.setting, step)
                else {
                    continue;
                };
                let mut last = 1;
                for d in form.neighbours() {
                    // The largest power of two that divides the rows.
                    let d = d.min(1 << (m / ranks).trailing_zeros().min(12));
                    if d > last {
                        last = d;
                        let setting = Setting {
                            d,
                            ..candidate.setting
                        };
                        if let Some(seconds) = seconds(setting) {
                            best.consider(Pick::InterDecom(d), seconds);
                        }
                    }
                }
            } else if m.is_multiple_of(ranks)
                && let Some(seconds) = seconds(candidate.setting)
            {
                best.consider(candidate.pick, seconds);
            }
        }
        best.margin = best
            .runner_up
            .map_or(0.0, |(_, next)| next / best.seconds - 1.0);
        best
    }
}

impl Selection {
    /// Takes a candidate into account; the earlier of equals stays.
    fn consider(&mut self, pick: Pick, seconds: f64) {
        if seconds < self.seconds {
            if self.seconds.is_finite() {
                self.runner_up = Some((self.pick, self.seconds));
            }
            (self.pick, self.seconds) = (pick, seconds);
        } else if self.runner_up.is_none_or(|(_, next)| seconds < next) {
            self.runner_up = Some((pick, seconds));
        }
    }
}
