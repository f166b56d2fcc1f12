//! One GEMM kernel per rank, or library GEMMs in its place, and shards travelling round rings while it runs.
//!
//! AG+GEMM: shards of A go round; the kernel takes the own shard first and then each as it lands.
//! GEMM+RS: partial sums go round. The sum for rank d begins at d's successor, whose kernel computes
//! that shard first; every rank on the way adds its own product as the tiles' accumulator and
//! passes the sum on, and d adds the last. GEMM+AR: then the finished shards go round.

use super::fused::Kernels;
use super::layout::{Fused, begin, cuttable};
use super::ring_steps::{Course, Ids, Lap, Place, all_gather, slots};
use super::{Job, Skip, affordable, opens};
use crate::operator::Kind;
use crate::schedule::{Builder, Dep, GemmKernel, Schedule, Via};

/// The schedule with the shards of `rows` rows cut among `courses`.
pub(super) fn build(job: &Job<'_>, shard: u32, courses: &[Course]) -> Result<Schedule, Skip> {
    write(job, shard, courses, true)
}

/// The same with library GEMMs in place of the fused kernels.
pub(super) fn build_unfused(
    job: &Job<'_>,
    shard: u32,
    courses: &[Course],
) -> Result<Schedule, Skip> {
    write(job, shard, courses, false)
}

fn write(job: &Job<'_>, shard: u32, courses: &[Course], fuse: bool) -> Result<Schedule, Skip> {
    let lap = Lap {
        ranks: job.ranks(),
        shard,
        chunks: job.params.count("chunks"),
        mover: job.params.mover(),
    };
    for course in courses {
        cuttable(course.rows, lap.chunks)?;
    }
    let n = lap.ranks as u64;
    affordable(3 * n * n * u64::from(lap.chunks) * courses.len() as u64)?;
    let mut b = begin(job);
    for (i, course) in courses.iter().enumerate() {
        let name = match (courses.len(), i) {
            (1, _) => "ring",
            (_, 0) => "first ring",
            _ => "second ring",
        };
        b.name_lane(course.lane, name);
    }
    let fused = Fused::new(&mut b, job, 1)?;
    let kernels = match fuse {
        true => Kernels::new(&mut b, job, &fused, lap.mover, courses.len())?,
        false => Kernels::library(&b, job, &fused, lap.mover, courses.len())?,
    };
    if job.operator.kind == Kind::AgGemm {
        gather(&mut b, lap, courses, &fused, &kernels);
    } else {
        let everyone = job.operator.kind == Kind::GemmAr;
        let sums = scatter(&mut b, lap, courses, &fused, &kernels, everyone);
        if everyone {
            // What is gathered stays where it is, too.
            let back = Lap {
                mover: lap.mover.or_engine(),
                ..lap
            };
            all_gather(&mut b, back, courses, &fused.c, |place| {
                Some(Dep {
                    task: sums.at(0, place),
                    via: kernels.leaves_by(back.mover),
                })
            });
        }
    }
    Ok(b.finish())
}

/// The rows of A and C that `place` works on in a step: the chunk of the block of the position
/// `back` before it.
fn rows(lap: Lap, courses: &[Course], place: Place, back: usize) -> (u32, u32) {
    let course = &courses[place.course];
    let owner = course.at(place.position, back);
    let (row, rows) = lap.chunk(course, place.chunk);
    (u32::from(owner.0) * lap.shard + row, rows)
}

fn gather(b: &mut Builder, lap: Lap, courses: &[Course], fused: &Fused, kernels: &Kernels<'_>) {
    let gated = GemmKernel::Gated;
    // The kernels are submitted before the copies: their own shards need none.
    for rank in b.ranks() {
        let own = (u32::from(rank.0) * lap.shard, lap.shard);
        kernels.in_place(b, rank, own, &fused.c, gated, &[]);
    }
    let sent = all_gather(b, lap, courses, &fused.a, |_| None);
    for step in 0..lap.ranks - 1 {
        for place in lap.each(courses.len()) {
            let rank = courses[place.course].at(place.position, 0);
            let rows = rows(lap, courses, place, step + 1);
            let dep = Dep {
                task: sent.at(step, lap.before(place)),
                via: Via::KernelFlag,
            };
            kernels.in_place(b, rank, rows, &fused.c, gated, &[dep]);
        }
    }
}

/// Returns the tile groups that finish the sums: step 0, place = where the shard is at home.
fn scatter(
    b: &mut Builder,
    lap: Lap,
    courses: &[Course],
    fused: &Fused,
    kernels: &Kernels<'_>,
    everyone: bool,
) -> Ids {
    let last = lap.ranks - 1;
    let landing = slots(b, lap, courses, fused.tensor_c, fused.n);
    let per_step = (courses.len() * lap.ranks) as u32 * lap.chunks;
    let first = b.next_task().0;
    let groups = Ids::new(lap, first, 2 * per_step);
    let sent = Ids::new(lap, first + per_step, 2 * per_step);
    // Where the sum of `step` is at `place`: travelling, or at home in C.
    let at = |b: &Builder, place: Place, step: usize| {
        if step < last {
            return landing.slice(b, lap, courses, place, step);
        }
        let course = &courses[place.course];
        let rank = course.at(place.position, 0);
        let (row, rows) = lap.chunk(course, place.chunk);
        let home = if everyone {
            u32::from(rank.0) * lap.shard
        } else {
            0
        };
        b.rows(fused.c[usize::from(rank.0)], 0, home + row, rows)
    };
    for step in 0..lap.ranks {
        for place in lap.each(courses.len()) {
            let rank = courses[place.course].at(place.position, 0);
            let rows = rows(lap, courses, place, step + 1);
            let out = at(b, place, step);
            if step == 0 {
                kernels.group(b, rank, rows, out, GemmKernel::Scatter, &[]);
            } else {
                let dep = Dep {
                    task: sent.at(step - 1, lap.before(place)),
                    via: kernels.opened_by(),
                };
                kernels.accumulate(b, rank, rows, out, &[dep]);
            }
        }
        if step == last {
            break;
        }
        for place in lap.each(courses.len()) {
            let course = &courses[place.course];
            let next = lap.further(place, 1);
            let (from, to) = (at(b, place, step), at(b, next, step + 1));
            let mut after = vec![Dep {
                task: groups.at(step, place),
                via: kernels.leaves_by(lap.mover),
            }];
            if step > 0 && step + 1 < last {
                // The slot is free once the sum that was in it has moved on.
                after.push(Dep {
                    task: sent.at(step - 1, next),
                    via: opens(lap.mover),
                });
            }
            let rank = course.at(place.position, 0);
            b.transfer(rank, course.lane, from, to, lap.mover, &after);
        }
    }
    Ids::new(lap, groups.at(last, FIRST).0, 2 * per_step)
}

const FIRST: Place = Place {
    course: 0,
    position: 0,
    chunk: 0,
};
