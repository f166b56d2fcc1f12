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
use crate::predict::collective::Collective;
use crate::predict::form::{Pipeline, greater};
use crate::predict::model::{Model, Setting};

pub(in crate::predict) fn form<P: Pipeline>(model: &Model<'_>, setting: Setting) -> Option<P> {
    let d = f64::from(setting.d);
    let (site, c) = (model.site, &model.site.costs);
    let piece = piece(model, setting)?;
    let (lane, event, kernel) = (c.lane.get(), c.event.get(), c.kernel_start.get());
    let form = P::new(d - 1.0);
    let first = c.submit_kernel.get();
    let links = if setting.direct { 0.0 } else { lane };
    let last = kernel + piece.gemm;
    let (between, beside) = (piece.collective + links, lane + kernel + piece.beside);
    let form = if site.kind == Kind::AgGemm {
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
    if !site.submits_calls() {
        return Some(form);
    }
    // The host hands over every piece's kernels or copies with their waits and signals.
    let copies = if setting.direct {
        site.ranks - 1.0
    } else {
        0.0
    };
    let kernels = if setting.direct { 1.0 } else { 2.0 };
    let each = site.submits(copies, kernels, 2.0 * copies.max(1.0));
    let after = if site.kind == Kind::AgGemm {
        last
    } else {
        piece.collective
    };
    Some(form.with("host", 0.0, d * each, d, after))
}

/// The collective of nothing, which every piece takes at least, and of everything \[s\].
#[derive(Copy, Clone, Debug)]
pub(in crate::predict) struct Ends {
    fixed: f64,
    whole: f64,
    /// What pieces take at least: each, and all of them for their bytes.
    least: [f64; 2],
    /// From one piece's to the next.
    lane: f64,
}

impl Ends {
    #[inline(always)]
    pub fn new(model: &Model<'_>, setting: Setting) -> Option<Self> {
        let message = model.case.message;
        let fixed = exchange(model, setting, 0.0)?.seconds;
        let whole = exchange(model, setting, message)?.seconds;
        Some(Self {
            fixed,
            whole,
            least: match setting.direct {
                true => [fixed, whole - fixed],
                false => model.site.least_library(message)?,
            },
            lane: match setting.direct {
                true => 0.0,
                false => model.site.costs.lane.get(),
            },
        })
    }

    /// A, B and C of the textbook form and its best number of pieces; `step`: the fitted cost of a
    /// piece \[s\].
    #[inline]
    pub fn textbook(&self, model: &Model<'_>, step: f64) -> Decomposition {
        let (whole, c) = (&model.whole, &model.site.costs);
        let further = match whole.seconds >= self.whole {
            true => c.lane.get() + c.kernel_start.get() + whole.overhead,
            false => self.fixed + self.lane,
        };
        Decomposition::new(whole.seconds, self.whole, further + step)
    }
}

/// What no number of pieces beats: each has its fixed times, all of them their bytes, and the GEMM's
/// arithmetic takes no less in pieces than at best, on the SMs that a margin leaves.
#[derive(Copy, Clone, Debug)]
pub(in crate::predict) struct Bound {
    /// Of every collective, and of all their bytes \[s\].
    fixed: f64,
    bytes: f64,
    /// Of all GEMMs, and of those beside a collective \[s\].
    gemm: f64,
    beside: f64,
    /// Of the memory for every GEMM, and for all \[s\].
    weights: f64,
    moved: f64,
    /// Of every GEMM \[s\].
    each: f64,
    /// Of every piece but one, the fitted cost with it \[s\].
    step: f64,
}

impl Bound {
    #[inline]
    pub fn new(model: &Model<'_>, setting: Setting, ends: &Ends, step: f64) -> Self {
        let site = model.site;
        let least = model.least();
        let gemm = least.arithmetic;
        let margin = setting.margin && !setting.direct && site.terms.gemm_curve;
        let ([fixed, bytes], lane) = (ends.least, ends.lane);
        Self {
            fixed,
            bytes,
            gemm,
            beside: if margin { gemm * site.beside } else { gemm },
            weights: least.weights,
            moved: least.moved,
            each: site.costs.kernel_start.get() + least.each,
            step: step + if lane < fixed { lane } else { fixed },
        }
    }

    /// Whether d pieces of so many rows take `limit` seconds or more, by the corrections of so many rows.
    #[inline(always)]
    pub fn exceeds(&self, model: &Model<'_>, (d, rows): (f64, u64), limit: f64) -> bool {
        let Some((ratio, arithmetic)) = model.pieces(rows) else {
            return false;
        };
        let gemm = greater(self.gemm * ratio, arithmetic);
        let bound = Self {
            gemm,
            beside: greater(self.beside * ratio, gemm),
            weights: self.weights * ratio,
            moved: self.moved * ratio,
            ..*self
        };
        bound.of(d) * (1.0 - 1e-12) >= limit
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
        greater(compute, links) + (d - 1.0) * self.step
    }

    /// More pieces than this take longer than `limit` \[s\]: the links' chain and the work grow with
    /// every piece.
    #[inline]
    pub fn most(&self, limit: f64) -> u32 {
        let links = (limit - self.bytes - self.each + self.step) / (self.fixed + self.step);
        let compute = (limit - self.fixed - self.gemm + self.step) / (self.each + self.step);
        // A little slack against rounding.
        let most = if links < compute { links } else { compute };
        (most * (1.0 + 1e-9) + 1e-9) as u32
    }

    /// No number of pieces from two on takes less \[s\]: the links' chain at the best real d, or the
    /// work of two.
    #[inline]
    pub fn of_any(&self) -> f64 {
        let grows = 2.0 * (self.gemm * (self.fixed + self.step)).sqrt();
        let links = self.bytes + grows + self.each - self.step;
        let half = 0.5 * (self.gemm + self.beside);
        let gemms = greater(half, 2.0 * self.weights + self.moved);
        greater(links, self.fixed + gemms + 2.0 * self.each + self.step)
    }
}

/// The communication of a piece.
#[inline(always)]
fn exchange(model: &Model<'_>, setting: Setting, message: f64) -> Option<Collective> {
    if setting.direct {
        direct(model, message)
    } else {
        model.site.library(message)
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
    let message = case.message / f64::from(setting.d);
    let exchange = exchange(model, setting, message)?;
    if !model.site.terms.gemm_curve {
        let gemm = model.whole.seconds / f64::from(setting.d);
        return Some(Piece {
            gemm,
            beside: gemm,
            collective: exchange.seconds,
        });
    }
    let rows = case.gemm[0] / d;
    let [alone, left] = model.gemms(rows);
    let taken = if setting.direct { 0 } else { model.site.taken };
    let less = if setting.direct { alone } else { left };
    // The memory that the collective leaves.
    let memory = less.hbm_bytes / (model.site.hbm - exchange.memory).max(0.1 * model.site.hbm);
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
#[inline(never)]
fn direct(model: &Model<'_>, message: f64) -> Option<Collective> {
    let (net, site, start) = (model.net, model.site, model.site.costs.copy_start.get());
    let shard = message * site.part;
    let (gather, scatter) = (&net.gather, &net.scatter);
    if !gather.known() {
        return None;
    }
    let flag = model.site.costs.stream_flag.get();
    let seconds = match model.site.kind {
        Kind::AgGemm => flag + gather.last(shard, start),
        Kind::GemmRs => flag + scatter.last(shard, start) + model.site.sum(shard),
        _ => {
            2.0 * flag
                + scatter.last(shard, start)
                + model.site.sum(shard)
                + gather.last(shard, start)
        }
    };
    let bytes = 2.0 * (message - shard);
    Some(Collective {
        seconds,
        memory: if model.site.terms.contention {
            bytes / seconds
        } else {
            0.0
        },
    })
}
