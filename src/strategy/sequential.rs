//! `sequential`: one library collective and one library GEMM, one after the other in one stream.
//! What every overlap has to beat; on one rank only the GEMM is left.

use super::layout::{COMPUTE, Fused, begin};
use super::{Job, Skip, Strategy};
use crate::operator::Kind;
use crate::schedule::{
    BufferId, Builder, CollectiveKind, CollectiveLibrary, Dep, GemmKernel, Lane, Rank, Schedule,
    Slice, TaskId,
};

#[derive(Debug)]
pub(super) struct Sequential;

impl Strategy for Sequential {
    fn name(&self) -> &'static str {
        "sequential"
    }

    fn summary(&self) -> &'static str {
        "The library's collective and the unsplit library GEMM, one after the other."
    }

    fn applies(&self, kind: Kind) -> bool {
        kind.is_fused()
    }

    fn build(&self, job: &Job<'_>) -> Result<Schedule, Skip> {
        let mut b = begin(job);
        let fused = Fused::new(&mut b, job, 1)?;
        let ranks: Vec<Rank> = b.ranks().collect();
        let rows = (0, fused.m);
        let gemms = |b: &mut Builder, out: &[BufferId]| {
            for &rank in &ranks {
                let out = b.whole(out[usize::from(rank.0)]);
                let gemm = fused.gemm(b, rank, rows, out, GemmKernel::Library);
                b.compute(rank, COMPUTE, None, gemm, &[]);
            }
        };
        let alone = ranks.len() == 1;
        match job.operator.kind {
            _ if alone => gemms(&mut b, &fused.c),
            Kind::AgGemm => {
                let shard = fused.m / job.operator.tp;
                collective(
                    &mut b,
                    job,
                    CollectiveKind::AllGather,
                    COMPUTE,
                    |b, rank| {
                        let a = b.whole(fused.a[usize::from(rank.0)]);
                        (a.rows(u32::from(rank.0) * shard, shard), a)
                    },
                );
                gemms(&mut b, &fused.c);
            }
            Kind::GemmRs => {
                let partials = fused.partials(&mut b);
                gemms(&mut b, &partials);
                collective(
                    &mut b,
                    job,
                    CollectiveKind::ReduceScatter,
                    COMPUTE,
                    |b, rank| {
                        let r = usize::from(rank.0);
                        (b.whole(partials[r]), b.whole(fused.c[r]))
                    },
                );
            }
            _ => {
                gemms(&mut b, &fused.c);
                collective(
                    &mut b,
                    job,
                    CollectiveKind::AllReduce,
                    COMPUTE,
                    |b, rank| {
                        let c = b.whole(fused.c[usize::from(rank.0)]);
                        (c, c)
                    },
                );
            }
        }
        Ok(b.finish())
    }
}

/// One library collective over all ranks, in the order of the best ring; `slices` gives a rank's
/// input and output. Returns the tasks by rank.
pub(super) fn collective(
    b: &mut Builder,
    job: &Job<'_>,
    kind: CollectiveKind,
    lane: Lane,
    slices: impl Fn(&Builder, Rank) -> (Slice, Slice),
) -> Vec<TaskId> {
    collective_after(b, &job.site.rings().single, kind, lane, slices, |_| None)
}

/// The same in a given ring order, each member after one task.
pub(super) fn collective_after(
    b: &mut Builder,
    order: &[Rank],
    kind: CollectiveKind,
    lane: Lane,
    slices: impl Fn(&Builder, Rank) -> (Slice, Slice),
    after: impl Fn(Rank) -> Option<Dep>,
) -> Vec<TaskId> {
    let deps: Vec<Option<Dep>> = order.iter().map(|&rank| after(rank)).collect();
    let members: Vec<(Rank, Slice, Slice, &[Dep])> = order
        .iter()
        .zip(&deps)
        .map(|(&rank, dep)| {
            let (input, output) = slices(b, rank);
            (rank, input, output, dep.as_slice())
        })
        .collect();
    let tasks = b.collective(kind, CollectiveLibrary::Ring, 0, lane, &members);
    let mut by_rank = vec![TaskId(0); order.len()];
    for (rank, task) in order.iter().zip(tasks) {
        by_rank[usize::from(rank.0)] = task;
    }
    by_rank
}
