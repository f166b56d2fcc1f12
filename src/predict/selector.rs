//! The selector: shape in, strategy out.
//!
//! Everything that does not depend on the shape is worked out by [`Selector::new`]. A choice then
//! evaluates `sequential`, the fusions that apply, and `interdecom` at the powers of two around
//! d* = √(C/A) and at those others whose bound says that they could be better still, and takes the
//! least: O(1), and no memory is allocated.
//!
//! A fusion in one setting is a few linear functions of what the shape adds (`chains`), of which the
//! greatest counts.

use super::Terms;
use super::closed::fusion::Kernel;
use super::closed::{interdecom, sequential};
use super::decomposition::MOST_PIECES;
use super::machine::Machine;
use super::model::{Case, Model, Setting};
use super::parameters::Parameters;
use super::pick::Pick;
use super::plan::{Offer, Plan};
use crate::device::DType;
use crate::operator::{Kind, Operator, Shape};

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

/// Chooses for one machine, operator and element type.
#[derive(Clone, Debug)]
pub struct Selector {
    machine: Machine,
    kind: Kind,
    dtype: DType,
    terms: Terms,
    plans: Vec<Plan>,
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
        Self {
            kind,
            dtype,
            terms: *terms,
            plans: Plan::all(machine, kind, terms, parameters),
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
        let Ok(net) = self.machine.network(self.terms) else {
            return selection;
        };
        if !operator.is_whole() {
            return selection;
        }
        let case = Case::new(&operator);
        let curve = |plan: &Plan| self.machine.gpus[plan.gpu].curve(self.dtype);
        // On unlike GPUs the slowest counts, and the unsplit GEMM says which.
        let seconds = |plan: &Plan| {
            let column = case.column(curve(plan));
            Model::new(&plan.site, net, column.as_ref(), case)
                .whole
                .seconds
        };
        let plan = match self.plans.as_slice() {
            [] => return selection,
            [plan] => plan,
            [first, others @ ..] => others.iter().fold(first, |slowest, plan| {
                match seconds(plan) > seconds(slowest) {
                    true => plan,
                    false => slowest,
                }
            }),
        };
        let Some(curve) = curve(plan) else {
            return selection;
        };
        let [_, n, k] = case.gemm;
        let column = curve.at(n, k);
        let model = Model::new(&plan.site, net, Some(&column), case);
        self.consider(plan, &model, m, &mut selection);
        // One launch of everything delays all alike.
        selection.seconds += plan.launch;
        if let Some((_, next)) = &mut selection.runner_up {
            *next += plan.launch;
            selection.margin = *next / selection.seconds - 1.0;
        }
        selection
    }

    /// All candidates that the rows suffice for.
    #[inline(always)]
    fn consider(&self, plan: &Plan, model: &Model<'_>, m: u64, selection: &mut Selection) {
        let kernel = Kernel::new(model).busy();
        let ranks = u64::from(plan.site.n.max(1));
        let (shard, left) = (m / ranks, m % ranks);
        let shard = if left == 0 { shard } else { 0 };
        for candidate in &plan.candidates {
            let found = match (candidate.pick, candidate.offers.as_slice()) {
                (_, []) => None,
                (Pick::Sequential, [offer, ..]) => sequential::form(model, offer.setting)
                    .map(|form| (1, offer.seconds(model, form))),
                (Pick::InterDecom(_), [offer, ..]) => {
                    let whole = self.kind == Kind::GemmAr && !offer.setting.direct;
                    let rows = if whole { m } else { shard };
                    self.pieces(model, rows, offer, selection)
                }
                (_, offers) => fused(offers, model, &kernel, shard, selection.limit()),
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
        offer: &Offer,
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
        let ends = interdecom::Ends::new(model, offer.setting)?;
        let bound = interdecom::Bound::new(model, offer.setting, &ends, step);
        if most < 2 || bound.of_any() >= limit {
            return None;
        }
        let mut consider = |d: u32, limit: &mut f64| -> Option<()> {
            let piece = (f64::from(d), model.case.gemm[0] / u64::from(d));
            if bound.exceeds(model, piece, *limit) {
                return Some(());
            }
            let time = offer.seconds(model, interdecom::form(model, setting(d))?);
            if time < *limit {
                (best, *limit) = (Some((d, time)), time);
            }
            Some(())
        };
        let near = ends.textbook(model, step).neighbours();
        for d in near.into_iter().filter(|d| (2..=most).contains(d)) {
            if bound.of(f64::from(d)) < limit {
                consider(d, &mut limit)?;
            }
        }
        let most = most.min(bound.most(limit));
        let mut d = 2;
        while d <= most {
            if !near.contains(&d) && bound.of(f64::from(d)) < limit {
                consider(d, &mut limit)?;
            }
            d *= 2;
        }
        best
    }
}

/// The best setting of a fusion among those that a shard's rows suffice for, if it is better than the
/// second best strategy so far.
#[inline(always)]
fn fused(
    offers: &[Offer],
    model: &Model<'_>,
    kernel: &Kernel,
    shard: u64,
    mut limit: f64,
) -> Option<(u32, f64)> {
    let mut best = None;
    for offer in offers.iter().filter(|offer| shard >= offer.rows) {
        let Some(quick) = &offer.fused else {
            continue;
        };
        let more = quick.steps * (offer.alpha + offer.beta * model.case.message);
        let seconds = quick.seconds(kernel, limit - more) + more;
        if seconds < limit {
            limit = seconds;
            best = Some((offer.setting.chunks, limit));
        }
    }
    best
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
