//! `ring`: a bare collective hop by hop round the best ring.
//!
//! All-gather and reduce-scatter take n − 1 steps in one direction, all-reduce both one after the
//! other. All-to-all uses both directions: every message goes the shorter way, antipodal ones
//! forwards, and is stored and forwarded at every hop. In hop h the messages for distances h, h + 1,
//! … share each link, so a ring of n GPUs with bandwidth B and latency α takes, with messages of s
//! bytes, `Σ_{h=1}^{n/2} (α + (n/2 − h + 1)·s/B) = (n/2)·α + (n/2)(n/2 + 1)/2 · s/B`.

use super::fused::CHUNKS;
use super::layout::{Bare, COMM, COMPUTE, begin, cuttable};
use super::params::{Param, Value, Values};
use super::ring_steps::{Course, Lap, Sum, all_gather, reduce_scatter};
use super::rings::Order;
use super::{Job, Skip, Strategy, affordable, opens};
use crate::operator::Kind;
use crate::schedule::{BufferId, Builder, Dep, Lane, Mover, Schedule, TaskId, Via};

#[derive(Debug)]
pub(super) struct Ring;

pub(super) const MOVER: Param = Param {
    name: "mover",
    values: Values::Mover,
    default: Value::Mover(Mover::CopyEngine),
    about: "who copies: the copy engine, or a kernel of so many thread blocks",
    shown: false,
};

const PARAMS: &[Param] = &[
    Param {
        about: "pieces into which every share is cut, each forwarded as it lands (not all-to-all)",
        ..CHUNKS
    },
    MOVER,
];

impl Strategy for Ring {
    fn name(&self) -> &'static str {
        "ring"
    }

    fn summary(&self) -> &'static str {
        "Hop by hop round the best ring on the link graph; all-to-all goes the shorter way round."
    }

    fn params(&self) -> &'static [Param] {
        PARAMS
    }

    fn applies(&self, kind: Kind) -> bool {
        !kind.is_fused() && kind != Kind::PointToPoint
    }

    fn build(&self, job: &Job<'_>) -> Result<Schedule, Skip> {
        let order = job.site.rings().single.clone();
        let mut b = begin(job);
        let bare = Bare::new(&mut b, job)?;
        if job.operator.kind == Kind::AllToAll {
            all_to_all(&mut b, &order, &bare, job.params.mover())?;
        } else {
            b.name_lane(COMM, "ring");
            let courses = Course::whole(order, bare.rows, COMM);
            travel(&mut b, job, &bare, &courses)?;
        }
        Ok(b.finish())
    }
}

/// All-gather, reduce-scatter or all-reduce of `bare` round `courses`.
pub(super) fn travel(
    b: &mut Builder,
    job: &Job<'_>,
    bare: &Bare,
    courses: &[Course],
) -> Result<(), Skip> {
    let lap = Lap {
        ranks: job.ranks(),
        shard: bare.rows,
        chunks: job.params.count("chunks"),
        mover: job.params.mover(),
    };
    for course in courses {
        cuttable(course.rows, lap.chunks)?;
    }
    let n = lap.ranks as u64;
    let transfers = n * (n - 1) * u64::from(lap.chunks) * courses.len() as u64;
    let kind = job.operator.kind;
    let (tasks, deps) = match kind {
        Kind::AllGather => (transfers, transfers),
        Kind::ReduceScatter => (2 * transfers, 3 * transfers),
        _ => (3 * transfers, 4 * transfers),
    };
    affordable(tasks)?;
    b.reserve(tasks as usize, deps as usize);
    if kind == Kind::AllGather {
        all_gather(b, lap, courses, &bare.y, |_| None);
        return Ok(());
    }
    let gathers = kind == Kind::AllReduce;
    let home = |rank: crate::schedule::Rank| match gathers {
        true => u32::from(rank.0) * bare.rows,
        false => 0,
    };
    let sum = Sum {
        tensor: bare.tensor,
        cols: bare.cols,
        x: &bare.x,
        y: &bare.y,
        home: &home,
    };
    let summed = reduce_scatter(b, lap, courses, &sum);
    if gathers {
        all_gather(b, lap, courses, &bare.y, |place| {
            Some((summed.at(0, place), Via::Event).into())
        });
    }
    Ok(())
}

