//! `interdecom`: d operators of m/d rows, the collective of one beside the GEMM of another.
//!
//! With c the GEMM of a piece and t its collective,
//!
//! ```text
//! AG+GEMM           compute: t + (d − 1)·c' + c        links: d·t + c
//! GEMM+RS, GEMM+AR  compute: c + (d − 1)·c' + t        links: c + d·t
//! ```
//!
//! and the host hands over d pieces one after another.
//!
//! c' is the GEMM beside a collective: on the SMs it leaves, for as long as it runs (GEMM+RS keeps
//! them free throughout), and with the memory bandwidth it leaves. Without the extensions
//! c = c' = Tc/d and t = Tm/d: `T(d) = max(Tc, Tm) + min(Tc, Tm)/d`, see
//! [`crate::predict::Decomposition`].

use crate::operator::Kind;
use crate::predict::Decomposition;
use crate::predict::form::{Pipeline, greater};
use crate::predict::model::{Collective, Model, Setting};

pub(in crate::predict) fn form<P: Pipeline>(model: &Model<'_>, setting: Setting) -> Option<P> {
    let d = f64::from(setting.d);
    let (case, c) = (&model.case, model.costs);
    let piece = piece(model, setting)?;
    let (lane, event, kernel) = (c.lane.get(), c.event.get(), c.kernel_start.get());
    let form = P::new(d - 1.0);
    let first = c.submit_kernel.get();
    let links = if setting.direct { 0.0 } else { lane };
    let last = kernel + piece.gemm;
    let (between, beside) = (piece.collective + links, lane + kernel + piece.beside);
    let form = if case.kind == Kind::AgGemm {
        let start = first + piece.collective + event;
        let tail = piece.collective + event + last;
        form.with("compute", start, (d - 1.0) * beside, d - 1.0, last)
            .with("links", first, (d - 1.0) * between, d - 1.0, tail)
    } else {
        let start = first + last;
        let (work, tail) = ((d - 1.0) * beside, event + piece.collective);
        form.with("compute", start, work, d - 1.0, tail).with(
            "links",
            start + event,
            (d - 1.0) * between,
            d - 1.0,
            piece.collective,
        )
    };
    if !model.submits_calls() {
        return Some(form);
    }
    // The host hands over every piece's kernels or copies with their waits and signals.
    let copies = if setting.direct {
        case.ranks() - 1.0
    } else {
        0.0
    };
    let kernels = if setting.direct { 1.0 } else { 2.0 };
    let each = model.submits(copies, kernels, 2.0 * copies.max(1.0));
    let after = if case.kind == Kind::AgGemm {
        last
    } else {
        piece.collective
    };
    Some(form.with("host", 0.0, d * each, d, after))
}

/// What no number of pieces beats: each has its fixed times, all of them their bytes, and the GEMM's
/// arithmetic takes no less in pieces than at best, on the SMs that a margin leaves.
#[derive(Copy, Clone, Debug)]
pub(in crate::predict) struct Bound {
    /// Of every collective, and from one to the next \[s\].
    fixed: f64,
    lane: f64,
    /// Of all collectives \[s\].
    bytes: f64,
    /// Of all GEMMs, and of those beside a collective \[s\].
    gemm: f64,
    beside: f64,
    /// Of the memory for every GEMM, and for all \[s\].
    weights: f64,
    moved: f64,
    /// Of every GEMM \[s\].
    each: f64,
    /// Fitted, of every piece but one \[s\].
    step: f64,
    /// A, B and C with the best number of pieces.
    pub form: Decomposition,
}

impl Bound {
    pub fn new(model: &Model<'_>, setting: Setting, step: f64) -> Option<Self> {
        let (whole, c) = (model.whole, model.costs);
        let fixed = exchange(model, setting, 0.0)?.seconds;
        let one = exchange(model, setting, model.case.message)?.seconds;
        let lane = if setting.direct { 0.0 } else { c.lane.get() };
        let least = model.least();
        let gemm = least.arithmetic;
        let margin = setting.margin && !setting.direct && model.terms.gemm_curve;
        let sms = f64::from(model.gpu.sms);
        let left = (sms - f64::from(model.taken())).max(1.0);
        let further = match whole.seconds >= one {
            true => c.lane.get() + c.kernel_start.get() + whole.overhead,
            false => fixed + lane,
        };
        Some(Self {
            fixed,
            lane,
            bytes: one - fixed,
            gemm,
            beside: if margin { gemm * sms / left } else { gemm },
            weights: least.weights,
            moved: least.moved,
            each: c.kernel_start.get() + least.each,
            step,
            form: Decomposition::new(whole.seconds, one, further + step),
        })
    }

