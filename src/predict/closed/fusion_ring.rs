//! `fusion-ring`: shards, or partial sums, go round the best ring while one GEMM kernel runs.
//!
//! A step of the ring is, with c chunks of x bytes, start-up s and the slowest edge's α_e, B_e,
//!
//! ```text
//! links       c · (lane + s + α_e + x/B_e)           copies follow one another in their lane
//! hand-off    flag + s + mean of (α_e + x/B_e)       a shard can go on when it has come
//!             + group + flag                         GEMM+RS: and when its tiles are added
//! host        c · (submission, waits and signals of a copy)
//! ```
//!
//! where `group` is a group's tiles, at least one wave. AG+GEMM has the last group after the last
//! arrival; GEMM+RS also one before the first copy; GEMM+AR goes round once more.

use super::fusion::{Kernel, begin, steps, with_host};
use crate::operator::Kind;
use crate::predict::form::{Pipeline, greater};
use crate::predict::model::{Model, Setting};
use crate::predict::network::Course;

pub(super) fn form<P: Pipeline>(model: &Model<'_>, setting: Setting) -> Option<P> {
    Some(rings(model, setting, std::slice::from_ref(&model.net.ring)))
}

/// The form on the slowest of the rings that run at once.
pub(super) fn rings<P: Pipeline>(model: &Model<'_>, setting: Setting, courses: &[Course]) -> P {
    let kernel = Kernel::new(model);
    let case = &model.case;
    let (n, gathers) = (case.ranks(), case.kind == Kind::AgGemm);
    let everyone = case.kind == Kind::GemmAr;
    let rounds = if everyone { 2.0 } else { 1.0 };
    let moved = 2.0 * rounds * (n - 1.0) * case.shard();
    let (mut links, mut loops) = (Chain::default(), Chain::default());
    let (mut back, mut slow, mut ending) = (0f64, 0f64, 0f64);
    for course in courses {
        let on = Travel::new(model, setting, &kernel, course);
        links = links.or(on.links(model, &kernel));
        loops = loops.or(on.hand_off(model, &kernel));
        slow = greater(slow, on.slow);
        ending = greater(ending, on.ending);
        if everyone {
            back = greater(back, on.gather(model));
        }
    }
    let form = begin::<P>(model, &kernel, moved, back);
    let form = form.with(
        "links",
        links.before,
        links.work,
        n - 1.0,
        links.after + back,
    );
    if !model.terms.stages {
        return form;
    }
    let c = model.costs;
    if !gathers && courses.len() == 2 {
        let flags = c.stream_flag.get() + c.copy_start.get() + c.kernel_flag.get();
        loops = loops.or(back_and_forth(&kernel, case.part(), n - 1.0, flags + slow));
    }
    let form = form.with(
        "hand-off",
        loops.before,
        loops.work,
        n - 1.0,
        loops.after + back,
    );
    // Every copy signals; all but the first step's wait for what they pass on, and a sum in between
    // for its slot too.
    let per_step = setting.parts * courses.len() as f64;
    let copies = rounds * (n - 1.0) * per_step;
    let syncs = match gathers {
        true => (2.0 * n - 3.0) * per_step,
        false => rounds * (2.0 * (n - 1.0) + greater(n - 3.0, 0.0)) * per_step,
    };
    let copy = c.copy_start.get() + slow;
    let last = if everyone {
        copy
    } else {
        copy + c.kernel_flag.get() + ending
    };
    with_host(model, form, copies, syncs, last)
}

/// A resource's seconds before, at and after its work.
#[derive(Copy, Clone, Default)]
struct Chain {
    before: f64,
    work: f64,
    after: f64,
}

impl Chain {
    /// The longer one.
    #[inline]
    fn or(self, other: Self) -> Self {
        let total = |chain: &Self| chain.before + chain.work + chain.after;
        match total(&other) > total(&self) {
            true => other,
            false => self,
        }
    }
}

