//! `fusion-alltoall`: one GEMM kernel per rank, every pair of ranks exchanging directly while it
//! runs (the order of Flux).
//!
//! AG+GEMM: the own shard's tiles first, then those of rank + 1, rank + 2, …, each waiting for its
//! rows, or with slabs for the first columns of its rows and, as it gets there, for the others.
//! GEMM+RS: the tiles for rank + 1 first, the own last; every finished part leaves for its
//! owner's landing place, and the owner sums. GEMM+AR: then the sums go to everyone.

use super::direct::ISSUE;
use super::direct_steps::{Exchange, landing, slot_rows};
use super::fused::{CHUNKS, FUSED_MOVER, Kernels, SLABS, TRIED, stored};
use super::layout::{
    COMM, COMPUTE, Fused, begin, cuttable, dims, each_of, name_peers, several, shard,
};
use super::params::Param;
use super::{Job, Skip, Strategy, affordable, opens};
use crate::operator::Kind;
use crate::schedule::{Builder, Dep, GemmKernel, Lane, Mover, Rank, Schedule, TaskId, Via};
use crate::units::count;

/// Most pieces of a shard, each a transfer to every other rank: more take minutes to verify and to simulate.
const MOST_PIECES: u64 = 1 << 14;

#[derive(Debug)]
pub(super) struct FusionAllToAll;

const PARAMS: &[Param] = &[CHUNKS, SLABS, ISSUE, FUSED_MOVER];

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
        let (m, _, k) = dims(job.operator)?;
        let ranks = job.ranks();
        let exchange = Exchange {
            ranks,
            base: 0,
            shard: shard(m, job.operator.tp)?,
            chunks: job.params.count("chunks"),
            slabs: job.params.count("slabs"),
            mover: job.params.mover(),
            // A loader pulls.
            push: job.params.is("issue", "push") && job.params.mover() != Mover::Loader,
            lane: COMM,
        };
        cuttable(exchange.shard, exchange.chunks)?;
        stored(job.operator.kind, exchange.mover)?;
        if exchange.mover == Mover::Epilogue && !exchange.push {
            return Err(Skip::because(
                "mover=epilogue pushes: issue=pull means nothing to it",
            ));
        }
        if exchange.slabs > 1 {
            slabs(job.operator.kind, k, exchange.slabs)?;
        }
        let pieces = u64::from(exchange.chunks) * u64::from(exchange.slabs);
        if pieces > MOST_PIECES {
            return Err(Skip::because(format!(
                "chunks={} and slabs={} cut a shard into {pieces} pieces, more than {MOST_PIECES}",
                exchange.chunks, exchange.slabs
            )));
        }
        affordable(3 * (ranks * ranks) as u64 * pieces)?;
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

/// Refuses slabs where no A is gathered, and more of them than columns.
fn slabs(kind: Kind, k: u32, slabs: u32) -> Result<(), Skip> {
    if kind != Kind::AgGemm {
        return Err(Skip::because(format!(
            "slabs cut a gathered A along k, and {kind} gathers none"
        )));
    }
    if slabs > k {
        return Err(Skip::because(format!(
            "{} of A cannot be cut into {slabs} slabs",
            count(u64::from(k), "column")
        )));
    }
    Ok(())
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
                let mut before = None;
                for slab in 0..exchange.slabs {
                    let dep = Dep {
                        task: landed.at(offset, rank, chunk * exchange.slabs + slab),
                        via: Via::KernelFlag,
                    };
                    let part = ((first + row, rows), exchange.slab(fused.k, slab));
                    before = Some(kernels.slab(b, rank, part, &fused.c, before, dep));
                }
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
            // What is gathered stays where it is, too.
            mover: exchange.mover.or_engine(),
            ..*exchange
        };
        back.gather(b, &fused.c, |owner, _| Some(sums[usize::from(owner.0)]));
    }
}
