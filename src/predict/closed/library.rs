//! `library`: the collective library's own collective.

use crate::predict::form::Pipeline;
use crate::predict::model::{Model, Setting};

pub(super) fn form<P: Pipeline>(model: &Model<'_>, _: Setting) -> Option<P> {
    let collective = model.site.library(model.case.message)?;
    let start = model.site.costs.submit_kernel.get();
    Some(P::new(0.0).with("links", start, collective.seconds, 1.0, 0.0))
}
