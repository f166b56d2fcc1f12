//! Products of a fused kernel that come in slabs of k.
//!
//! A tile goes through all of k with its sums in registers, and waits where it gets to a slab whose
//! columns of A are not there yet. With p the share of k before slab i, whose flag is seen at f, and w
//! the time of a wave, the tiles of a wave end as if they had begun together at
//!
//! ```text
//! start = max over slabs (f − p·w)     end = start + w
//! ```
//!
//! Only the first wave of rows meets slabs that are not there. So what a kernel does before it waits for
//! slab i is w times the share of k of slab i − 1, at most that slab's part of the work; the last slab
//! takes all that is left.

use crate::schedule::{Compute, Schedule, TaskId, Work};

/// One slab of some rows.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Slab {
    /// Its share of k, and that of the slabs before it.
    pub part: f64,
    pub before: f64,
    /// Whether another follows.
    pub more: bool,
}

/// All of k.
const WHOLE: Slab = Slab {
    part: 1.0,
    before: 0.0,
    more: false,
};

impl Slab {
    /// Whether rows come in several.
    pub fn is_part(&self) -> bool {
        self.more || self.before > 0.0
    }

    /// What of a kernel's time is spent on it, where `work` is what its slab alone is of the
    /// whole kernel's products and `wave` the time of a wave by that of the kernel.
    pub fn share(&self, work: f64, wave: f64) -> f64 {
        let rows = work / self.part;
        let first = |part: f64| match wave > 0.0 {
            true => (part * wave).min(part * rows),
            false => part * rows,
        };
        match self.more {
            true => first(self.part),
            false => rows - first(self.before),
        }
    }
}

/// By task: its slab.
#[derive(Debug, Default)]
pub(super) struct Slabs(Vec<Slab>);

impl Slabs {
    /// Of the fused kernels of a schedule, whose tasks are given by kernel.
    pub fn new<'a>(schedule: &Schedule, kernels: impl Iterator<Item = &'a [u32]>) -> Self {
        let compute = |&task: &u32| match schedule.task(TaskId(task)).work {
            Work::Compute(c) => Some(&schedule.computes[c.index()]),
            _ => None,
        };
        let depth = |task: &u32| match compute(task) {
            Some(Compute::Gemm { a, .. }) => f64::from(a.cols.len),
            _ => 0.0,
        };
        let mut slabs = Vec::new();
        for tasks in kernels {
            let joined = |one: &u32, next: &u32| {
                let pair = compute(one).zip(compute(next));
                pair.is_some_and(|(one, next)| one.continued_by(next))
            };
            for rows in tasks.chunk_by(joined).filter(|rows| rows.len() > 1) {
                slabs.resize(schedule.tasks.len(), WHOLE);
                let whole: f64 = rows.iter().map(depth).sum();
                let mut before = 0.0;
                for (i, task) in rows.iter().enumerate() {
                    let part = depth(task) / whole;
                    slabs[*task as usize] = Slab {
                        part,
                        before,
                        more: i + 1 < rows.len(),
                    };
                    before += part;
                }
            }
        }
        Self(slabs)
    }

    /// Of a task.
    pub fn of(&self, task: u32) -> Slab {
        self.0.get(task as usize).copied().unwrap_or(WHOLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_slabs_are_those_of_their_rows() {
        let slab = |before, more| Slab {
            part: 0.25,
            before,
            more,
        };
        let all = [
            slab(0.0, true),
            slab(0.25, true),
            slab(0.5, true),
            slab(0.75, false),
        ];
        // Rows that are half of a kernel of one wave, of four and, as if waves were endless, of none.
        for (wave, first) in [(1.0, 0.125), (0.25, 0.0625), (0.0, 0.125)] {
            let shares = all.map(|slab| slab.share(0.125, wave));
            assert_eq!(shares, [first, first, first, 0.5 - 3.0 * first]);
        }
        assert_eq!(WHOLE.share(0.5, 0.25), 0.5);
        assert!(!WHOLE.is_part() && all.iter().all(Slab::is_part));
    }
}
