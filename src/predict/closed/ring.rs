//! `ring`: a bare collective hop by hop.
//!
//! All-gather: `(n − 1) · max over edges of (α_e + (S/n)/B_e)`, with the copy's start and the flag
//! from rank to rank in every step. Reduce-scatter adds a sum of three shards to every step,
//! all-reduce is one after the other. All-to-all goes the shorter way round, so that the hops carry
//! the messages for all distances beyond: `Σ_{h=1}^{n/2} (α + (n/2 − h + 1)·s/B)`.

use crate::operator::Kind;
use crate::predict::form::Pipeline;
use crate::predict::model::{Model, Setting};
use crate::predict::network::Course;

pub(super) fn form<P: Pipeline>(model: &Model<'_>, setting: Setting) -> Option<P> {
    collective(model, setting, std::slice::from_ref(&model.net.ring))
}

/// On the slowest of the rings that run at once.
pub(super) fn collective<P: Pipeline>(
    model: &Model<'_>,
    setting: Setting,
    courses: &[Course],
) -> Option<P> {
    let (site, c) = (model.site, &model.site.costs);
    let n = site.ranks;
    let chunks = f64::from(setting.chunks);
    let flag = c.stream_flag.get();
    let start = c.copy_start.get();
    let submit = c.submit_copy.get();
    if site.kind == Kind::AllToAll {
        return None;
    }
    let mut gather = 0f64;
    let mut sum = 0f64;
    for course in courses {
        let bytes = model.shard * course.share / chunks;
        let lap = course.around;
        let hop = flag + start + (lap.latency + bytes * lap.per_byte) / (n - 1.0);
        let lane = c.lane.get() + start + course.slowest(bytes);
        let add = c.kernel_start.get() + 3.0 * bytes * model.site.per_elementwise;
        let wait = (chunks - 1.0) * lane / (n - 1.0);
        gather = gather.max((wait + hop).max(chunks * lane));
        sum = sum.max((wait + hop + add + c.event.get()).max(chunks * lane));
    }
    // The first copy waits for nobody.
    let form = |each: f64, last: f64| {
        P::new(n - 1.0).with("links", submit, (n - 2.0) * each, n - 2.0, last)
    };
    Some(match site.kind {
        Kind::AllGather => form(gather, gather - flag),
        Kind::ReduceScatter => form(sum, sum),
        _ => form(sum + gather, sum + gather - flag),
    })
}
