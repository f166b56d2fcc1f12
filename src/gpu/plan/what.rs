//! What steps do, and to which memory.

use super::{CallId, EventId, FlagId, GemmShape, Gpu, StagingId};
use crate::schedule::{Extent, LaunchId, TaskId};

/// A rectangle in the arena of a GPU, row-major.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Area {
    pub gpu: Gpu,
    /// Bytes from the start of the run's half of the arena.
    pub at: u64,
    /// Elements from one row to the next.
    pub ld: u32,
    pub rows: u32,
    pub cols: u32,
}

impl Area {
    /// Elements from the first to the last, those between its rows included.
    pub const fn span(&self) -> u64 {
        match self.rows {
            0 => 0,
            rows => (rows as u64 - 1) * self.ld as u64 + self.cols as u64,
        }
    }

    /// Whether nothing lies between its rows, so that a copy is one-dimensional.
    pub const fn contiguous(&self) -> bool {
        self.rows <= 1 || self.ld == self.cols
    }
}

/// A chunk in pinned memory, packed row after row.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    pub staging: StagingId,
    pub slot: u32,
}

/// Rows of a product that wait for the same flags, or a slab of them: those columns of A, to be added to the
/// slab before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    pub rows: Extent,
    /// Of k; all of it where rows come at once.
    pub depth: Extent,
    pub flags: Vec<FlagId>,
    /// Where these rows of C go in place of theirs in it: on another GPU.
    pub to: Option<Area>,
    /// The kernel writes it once these rows and those of all groups before are there.
    pub sets: Option<FlagId>,
}

/// What a product's kernel brings itself, from its start on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Load {
    pub from: Area,
    pub to: Area,
    /// The task of the schedule that it is for.
    pub task: TaskId,
    /// Written by the kernel when it is there.
    pub sets: FlagId,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A copy by a copy engine, within the arenas.
    Copy { from: Area, to: Area },
    /// A copy by a kernel of so many thread blocks, which at its end writes the flag that another kernel
    /// waits for inside.
    CopyKernel {
        from: Area,
        to: Area,
        blocks: u16,
        sets: Option<FlagId>,
    },
    /// A chunk from the stream's GPU into pinned memory.
    ToHost { from: Area, to: Slot },
    /// A chunk from pinned memory into the stream's GPU.
    FromHost { from: Slot, to: Area },
    /// `out = a · b`, or `out += a · b`; `sms` 0: all that are free.
    Gemm {
        a: Area,
        b: Area,
        out: Area,
        accumulate: bool,
        sms: u16,
    },
    /// The same by one of Duet's kernels, whose rows are taken in the order of `groups`, each
    /// once its flags have the run's epoch or a later one; with `accumulate` they are awaited just
    /// before the product is added.
    Gated {
        a: Area,
        b: Area,
        out: Area,
        groups: Vec<Rows>,
        accumulate: bool,
        sms: u16,
        /// What its groups wait for and it brings itself, one after another.
        loads: Vec<Load>,
        /// The kernel of the lowered schedule; products of one kernel may be [joined](super::Joined).
        kernel: LaunchId,
    },
    /// `out = Σ inputs`; `out` may be one of them.
    Add { inputs: Vec<Area>, out: Area },
    /// `out = f(inputs)`, element by element, with its own traffic \[bytes\] and arithmetic.
    Pointwise {
        inputs: Vec<Area>,
        out: Area,
        bytes: u64,
        flops: f64,
    },
    /// Member `member` of a call; the steps of all members of a call follow one another and are
    /// submitted as one group.
    Collective { call: CallId, member: u16 },
    /// Marks that everything before it in its stream has ended.
    Record(EventId),
    /// The stream waits for the event's latest record.
    Await(EventId),
    /// The run's epoch into the flag, once everything before it in its stream has ended.
    WriteFlag(FlagId),
    /// The stream waits until the flag has the run's epoch or a later one.
    AwaitFlag(FlagId),
}

impl What {
    /// A, B and C of a product.
    pub const fn product(&self) -> Option<(&Area, &Area, &Area)> {
        match self {
            Self::Gemm { a, b, out, .. } | Self::Gated { a, b, out, .. } => Some((a, b, out)),
            _ => None,
        }
    }

    /// The product's shape, as listed in [`Plan::gemms`](super::Plan::gemms).
    pub fn gemm(&self) -> Option<GemmShape> {
        let (a, b, out) = self.product()?;
        let (accumulate, sms) = match self {
            Self::Gemm {
                accumulate, sms, ..
            }
            | Self::Gated {
                accumulate, sms, ..
            } => (*accumulate, *sms),
            _ => return None,
        };
        let mut offsets = a.at | b.at | out.at | 256;
        if let Self::Gated { groups, .. } = self {
            let to = groups.iter().filter_map(|group| group.to);
            to.for_each(|area| offsets |= area.at);
        }
        Some(GemmShape {
            gpu: out.gpu,
            m: out.rows,
            n: out.cols,
            k: a.cols,
            ld: [a.ld, b.ld, out.ld],
            accumulate,
            sms,
            alignment: 1 << offsets.trailing_zeros(),
        })
    }
}
