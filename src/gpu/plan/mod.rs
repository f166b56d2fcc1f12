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
mod calls;
mod emit;
mod error;
mod finish;
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
mod what;
mod windows;

pub use crate::schedule::lowered::MOST_STREAMS;
pub use arena::{ALIGNMENT, LEADING};
pub use error::LowerError;
pub use joined::Joined;
pub use lower::lower;
pub use options::{Flags, Library, Mode, Options, Path, Products, Waits};
pub use what::{Area, Load, Rows, Slot, What};

use crate::device::DType;
use crate::gpu::tiles::Tile;
use crate::schedule::{CollectiveKind, Rank, TaskId, id};

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
