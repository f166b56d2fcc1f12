//! The selector: shape in, strategy out.
//!
//! Everything that does not depend on the shape is worked out by [`Selector::new`]. A choice then
//! evaluates `sequential`, the fusions that apply, and `interdecom` at the powers of two around
//! d* = √(C/A) and at those others whose bound says that they could be better still, and takes the
//! least: O(1), and no memory is allocated.
//!
//! A fusion in c pieces of every shard is a pipeline as a decomposition is: each of its chains is
//! A·c + B + C/c, with A the fixed cost of a copy and C what the first or last piece leaves open. So
//! the time is convex in c, and the numbers of pieces that comparisons try are evaluated until it
//! rises, or is that of the kernel's tiles or of the memory, which no number of pieces changes.

use super::Terms;
use super::closed::{self, Closed, REGISTRY};
use super::decomposition::MOST_PIECES;
use super::form::{Longest, greater};
use super::machine::{Machine, shard_pieces};
use super::model::{Case, Model, Setting};
use super::parameters::{Parameters, family};
use super::pick::{PICKS, Pick};
use crate::device::DType;
use crate::operator::{Kind, Operator, Shape};
use crate::strategy::{self, Choice};

/// What was chosen.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Selection {
    pub pick: Pick,
    /// Its predicted time \[s\].
    pub seconds: f64,
    /// The best of the other strategies and its time \[s\].
    pub runner_up: Option<(Pick, f64)>,
    /// How much longer the second best takes, relative to the best; 0 without one.
    pub margin: f64,
}

/// A candidate with its closed form.
#[derive(Clone, Debug)]
struct Candidate {
    pick: Pick,
    closed: Closed,
    /// By pieces of a shard; one for what the number of pieces is worked out for.
    offers: Vec<Offer>,
    /// Whether their overheads are the same, so that the time is convex in the pieces of a shard.
    convex: bool,
}

/// A setting with its fitted overhead.
#[derive(Copy, Clone, Debug)]
struct Offer {
    setting: Setting,
    /// Rows that a shard needs.
    rows: u64,
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
        let offer = |choice: &Choice| {
            let (name, setting) = (machine.name(), Setting::new(choice, kind));
            let found = parameters.get(name, kind, machine.ranks(), &family(choice));
            let overhead = found.filter(|_| terms.overhead);
            Offer {
                setting,
                rows: shard_pieces(choice.strategy().name(), setting),
                alpha: overhead.map_or(0.0, |o| o.alpha),
                beta: overhead.map_or(0.0, |o| o.beta),
            }
        };
        let candidates = PICKS.into_iter().filter_map(|pick| {
            let applies = match pick {
                Pick::Sequential => true,
                Pick::FusionDoubleRing(_) => pair,
                _ => !alone,
            };
            let closed = REGISTRY.iter().find(|closed| closed.name == pick.name())?;
            let choices = match pick {
                Pick::Sequential | Pick::InterDecom(_) => vec![strategy::parse(closed.name).ok()?],
                fusion => fusion.settings(kind),
            };
            let mut offers: Vec<Offer> = choices.iter().map(offer).collect();
            offers.sort_by_key(|offer| offer.setting.chunks);
            let same = |two: &[Offer]| (two[0].alpha, two[0].beta) == (two[1].alpha, two[1].beta);
            applies.then(|| Candidate {
                pick,
                closed: *closed,
                convex: offers.windows(2).all(same),
                offers,
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
        let (m, ..) = operator.mnk().unwrap_or_default();
        let ranks = u64::from(operator.tp.max(1));
        let (shard, left) = (m / ranks, m % ranks);
        let shard = if left == 0 { shard } else { 0 };
        for candidate in &self.candidates {
            let found = match (candidate.pick, candidate.offers.as_slice()) {
                (_, []) => None,
                (Pick::Sequential, [offer, ..]) => offer.seconds(candidate, model, offer.setting),
                (Pick::InterDecom(_), [offer, ..]) => {
                    let whole = self.kind == Kind::GemmAr && !offer.setting.direct;
                    let rows = if whole { m } else { shard };
                    self.pieces(model, rows, candidate, *offer, selection)
                }
                (_, offers) => fused(candidate, offers, model, shard, selection),
            };
            if let Some((pieces, time)) = found {
                selection.add(candidate.pick.with(pieces), time);
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
        offer: Offer,
        selection: &Selection,
    ) -> Option<(u32, f64)> {
        let setting = |d| Setting { d, ..offer.setting };
        // The largest power of two that divides them.
        let most = match rows {
            0 => return None,
            rows => self.most_pieces.min(1 << rows.trailing_zeros().min(31)),
        };
        let mut best: Option<(u32, f64)> = None;
        // What a further candidate has to beat.
        let mut limit = selection.limit();
        let step = offer.alpha + offer.beta * model.case.message;
        let bound = closed::interdecom::Bound::new(model, offer.setting, step)?;
        if most < 2 || bound.of_any() >= limit {
            return None;
        }
        let mut consider = |d: u32, limit: &mut f64| -> Option<()> {
            let (_, time) = offer.seconds(candidate, model, setting(d))?;
            if time < *limit {
                (best, *limit) = (Some((d, time)), time);
            }
            Some(())
        };
        let near = bound.form.neighbours();
        for d in near.into_iter().filter(|d| (2..=most).contains(d)) {
            if bound.of(f64::from(d)) < limit {
                consider(d, &mut limit)?;
            }
        }
        // The bound falls and then rises: beyond the limit on its way up, no further one is below.
        let mut before = f64::INFINITY;
        for d in (1..=most.ilog2()).map(|power| 1 << power) {
            let least = bound.of(f64::from(d));
            if least >= limit && least >= before {
                break;
            }
            before = least;
            if least < limit && !near.contains(&d) {
                consider(d, &mut limit)?;
            }
        }
        best
    }
}

/// The best setting of a fusion: whatever a shard's rows suffice for, until no other can be better
/// than the best, or than the second best strategy so far.
fn fused(
    candidate: &Candidate,
    offers: &[Offer],
    model: &Model<'_>,
    shard: u64,
    selection: &Selection,
) -> Option<(u32, f64)> {
    let mut best: Option<(u32, f64)> = None;
    let (mut floor, mut steps, mut limit) = (0.0, 0.0, selection.limit());
    for offer in offers {
        let step = offer.alpha + offer.beta * model.case.message;
        if shard < offer.rows || floor + steps * step >= limit {
            continue;
        }
        let longest = (candidate.closed.time)(model, offer.setting)?;
        let time = longest.seconds + longest.steps * step;
        (floor, steps) = (greater(floor, longest.floor), longest.steps);
        if best.is_none_or(|(_, least)| time < least) {
            best = Some((offer.setting.chunks, time));
            limit = if time < limit { time } else { limit };
        } else if candidate.convex {
            // From here on it rises.
            break;
        }
    }
    best
}

impl Offer {
    /// The number of pieces with the time in a setting that differs from the offer's in it at most.
    fn seconds(
        &self,
        candidate: &Candidate,
        model: &Model<'_>,
        setting: Setting,
    ) -> Option<(u32, f64)> {
        let step = self.alpha + self.beta * model.case.message;
        let Longest { seconds, steps, .. } = (candidate.closed.time)(model, setting)?;
        Some((setting.d, seconds + steps * step))
    }
}

impl Selection {
    /// What a further strategy has to beat to be named.
    fn limit(&self) -> f64 {
        self.runner_up.map_or(f64::INFINITY, |(_, time)| time)
    }

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