/// The way back and forth over the slowest edge: a sum that came on one ring, the next one's tiles
/// on the same rank, its way back on the other ring, and again. Each turn takes three steps with
/// two copies and, since the rings' groups alternate, four groups.
fn back_and_forth(kernel: &Kernel, part: f64, steps: f64, copy: f64) -> Chain {
    let group = kernel.tiles * part * 0.5;
    // Whole turns, without the library call that `floor` is.
    let turns = f64::from((steps * (1.0 / 3.0) + 1e-9) as u32);
    let rest = match steps - 3.0 * turns {
        rest if rest >= 2.0 => copy + 2.0 * group,
        rest if rest >= 1.0 => copy + group,
        _ => 0.0,
    };
    Chain {
        before: kernel.start + 2.0 * group,
        work: turns * (2.0 * copy + 4.0 * group) + rest,
        after: 0.0,
    }
}

/// What travels on one ring.
struct Travel<'a> {
    course: &'a Course,
    /// Bytes of a chunk.
    bytes: f64,
    /// A chunk over the slowest edge \[s\].
    slow: f64,
    /// All chunks of a step, one copy after another over the slowest edge \[s\].
    copies: f64,
    /// A chunk's tiles, at least a wave \[s\].
    group: f64,
    /// Its tiles with those of the other rings' chunks that come at the same time \[s\].
    ending: f64,
}

impl<'a> Travel<'a> {
    #[inline]
    fn new(model: &Model<'_>, setting: Setting, kernel: &Kernel, course: &'a Course) -> Self {
        let (c, part) = (model.costs, model.case.part());
        let (chunks, share) = (setting.parts, course.share * setting.part);
        let bytes = model.case.shard() * share;
        let slow = course.slowest(bytes);
        Self {
            course,
            bytes,
            slow,
            copies: chunks * (c.lane.get() + c.copy_start.get() + slow),
            group: kernel.group(share * part),
            ending: kernel.group((share + 1.0 - course.share) * part),
        }
    }

    /// The last chunk of a step starts after the others \[s\].
    fn wait(&self, model: &Model<'_>) -> f64 {
        let c = model.costs;
        self.copies - (c.lane.get() + c.copy_start.get() + self.slow)
    }

    /// A chunk's way round, n − 1 hops \[s\].
    fn hops(&self, model: &Model<'_>) -> f64 {
        let (c, steps) = (model.costs, model.case.ranks() - 1.0);
        let around = &self.course.around;
        let way = around.latency + self.bytes * around.per_byte;
        steps * (c.stream_flag.get() + c.copy_start.get()) + way
    }

    fn links(&self, model: &Model<'_>, kernel: &Kernel) -> Chain {
        let c = model.costs;
        let work = steps(model, (model.case.ranks() - 1.0) * self.copies);
        if !model.terms.stages {
            // The textbook form: the last group after the last step.
            return Chain {
                before: kernel.start,
                work,
                after: kernel.tiles * model.case.part(),
            };
        }
        Chain {
            before: match model.case.kind {
                Kind::AgGemm => c.submit_kernel.get() + c.submit_copy.get(),
                _ => kernel.start + self.group + c.stream_flag.get(),
            },
            work,
            after: c.kernel_flag.get() + self.ending,
        }
    }

    /// One chunk's way round.
    fn hand_off(&self, model: &Model<'_>, kernel: &Kernel) -> Chain {
        let (c, flag) = (model.costs, model.costs.kernel_flag.get());
        if model.case.kind == Kind::AgGemm {
            return Chain {
                before: c.submit_kernel.get() + c.submit_copy.get() + self.wait(model),
                work: self.hops(model),
                after: flag + self.ending,
            };
        }
        // The last of a step's chunks leaves after the others: its tiles come later, on this ring and
        // the other, and copies on one ring queue.
        let step = kernel.group(model.case.part());
        let later = greater(step - self.group, self.wait(model));
        Chain {
            before: kernel.start + later,
            work: self.hops(model) + (model.case.ranks() - 1.0) * (self.group + flag),
            after: self.group,
        }
    }

    /// The finished shards go round \[s\].
    fn gather(&self, model: &Model<'_>) -> f64 {
        let links = (model.case.ranks() - 1.0) * self.copies;
        greater(links, self.wait(model) + self.hops(model))
    }
}
