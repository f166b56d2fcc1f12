//! The groups of a fused kernel as one step.

use super::emit::{Need, Signal};
use super::lower::Lowering;
use super::{Area, FlagId, Load, Rows, What};
use crate::schedule::{Compute, ComputeId, Extent, Rank, Slice, TaskId, Work};

/// A tile group, or what a slab of k adds to the one before.
struct Group {
    compute: ComputeId,
    a: Slice,
    b: Slice,
    out: Slice,
    /// Where its rows go in place of `out`.
    to: Option<Slice>,
    /// Whether it adds to the one before.
    slab: bool,
    /// The steps that it waits for.
    gates: Vec<usize>,
    /// Those of what the kernel brings that it waits for.
    loads: Vec<usize>,
}

/// A fused kernel so far.
#[derive(Default)]
pub(super) struct Open {
    tasks: Vec<TaskId>,
    groups: Vec<Group>,
    /// What the whole kernel waits for.
    needs: Vec<Need>,
    accumulate: bool,
}

impl Lowering<'_> {
    /// Adds a group to its fused kernel, which is a step once all have come.
    pub(super) fn group(&mut self, id: TaskId, c: ComputeId, needs: &[Need]) {
        let task = self.schedule.task(id);
        let (
            Some(launch),
            Compute::Gemm {
                a,
                b,
                out,
                accumulate,
                ..
            },
        ) = (task.launch, &self.schedule.computes[c.index()])
        else {
            return;
        };
        let sum = self.layout.area(out);
        let Some(number) = self.product[id.index()] else {
            return;
        };
        let before = self.open.get(&number);
        let computes = &self.schedule.computes;
        let slab = before
            .and_then(|open| open.groups.last())
            .is_some_and(|group| {
                computes[group.compute.index()].continued_by(&computes[c.index()])
            });
        let adds = before.map_or(*accumulate, |open| open.accumulate);
        // A kernel that adds waits for what it adds to, and for nothing before.
        let (gates, others): (Vec<Need>, Vec<Need>) = needs.iter().copied().partition(|need| {
            need.signal == Signal::Kernel && (!adds || self.writes(need.step, &sum))
        });
        let gates = gates.iter().map(|need| need.step).collect();
        let brought = self.loads.get(&number);
        let loads = (self.schedule.deps(id).iter())
            .filter_map(|dep| brought?.iter().position(|&load| load == dep.task));
        let loads: Vec<usize> = loads.collect();
        let open = self.open.entry(number).or_default();
        open.tasks.push(id);
        open.groups.push(Group {
            compute: c,
            a: *a,
            b: *b,
            out: *out,
            to: self.goes.get(&id).copied(),
            slab,
            gates,
            loads,
        });
        open.accumulate = adds;
        open.needs
            .extend(others.iter().map(|need| match need.signal {
                Signal::Kernel => Need {
                    signal: Signal::Flag,
                    ..*need
                },
                _ => *need,
            }));
        self.out.end(Vec::new());
        let of = |other: &&Option<u32>| **other == Some(number);
        if open.groups.len() < self.product.iter().filter(of).count() {
            return;
        }
        let Some(open) = self.open.remove(&number) else {
            return;
        };
        let known: Vec<Need> = (open.needs.iter().copied())
            .chain(
                open.groups
                    .iter()
                    .flat_map(|group| &group.gates)
                    .map(|&s| Need::event(s)),
            )
            .collect();
        let mut needs = open.needs;
        let to = open.groups.iter().filter_map(|group| group.to);
        let mut ranks: Vec<Rank> = to.map(|to| self.schedule.rank_of(&to)).collect();
        ranks.push(task.rank);
        ranks.sort_unstable();
        ranks.dedup();
        for rank in ranks {
            self.calls_have_ended(rank, &known, &mut needs);
        }
        let Some((a, b, out)) = product(&open.groups) else {
            return;
        };
        let groups = open.groups.iter().map(|group| Rows {
            rows: Extent::new(group.a.rows.start - a.rows.start, group.a.rows.len),
            depth: Extent::new(group.a.cols.start - a.cols.start, group.a.cols.len),
            flags: Vec::new(),
            to: group.to.map(|to| self.layout.area(&to)),
            sets: None,
        });
        let brought = self.loads.get(&number).into_iter().flatten();
        let loads = brought.filter_map(|&load| {
            let Work::Transfer { from, to, .. } = self.schedule.task(load).work else {
                return None;
            };
            Some(Load {
                from: self.layout.area(&from),
                to: self.layout.area(&to),
                task: self.origin[load.index()],
                // Given with all others.
                sets: FlagId(0),
            })
        });
        let what = What::Gated {
            loads: loads.collect(),
            a: self.layout.area(&a),
            b: self.layout.area(&b),
            out: self.layout.area(&out),
            groups: groups.collect(),
            accumulate: open.accumulate,
            sms: self.schedule.launches[launch.index()].sms,
            kernel: launch,
        };
        self.gemms.extend(what.gemm());
        let gates = (open.groups.into_iter())
            .map(|group| (group.gates, group.loads))
            .unzip();
        let stream = self.stream(id);
        let origins = open.tasks.iter().map(|&t| (t, self.origin[t.index()]));
        let tasks: Vec<(TaskId, TaskId)> = origins.collect();
        self.out.gated(stream, &tasks, what, &needs, gates);
    }

    /// Whether a step writes rows of an area and nothing else.
    fn writes(&self, step: usize, area: &Area) -> bool {
        let size = self.schedule.operator.dtype.size();
        let work = self.out.done(step);
        let to = match (&work.what, work.reached) {
            (
                Some(
                    What::Copy { to, .. } | What::CopyKernel { to, .. } | What::FromHost { to, .. },
                ),
                _,
            ) => Some(to),
            (None, Some((kernel, group))) => match &self.out.works[kernel].what {
                Some(What::Gated { groups, .. }) => groups[group].to.as_ref(),
                _ => None,
            },
            _ => None,
        };
        to.is_some_and(|to| {
            let end = |area: &Area| area.at + area.span() * size;
            to.gpu == area.gpu && area.at <= to.at && end(to) <= end(area)
        })
    }
}

/// A, B and C of the product that groups are together.
fn product(groups: &[Group]) -> Option<(Slice, Slice, Slice)> {
    let top = (groups.iter().filter(|group| !group.slab)).min_by_key(|group| group.a.rows.start)?;
    let rows = (groups.iter().filter(|group| !group.slab)).map(|group| group.a.rows.len);
    let rows: u32 = rows.sum();
    let depth = (groups.iter().filter(|group| group.out == top.out)).map(|group| group.a.cols.len);
    let depth: u32 = depth.sum();
    Some((
        top.a.rows(0, rows).cols(0, depth),
        top.b.rows(0, depth),
        top.out.rows(0, rows),
    ))
}