/// Messages of one direction and distance, one lane each.
struct Distance {
    forwards: bool,
    hops: usize,
    lane: Lane,
    /// First row of its messages in the transit buffers.
    transit: u32,
}

fn all_to_all(b: &mut Builder, order: &Order, bare: &Bare, mover: Mover) -> Result<(), Skip> {
    let n = order.len();
    let mut distances = Vec::with_capacity(n);
    let mut transit = 0u64;
    for (forwards, most) in [(true, n / 2), (false, (n - 1) / 2)] {
        for hops in 1..=most {
            let lane = Lane(COMM.0 + distances.len() as u16);
            distances.push(Distance {
                forwards,
                hops,
                lane,
                transit: u32::try_from(transit).unwrap_or(u32::MAX),
            });
            transit += (hops as u64 - 1) * u64::from(bare.rows);
            if n <= 64 {
                let sign = if forwards { '+' } else { '-' };
                b.name_lane(lane, &format!("ring {sign}{hops}"));
            }
        }
    }
    let hops: u64 = distances.iter().map(|d| d.hops as u64).sum();
    affordable(n as u64 * (hops + 1))?;
    let transit = u32::try_from(transit)
        .map_err(|_| Skip::because("messages in transit exceed 4294967295 rows: send less"))?;
    let stores: Vec<BufferId> = if transit == 0 {
        Vec::new()
    } else {
        b.ranks()
            .map(|rank| b.scratch("transit", bare.tensor, rank, transit, bare.cols, 1))
            .collect()
    };
    b.reserve(n * (hops as usize + 1), n * (hops as usize));
    own_blocks(b, bare, mover);
    // The last transfer of every message, by distance and the position where it began.
    let mut last: Vec<Option<TaskId>> = vec![None; distances.len() * n];
    let rank = |position: usize| order[position % n];
    for hop in 0..n / 2 {
        for (i, d) in distances.iter().enumerate().filter(|(_, d)| hop < d.hops) {
            for begin in 0..n {
                let position = |hops: usize| match d.forwards {
                    true => begin + hops,
                    false => begin + n - hops,
                };
                let (source, target) = (rank(begin), rank(position(d.hops)));
                let (here, next) = (rank(position(hop)), rank(position(hop + 1)));
                let store = |b: &Builder, at: usize, hops: usize| {
                    let row = d.transit + (hops as u32 - 1) * bare.rows;
                    b.rows(stores[at], 0, row, bare.rows)
                };
                let from = if hop == 0 {
                    let row = u32::from(target.0) * bare.rows;
                    b.rows(bare.x[usize::from(here.0)], 0, row, bare.rows)
                } else {
                    store(b, here.0.into(), hop)
                };
                let to = if hop + 1 == d.hops {
                    let row = u32::from(source.0) * bare.rows;
                    b.rows(bare.y[usize::from(next.0)], 0, row, bare.rows)
                } else {
                    store(b, next.0.into(), hop + 1)
                };
                let via = opens(mover);
                let landed = last[i * n + begin].map(|task| Dep { task, via });
                let task = b.transfer(here, d.lane, from, to, mover, landed.as_slice());
                last[i * n + begin] = Some(task);
            }
        }
    }
    Ok(())
}

/// Copies every rank's block for itself.
pub(super) fn own_blocks(b: &mut Builder, bare: &Bare, mover: Mover) {
    for rank in b.ranks() {
        let r = usize::from(rank.0);
        let row = u32::from(rank.0) * bare.rows;
        let from = b.rows(bare.x[r], 0, row, bare.rows);
        let to = b.rows(bare.y[r], 0, row, bare.rows);
        b.transfer(rank, COMPUTE, from, to, mover, &[]);
    }
}
