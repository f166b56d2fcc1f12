//! All-gather and reduce-scatter round rings, one hop a step.
//!
//! A [`Course`] is a ring with the rows of every shard that travel on it. Position p sends to
//! position p + 1. In step s of an all-gather p passes on the block of position p − s; in step s of
//! a reduce-scatter it passes on the partial sum for position p − 1 − s, which began at that
//! position's successor and comes home last. With n positions both take n − 1 steps.
//!
//! Tasks are emitted step by step, so that ids follow from (step, course, position, chunk) and
//! nothing is kept per task.

use super::layout::{COMM, COMPUTE, split};
use super::rings::{Order, RankRings};
use super::{Skip, hand_over, opens};
use crate::schedule::{
    BufferId, Builder, Compute, Dep, Lane, Mover, Rank, Slice, TaskId, TensorId,
};

/// A ring and its part of every shard.
#[derive(Clone, Debug)]
pub(super) struct Course {
    pub order: Order,
    /// First of the rows of every shard that travel on it.
    pub start: u32,
    /// How many rows.
    pub rows: u32,
    pub lane: Lane,
}

impl Course {
    /// The whole shards on one ring.
    pub(super) fn whole(order: Order, rows: u32, lane: Lane) -> Vec<Self> {
        vec![Self {
            order,
            start: 0,
            rows,
            lane,
        }]
    }

    /// The best pair of rings, each with its share of the rows.
    ///
    /// # Errors
    /// [`Skip`] when no pair beats one ring, or a shard has one row.
    pub(super) fn pair(rings: &RankRings, rows: u32) -> Result<Vec<Self>, Skip> {
        let (first, second, share) = rings.pair.as_ref().map_err(Skip::because)?;
        if rows < 2 {
            return Err(Skip::because("a shard of 1 row cannot be cut in two"));
        }
        // Whole tiles of a GEMM where there are many; never nothing on one ring.
        let grain = if rows.is_multiple_of(128) && rows >= 1024 {
            128
        } else {
            1
        };
        let parts = rows / grain;
        let cut = (f64::from(parts) * share)
            .round()
            .clamp(1.0, f64::from(parts - 1)) as u32;
        let course = |order: &Order, start, rows, lane| Self {
            order: order.clone(),
            start,
            rows,
            lane,
        };
        let cut = cut * grain;
        let next = Lane(COMM.0 + 1);
        Ok(vec![
            course(first, 0, cut, COMM),
            course(second, cut, rows - cut, next),
        ])
    }

    /// The rank at a position, counted round the ring from `position` by `back` steps backwards.
    pub(super) fn at(&self, position: usize, back: usize) -> Rank {
        let n = self.order.len();
        self.order[(position + 2 * n - back) % n]
    }
}

/// What all courses share.
#[derive(Copy, Clone, Debug)]
pub(super) struct Lap {
    /// Positions of every ring.
    pub ranks: usize,
    /// Rows of a shard.
    pub shard: u32,
    /// Pieces into which each course's rows are cut.
    pub chunks: u32,
    pub mover: Mover,
}

impl Lap {
    /// Chunk `chunk` of a course: rows relative to the shard's first.
    pub(super) fn chunk(&self, course: &Course, chunk: u32) -> (u32, u32) {
        let (start, rows) = split(course.rows, chunk, self.chunks);
        (course.start + start, rows)
    }

    /// All (course, position, chunk) of one step.
    pub(super) fn each(&self, courses: usize) -> impl Iterator<Item = Place> + use<> {
        let (ranks, chunks) = (self.ranks, self.chunks);
        (0..courses).flat_map(move |course| {
            (0..ranks).flat_map(move |position| {
                (0..chunks).map(move |chunk| Place {
                    course,
                    position,
                    chunk,
                })
            })
        })
    }

    /// The number of a place within its step.
    fn index(&self, place: Place) -> usize {
        (place.course * self.ranks + place.position) * self.chunks as usize + place.chunk as usize
    }

    /// The place `by` positions further on.
    pub(super) fn further(&self, place: Place, by: usize) -> Place {
        Place {
            position: (place.position + by) % self.ranks,
            ..place
        }
    }

    /// The place one position before.
    pub(super) fn before(&self, place: Place) -> Place {
        self.further(place, self.ranks - 1)
    }
}

/// One chunk at one position of one course.
#[derive(Copy, Clone, Debug)]
pub(super) struct Place {
    pub course: usize,
    pub position: usize,
    pub chunk: u32,
}

/// Ids of tasks emitted for every step and place.
#[derive(Copy, Clone, Debug)]
pub(super) struct Ids {
    lap: Lap,
    base: u32,
    /// Ids from one step to the next.
    stride: u32,
}

impl Ids {
    pub(super) fn new(lap: Lap, base: u32, stride: u32) -> Self {
        Self { lap, base, stride }
    }

    /// The task of `place` in `step`.
    pub(super) fn at(&self, step: usize, place: Place) -> TaskId {
        TaskId(self.base + step as u32 * self.stride + self.lap.index(place) as u32)
    }
}

