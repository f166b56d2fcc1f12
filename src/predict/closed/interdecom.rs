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
use crate::predict::form::Form;
use crate::predict::model::{Collective, Model, Setting};

pub(in crate::predict) fn form(model: &Model<'_>, setting: Setting) -> Option<Form> {
    let d = f64::from(setting.d);
    let (case, c) = (&model.case, model.costs);
    let piece = piece(model, setting)?;
    let (lane, event, kernel) = (c.lane.get(), c.event.get(), c.kernel_start.get());
    let form = Form::new(d - 1.0);
    let first = c.submit_kernel.get();
    let links = if setting.direct { 0.0 } else { lane };
    let last = kernel + piece.gemm;
    let (between, beside) = (piece.collective + links, lane + kernel + piece.beside);
    let form = if case.kind == Kind::AgGemm {
        let start = first + piece.collective + event;
        form.with("compute", start, beside, d - 1.0, last).with(
            "links",
            first,
            between,
            d - 1.0,
            piece.collective + event + last,
        )
    } else {
        let start = first + last;
        form.with("compute", start, beside, d - 1.0, event + piece.collective)
            .with("links", start + event, between, d - 1.0, piece.collective)
    };
    if !model.terms.launch {
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
    Some(form.with("host", 0.0, each, d, after))
}

/// A time that d pieces cannot beat, from the unsplit GEMM's arithmetic and the collective alone \[s\].
pub(in crate::predict) fn at_least(model: &Model<'_>, setting: Setting) -> Option<f64> {
    let d = f64::from(setting.d);
    let each = exchange(model, setting, model.case.message / d)?.seconds;
    let gemm = model.least();
    Some((each + gemm).max(d * each + gemm / d))
}

/// A, B and C: the unsplit parts, and what the profile and the fit (`step`) say a further piece costs.
pub(in crate::predict) fn decomposition(
    model: &Model<'_>,
    setting: Setting,
    step: f64,
) -> Option<Decomposition> {
    let (whole, c) = (model.whole, model.costs);
    let one = exchange(model, setting, model.case.message)?.seconds;
    let none = exchange(model, setting, 0.0)?.seconds;
    let fixed = if whole.seconds >= one {
        c.lane.get() + c.kernel_start.get() + whole.overhead
    } else {
        none + if setting.direct { 0.0 } else { c.lane.get() }
    };
    Some(Decomposition::new(whole.seconds, one, fixed + step))
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
    let alone = model.gemm(rows, 0);
    let taken = if setting.direct { 0 } else { model.taken() };
    let less = if taken > 0 {
        model.gemm(rows, taken)
    } else {
        alone
    };
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
