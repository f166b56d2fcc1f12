//! `double-ring`: a bare collective as `ring`, with every share cut between the best two rings.

use super::fused::DOUBLE_RING;
use super::layout::{Bare, begin};
use super::params::Param;
use super::ring::travel;
use super::ring_steps::Course;
use super::{Job, Skip, Strategy};
use crate::operator::Kind;
use crate::schedule::Schedule;

#[derive(Debug)]
pub(super) struct DoubleRing;

impl Strategy for DoubleRing {
    fn name(&self) -> &'static str {
        "double-ring"
    }

    fn summary(&self) -> &'static str {
        "Hop by hop round the best pair of rings at once, each with its share of the rows."
    }

    fn params(&self) -> &'static [Param] {
        DOUBLE_RING
    }

    fn applies(&self, kind: Kind) -> bool {
        matches!(
            kind,
            Kind::AllGather | Kind::ReduceScatter | Kind::AllReduce
        )
    }

    fn build(&self, job: &Job<'_>) -> Result<Schedule, Skip> {
        let mut b = begin(job);
        let bare = Bare::new(&mut b, job)?;
        let courses = Course::pair(job.site.rings(), bare.rows)?;
        b.name_lane(courses[0].lane, "first ring");
        b.name_lane(courses[1].lane, "second ring");
        travel(&mut b, job, &bare, &courses)?;
        Ok(b.finish())
    }
}
