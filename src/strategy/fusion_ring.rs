//! `fusion-ring`: one GEMM kernel per rank, shards travelling round the best ring while it runs.

use super::fused::{FUSED_RING, stored};
use super::fused_ring;
use super::layout::{COMM, dims, several, shard};
use super::params::Param;
use super::ring_steps::Course;
use super::{Job, Skip, Strategy};
use crate::operator::Kind;
use crate::schedule::{Mover, Schedule};

#[derive(Debug)]
pub(super) struct FusionRing;

impl Strategy for FusionRing {
    fn name(&self) -> &'static str {
        "fusion-ring"
    }

    fn summary(&self) -> &'static str {
        "One fused GEMM kernel; shards or partial sums travel round the best ring on the link graph."
    }

    fn params(&self) -> &'static [Param] {
        FUSED_RING
    }

    fn applies(&self, kind: Kind) -> bool {
        kind.is_fused()
    }

    fn tried(&self, kind: Kind) -> &'static [&'static str] {
        match kind {
            Kind::AgGemm => &["chunks=1", "", "chunks=4"],
            _ => &["", "chunks=4"],
        }
    }

    fn build(&self, job: &Job<'_>) -> Result<Schedule, Skip> {
        several(job)?;
        let (m, _, _) = dims(job.operator)?;
        let rows = shard(m, job.operator.tp)?;
        let mover = job.params.mover();
        stored(job.operator.kind, mover)?;
        if mover == Mover::Epilogue && job.ranks() > 2 {
            return Err(Skip::because(
                "mover=epilogue on a ring of more than 2 ranks: a sum that travels on is added to first; use fusion-alltoall",
            ));
        }
        if mover == Mover::Loader {
            return Err(Skip::because(
                "mover=loader on a ring: what travels on has to arrive first; use fusion-alltoall",
            ));
        }
        let order = job.site.rings().single.clone();
        fused_ring::build(job, rows, &Course::whole(order, rows, COMM))
    }
}
