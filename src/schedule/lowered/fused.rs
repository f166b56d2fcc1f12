//! Which tile groups of fused kernels are performed as one kernel.
//!
//! A kernel of ours computes one product whose rows wait for flags and set flags. Groups of a launch that
//! follow one another are performed so if
//!
//! * together they are such a product: one B, rows of one A into as many rows of one C, without gaps, and
//!   each row once, all as a sum onto what C holds or none; the product of some rows may come in slabs, groups
//!   that follow one another along k, each added to the one before;
//! * nothing that is issued before the last of them waits for another, so that the kernel
//!   can be issued after everything that it waits for, and nobody sees a sum of some of its slabs;
//! * elements are of 16 bits.
//!
//! A launch is cut into as few such products as that allows: a partial sum that goes round a ring and comes home is
//! one product in each step. Groups of which no kernel can be made are products one after another.
//!
//! Products that follow one another are one kernel again if their rows are those of one A without gaps and
//! nothing is told of the earlier ones, or awaited by the later ones, but by flags: the tiles of the next product
//! begin while the last of the one before are stored. Such a kernel is handed over before what its later rows wait
//! for; as that waits for its earlier rows at most, the first step in the order of issue can still always go on.

use rustc_hash::FxHashMap;

use super::epilogue::by_epilogue;
use crate::device::DType;
use crate::schedule::slab::follows;
use crate::schedule::{Compute, Extent, GemmKernel, Rank, Schedule, Slice, TaskId, Via, Work};

/// The groups that are performed as one kernel, in the order of issue, which is `order`. Where kernels
/// cannot `tell` of rows before they end, they end where somebody waits.
pub(super) fn kept(schedule: &Schedule, order: &[TaskId], tell: bool) -> Vec<Vec<TaskId>> {
    if !matches!(schedule.operator.dtype, DType::Bf16 | DType::Fp16) {
        return Vec::new();
    }
    let mut groups: Vec<Vec<TaskId>> = vec![Vec::new(); schedule.launches.len()];
    let mut place = vec![usize::MAX; schedule.tasks.len()];
    let mut lanes: FxHashMap<_, usize> = FxHashMap::default();
    let mut place_in_lane = vec![0; schedule.tasks.len()];
    for (at, &id) in order.iter().enumerate() {
        place[id.index()] = at;
        let task = schedule.task(id);
        let next = lanes.entry((task.rank, task.lane)).or_default();
        place_in_lane[id.index()] = *next;
        *next += 1;
        if let Some(launch) = task.launch {
            groups[launch.index()].push(id);
        }
    }
    // By task: where who waits for it first is issued.
    let mut awaited = vec![usize::MAX; schedule.tasks.len()];
    let mut told = vec![false; schedule.tasks.len()];
    for (t, place) in place.iter().enumerate() {
        for dep in schedule.deps(TaskId(t as u32)) {
            // Inside one product the slab before is no other's.
            if dep.via == Via::Launch && continues(schedule, dep.task, TaskId(t as u32)) {
                continue;
            }
            let first = &mut awaited[dep.task.index()];
            *first = (*first).min(*place);
            // Its own kernel performs a transfer by an epilogue.
            told[dep.task.index()] |= matches!(dep.via, Via::StreamFlag | Via::KernelFlag)
                && !by_epilogue(schedule, TaskId(t as u32));
        }
    }
    let mut kept = Vec::new();
    for groups in groups {
        let mut run = Run::default();
        for next in groups {
            let early = |id: &TaskId| awaited[id.index()] <= place[next.index()];
            let joins = run.tasks.last().is_none_or(|&last| {
                let follows = place_in_lane[last.index()] + 1 == place_in_lane[next.index()];
                let tells = !tell && run.tasks.iter().any(|id| told[id.index()]);
                let product = Product::of(schedule, next);
                let fits = product.is_some_and(|next| run.takes(&next));
                follows && fits && !tells && !run.tasks.iter().any(early)
            });
            if !joins {
                kept.push(std::mem::take(&mut run).tasks);
            }
            run.push(next, Product::of(schedule, next));
        }
        kept.push(run.tasks);
    }
    kept.retain(|run| one_product(schedule, run));
    kept
}

/// Those of `kept` that are performed as kernels, and whether each goes on with the kernel of the one before.
/// A single group that is neither joined nor adds is a product like any other; one that adds waits only
/// before it does. One whose tiles go where a transfer would bring them says itself that they are there.
pub(super) fn kernels(
    schedule: &Schedule,
    order: &[TaskId],
    kept: Vec<Vec<TaskId>>,
    tell: bool,
) -> (Vec<Vec<TaskId>>, Vec<bool>) {
    let joined = match tell {
        true => joined(schedule, order, &kept),
        false => vec![false; kept.len()],
    };
    let adds = |id| Product::of(schedule, id).is_some_and(|one| one.adds);
    let mut leaves = vec![false; schedule.tasks.len()];
    for id in (0..schedule.tasks.len() as u32).map(TaskId) {
        if by_epilogue(schedule, id) {
            let awaited = schedule.deps(id).iter();
            awaited.for_each(|dep| leaves[dep.task.index()] = true);
        }
    }
    let plain = |run: &[TaskId]| matches!(*run, [id] if !adds(id) && !leaves[id.index()]);
    let within = |i: usize| joined[i] || joined.get(i + 1) == Some(&true);
    let stays: Vec<bool> = (0..kept.len())
        .map(|i| within(i) || !plain(&kept[i]))
        .collect();
    let of = kept.into_iter().zip(joined).zip(stays);
    of.filter(|(_, stays)| *stays).map(|(run, _)| run).unzip()
}

