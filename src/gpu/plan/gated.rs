//! The groups of a fused kernel as one step.

use super::emit::{Need, Signal};
use super::lower::Lowering;
use super::{Rows, What};
use crate::schedule::{Compute, ComputeId, Extent, Slice, Task, TaskId};

/// A fused kernel so far.
#[derive(Default)]
pub(super) struct Open {
    tasks: Vec<TaskId>,
    /// Of each group: its rows of A and of C, and the steps that it waits for.
    groups: Vec<(Slice, Slice, Vec<usize>)>,
    /// What the whole kernel waits for.
    needs: Vec<Need>,
}

impl Lowering<'_> {
    /// Adds a group to its fused kernel, which is a step once all have come.
    pub(super) fn group(&mut self, id: TaskId, c: ComputeId, needs: &[Need]) {
        let task = self.schedule.task(id);
        let (Some(launch), Compute::Gemm { a, b, out, .. }) =
            (task.launch, &self.schedule.computes[c.index()])
        else {
            return;
        };
        let gate = |need: &&Need| need.signal == Signal::Kernel;
        let gates = needs.iter().filter(gate).map(|need| need.step).collect();
        let open = self.open.entry(launch).or_default();
        open.tasks.push(id);
        open.groups.push((*a, *out, gates));
        open.needs.extend(needs.iter().filter(|need| !gate(need)));
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
            sms: self.schedule.launches[launch.index()].sms,
        };
        self.gemms.extend(what.gemm());
        let gates = open.groups.into_iter().map(|(.., gates)| gates).collect();
        let stream = self.stream(id);
        let origins = open.tasks.iter().map(|&t| (t, self.origin[t.index()]));
        let tasks: Vec<(TaskId, TaskId)> = origins.collect();
        self.out.gated(stream, &tasks, what, &needs, gates);
    }
}
