//! `fusion-double-ring`: as `fusion-ring`, with every shard cut between the best two rings in
//! proportion to what each carries.

use super::fused::{DOUBLE_RING, TRIED};
use super::fused_ring;
use super::layout::{dims, several, shard};
use super::params::Param;
use super::ring_steps::Course;
use super::{Job, Skip, Strategy};
use crate::operator::Kind;
use crate::schedule::Schedule;

#[derive(Debug)]
pub(super) struct FusionDoubleRing;

impl Strategy for FusionDoubleRing {
    fn name(&self) -> &'static str {
        "fusion-double-ring"
    }

    fn summary(&self) -> &'static str {
        "One fused GEMM kernel; shards travel round two rings, each with its share of the rows."
    }

    fn params(&self) -> &'static [Param] {
        DOUBLE_RING
    }

    fn applies(&self, kind: Kind) -> bool {
        kind.is_fused()
    }

    fn tried(&self, _kind: Kind) -> &'static [&'static str] {
        TRIED
    }

    fn build(&self, job: &Job<'_>) -> Result<Schedule, Skip> {
        several(job)?;
        let (m, _, _) = dims(job.operator)?;
        let rows = shard(m, job.operator.tp)?;
        fused_ring::build(job, rows, &Course::pair(job.site.rings(), rows)?)
    }
}
