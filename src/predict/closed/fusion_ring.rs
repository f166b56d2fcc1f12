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

use super::fusion::{Kernel, begin, step, with_host};
use crate::operator::Kind;
use crate::predict::form::Form;
use crate::predict::model::{Model, Setting};
use crate::predict::network::Course;

pub(super) fn form(model: &Model<'_>, setting: Setting) -> Option<Form> {
    Some(rings(model, setting, std::slice::from_ref(&model.net.ring)))
}

/// The form on the slowest of the rings that run at once.
pub(super) fn rings(model: &Model<'_>, setting: Setting, courses: &[Course]) -> Form {
    let kernel = Kernel::new(model);
    let case = &model.case;
    let n = case.ranks();
    let everyone = case.kind == Kind::GemmAr;
    let rounds = if everyone { 2.0 } else { 1.0 };
    let moved = 2.0 * rounds * (n - 1.0) * case.shard();
    let (mut links, mut loops) = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0));
    let total = |(before, each, after): (f64, f64, f64)| before + (n - 1.0) * each + after;
    let mut back = 0f64;
    for course in courses {
        let on = Travel::new(model, setting, &kernel, course);
        let (one, other) = (on.links(model, &kernel), on.hand_off(model, &kernel));
        if total(one) > total(links) {
            links = one;
        }
        if total(other) > total(loops) {
            loops = other;
        }
        if everyone {
            back = back.max(on.gather(model));
        }
    }
    let form =
        begin(model, &kernel, moved, back).with("links", links.0, links.1, n - 1.0, links.2 + back);
    if !model.terms.stages {
        return form;
    }
    if case.kind != Kind::AgGemm && courses.len() == 2 {
        let other = back_and_forth(model, setting, &kernel, courses);
        if total(other) > total(loops) {
            loops = other;
        }
    }
    let form = form.with("hand-off", loops.0, loops.1, n - 1.0, loops.2 + back);
    // Every copy signals and waits for what it passes on; a sum's also for its slot.
    let waits = match case.kind {
        Kind::AgGemm => 1.0 - 1.0 / (n - 1.0),
        _ => 1.0 + (n - 3.0).max(0.0) / (n - 1.0),
    };
    let copies = rounds * (n - 1.0) * f64::from(setting.chunks) * courses.len() as f64;
    let last = (courses.iter())
        .map(|course| Travel::new(model, setting, &kernel, course).last(model))
        .fold(0.0, f64::max);
    with_host(model, form, copies, 1.0 + waits, last)
}

/// (before, each, after) of the way back and forth over the slowest edge: a sum that came on one
/// ring, the next one's tiles on the same rank, its way back on the other ring, and again. Each turn
/// takes three steps with two copies and, since the rings' groups alternate, four groups.
fn back_and_forth(
    model: &Model<'_>,
    setting: Setting,
    kernel: &Kernel,
    courses: &[Course],
) -> (f64, f64, f64) {
    let steps = model.case.ranks() - 1.0;
    let on = courses
        .iter()
        .map(|course| Travel::new(model, setting, kernel, course));
    let copy = on.map(|on| on.turn(model)).fold(0.0, f64::max);
    let group = kernel.tiles / model.case.ranks() / courses.len() as f64;
    let turns = (steps / 3.0).floor();
    let rest = match steps - 3.0 * turns {
        rest if rest >= 2.0 => copy + 2.0 * group,
        rest if rest >= 1.0 => copy + group,
        _ => 0.0,
    };
    let all = turns * (2.0 * copy + 4.0 * group) + rest;
    (kernel.start + 2.0 * group, all / steps, 0.0)
}

/// What travels on one ring.
struct Travel<'a> {
    course: &'a Course,
    chunks: f64,
    /// Bytes of a chunk.
    bytes: f64,
    /// Its tiles, at least a wave \[s\].
    group: f64,
    /// Its tiles with those of the other rings' chunks that come at the same time \[s\].
    ending: f64,
}

impl<'a> Travel<'a> {
    fn new(model: &Model<'_>, setting: Setting, kernel: &Kernel, course: &'a Course) -> Self {
        let chunks = f64::from(setting.chunks);
        let part = course.share / chunks / model.case.ranks();
        Self {
            course,
            chunks,
            bytes: model.case.shard() * course.share / chunks,
            group: kernel.group(part),
            ending: kernel.group(part + (1.0 - course.share) / model.case.ranks()),
        }
    }

    /// One copy after another over the slowest edge \[s\].
    fn copies(&self, model: &Model<'_>) -> f64 {
        let c = model.costs;
        self.chunks * (c.lane.get() + c.copy_start.get() + self.course.slowest(self.bytes))
    }

    /// A chunk's mean step from rank to rank \[s\].
    fn hop(&self, model: &Model<'_>) -> f64 {
        let (c, steps) = (model.costs, model.case.ranks() - 1.0);
        let around = &self.course.around;
        let way = (around.latency + self.bytes * around.per_byte) / steps;
        c.stream_flag.get() + c.copy_start.get() + way
    }

    /// (before, each, after) of the links.
    fn links(&self, model: &Model<'_>, kernel: &Kernel) -> (f64, f64, f64) {
        let c = model.costs;
        let n = model.case.ranks();
        let total = (n - 1.0) * self.copies(model);
        let each = step(model, total);
        if !model.terms.stages {
            // The textbook form: the last group after the last step.
            return (kernel.start, each, kernel.tiles / n);
        }
        let after = c.kernel_flag.get() + self.ending;
        if model.case.kind == Kind::AgGemm {
            (c.submit_kernel.get() + c.submit_copy.get(), each, after)
        } else {
            let before = kernel.start + self.group + c.stream_flag.get();
            (before, each, after)
        }
    }

    /// (before, each, after) of one chunk's way round.
    fn hand_off(&self, model: &Model<'_>, kernel: &Kernel) -> (f64, f64, f64) {
        let c = model.costs;
        let hop = self.hop(model);
        let after = c.kernel_flag.get() + self.ending;
        if model.case.kind == Kind::AgGemm {
            // The last chunk starts after the others.
            let wait = (1.0 - 1.0 / self.chunks) * self.copies(model);
            let before = c.submit_kernel.get() + c.submit_copy.get() + wait;
            (before, hop, after)
        } else {
            // The last of a step's chunks leaves after the others: its tiles come later, on this
            // ring and the other, and copies on one ring queue.
            let step = kernel.group(1.0 / model.case.ranks());
            let behind = (1.0 - 1.0 / self.chunks) * self.copies(model);
            let before = kernel.start + (step - self.group).max(behind);
            (before, self.group + hop + c.kernel_flag.get(), self.group)
        }
    }

    /// The last copy and the tiles that wait for it \[s\].
    fn last(&self, model: &Model<'_>) -> f64 {
        let c = model.costs;
        let copy = c.copy_start.get() + self.course.slowest(self.bytes);
        match model.case.kind {
            Kind::GemmAr => copy,
            _ => copy + c.kernel_flag.get() + self.ending,
        }
    }

    /// A chunk over the slowest edge, flags included \[s\].
    fn turn(&self, model: &Model<'_>) -> f64 {
        let c = model.costs;
        let flags = c.stream_flag.get() + c.copy_start.get() + c.kernel_flag.get();
        flags + self.course.slowest(self.bytes)
    }

    /// The finished shards go round \[s\].
    fn gather(&self, model: &Model<'_>) -> f64 {
        let n = model.case.ranks();
        let wait = (1.0 - 1.0 / self.chunks) * self.copies(model);
        ((n - 1.0) * self.copies(model)).max(wait + (n - 1.0) * self.hop(model))
    }
}
