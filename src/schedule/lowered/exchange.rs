//! Collectives as copies and sums.
//!
//! With members 0…p−1 in the order of their ranks and block j of a slice its j-th part by rows:
//!
//! * all-gather: i sends its input to block i of every output;
//! * all-to-all: i sends block j of its input to block i of j's output;
//! * reduce-scatter: i sends block j of its input to scratch of j, and j adds what it has received
//!   to its own block;
//! * all-reduce: the same into block j of j's output, which j then sends to all others.
//!
//! Each member sends to its successor first. The whole is a rendezvous, as a call of the library
//! is in a schedule: its first tasks wait for all that any member waits for, and whoever waits for
//! one member waits for the last task of every one.

use rustc_hash::FxHashMap;

use super::{Writer, hand_over, lane_of};
use crate::schedule::{
    Buffer, BufferId, CollectiveKind, Compute, Dep, Lane, Member, Mover, Rank, Role, Schedule,
    Slice, TaskId, TensorId, Via, Work,
};

type Key = (Rank, Lane, TensorId, u32);

/// Landing places of reductions. One serves all collectives of a lane: each begins after all
/// members of the one before have ended.
pub(super) struct Scratch {
    /// By lane, tensor and columns: rows of a block, blocks.
    sizes: FxHashMap<Key, (u32, u16)>,
}

fn key(schedule: &Schedule, member: &Member) -> Key {
    let (rank, lane) = lane_of(schedule, member);
    let tensor = schedule.buffers[member.input.buffer.index()].tensor;
    (rank, lane, tensor, member.input.cols.len)
}

impl Scratch {
    /// What the collectives that `copied` picks need.
    pub(super) fn new(schedule: &Schedule, copied: impl Fn(usize) -> bool) -> Self {
        let mut sizes: FxHashMap<Key, (u32, u16)> = FxHashMap::default();
        for (c, group) in schedule.collectives.iter().enumerate() {
            if !copied(c) || !adds(group.kind) {
                continue;
            }
            let parts = group.members.len() as u32;
            for member in &group.members {
                let size = sizes.entry(key(schedule, member)).or_default();
                size.0 = size.0.max(member.input.rows.len.div_ceil(parts));
                size.1 = size.1.max(parts as u16 - 1);
            }
        }
        Self { sizes }
    }

    fn buffer(&self, out: &mut Schedule, key: Key) -> BufferId {
        let (rank, lane, tensor, cols) = key;
        let name = format!("received in lane {}", lane.0);
        let same = |b: &Buffer| {
            (b.rank, b.tensor, b.cols, b.role) == (rank, tensor, cols, Role::Scratch)
                && b.name == name
        };
        if let Some(at) = out.buffers.iter().position(same) {
            return BufferId(at as u32);
        }
        let (rows, slots) = self.sizes.get(&key).copied().unwrap_or_default();
        out.buffers.push(Buffer {
            name,
            tensor,
            rank,
            rows,
            cols,
            slots,
            role: Role::Scratch,
            pieces: Vec::new(),
        });
        BufferId(out.buffers.len() as u32 - 1)
    }
}

fn adds(kind: CollectiveKind) -> bool {
    matches!(
        kind,
        CollectiveKind::ReduceScatter | CollectiveKind::AllReduce
    )
}

/// Block `j` of `of` by rows, as even as can be.
fn block(slice: &Slice, j: usize, of: usize) -> Slice {
    let at = |j: usize| (u64::from(slice.rows.len) * j as u64 / of as u64) as u32;
    slice.rows(at(j), at(j + 1) - at(j))
}

struct Exchange<'a> {
    writer: &'a mut Writer,
    schedule: &'a Schedule,
    members: &'a [Member],
    before: &'a [TaskId],
    /// By member: its latest task.
    last: Vec<Option<TaskId>>,
}

