//! `fusion-double-ring`: as `fusion-ring`, with every shard divided between two rings that run at
//! once; each is a ring of its own with its share of the bytes and of the tiles.

use super::fusion::{Fusion, Kernel};
use super::fusion_ring;
use crate::predict::form::Pipeline;
use crate::predict::model::{Model, Setting};
use crate::predict::network::Network;
use crate::predict::site::Site;

pub(super) fn form<P: Pipeline>(model: &Model<'_>, setting: Setting) -> Option<P> {
    Some(new(model.site, model.net, setting)?.form(&Kernel::new(model)))
}

/// The fusion in one setting; `None` where there are no two rings.
pub(in crate::predict) fn new(site: &Site, net: &Network, setting: Setting) -> Option<Fusion> {
    let [first, second] = net.pair.as_ref().ok()?;
    Some(fusion_ring::on(site, setting, &[first, second]))
}
