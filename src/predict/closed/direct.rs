//! `direct`: a bare collective with all flows at once.
//!
//! The exchange's last arrival; reduce-scatter adds the owner's sum, all-reduce then sends the sums
//! to everyone. A point-to-point message is `α + S/B`.

use crate::operator::Kind;
use crate::predict::form::Pipeline;
use crate::predict::model::{Model, Setting};

pub(super) fn form<P: Pipeline>(model: &Model<'_>, _: Setting) -> Option<P> {
    let (site, c, net) = (model.site, &model.site.costs, model.net);
    let (submit, start) = (c.submit_copy.get(), c.copy_start.get());
    if site.kind == Kind::PointToPoint {
        let time = start + net.message.latency + model.case.message * net.message.per_byte;
        return Some(P::new(1.0).with("links", submit, time, 1.0, 0.0));
    }
    if !net.gather.known() {
        return None;
    }
    let shard = model.shard;
    let n = site.ranks;
    let form = P::new(n - 1.0);
    let after = c.stream_flag.get() + model.site.sum(shard);
    let (gather, scatter) = (
        net.gather.last(shard, start),
        net.scatter.last(shard, start),
    );
    Some(match site.kind {
        Kind::AllGather => form.with("links", submit, gather, n - 1.0, 0.0),
        Kind::AllToAll => form.with("links", submit, scatter, n - 1.0, 0.0),
        Kind::ReduceScatter => form.with("links", submit, scatter, n - 1.0, after),
        _ => form.with(
            "links",
            submit,
            scatter + gather,
            n - 1.0,
            after + c.stream_flag.get(),
        ),
    })
}
