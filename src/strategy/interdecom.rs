//! `interdecom`: the operator cut along m into d smaller ones; the collective of one chunk runs
//! while the library computes another.
//!
//! Rows are owned block-cyclically, so a chunk is `m/d` consecutive rows of A and of C and each
//! collective and each GEMM is a library call on them.

use super::direct::ISSUE;
use super::direct_steps::{Exchange, landing, slot_rows};
use super::layout::{COMM, COMPUTE, Fused, begin, dims, name_peers, several};
use super::params::{Param, Value, Values};
use super::sequential::collective_after;
use super::{Job, Skip, Strategy, affordable, hand_over};
use crate::operator::Kind;
use crate::schedule::{
    BufferId, Builder, CollectiveKind, Compute, Dep, GemmKernel, Lane, Mover, Rank, Schedule,
    TaskId, Via,
};

#[derive(Debug)]
pub(super) struct InterDecom;

const PARAMS: &[Param] = &[
    Param {
        name: "d",
        values: Values::Count {
            least: 1,
            most: 4096,
        },
        default: Value::Count(4),
        about: "into how many chunks the operator is cut",
        shown: true,
    },
    Param {
        name: "comm",
        values: Values::Word(&["library", "direct"]),
        default: Value::Word("library"),
        about: "a library collective per chunk, or copies by copy engines between all pairs",
        shown: false,
    },
    Param {
        name: "margin",
        values: Values::Word(&["auto", "yes", "no"]),
        default: Value::Word("auto"),
        about: "whether GEMMs beside a library collective leave its SMs free; auto: where the \
                collective is queued behind the next GEMM (GEMM+RS, GEMM+AR)",
        shown: false,
    },
    ISSUE,
];

impl Strategy for InterDecom {
    fn name(&self) -> &'static str {
        "interdecom"
    }

    fn summary(&self) -> &'static str {
        "Cut along m into d smaller operators; one chunk's collective runs beside another's GEMM."
    }

    fn params(&self) -> &'static [Param] {
        PARAMS
    }

    fn applies(&self, kind: Kind) -> bool {
        kind.is_fused()
    }

    fn tried(&self, _kind: Kind) -> &'static [&'static str] {
        &[
            "d=2",
            "d=4",
            "d=8",
            "d=16",
            "d=2,comm=direct",
            "d=4,comm=direct",
            "d=8,comm=direct",
        ]
    }

    fn build(&self, job: &Job<'_>) -> Result<Schedule, Skip> {
        several(job)?;
        let (m, _, _) = dims(job.operator)?;
        let (d, tp) = (job.params.count("d"), job.operator.tp);
        let direct = job.params.is("comm", "direct");
        // The library's all-reduce needs no equal shards.
        let shards = match job.operator.kind {
            Kind::GemmAr if !direct => 1,
            _ => tp,
        };
        let pieces = u64::from(d) * u64::from(shards);
        if !u64::from(m).is_multiple_of(pieces) {
            return Err(Skip::because(format!(
                "m = {m} cannot be cut into {d} chunks for {shards} ranks ({pieces} equal pieces)"
            )));
        }
        let each = if direct { 3 * u64::from(tp) } else { 2 };
        affordable(u64::from(d) * u64::from(tp) * each)?;
        let mut b = begin(job);
        let cut = Cut {
            job,
            fused: Fused::new(&mut b, job, d)?,
            d,
            chunk: m / d,
            part: m / d / tp,
        };
        if direct {
            name_peers(&mut b);
            cut.direct(&mut b)?;
        } else {
            b.name_lane(COMM, "library");
            cut.library(&mut b)?;
        }
        Ok(b.finish())
    }
}

/// The operator in d chunks.
struct Cut<'a> {
    job: &'a Job<'a>,
    fused: Fused,
    d: u32,
    /// Rows of a chunk.
    chunk: u32,
    /// Rows of a chunk that one rank owns.
    part: u32,
}

