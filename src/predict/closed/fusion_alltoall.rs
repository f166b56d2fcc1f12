//! `fusion-alltoall`: every pair of ranks exchanges directly while one GEMM kernel runs.
//!
//! Tm is the exchange's last arrival (all pairs, as many at once as there are copy engines, under
//! the fan-out curves of the links), in n − 1 steps. GEMM+RS has one group before the first copy,
//! and the owner's sum after the last arrival; GEMM+AR then sends the sums to everyone.

use super::fusion::{Kernel, begin, step};
use crate::operator::Kind;
use crate::predict::form::Form;
use crate::predict::model::{Model, Setting};

pub(super) fn form(model: &Model<'_>, setting: Setting) -> Option<Form> {
    let (case, c, net) = (&model.case, model.costs, model.net);
    if !net.gather.known() {
        return None;
    }
    let kernel = Kernel::new(model);
    let n = case.ranks();
    let chunks = f64::from(setting.chunks);
    let shard = case.shard();
    // Chunks of one peer follow one another in their lane.
    let start = c.copy_start.get() + (chunks - 1.0) * (c.copy_start.get() + c.lane.get());
    let group = if model.terms.stages {
        kernel.group(1.0 / (n * chunks))
    } else {
        kernel.tiles / n
    };
    if case.kind == Kind::AgGemm {
        let each = step(model, net.gather.last(shard, start));
        let before = c.submit_kernel.get() + c.submit_copy.get();
        return Some(begin(model, &kernel, 2.0 * (n - 1.0) * shard, 0.0).with(
            "links",
            before,
            each,
            n - 1.0,
            c.kernel_flag.get() + group,
        ));
    }
    let everyone = case.kind == Kind::GemmAr;
    let mut after = if model.terms.stages {
        model.sum(shard)
    } else {
        0.0
    };
    if everyone {
        after += c.stream_flag.get() + net.gather.last(shard, c.copy_start.get());
    }
    let each = step(model, net.scatter.last(shard, start));
    let rounds = if everyone { 2.0 } else { 1.0 };
    let before = kernel.start
        + if model.terms.stages {
            group + c.stream_flag.get()
        } else {
            0.0
        };
    let tail = if model.terms.stages {
        c.stream_flag.get() + after
    } else {
        kernel.tiles / n
    };
    Some(
        begin(model, &kernel, 2.0 * rounds * (n - 1.0) * shard, after).with(
            "links",
            before,
            each,
            n - 1.0,
            tail,
        ),
    )
}
