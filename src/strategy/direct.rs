//! `direct`: a bare collective with all flows at once.

use super::direct_steps::{Exchange, landing, slot_rows};
use super::layout::{Bare, COMM, COMPUTE, begin, cuttable, name_peers};
use super::params::{Param, Value, Values};
use super::ring::{MOVER, own_blocks};
use super::{Job, Skip, Strategy, affordable};
use crate::operator::Kind;
use crate::schedule::{Builder, Rank, Schedule};

#[derive(Debug)]
pub(super) struct Direct;

pub(super) const ISSUE: Param = Param {
    name: "issue",
    values: Values::Word(&["push", "pull"]),
    default: Value::Word("push"),
    about: "whether the sender or the receiver issues the copies",
    shown: false,
};

const PARAMS: &[Param] = &[ISSUE, MOVER];

impl Strategy for Direct {
    fn name(&self) -> &'static str {
        "direct"
    }

    fn summary(&self) -> &'static str {
        "Every rank sends to every other at once, each flow in its own lane; sums are local."
    }

    fn params(&self) -> &'static [Param] {
        PARAMS
    }

    fn applies(&self, kind: Kind) -> bool {
        !kind.is_fused()
    }

    fn build(&self, job: &Job<'_>) -> Result<Schedule, Skip> {
        let mut b = begin(job);
        let bare = Bare::new(&mut b, job)?;
        let exchange = Exchange {
            ranks: job.ranks(),
            base: 0,
            lane: COMM,
            shard: bare.rows,
            chunks: 1,
            slabs: 1,
            mover: job.params.mover(),
            push: job.params.is("issue", "push"),
        };
        cuttable(bare.rows, 1)?;
        let n = job.ranks() as u64;
        let kind = job.operator.kind;
        let rounds = if kind == Kind::AllReduce { 2 } else { 1 };
        affordable(rounds * n * n)?;
        if kind == Kind::PointToPoint {
            b.name_lane(COMM, "message");
            let (from, to) = (b.whole(bare.x[0]), b.whole(bare.y[0]));
            let issuer = exchange.issuer(Rank(0), Rank(1));
            b.transfer(issuer, COMM, from, to, exchange.mover, &[]);
            return Ok(b.finish());
        }
        name_peers(&mut b);
        let deps = match kind {
            Kind::AllGather | Kind::AllToAll => 0,
            _ => rounds * n * (n - 1),
        };
        b.reserve((rounds * n * n) as usize, deps as usize);
        match kind {
            Kind::AllGather => {
                exchange.gather(&mut b, &bare.y, |_, _| None);
            }
            Kind::AllToAll => {
                own_blocks(&mut b, &bare, exchange.mover);
                let to = |b: &Builder, owner: Rank, offset| {
                    let from = exchange.before(owner, offset);
                    let row = u32::from(from.0) * bare.rows;
                    b.rows(bare.y[usize::from(owner.0)], 0, row, bare.rows)
                };
                exchange.scatter(&mut b, &bare.x, to, |_, _, _| None);
            }
            _ => {
                let landing = landing(&mut b, bare.tensor, bare.rows, bare.cols);
                let slot = |b: &Builder, owner, offset| {
                    slot_rows(b, &landing, owner, offset, (0, bare.rows))
                };
                let gathers = kind == Kind::AllReduce;
                let home = |b: &Builder, rank: Rank| {
                    let row = if gathers {
                        u32::from(rank.0) * bare.rows
                    } else {
                        0
                    };
                    b.rows(bare.y[usize::from(rank.0)], 0, row, bare.rows)
                };
                let none = |_, _, _| None;
                let sums =
                    exchange.reduce_scatter(&mut b, COMPUTE, &bare.x, slot, home, none, |_| None);
                if gathers {
                    exchange.gather(&mut b, &bare.y, |owner, _| Some(sums[usize::from(owner.0)]));
                }
            }
        }
        Ok(b.finish())
    }
}
