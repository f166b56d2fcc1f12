//! Calls of a collective library.

use super::emit::Need;
use super::lower::Lowering;
use super::{Call, CallId, Party, What};
use crate::schedule::{CollectiveId, Rank, TaskId};

impl Lowering<'_> {
    /// Adds to `needs` of a task that touches the memory of `rank`. A schedule's collective ends for
    /// all members at once, a library's does not: who follows one member, as `known` says, and
    /// touches the memory of another waits for that other too.
    pub(super) fn calls_have_ended(&self, rank: Rank, known: &[Need], needs: &mut Vec<Need>) {
        for &step in self.called.get(&rank).into_iter().flatten() {
            let Some(What::Collective { call, member }) = self.out.works[step].what else {
                continue;
            };
            let first = step - usize::from(member);
            let mut members = first..first + self.calls[call.index()].members.len();
            let after = |s: usize| {
                known
                    .iter()
                    .any(|need| self.out.clocks.before(s, need.step))
            };
            if members.any(after) {
                needs.push(Need::event(step));
            }
        }
    }

    /// Appends the members' steps in the order of their ranks; `first` is their first task, and
    /// `needs` are in task order.
    pub(super) fn collective(
        &mut self,
        id: CollectiveId,
        first: TaskId,
        mut needs: Vec<Vec<Need>>,
    ) {
        let group = &self.schedule.collectives[id.index()];
        let ranks = by_rank(group.members.iter().map(|m| m.rank));
        let call = CallId(self.calls.len() as u32);
        let mut members = group.members.clone();
        members.sort_unstable_by_key(|m| m.rank);
        let known = needs.concat();
        let mut parties = Vec::with_capacity(members.len());
        let mut steps = Vec::with_capacity(members.len());
        for (i, member) in members.iter().enumerate() {
            let stream = self.stream(member.task);
            let what = What::Collective {
                call,
                member: i as u16,
            };
            let task = self.origin[member.task.index()];
            let mut needs = std::mem::take(&mut needs[member.task.index() - first.index()]);
            self.calls_have_ended(member.rank, &known, &mut needs);
            steps.push((stream, task, what, needs));
            parties.push(Party {
                rank: member.rank,
                stream,
                input: self.layout.area(&member.input),
                output: self.layout.area(&member.output),
            });
        }
        let base = self.out.together(steps);
        for (i, member) in members.iter().enumerate() {
            self.called.entry(member.rank).or_default().push(base + i);
        }
        // Tasks end in task order.
        for task in (first.0..first.0 + members.len() as u32).map(TaskId) {
            let at = members.iter().position(|m| m.task == task).unwrap_or(0);
            self.out.end(vec![base + at]);
        }
        self.calls.push(Call {
            kind: group.kind,
            sms: group.sms,
            group: self.groups.partition_point(|g| *g < ranks) as u32,
            members: parties,
        });
    }
}

pub(super) fn by_rank(ranks: impl Iterator<Item = Rank>) -> Vec<Rank> {
    let mut ranks: Vec<Rank> = ranks.collect();
    ranks.sort_unstable();
    ranks
}
