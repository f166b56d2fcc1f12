//! `fusion-alltoall`: every pair of ranks exchanges directly while one GEMM kernel runs.
//!
//! Tm is the exchange's last arrival (all pairs, as many at once as there are copy engines, under
//! the fan-out curves of the links), in n − 1 steps. GEMM+RS has one group before the first copy,
//! and the owner's sum after the last arrival; GEMM+AR then sends the sums to everyone.

use super::fusion::{Kernel, begin, steps, with_host};
use crate::operator::Kind;
use crate::predict::form::{Pipeline, greater};
use crate::predict::model::{Model, Setting};

pub(super) fn form<P: Pipeline>(model: &Model<'_>, setting: Setting) -> Option<P> {
    let (case, c, net) = (&model.case, model.costs, model.net);
    if !net.gather.known() {
        return None;
    }
    let kernel = Kernel::new(model);
    let n = case.ranks();
    let chunks = setting.parts;
    let shard = case.shard();
    let part = kernel.tiles * case.part();
    // Chunks of one peer follow one another in their lane.
    let start = c.copy_start.get() + (chunks - 1.0) * (c.copy_start.get() + c.lane.get());
    if case.kind == Kind::AgGemm {
        let before = c.submit_kernel.get() + c.submit_copy.get();
        let form = begin::<P>(model, &kernel, 2.0 * (n - 1.0) * shard, 0.0);
        if !model.terms.stages {
            let all = steps(model, net.gather.last(shard, start));
            return Some(form.with("links", before, all, n - 1.0, part));
        }
        // The shard that holds the kernel up most with the groups from it on, or the last one with
        // a wave.
        let group = greater(kernel.wave, part * setting.part);
        let (offset, arrival) = net.gather.holds_up(shard, start, part);
        let last = net.gather.last(shard, start) + group;
        let rest = greater((n - offset) * part, last - arrival);
        let flag = c.kernel_flag.get();
        let form = form.with("links", before, arrival, offset, flag + rest);
        let last = c.copy_start.get() + flag + group;
        let copies = (n - 1.0) * chunks;
        return Some(with_host(model, form, copies, copies, last));
    }
    let everyone = case.kind == Kind::GemmAr;
    let rounds = if everyone { 2.0 } else { 1.0 };
    let moved = 2.0 * rounds * (n - 1.0) * shard;
    let back = if everyone {
        c.stream_flag.get() + net.gather.last(shard, c.copy_start.get())
    } else {
        0.0
    };
    if !model.terms.stages {
        let all = steps(model, net.scatter.last(shard, start));
        let form = begin::<P>(model, &kernel, moved, back);
        return Some(form.with("links", kernel.start, all, n - 1.0, part + back));
    }
    let after = model.sum(shard) + back;
    // The groups leave one after another as they are computed; one wave may take longer than all.
    let wait = greater(kernel.wave - (n - 1.0) * part, 0.0);
    let before = kernel.start + wait + c.stream_flag.get();
    let tail = net.scatter.paced(shard, start, part, kernel.wave) + c.stream_flag.get() + after;
    let form = begin::<P>(model, &kernel, moved, after);
    let form = form.with("links", before, (n - 1.0) * part, n - 1.0, tail);
    // The sum is handed over after all copies and waits for each.
    let copies = (n - 1.0) * chunks;
    let last = model.submits(0.0, 1.0, copies) + after;
    Some(with_host(model, form, copies, 2.0 * copies, last))
}
