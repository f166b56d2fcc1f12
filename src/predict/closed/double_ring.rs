//! `double-ring`: as `ring`, on two rings at once.

use super::ring::collective;
use crate::predict::form::Pipeline;
use crate::predict::model::{Model, Setting};

pub(super) fn form<P: Pipeline>(model: &Model<'_>, setting: Setting) -> Option<P> {
    collective(model, setting, model.net.pair.as_ref().ok()?)
}