/// By product of `kept`: whether it goes on with the kernel of the one before. For kernels that tell of rows.
fn joined(schedule: &Schedule, order: &[TaskId], kept: &[Vec<TaskId>]) -> Vec<bool> {
    let mut place = vec![usize::MAX; schedule.tasks.len()];
    let mut lanes: FxHashMap<_, usize> = FxHashMap::default();
    for &id in order {
        let task = schedule.task(id);
        let next = lanes.entry((task.rank, task.lane)).or_default();
        place[id.index()] = *next;
        *next += 1;
    }
    // By task: whether another lane is told of its end by something else than a flag.
    let mut untold = vec![false; schedule.tasks.len()];
    for (t, task) in schedule.tasks.iter().enumerate() {
        for dep in schedule.deps(TaskId(t as u32)) {
            let there = schedule.task(dep.task);
            untold[dep.task.index()] |= (there.rank, there.lane) != (task.rank, task.lane)
                && !matches!(dep.via, Via::StreamFlag | Via::KernelFlag);
        }
    }
    let awaits_inside = |&id: &TaskId| {
        let here = schedule.task(id);
        schedule.deps(id).iter().all(|dep| {
            let there = schedule.task(dep.task);
            // Order inside a launch is no order of its tiles, but for slabs, which one product adds up.
            let before =
                (there.rank, there.lane) == (here.rank, here.lane) && there.launch != here.launch;
            dep.via == Via::KernelFlag || before || continues(schedule, dep.task, id)
        })
    };
    // Kernels of ranks that share a GPU take turns.
    let alone = |id: TaskId| {
        let gpu = |rank: Rank| schedule.placement[usize::from(rank.0)];
        let here = gpu(schedule.task(id).rank);
        let there = schedule.placement.iter();
        there.filter(|&&gpu| gpu == here).count() == 1
    };
    let goes_on = |before: &[TaskId], next: &[TaskId]| {
        let ([.., last], [first, ..]) = (before, next) else {
            return false;
        };
        schedule.task(*last).launch == schedule.task(*first).launch
            && place[last.index()] + 1 == place[first.index()]
            && alone(*first)
            && !before.iter().any(|id| untold[id.index()])
            && next.iter().all(awaits_inside)
            && one_a(schedule, &[*last, *first]).is_some()
    };
    let mut joined = vec![false; kept.len()];
    let mut first = 0;
    while first < kept.len() {
        let mut end = first + 1;
        while end < kept.len() && goes_on(&kept[end - 1], &kept[end]) {
            end += 1;
        }
        let all: Vec<TaskId> = kept[first..end].iter().flatten().copied().collect();
        let whole = one_a(schedule, &all).is_some_and(|rows| {
            let start = rows.first().map_or(0, |rows| rows.start);
            let gapless = rows.windows(2).all(|r| r[0].start + r[0].len == r[1].start);
            let begins = |tasks: &Vec<TaskId>| {
                let rows = one_a(schedule, tasks)?;
                rows.first().map(|rows| rows.start - start)
            };
            let pieces = |tasks| begins(tasks).is_some_and(|row| row.is_multiple_of(BAND));
            gapless && kept[first..end].iter().all(pieces)
        });
        joined[first + 1..end].fill(whole);
        first = end;
    }
    joined
}

/// A multiple of the rows of every kernel's tiles and clusters: rows that wait for others of the same kernel
/// must not be stored together with these.
pub const BAND: u32 = 256;

/// The rows of A of groups from the top, if they are of one A, times one B, into as many columns.
fn one_a(schedule: &Schedule, tasks: &[TaskId]) -> Option<Vec<Extent>> {
    let groups = tasks.iter().map(|&id| Product::of(schedule, id));
    let groups = groups.collect::<Option<Vec<_>>>()?;
    let first = groups.first()?;
    let same = groups.iter().all(|one| {
        let of = |slice: &Slice| (slice.buffer, slice.slot, slice.cols);
        of(&one.a) == of(&first.a) && one.b == first.b && one.out.cols.len == first.out.cols.len
    });
    let mut rows: Vec<Extent> = groups.iter().map(|one| one.a.rows).collect();
    rows.sort_by_key(|rows| rows.start);
    same.then_some(rows)
}

