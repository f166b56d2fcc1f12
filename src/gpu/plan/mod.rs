//! The lowering of a schedule to what is enqueued: streams, copies, kernels, events and flags.
//!
//! A [`Plan`] is plain data without a word of CUDA. Its [`steps`](Plan::steps) are in **issue
//! order**, the order in which one host thread hands them over. With s → t for "t begins after s
//! has ended", steps are ordered by
//!
//! ```text
//! s → t   s before t in one stream                                    (stream order)
//! s → t   s → Record(e), Await(e) → t, or the same with a flag        (a wait)
//! s → t   t a member of a collective, s before some member of it      (a rendezvous)
//! fork → every step → join                                            (a run)
//! ```
//!
//! Every wait is for something issued earlier, and every stream follows issue order. So the first
//! step in issue order that has not ended can always go on: no plan deadlocks, however the streams
//! are interleaved, as long as waiting holds no SMs. Only collectives hold SMs while they wait;
//! [`lower`] has the verifier check that these leave room.
//!
//! **Waits are few.** A step waits for another only where neither stream order nor the waits
//! before it in its stream imply that (each step knows, for each stream, how far it has ended: a
//! vector clock); of the steps awaited at one place, the latest issued are looked at first. One
//! record serves all who await a step by events, one flag word all who await it on one GPU.
//!
//! **A run ends before the next begins.** The streams join in the origin stream, and the next run
//! forks from it. So no source is overwritten before its readers are done, no slot of staging
//! memory is filled twice and no flag of the next run is written early, without further counters.
//! The two halves of every arena (`parity`) let the host fill one run's inputs, and read another
//! run's outputs, while a run is under way.
//!
//! ```
//! use duet::gpu::plan::{Options, What, lower};
//! let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/two-gpu.json"));
//! let schedule = duet::schedule::json::read(text, "two-gpu.json")?;
//! let plan = lower(&schedule, &Options::default(), None)?;
//! // A GEMM of the own rows and one of the others on each GPU, which waits for the pushed rows.
//! let count = |f: fn(&What) -> bool| plan.steps.iter().filter(|step| f(&step.what)).count();
//! assert_eq!(count(|w| matches!(w, What::Gemm { .. })), 4);
//! assert_eq!(count(|w| matches!(w, What::Copy { .. })), 2);
//! assert_eq!(count(|w| matches!(w, What::AwaitFlag(_))), 2);
//! assert_eq!(plan.streams.len(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arena;
mod emit;
mod gated;
mod joined;
mod lanes;
mod lower;
mod options;
mod performed;
mod signals;
mod streams;
#[cfg(test)]
mod tests;

mod transfer;
mod windows;

pub use arena::{ALIGNMENT, LEADING};
pub use joined::Joined;
pub use lower::{LowerError, MOST_STREAMS, lower};
pub use options::{Flags, Library, Mode, Options, Path, Products, Waits};

use crate::device::DType;
use crate::gpu::tiles::Tile;
use crate::schedule::{CollectiveKind, Extent, LaunchId, Rank, TaskId, id};

id!(
    /// Index into [`Plan::gpus`].
    Gpu
);
id!(
    /// Index into [`Plan::streams`].
    StreamId
);
id!(
    /// One of [`Plan::events`].
    EventId
);
id!(
    /// Index into [`Plan::flags`].
    FlagId
);
id!(
    /// Index into [`Plan::staging`].
    StagingId
);
id!(
    /// Index into [`Plan::collectives`].
    CallId
);

/// An in-order queue of one GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    pub gpu: Gpu,
    /// Its lane, for people.
    pub name: String,
    /// Whether it is to be served before compute streams.
    pub urgent: bool,
}

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
        /// The kernel of the lowered schedule; products of one kernel may be [`Joined`].
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

    /// The product's shape, as listed in [`Plan::gemms`].
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

/// One entry of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub stream: StreamId,
    /// The task of the schedule that it is for.
    pub task: TaskId,
    pub what: What,
}

/// A 32-bit word that holds the epoch of the run in which it was last written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Where it lies: the GPU that waits.
    pub gpu: Gpu,
    pub writer: StreamId,
    /// The task whose end it makes known.
    pub task: TaskId,
    pub readers: Vec<StreamId>,
}

/// Memory of one GPU.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Arena {
    /// Bytes of one half; runs of parity p work from byte p · `half` on.
    pub half: u64,
}

/// Where a buffer of the schedule lies.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Slot 0.
    pub area: Area,
    pub slots: u16,
    /// Bytes from one slot to the next.
    pub stride: u64,
}

/// A ring of slots in pinned memory, used in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staging {
    pub slots: u32,
    /// Bytes of one slot.
    pub bytes: u64,
    /// Who fills and who empties it.
    pub from: Gpu,
    pub to: Gpu,
}

/// One rank's part in a call of the collective library. Both areas are whole rows, padding
/// included, so that they are contiguous.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Party {
    pub rank: Rank,
    pub stream: StreamId,
    pub input: Area,
    pub output: Area,
}

/// A call of the collective library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub kind: CollectiveKind,
    /// SMs that each member may hold; 0: the library's choice.
    pub sms: u16,
    /// Index into [`Plan::groups`].
    pub group: u32,
    /// In the order of the group.
    pub members: Vec<Party>,
}

/// A matrix product that the plan contains, for choosing algorithms before anything runs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GemmShape {
    pub gpu: Gpu,
    pub m: u32,
    pub n: u32,
    pub k: u32,
    /// Leading dimensions of a, b and out \[elements\].
    pub ld: [u32; 3],
    pub accumulate: bool,
    pub sms: u16,
    /// Largest power of two, up to 256, that divides every operand's offset \[bytes\].
    pub alignment: u32,
}

/// How the streams of a run begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    /// Recorded in the origin at the start of a run.
    pub event: EventId,
    /// They await it; every other stream begins with a wait for one of these.
    pub streams: Vec<StreamId>,
}

/// What is to be enqueued for one run of a schedule, and what it needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub dtype: DType,
    pub mode: Mode,
    pub products: Products,
    /// The tile of Duet's own products; `None`: the one that suits each.
    pub tile: Option<Tile>,
    /// Products with gates that are one launch: by position of the first.
    pub joined: Vec<Joined>,
    /// Whether the verifier went through all of it, as written and as lowered.
    pub verified: bool,
    /// What NCCL is told of the arenas beforehand: nothing, that they are there, that they are windows.
    pub library: Library,
    /// Numbers of the GPUs, ascending.
    pub gpus: Vec<u32>,
    pub streams: Vec<Stream>,
    /// Whether lanes had to share streams, see [`lower`].
    pub shared: bool,
    /// The stream in which a run begins and ends.
    pub origin: StreamId,
    pub fork: Fork,
    /// In issue order, between fork and join.
    pub steps: Vec<Step>,
    /// Recorded at the end of these streams and awaited by the origin; what every other stream
    /// does is implied.
    pub join: Vec<(StreamId, EventId)>,
    /// By event: the GPU of the stream that records it.
    pub events: Vec<Gpu>,
    pub flags: Vec<Flag>,
    /// By GPU.
    pub arenas: Vec<Arena>,
    /// By buffer of the schedule, then scratch that the lowering added.
    pub places: Vec<Place>,
    pub staging: Vec<Staging>,
    /// Distinct groups of ranks that make calls, ascending.
    pub groups: Vec<Vec<Rank>>,
    pub collectives: Vec<Call>,
    /// Distinct, ascending.
    pub gemms: Vec<GemmShape>,
}
