//! The groups of a fused kernel as one step.

use super::emit::{Need, Signal};
use super::lower::Lowering;
use super::{Area, Rows, What};
use crate::schedule::{Compute, ComputeId, Extent, Slice, Task, TaskId};

/// A fused kernel so far.
#[derive(Default)]
pub(super) struct Open {
    tasks: Vec<TaskId>,
    /// Of each group: its rows of A and of C, and the steps that it waits for.
    groups: Vec<(Slice, Slice, Vec<usize>)>,
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
        // A kernel that adds waits for what it adds to, and for nothing before.
        let (gates, others): (Vec<Need>, Vec<Need>) = needs.iter().copied().partition(|need| {
            need.signal == Signal::Kernel && (!accumulate || self.writes(need.step, &sum))
        });
        let gates = gates.iter().map(|need| need.step).collect();
        let open = self.open.entry(launch).or_default();
        open.tasks.push(id);
        open.groups.push((*a, *out, gates));
        open.accumulate = *accumulate;
        open.needs
            .extend(others.iter().map(|need| match need.signal {
                Signal::Kernel => Need {
                    signal: Signal::Flag,
                    ..*need
                },
                _ => *need,
            }));
        self.out.end(Vec::new());
        let of = |task: &&Task| task.launch == Some(launch);
        if open.groups.len() < self.schedule.tasks.iter().filter(of).count() {
            return;
        }
        let Some(open) = self.open.remove(&launch) else {
            return;
        };
        let known: Vec<Need> = (open.needs.iter().copied())
            .chain(
                open.groups
                    .iter()
                    .flat_map(|(.., g)| g)
                    .map(|&s| Need::event(s)),
            )
            .collect();
        let mut needs = open.needs;
        self.calls_have_ended(task.rank, &known, &mut needs);
        let start = |slice: fn(&(Slice, Slice, Vec<usize>)) -> &Slice| {
            let first = open.groups.iter().map(slice).min_by_key(|s| s.rows.start);
            let rows = open.groups.iter().map(|g| slice(g).rows.len).sum();
            first.map(|first| Slice {
                rows: Extent::new(first.rows.start, rows),
                ..*first
            })
        };
        let (Some(whole_a), Some(whole_out)) = (start(|(a, ..)| a), start(|(_, out, _)| out))
        else {
            return;
        };
        let groups = open.groups.iter().map(|(a, ..)| Rows {
            rows: Extent::new(a.rows.start - whole_a.rows.start, a.rows.len),
            flags: Vec::new(),
            sets: None,
        });
        let what = What::Gated {
            a: self.layout.area(&whole_a),
            b: self.layout.area(b),
            out: self.layout.area(&whole_out),
            groups: groups.collect(),
            accumulate: open.accumulate,
            sms: self.schedule.launches[launch.index()].sms,
        };
        self.gemms.extend(what.gemm());
        let gates = open.groups.into_iter().map(|(.., gates)| gates).collect();
        let stream = self.stream(id);
        let origins = open.tasks.iter().map(|&t| (t, self.origin[t.index()]));
        let tasks: Vec<(TaskId, TaskId)> = origins.collect();
        self.out.gated(stream, &tasks, what, &needs, gates);
    }

    /// Whether a step writes rows of an area and nothing else.
    fn writes(&self, step: usize, area: &Area) -> bool {
        let size = self.schedule.operator.dtype.size();
        match &self.out.works[step].what {
            Some(
                What::Copy { to, .. } | What::CopyKernel { to, .. } | What::FromHost { to, .. },
            ) => {
                let end = |area: &Area| area.at + area.span() * size;
                to.gpu == area.gpu && area.at <= to.at && end(to) <= end(area)
            }
            _ => false,
        }
    }
}
