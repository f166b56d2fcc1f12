//! The selector: shape in, strategy out.
//!
//! Everything that does not depend on the shape is worked out by [`Selector::new`]. A choice then
//! evaluates `sequential`, the fusions that apply, and `interdecom` at the powers of two around
//! d* = √(C/A) and at those others whose bound says that they could be better still, and takes the
//! least: O(1), and no memory is allocated.

use super::Terms;
use super::closed::{self, Closed, REGISTRY};
use super::decomposition::MOST_PIECES;
use super::form::Longest;
use super::machine::{Machine, divisible_rows, has_rows};
use super::model::{Case, Model, Setting};
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
    closed: Closed,
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
    most_pieces: u32,
}

/// Decomposition comes last, so that most numbers of pieces are seen to be too slow at once.
const PICKS: [Pick; 5] = [
    Pick::Sequential,
    Pick::FusionAllToAll,
    Pick::FusionRing,
    Pick::FusionDoubleRing,
    Pick::InterDecom(1),
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
            let closed = REGISTRY.iter().find(|closed| closed.name == pick.name())?;
            let choice = strategy::parse(closed.name).ok().filter(|_| applies)?;
            let found = parameters.get(machine.name(), kind, machine.ranks(), closed.name);
            let overhead = found.filter(|_| terms.overhead);
            Some(Candidate {
                pick,
                closed: *closed,
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
            most_pieces: MOST_PIECES,
            machine: machine.clone(),
        }
    }

    /// The same with decompositions into at most `most` pieces.
    #[must_use]
    pub fn with_pieces_up_to(mut self, most: u32) -> Self {
        self.most_pieces = most.clamp(1, MOST_PIECES);
        self
    }

    /// The fastest strategy for the global shape `m × k` times `k × n`, and the fastest of the other
    /// strategies. Seconds are infinite where none applies: a shape that the ranks cannot share, or no
    /// links between them.
    pub fn choose(&self, m: u64, n: u64, k: u64) -> Selection {
        let mut selection = Selection {
            pick: Pick::Sequential,
            seconds: f64::INFINITY,
            runner_up: None,
            margin: 0.0,
        };
        let operator = Operator {
            kind: self.kind,
            shape: Shape::Gemm { m, n, k },
            tp: self.machine.ranks(),
            dtype: self.dtype,
        };
        if let Ok(net) = self.machine.network(self.terms)
            && operator.check().is_ok()
        {
            // On unlike GPUs the slowest counts, and the unsplit GEMM says which.
            let case = Case::new(&operator);
            let new = |gpu| Model::new(gpu, net, self.terms, self.dtype, case);
            let slowest = match self.machine.gpus.as_slice() {
                [] => return selection,
                [gpu] => gpu,
                [first, others @ ..] => others.iter().fold(first, |slowest, gpu| {
                    match new(gpu).whole.seconds > new(slowest).whole.seconds {
                        true => gpu,
                        false => slowest,
                    }
                }),
            };
            let model = Model::new(slowest, net, self.terms, self.dtype, case);
            self.consider(&model, &operator, &mut selection);
            // One launch of everything delays all alike.
            let launch = slowest.graph_launch(self.terms);
            selection.seconds += launch;
            if let Some((_, next)) = &mut selection.runner_up {
                *next += launch;
                selection.margin = *next / selection.seconds - 1.0;
            }
        }
        selection
    }

    /// All candidates that the rows suffice for.
    fn consider(&self, model: &Model<'_>, operator: &Operator, selection: &mut Selection) {
        for candidate in &self.candidates {
            let step = candidate.alpha + candidate.beta * model.case.message;
            let seconds = |setting: Setting| {
                let Longest { seconds, steps } = (candidate.closed.time)(model, setting)?;
                Some(seconds + steps * step)
            };
            let (pick, setting) = (candidate.pick, candidate.setting);
            if let Pick::InterDecom(_) = pick {
                let rows = divisible_rows(operator, setting);
                let found = rows
                    .and_then(|rows| self.pieces(model, rows, candidate, step, selection, seconds));
                if let Some((d, time)) = found {
                    selection.add(Pick::InterDecom(d), time);
                }
            } else if (pick == Pick::Sequential || has_rows(operator, pick.name(), setting))
                && let Some(time) = seconds(setting)
            {
                selection.add(pick, time);
            }
        }
    }

    /// The best power of two, if it is better than the second best so far. The neighbours of d* are
    /// tried first; the others only where they could still be better, since waves make the GEMM's
    /// curve uneven. The number of pieces divides `rows`.
    fn pieces(
        &self,
        model: &Model<'_>,
        rows: u64,
        candidate: &Candidate,
        step: f64,
        selection: &Selection,
        seconds: impl Fn(Setting) -> Option<f64>,
    ) -> Option<(u32, f64)> {
        let setting = |d| Setting {
            d,
            ..candidate.setting
        };
        // The largest power of two that divides them.
        let most = self.most_pieces.min(1 << rows.trailing_zeros().min(31));
        let mut best: Option<(u32, f64)> = None;
        // What a further candidate has to beat.
        let mut limit = selection.runner_up.map_or(f64::INFINITY, |(_, time)| time);
        let bound = closed::interdecom::Bound::new(model, candidate.setting, step)?;
        if most < 2 || bound.of_any() >= limit {
            return None;
        }
        let [below, above] = bound.form.neighbours();
        let others = (1..=most.ilog2()).map(|power| 1 << power);
        let others = others.filter(|d| *d != below && *d != above);
        for d in [below, above].into_iter().chain(others) {
            if !(2..=most).contains(&d) || bound.of(f64::from(d)) >= limit {
                continue;
            }
            let time = seconds(setting(d))?;
            if time < limit {
                (best, limit) = (Some((d, time)), time);
            }
        }
        best
    }
}

impl Selection {
    /// Takes a candidate into account; the earlier of equals stays.
    fn add(&mut self, pick: Pick, seconds: f64) {
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