/// Gathers every shard of `buffers` (rows by rank number) on every rank. The first step of a chunk
/// waits for `ready`. The id at (step, place) is the transfer **from** that place.
pub(super) fn all_gather(
    b: &mut Builder,
    lap: Lap,
    courses: &[Course],
    buffers: &[BufferId],
    ready: impl Fn(Place) -> Option<Dep>,
) -> Ids {
    let per_step = (courses.len() * lap.ranks) as u32 * lap.chunks;
    let ids = Ids::new(lap, b.next_task().0, per_step);
    for step in 0..lap.ranks - 1 {
        for place in lap.each(courses.len()) {
            let course = &courses[place.course];
            let (here, next) = (
                course.at(place.position, 0),
                course.at(place.position + 1, 0),
            );
            let owner = course.at(place.position, step);
            let (row, rows) = lap.chunk(course, place.chunk);
            let row = u32::from(owner.0) * lap.shard + row;
            let from = b.rows(buffers[usize::from(here.0)], 0, row, rows);
            let to = b.rows(buffers[usize::from(next.0)], 0, row, rows);
            let dep = match step {
                0 => ready(place),
                _ => Some(Dep {
                    task: ids.at(step - 1, lap.before(place)),
                    via: opens(lap.mover),
                }),
            };
            b.transfer(here, course.lane, from, to, lap.mover, dep.as_slice());
        }
    }
    ids
}

/// Where a reduce-scatter reads, keeps and delivers.
pub(super) struct Sum<'a> {
    pub tensor: TensorId,
    pub cols: u32,
    /// Inputs by rank, shards by rank number.
    pub x: &'a [BufferId],
    /// Outputs by rank.
    pub y: &'a [BufferId],
    /// The own shard's first row in the output of a rank.
    pub home: &'a dyn Fn(Rank) -> u32,
}

/// Sums shard r of all inputs into rank r's output. Returns the ids of the last reductions: step 0,
/// place = where the shard is at home.
pub(super) fn reduce_scatter(b: &mut Builder, lap: Lap, courses: &[Course], sum: &Sum<'_>) -> Ids {
    let steps = lap.ranks - 1;
    let landing = slots(b, lap, courses, sum.tensor, sum.cols);
    let per_step = (courses.len() * lap.ranks) as u32 * lap.chunks;
    let transfers = Ids::new(lap, b.next_task().0, 2 * per_step);
    let reductions = Ids::new(lap, transfers.base + per_step, 2 * per_step);
    let mut after: Vec<Dep> = Vec::with_capacity(2);
    for step in 0..steps {
        for place in lap.each(courses.len()) {
            let course = &courses[place.course];
            let here = course.at(place.position, 0);
            after.clear();
            let from = if step == 0 {
                own_part(b, lap, course, place, sum.x, step)
            } else {
                let task = reductions.at(step - 1, place);
                after.push((task, hand_over(here, here)).into());
                landing.slice(b, lap, courses, place, step - 1)
            };
            let next = lap.further(place, 1);
            if step >= 2 {
                // The slot is free once the sum that was in it has moved on.
                let task = transfers.at(step - 1, next);
                after.push((task, opens(lap.mover)).into());
            }
            let to = landing.slice(b, lap, courses, next, step);
            b.transfer(here, course.lane, from, to, lap.mover, &after);
        }
        for place in lap.each(courses.len()) {
            let course = &courses[place.course];
            let here = course.at(place.position, 0);
            let landed = landing.slice(b, lap, courses, place, step);
            let own = own_part(b, lap, course, place, sum.x, step + 1);
            let out = if step + 1 == steps {
                let (row, rows) = lap.chunk(course, place.chunk);
                b.rows(sum.y[usize::from(here.0)], 0, (sum.home)(here) + row, rows)
            } else {
                landed
            };
            let inputs = vec![landed, own];
            let before = lap.before(place);
            let via = hand_over(course.at(before.position, 0), here);
            let after = [(transfers.at(step, before), via).into()];
            b.compute(here, COMPUTE, None, Compute::Reduce { inputs, out }, &after);
        }
    }
    Ids::new(
        lap,
        reductions.base + (steps as u32 - 1) * 2 * per_step,
        2 * per_step,
    )
}

/// What `place` adds to the partial sum that it passes on in `step`.
fn own_part(
    b: &Builder,
    lap: Lap,
    course: &Course,
    place: Place,
    x: &[BufferId],
    step: usize,
) -> Slice {
    let (here, home) = (
        course.at(place.position, 0),
        course.at(place.position, step + 1),
    );
    let (row, rows) = lap.chunk(course, place.chunk);
    let row = u32::from(home.0) * lap.shard + row;
    b.rows(x[usize::from(here.0)], 0, row, rows)
}

/// Double-buffered landing places of travelling partial sums.
pub(super) struct Landing {
    /// By course, then rank.
    buffers: Vec<Vec<BufferId>>,
    slots: u16,
}

/// Two slots for every course and rank (one where one is ever used).
pub(super) fn slots(
    b: &mut Builder,
    lap: Lap,
    courses: &[Course],
    tensor: TensorId,
    cols: u32,
) -> Landing {
    let slots = (lap.ranks - 1).min(2) as u16;
    let buffers = courses
        .iter()
        .map(|course| {
            b.ranks()
                .map(|rank| b.scratch("travelling", tensor, rank, course.rows, cols, slots))
                .collect()
        })
        .collect();
    Landing { buffers, slots }
}

impl Landing {
    /// Where the partial sum of `step` is at `place`.
    pub(super) fn slice(
        &self,
        b: &Builder,
        lap: Lap,
        courses: &[Course],
        place: Place,
        step: usize,
    ) -> Slice {
        let course = &courses[place.course];
        let rank = course.at(place.position, 0);
        let (row, rows) = lap.chunk(course, place.chunk);
        let slot = step % usize::from(self.slots);
        let buffer = self.buffers[place.course][usize::from(rank.0)];
        b.rows(buffer, slot as u16, row - course.start, rows)
    }
}
