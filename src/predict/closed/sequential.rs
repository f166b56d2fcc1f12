//! `sequential`: the library's collective and the unsplit GEMM, one after the other.
//!
//! `T = Tc + Tm`, plus submission, one lane hand-over and the starts of both kernels.

use crate::predict::form::Pipeline;
use crate::predict::model::{Model, Setting};

pub(in crate::predict) fn form<P: Pipeline>(model: &Model<'_>, _: Setting) -> Option<P> {
    let c = &model.site.costs;
    let gemm = c.kernel_start.get() + model.whole.seconds;
    let start = c.submit_kernel.get();
    if model.site.n < 2 {
        return Some(P::new(0.0).with("compute", start, gemm, 1.0, 0.0));
    }
    let collective = model.site.library(model.case.message)?;
    let other = collective.seconds + c.lane.get();
    Some(P::new(0.0).with("compute", start + other, gemm, 1.0, 0.0))
}
