//! Which earlier tasks of its lane a task waits for.
//!
//! A lane is in order: a task begins when the one before has ended. Of transfers through the host that would
//! empty the pipeline between any two of them, so that one leaves its GPU only when the one before has
//! entered the other. That order is kept by streams as it is: of two such transfers between the same GPUs the
//! second leaves after the first in one stream and enters after it in another, and so after all that the
//! first waits for. What is lost is that the first has entered when the second leaves, which matters only where
//! the second reads what the first writes.

use rustc_hash::FxHashMap;

use super::{Area, Gpu};
use crate::schedule::{Lane, Rank, TaskId};

/// A transfer through the host.
#[derive(Copy, Clone, Debug)]
pub(super) struct Staged {
    pub from: Area,
    pub to: Area,
}

impl Staged {
    const fn gpus(&self) -> (Gpu, Gpu) {
        (self.from.gpu, self.to.gpu)
    }
}

/// The last tasks of a lane: one, or transfers through the host that do not wait for one another.
type Last = Vec<(TaskId, Option<Staged>)>;

/// The last tasks of every lane.
#[derive(Default)]
pub(super) struct Lanes(FxHashMap<(Rank, Lane), Last>);

impl Lanes {
    /// The next task of a lane, `staged` if it is such a transfer; returns the tasks whose ends it waits for.
    /// `size` is that of an element \[bytes\].
    pub(super) fn next(
        &mut self,
        lane: (Rank, Lane),
        id: TaskId,
        staged: Option<Staged>,
        size: u64,
    ) -> Vec<TaskId> {
        let last = self.0.entry(lane).or_default();
        let apart = staged.is_some_and(|next| {
            last.iter().all(|(_, before)| {
                before.is_some_and(|before| {
                    before.gpus() == next.gpus() && !meet(&before.to, &next.from, size)
                })
            })
        });
        let before = match apart {
            true => Vec::new(),
            false => std::mem::take(last),
        };
        last.push((id, staged));
        before.into_iter().map(|(id, _)| id).collect()
    }
}

/// Whether two areas may have memory in common.
fn meet(a: &Area, b: &Area, size: u64) -> bool {
    let end = |area: &Area| area.at + area.span() * size;
    a.gpu == b.gpu && a.at < end(b) && b.at < end(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(gpu: u32, at: u64) -> Area {
        Area {
            gpu: Gpu(gpu),
            at,
            ld: 8,
            rows: 2,
            cols: 8,
        }
    }

    #[test]
    fn transfers_through_the_host_wait_for_those_whose_rows_they_read() {
        let lane = (Rank(0), Lane(1));
        let mut lanes = Lanes::default();
        let staged = |from, to| Some(Staged { from, to });
        let mut next = |id, staged| lanes.next(lane, TaskId(id), staged, 2);
        // Other rows each time, between the same GPUs.
        assert_eq!(next(0, staged(rows(0, 0), rows(1, 0))), []);
        assert_eq!(next(1, staged(rows(0, 32), rows(1, 32))), []);
        // The other way round: in other streams.
        assert_eq!(
            next(2, staged(rows(1, 64), rows(0, 64))),
            [0, 1].map(TaskId)
        );
        assert_eq!(next(3, staged(rows(1, 96), rows(0, 96))), []);
        // Anything else comes after all, and before what follows.
        assert_eq!(next(4, None), [2, 3].map(TaskId));
        assert_eq!(next(5, staged(rows(1, 96), rows(0, 96))), [TaskId(4)]);
        // On a GPU of two ranks, rows that the first brings.
        assert_eq!(next(6, staged(rows(0, 32), rows(0, 256))), [TaskId(5)]);
        assert_eq!(next(7, staged(rows(0, 280), rows(0, 512))), [TaskId(6)]);
        assert_eq!(next(8, staged(rows(0, 288), rows(0, 512))), []);
    }
}
