//! `library`: a bare collective as the library (NCCL, RCCL) performs it, in one call.

use super::layout::{Bare, COMM, begin};
use super::sequential::collective;
use super::{Job, Skip, Strategy};
use crate::operator::Kind;
use crate::schedule::{CollectiveKind, Schedule};

#[derive(Debug)]
pub(super) struct Library;

impl Strategy for Library {
    fn name(&self) -> &'static str {
        "library"
    }

    fn summary(&self) -> &'static str {
        "The library's ring collective in one call."
    }

    fn applies(&self, kind: Kind) -> bool {
        !kind.is_fused() && kind != Kind::PointToPoint
    }

    fn build(&self, job: &Job<'_>) -> Result<Schedule, Skip> {
        let mut b = begin(job);
        b.name_lane(COMM, "library");
        let bare = Bare::new(&mut b, job)?;
        let kind = match job.operator.kind {
            Kind::AllGather => CollectiveKind::AllGather,
            Kind::ReduceScatter => CollectiveKind::ReduceScatter,
            Kind::AllReduce => CollectiveKind::AllReduce,
            _ => CollectiveKind::AllToAll,
        };
        collective(&mut b, job, kind, COMM, |b, rank| {
            let (x, y) = (bare.x[usize::from(rank.0)], bare.y[usize::from(rank.0)]);
            let (x, y) = (b.whole(x), b.whole(y));
            if kind == CollectiveKind::AllGather {
                (x.rows(u32::from(rank.0) * bare.rows, bare.rows), y)
            } else {
                (x, y)
            }
        });
        Ok(b.finish())
    }
}
