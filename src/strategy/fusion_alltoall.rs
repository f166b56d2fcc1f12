//! `fusion-alltoall`: one GEMM kernel per rank, every pair of ranks exchanging directly while it
//! runs (the order of Flux).
//!
//! AG+GEMM: the own shard's tiles first, then those of rank + 1, rank + 2, …, each waiting for its
//! rows. GEMM+RS: the tiles for rank + 1 first, the own last; every finished part leaves for its
//! owner's landing place, and the owner sums. GEMM+AR: then the sums go to everyone.

use super::direct::ISSUE;
use super::direct_steps::{Exchange, landing, slot_rows};
use super::fused::{CHUNKS, Kernels, TRIED};
use super::layout::{
    COMM, COMPUTE, Fused, begin, cuttable, dims, each_of, name_peers, several, shard,
};
use super::params::Param;
use super::ring::MOVER;
use super::{Job, Skip, Strategy, affordable, opens};
use crate::operator::Kind;
use crate::schedule::{Builder, Dep, GemmKernel, Lane, Rank, Schedule, TaskId, Via};

#[derive(Debug)]
pub(super) struct FusionAllToAll;

const PARAMS: &[Param] = &[CHUNKS, ISSUE, MOVER];

impl Strategy for FusionAllToAll {
    fn name(&self) -> &'static str {
        "fusion-alltoall"
    }

    fn summary(&self) -> &'static str {
        "One fused GEMM kernel; every pair of ranks exchanges directly, beginning with the next rank."
    }

    fn params(&self) -> &'static [Param] {
        PARAMS
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
        let ranks = job.ranks();
        let exchange = Exchange {
            ranks,
            base: 0,
            shard: shard(m, job.operator.tp)?,
            chunks: job.params.count("chunks"),
            mover: job.params.mover(),
            push: job.params.is("issue", "push"),
            lane: COMM,
        };
        cuttable(exchange.shard, exchange.chunks)?;
        affordable(3 * (ranks * ranks) as u64 * u64::from(exchange.chunks))?;
        let mut b = begin(job);
        name_peers(&mut b);
        let fused = Fused::new(&mut b, job, 1)?;
        let mover = each_of(exchange.mover, ranks - 1);
        let kernels = Kernels::new(&mut b, job, &fused, mover, ranks - 1)?;
        if job.operator.kind == Kind::AgGemm {
            gather(&mut b, &exchange, &fused, &kernels);
        } else {
            let everyone = job.operator.kind == Kind::GemmAr;
            scatter(&mut b, &exchange, &fused, &kernels, everyone);
        }
        Ok(b.finish())
    }
}

fn gather(b: &mut Builder, exchange: &Exchange, fused: &Fused, kernels: &Kernels<'_>) {
    let gated = GemmKernel::Gated;
    // The kernels are submitted before the copies: their own shards need none.
    for rank in b.ranks() {
        let own = (exchange.row(rank), exchange.shard);
        kernels.in_place(b, rank, own, &fused.c, gated, &[]);
    }
    let landed = exchange.gather(b, &fused.a, |_, _| None);
    for rank in b.ranks() {
        for offset in 1..exchange.ranks {
            let first = exchange.row(exchange.after(rank, offset));
            for chunk in 0..exchange.chunks {
                let (row, rows) = exchange.chunk(chunk);
                let dep = Dep {
                    task: landed.at(offset, rank, chunk),
                    via: Via::KernelFlag,
                };
                kernels.in_place(b, rank, (first + row, rows), &fused.c, gated, &[dep]);
            }
        }
    }
}

fn scatter(
    b: &mut Builder,
    exchange: &Exchange,
    fused: &Fused,
    kernels: &Kernels<'_>,
    everyone: bool,
) {
    let partials = fused.partials(b);
    let landing = landing(b, fused.tensor_c, exchange.shard, fused.n);
    let leaves = GemmKernel::Scatter;
    // Groups of one rank are neighbours: (offset, chunk), then the own shard.
    let first = b.next_task().0;
    let per_rank = (exchange.ranks as u32 - 1) * exchange.chunks + 1;
    for rank in b.ranks() {
        for offset in 1..exchange.ranks {
            let start = exchange.row(exchange.after(rank, offset));
            for chunk in 0..exchange.chunks {
                let (row, rows) = exchange.chunk(chunk);
                kernels.in_place(b, rank, (start + row, rows), &partials, leaves, &[]);
            }
        }
        let own = (exchange.row(rank), exchange.shard);
        kernels.in_place(b, rank, own, &partials, leaves, &[]);
    }
    let via = opens(exchange.mover);
    let ready = |from: Rank, offset: usize, chunk: u32| {
        let group = (offset as u32 - 1) * exchange.chunks + chunk;
        let task = TaskId(first + u32::from(from.0) * per_rank + group);
        Some(Dep { task, via })
    };
    let slot =
        |b: &Builder, owner, offset| slot_rows(b, &landing, owner, offset, (0, exchange.shard));
    let home = |b: &Builder, rank: Rank| {
        let row = if everyone { exchange.row(rank) } else { 0 };
        b.rows(fused.c[usize::from(rank.0)], 0, row, exchange.shard)
    };
    // The own part comes before its sum in the compute lane.
    let sums = exchange.reduce_scatter(b, COMPUTE, &partials, slot, home, ready, |_| None);
    if everyone {
        let back = Exchange {
            lane: Lane(COMM.0 + exchange.ranks as u16 - 1),
            ..*exchange
        };
        back.gather(b, &fused.c, |owner, _| Some(sums[usize::from(owner.0)]));
    }
}