    /// d pieces take no less \[s\].
    #[inline]
    pub fn of(&self, d: f64) -> f64 {
        let part = 1.0 / d;
        let memory = d * self.weights + self.moved;
        let gemms = greater(self.gemm * part + self.beside * (1.0 - part), memory);
        let compute = self.fixed + self.bytes * part + gemms + d * self.each;
        let one = greater(self.gemm * part, memory * part);
        let links = d * self.fixed + self.bytes + one + self.each;
        greater(compute, links) + (d - 1.0) * (self.lane.min(self.fixed) + self.step)
    }

    /// No number of pieces from two on takes less \[s\]: the links' chain at the best real d, or the
    /// work of two.
    #[inline]
    pub fn of_any(&self) -> f64 {
        let step = self.lane.min(self.fixed) + self.step;
        let grows = 2.0 * (self.gemm * (self.fixed + step)).sqrt();
        let links = self.bytes + grows + self.each - step;
        let gemms = greater(self.gemm, 2.0 * self.weights + self.moved);
        greater(links, self.fixed + gemms + 2.0 * self.each + step)
    }
}

/// The communication of a piece.
fn exchange(model: &Model<'_>, setting: Setting, message: f64) -> Option<Collective> {
    if setting.direct {
        direct(model, message)
    } else {
        model.library(model.case.collective(), message)
    }
}

/// The stages of one piece \[s\].
struct Piece {
    /// Its GEMM with the GPU to itself.
    gemm: f64,
    /// Its GEMM beside a collective.
    beside: f64,
    collective: f64,
}

fn piece(model: &Model<'_>, setting: Setting) -> Option<Piece> {
    let (case, d) = (&model.case, u64::from(setting.d));
    let message = case.message / d as f64;
    let exchange = exchange(model, setting, message)?;
    if !model.terms.gemm_curve {
        let gemm = model.whole.seconds / d as f64;
        return Some(Piece {
            gemm,
            beside: gemm,
            collective: exchange.seconds,
        });
    }
    let rows = case.gemm[0] / d;
    let [alone, left] = model.gemms(rows);
    let taken = if setting.direct { 0 } else { model.taken() };
    let less = if setting.direct { alone } else { left };
    // The memory that the collective leaves.
    let memory = less.hbm_bytes / (model.gpu.hbm - exchange.memory).max(0.1 * model.gpu.hbm);
    let slow = less.seconds.max(memory);
    let margin = setting.margin && taken > 0;
    // With a margin the GEMM keeps off those SMs to its end, else it takes them when they are free.
    let after = if margin { less.seconds } else { alone.seconds };
    let beside = if exchange.seconds >= slow {
        slow
    } else {
        exchange.seconds + (1.0 - exchange.seconds / slow) * after
    };
    Some(Piece {
        gemm: alone.seconds,
        beside,
        collective: exchange.seconds,
    })
}

/// Copies between all pairs, and the sums where there are any.
fn direct(model: &Model<'_>, message: f64) -> Option<Collective> {
    let (net, start) = (model.net, model.costs.copy_start.get());
    let shard = message / model.case.ranks();
    let (gather, scatter) = (&net.gather, &net.scatter);
    if !gather.known() {
        return None;
    }
    let flag = model.costs.stream_flag.get();
    let seconds = match model.case.kind {
        Kind::AgGemm => flag + gather.last(shard, start),
        Kind::GemmRs => flag + scatter.last(shard, start) + model.sum(shard),
        _ => 2.0 * flag + scatter.last(shard, start) + model.sum(shard) + gather.last(shard, start),
    };
    let bytes = 2.0 * (message - shard);
    Some(Collective {
        seconds,
        memory: if model.terms.contention {
            bytes / seconds
        } else {
            0.0
        },
    })
}
