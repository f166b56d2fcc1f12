//! `fusion-double-ring`: as `fusion-ring`, with every shard divided between two rings that run at
//! once; each is a ring of its own with its share of the bytes and of the tiles.

use super::fusion_ring::rings;
use crate::predict::form::Pipeline;
use crate::predict::model::{Model, Setting};

pub(super) fn form<P: Pipeline>(model: &Model<'_>, setting: Setting) -> Option<P> {
    let pair = model.net.pair.as_ref().ok()?;
    Some(rings(model, setting, pair))
}