/// The order of issue with the groups of each kernel where its last one is: nobody waits for any of them
/// before.
pub(super) fn together(order: &[TaskId], kept: &[Vec<TaskId>]) -> Vec<TaskId> {
    let mut kernel_of: FxHashMap<TaskId, &[TaskId]> = FxHashMap::default();
    for tasks in kept {
        kernel_of.extend(tasks.iter().map(|&id| (id, &tasks[..])));
    }
    let mut new = Vec::with_capacity(order.len());
    for id in order {
        match kernel_of.get(id) {
            None => new.push(*id),
            Some(tasks) if tasks.last() == Some(id) => new.extend_from_slice(tasks),
            Some(_) => {}
        }
    }
    new
}

/// A, B and C of a product, and whether it adds.
#[derive(Copy, Clone, Debug)]
struct Product {
    a: Slice,
    b: Slice,
    out: Slice,
    adds: bool,
}

impl Product {
    /// That of a group of a fused kernel.
    fn of(schedule: &Schedule, id: TaskId) -> Option<Self> {
        let Work::Compute(c) = schedule.task(id).work else {
            return None;
        };
        match schedule.computes[c.index()] {
            Compute::Gemm {
                a,
                b,
                out,
                accumulate,
                kernel: GemmKernel::Gated | GemmKernel::Scatter,
                ..
            } => Some(Self {
                a,
                b,
                out,
                adds: accumulate,
            }),
            _ => None,
        }
    }

    /// Whether `next` is the next slab of the same rows.
    fn continues(&self, next: &Self) -> bool {
        let first = [&self.a, &self.b, &self.out];
        next.adds && follows(first, [&next.a, &next.b, &next.out])
    }

    /// Both slabs.
    fn with(mut self, next: &Self) -> Self {
        self.a.cols.len += next.a.cols.len;
        self.b.rows.len += next.b.rows.len;
        self
    }

    /// Whether two are other rows of one A, times one B, into other rows of one C.
    fn alike(&self, other: &Self) -> bool {
        let same = |x: &Slice, y: &Slice| (x.buffer, x.slot, x.cols) == (y.buffer, y.slot, y.cols);
        same(&self.a, &other.a)
            && self.b == other.b
            && same(&self.out, &other.out)
            && self.adds == other.adds
    }
}

/// Whether group `next` is the slab after group `id`.
fn continues(schedule: &Schedule, id: TaskId, next: TaskId) -> bool {
    let compute = |id| match schedule.task(id).work {
        Work::Compute(c) => Some(&schedule.computes[c.index()]),
        _ => None,
    };
    let pair = compute(id).zip(compute(next));
    pair.is_some_and(|(one, next)| one.continued_by(next))
}

/// The products of groups that follow one another, slabs of the same rows as one.
fn products(schedule: &Schedule, tasks: &[TaskId]) -> Option<Vec<Product>> {
    let mut products: Vec<Product> = Vec::with_capacity(tasks.len());
    for &id in tasks {
        let next = Product::of(schedule, id)?;
        match products.last_mut().filter(|last| last.continues(&next)) {
            Some(last) => *last = last.with(&next),
            None => products.push(next),
        }
    }
    Some(products)
}

/// Groups that may become one kernel.
#[derive(Default)]
struct Run {
    tasks: Vec<TaskId>,
    /// The products of the first rows and of the last, so far.
    ends: Option<(Product, Product)>,
}

impl Run {
    /// Whether a group is the next slab or begins other rows.
    fn takes(&self, next: &Product) -> bool {
        let Some((first, last)) = &self.ends else {
            return false;
        };
        if last.continues(next) {
            return true;
        }
        let mut begun = *first;
        begun.a.cols.len = next.a.cols.len.min(first.a.cols.len);
        begun.b.rows.len = next.b.rows.len.min(first.b.rows.len);
        first.alike(last) && begun.alike(next)
    }

    fn push(&mut self, id: TaskId, next: Option<Product>) {
        self.tasks.push(id);
        let Some(next) = next else { return };
        self.ends = Some(match self.ends {
            None => (next, next),
            Some((first, last)) => match last.continues(&next) {
                false => (first, next),
                true => {
                    let last = last.with(&next);
                    let only = first.out == last.out;
                    (if only { last } else { first }, last)
                }
            },
        });
    }
}

/// Whether groups are disjoint rows that follow one another without gaps, each through all of k. A single
/// group that adds is a kernel too, because it waits only before it adds.
fn one_product(schedule: &Schedule, tasks: &[TaskId]) -> bool {
    let Some(mut products) = products(schedule, tasks) else {
        return false;
    };
    products.sort_by_key(|one| one.a.rows.start);
    let [first, ..] = products[..] else {
        return false;
    };
    let size = schedule.operator.dtype.size();
    // Kernels read and write 16 bytes at a time.
    let aligned = [first.a, first.b, first.out]
        .iter()
        .all(|slice| (u64::from(slice.cols.start) * size).is_multiple_of(16));
    let follows = products.windows(2).all(|pair| {
        let [one, next] = pair else {
            return false;
        };
        one.a.rows.end() == u64::from(next.a.rows.start)
            && one.out.rows.end() == u64::from(next.out.rows.start)
    });
    let alike = products
        .iter()
        .all(|one| first.alike(one) && one.a.rows.len == one.out.rows.len);
    aligned && follows && alike
}