/// Writes the tasks of a collective, `members` in the order of their ranks, after `before`.
/// Returns the tasks with which it ends.
pub(super) fn write(
    writer: &mut Writer,
    schedule: &Schedule,
    kind: CollectiveKind,
    members: &[Member],
    before: &[TaskId],
    scratch: &Scratch,
) -> Vec<TaskId> {
    let p = members.len();
    let mut x = Exchange {
        writer,
        schedule,
        members,
        before,
        last: vec![None; p],
    };
    match kind {
        CollectiveKind::AllGather => {
            for i in 0..p {
                for j in (i..i + p).map(|j| j % p) {
                    let to = block(&members[j].output, i, p);
                    x.copy(i, members[i].input, to, &[]);
                }
            }
        }
        CollectiveKind::AllToAll => {
            for i in 0..p {
                for j in (i..i + p).map(|j| j % p) {
                    let from = block(&members[i].input, j, p);
                    x.copy(i, from, block(&members[j].output, i, p), &[]);
                }
            }
        }
        CollectiveKind::ReduceScatter => {
            x.reduce(scratch, |member, _| member.output);
        }
        CollectiveKind::AllReduce => {
            let sums = x.reduce(scratch, |member, j| block(&member.output, j, p));
            for i in 0..p {
                for j in (i + 1..i + p).map(|j| j % p) {
                    let from = block(&members[i].output, i, p);
                    let to = block(&members[j].output, i, p);
                    x.copy(i, from, to, sums[i].as_slice());
                }
            }
        }
    }
    let ends: Vec<TaskId> = x.last.into_iter().flatten().collect();
    match ends.is_empty() {
        true => before.to_vec(),
        false => ends,
    }
}

impl Exchange<'_> {
    /// A task of member `i` after `after` and, if it is its first, after all before the collective.
    fn push(&mut self, i: usize, work: Work, after: &[TaskId]) -> TaskId {
        let member = &self.members[i];
        let lane = lane_of(self.schedule, member);
        let first = match self.last[i] {
            None => self.before,
            Some(_) => &[],
        };
        let deps: Vec<Dep> = first
            .iter()
            .chain(after)
            .map(|&task| {
                let there = self.writer.out.task(task);
                let via = match (there.rank, there.lane) == lane {
                    true => Via::Lane,
                    false => hand_over(there.rank, lane.0),
                };
                Dep { task, via }
            })
            .collect();
        let task = self.writer.push(lane, work, &deps, member.task);
        self.last[i] = Some(task);
        task
    }

    fn copy(&mut self, i: usize, from: Slice, to: Slice, after: &[TaskId]) -> Option<TaskId> {
        if from == to || from.elements() == 0 {
            return None;
        }
        let mover = Mover::CopyEngine;
        Some(self.push(i, Work::Transfer { from, to, mover }, after))
    }

    /// Block j of all inputs into `home(j)`. Returns the sums by member.
    fn reduce(
        &mut self,
        scratch: &Scratch,
        home: impl Fn(&Member, usize) -> Slice,
    ) -> Vec<Option<TaskId>> {
        let p = self.members.len();
        let mut received: Vec<Vec<(Slice, TaskId)>> = vec![Vec::new(); p];
        for i in 0..p {
            for offset in 1..p {
                let j = (i + offset) % p;
                let from = block(&self.members[i].input, j, p);
                if from.elements() == 0 {
                    continue;
                }
                let key = key(self.schedule, &self.members[j]);
                let buffer = scratch.buffer(&mut self.writer.out, key);
                let slot = self.writer.out.whole(buffer, offset as u16 - 1);
                let to = slot.rows(0, from.rows.len);
                if let Some(task) = self.copy(i, from, to, &[]) {
                    received[j].push((to, task));
                }
            }
        }
        let mut sums = Vec::with_capacity(p);
        for (j, parts) in received.into_iter().enumerate() {
            let own = block(&self.members[j].input, j, p);
            let out = home(&self.members[j], j);
            if out.elements() == 0 || (parts.is_empty() && own == out) {
                sums.push(None);
                continue;
            }
            let mut inputs = vec![own];
            inputs.extend(parts.iter().map(|(slice, _)| *slice));
            let after: Vec<TaskId> = parts.iter().map(|(_, task)| *task).collect();
            let work = self.writer.compute(Compute::Reduce { inputs, out });
            sums.push(Some(self.push(j, work, &after)));
        }
        sums
    }
}