impl Cut<'_> {
    /// The chunk's GEMM on `rank` into the same rows of `out`; `sms` 0: all that are free.
    fn gemm(
        &self,
        b: &mut Builder,
        rank: Rank,
        j: u32,
        out: &[BufferId],
        sms: u16,
        after: &[Dep],
    ) -> TaskId {
        let rows = (j * self.chunk, self.chunk);
        let out = b.rows(out[usize::from(rank.0)], 0, rows.0, rows.1);
        let mut gemm = self.fused.gemm(b, rank, rows, out, GemmKernel::Library);
        if let Compute::Gemm { sms: limit, .. } = &mut gemm {
            *limit = sms;
        }
        b.compute(rank, COMPUTE, None, gemm, after)
    }

    /// SMs of a GEMM on `rank`; `beside` a library collective it may leave those free.
    fn sms(&self, rank: Rank, beside: bool) -> Result<u16, Skip> {
        let params = self.job.params;
        let gathers = self.job.operator.kind == Kind::AgGemm;
        let margin = params.is("margin", "yes") || (params.is("margin", "auto") && !gathers);
        if !(beside && margin) {
            return Ok(0);
        }
        let site = self.job.site;
        site.sms(rank, site.library_sms(rank))
    }

    /// Emits every chunk's `gather` one chunk ahead of its `compute`, so that the host has handed
    /// over the next collective by the time one GEMM starts.
    fn ahead<T>(
        &self,
        b: &mut Builder,
        gather: impl Fn(&mut Builder, u32) -> T,
        compute: impl Fn(&mut Builder, u32, T) -> Result<(), Skip>,
    ) -> Result<(), Skip> {
        let mut gathered = gather(b, 0);
        for j in 1..self.d {
            let next = gather(b, j);
            compute(b, j - 1, std::mem::replace(&mut gathered, next))?;
        }
        compute(b, self.d - 1, gathered)
    }

    fn library(&self, b: &mut Builder) -> Result<(), Skip> {
        let order = &self.job.site.rings().single;
        let chunk = |j: u32| (j * self.chunk, self.chunk);
        if self.job.operator.kind == Kind::AgGemm {
            let gather = |b: &mut Builder, j: u32| {
                let slices = |b: &Builder, rank: Rank| {
                    let (row, rows) = chunk(j);
                    let all = b.rows(self.fused.a[usize::from(rank.0)], 0, row, rows);
                    (all.rows(u32::from(rank.0) * self.part, self.part), all)
                };
                collective_after(b, order, CollectiveKind::AllGather, COMM, slices, |_| None)
            };
            return self.ahead(b, gather, |b, j, gathered| {
                for rank in b.ranks() {
                    // The last one has the GPU to itself.
                    let sms = self.sms(rank, j + 1 < self.d)?;
                    let dep = (gathered[usize::from(rank.0)], Via::Event).into();
                    self.gemm(b, rank, j, &self.fused.c, sms, &[dep]);
                }
                Ok(())
            });
        }
        let reduces = self.job.operator.kind == Kind::GemmRs;
        let (kind, product) = match reduces {
            true => (CollectiveKind::ReduceScatter, self.fused.partials(b)),
            false => (CollectiveKind::AllReduce, self.fused.c.clone()),
        };
        for j in 0..self.d {
            let mut gemms = Vec::with_capacity(order.len());
            for rank in b.ranks() {
                // The first one has the GPU to itself.
                let sms = self.sms(rank, j > 0)?;
                gemms.push(self.gemm(b, rank, j, &product, sms, &[]));
            }
            let slices = |b: &Builder, rank: Rank| {
                let r = usize::from(rank.0);
                let (row, rows) = chunk(j);
                let all = b.rows(product[r], 0, row, rows);
                let own = if reduces {
                    b.rows(self.fused.c[r], 0, j * self.part, self.part)
                } else {
                    all
                };
                (all, own)
            };
            let after = |rank: Rank| Some((gemms[usize::from(rank.0)], Via::Event).into());
            collective_after(b, order, kind, COMM, slices, after);
        }
        Ok(())
    }

    /// The exchange of chunk j.
    fn exchange(&self, j: u32, lane: Lane) -> Exchange {
        Exchange {
            ranks: self.job.ranks(),
            base: j * self.chunk,
            shard: self.part,
            chunks: 1,
            slabs: 1,
            mover: Mover::CopyEngine,
            push: self.job.params.is("issue", "push"),
            lane,
        }
    }

    fn direct(&self, b: &mut Builder) -> Result<(), Skip> {
        let peers = self.job.ranks() as u16 - 1;
        if self.job.operator.kind == Kind::AgGemm {
            let gather = |b: &mut Builder, j: u32| {
                let exchange = self.exchange(j, COMM);
                (exchange, exchange.gather(b, &self.fused.a, |_, _| None))
            };
            return self.ahead(b, gather, |b, j, (exchange, ids)| {
                for rank in b.ranks() {
                    let after: Vec<Dep> = (1..self.job.ranks())
                        .map(|offset| exchange.arrival(&ids, offset, rank))
                        .collect();
                    self.gemm(b, rank, j, &self.fused.c, 0, &after);
                }
                Ok(())
            });
        }
        let reduces = self.job.operator.kind == Kind::GemmRs;
        let partials = self.fused.partials(b);
        let slots = landing(b, self.fused.tensor_c, self.part * self.d, self.fused.n);
        let sums = Lane(COMM.0 + peers);
        b.name_lane(sums, "reduce");
        for j in 0..self.d {
            let gemms: Vec<TaskId> = b
                .ranks()
                .map(|rank| self.gemm(b, rank, j, &partials, 0, &[]))
                .collect();
            let exchange = self.exchange(j, COMM);
            let slot = |b: &Builder, owner, offset| {
                slot_rows(b, &slots, owner, offset, (j * self.part, self.part))
            };
            let home = |b: &Builder, rank: Rank| {
                let row = match reduces {
                    true => j * self.part,
                    false => exchange.row(rank),
                };
                b.rows(self.fused.c[usize::from(rank.0)], 0, row, self.part)
            };
            let ready = |from: Rank, offset: usize, _| {
                let issuer = exchange.issuer(from, exchange.after(from, offset));
                Some((gemms[usize::from(from.0)], hand_over(from, issuer)).into())
            };
            let own = |rank: Rank| Some((gemms[usize::from(rank.0)], Via::Event).into());
            let reduced = exchange.reduce_scatter(b, sums, &partials, slot, home, ready, own);
            if !reduces {
                // Lanes of their own: the next chunk's parts need not wait for this chunk's sums.
                let exchange = self.exchange(j, Lane(sums.0 + 1));
                exchange.gather(b, &self.fused.c, |owner, _| {
                    Some(reduced[usize::from(owner.0)])
                });
            }
        }
        Ok(())
    }
}
