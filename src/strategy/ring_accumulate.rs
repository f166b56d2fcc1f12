//! `ring-accumulate`: library GEMMs that add to partial sums travelling round the best ring.
//!
//! The same course as `fusion-ring`'s reduction, without a fused kernel: the sum for rank d begins
//! at d's successor, and every rank on the way adds its product by a GEMM with beta = 1 onto the
//! sum that has landed. No kernel only adds. With two ranks that is: both chunks of the remote half,
//! each pushed as it is done, then the own half's chunks, the one whose sum landed first before the
//! others; with one chunk the push would be exposed.

use super::fused::RING;
use super::fused_ring;
use super::layout::{COMM, dims, several, shard};
use super::params::Param;
use super::ring_steps::Course;
use super::{Job, Skip, Strategy};
use crate::operator::Kind;
use crate::schedule::Schedule;

#[derive(Debug)]
pub(super) struct RingAccumulate;

impl Strategy for RingAccumulate {
    fn name(&self) -> &'static str {
        "ring-accumulate"
    }

    fn summary(&self) -> &'static str {
        "Library GEMMs that add to the partial sums travelling round the best ring."
    }

    fn params(&self) -> &'static [Param] {
        RING
    }

    fn applies(&self, kind: Kind) -> bool {
        matches!(kind, Kind::GemmRs | Kind::GemmAr)
    }

    fn tried(&self, _kind: Kind) -> &'static [&'static str] {
        &["", "chunks=4"]
    }

    fn build(&self, job: &Job<'_>) -> Result<Schedule, Skip> {
        several(job)?;
        let (m, _, _) = dims(job.operator)?;
        let rows = shard(m, job.operator.tp)?;
        let order = job.site.rings().single.clone();
        fused_ring::build_unfused(job, rows, &Course::whole(order, rows, COMM))
    }
}
