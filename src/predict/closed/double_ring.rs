//! `double-ring`: as `ring`, on two rings at once.

use super::ring::collective;
use crate::predict::form::Form;
use crate::predict::model::{Model, Setting};

pub(super) fn form(model: &Model<'_>, setting: Setting) -> Option<Form> {
    collective(model, setting, model.net.pair.as_ref().ok()?)
}
