//! The schedule: a task graph over tensor slices, the one object that every performer performs.
//!
//! A [`Schedule`] is plain data. Tasks live in in-order lanes (streams), where the tasks of one fused
//! kernel overlap; beyond lane order they wait for the tasks in their dependency list. Slices are rectangles of buffers; a slice whose
//! buffer belongs to another rank than the task's is remote and takes a path.
//!
//! Tensors are global; a buffer holds pieces of one. What a region of a buffer means is
//! (global tensor, rectangle, set of contributions). Contributions are half-open intervals: of the
//! global k dimension for a GEMM's product, of ranks for a bare reduction; a tensor's *full* set is
//! `[0, contributions)`.

mod builder;
mod ids;
pub mod interpret;
pub mod json;
pub mod lowered;
mod memory;
mod slab;
pub mod verify;

use crate::operator::Operator;

pub use builder::Builder;
pub(crate) use ids::id;
pub use ids::{BufferId, CollectiveId, ComputeId, LaunchId, TaskId, TensorId};
pub use interpret::{InterpretError, interpret};
pub use memory::{Buffer, Extent, Piece, Role, Slice, Tensor};
pub use verify::verify;

/// A rank of the operator; the placement maps it to a GPU.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u16);

/// An in-order queue of one rank (a CUDA stream).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(pub u16);

/// Who moves the bytes of a transfer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Mover {
    /// A copy engine of the task's GPU.
    CopyEngine,
    /// A copy kernel of `blocks` thread blocks, one SM each.
    Sm { blocks: u16 },
    /// The product whose result it is: its tiles are stored at the destination, and nowhere else.
    Epilogue,
    /// The product that reads it: its kernel brings it as it begins, by threads that do not multiply.
    Loader,
}

impl Mover {
    /// The same, or the copy engine in place of a product.
    #[must_use]
    pub const fn or_engine(self) -> Self {
        match self {
            Self::Epilogue | Self::Loader => Self::CopyEngine,
            other => other,
        }
    }
}

/// How a GEMM is performed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum GemmKernel {
    /// A library call.
    Library,
    /// A fused kernel whose tile groups wait for their inputs.
    Gated,
    /// A fused kernel whose tile groups leave as they finish.
    Scatter,
}

/// Collective kinds of the library.
///
/// Each slice is cut by rows into as many equal blocks as there are members. Block i belongs to
/// the member with the i-th lowest **rank**; the ring order of the members is a matter of the
/// library's route only.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum CollectiveKind {
    /// Block i of every output = the input of member i. In place: input i is block i of output i.
    AllGather,
    /// Output i = Σ over members of block i of their input. In place: output i is block i of input i.
    ReduceScatter,
    /// Every output = Σ of the inputs. In place: output and input are the same slice.
    AllReduce,
    /// Block j of output i = block i of input j. Never in place.
    AllToAll,
}

/// Which implementation of a collective.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum CollectiveLibrary {
    /// NCCL or RCCL, ring algorithm.
    Ring,
}

/// Work on the SMs other than transfers and collectives.
#[derive(Clone, Debug, PartialEq)]
pub enum Compute {
    /// `out = a · b`, or `out += a · b` with `accumulate`.
    Gemm {
        a: Slice,
        b: Slice,
        out: Slice,
        accumulate: bool,
        kernel: GemmKernel,
        /// SMs it may use; 0: all that are free.
        sms: u16,
    },
    /// `out = Σ inputs`, elementwise; `out` may be one of the inputs.
    Reduce { inputs: Vec<Slice>, out: Slice },
    /// `out = f(inputs)`, elementwise, with its own traffic and arithmetic.
    Pointwise {
        inputs: Vec<Slice>,
        out: Slice,
        bytes: u64,
        flops: f64,
    },
}

/// One rendezvous over a group of ranks; each member has one task that refers to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Collective {
    pub kind: CollectiveKind,
    pub library: CollectiveLibrary,
    /// SMs that each member holds; 0: the device profile's number.
    pub sms: u16,
    /// Members in ring order, each with its input and output slice.
    pub members: Vec<Member>,
}

/// One rank's part in a collective.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Member {
    pub rank: Rank,
    pub task: TaskId,
    pub input: Slice,
    pub output: Slice,
}

/// What a task does.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Work {
    /// Copy a slice onto another of the same shape.
    Transfer {
        from: Slice,
        to: Slice,
        mover: Mover,
    },
    /// SM work, see [`Schedule::computes`].
    Compute(ComputeId),
    /// This rank's part of a collective, see [`Schedule::collectives`].
    Collective(CollectiveId),
}

/// How a dependency is made known to the waiting task; performers charge each kind its cost.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Via {
    /// Order within the lane: no signal needed.
    Lane,
    /// Order within one fused kernel.
    Launch,
    /// An event recorded in one lane, awaited by another; after a fused kernel, not inside it.
    Event,
    /// A flag written by a stream operation and awaited by one.
    StreamFlag,
    /// A flag awaited inside a kernel.
    KernelFlag,
}

/// A dependency.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Dep {
    pub task: TaskId,
    pub via: Via,
}

/// A task; at most 64 bytes, because schedules have millions of them.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Task {
    pub work: Work,
    pub rank: Rank,
    pub lane: Lane,
    pub launch: Option<LaunchId>,
}

const _: () = assert!(size_of::<Task>() <= 64);

/// One fused kernel: its tasks begin in task order and overlap, so that only their own
/// dependencies order them; tile groups open as their flags arrive, and waves are quantised once
/// for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub name: String,
    pub rank: Rank,
    /// SMs it may use; 0: all that are free.
    pub sms: u16,
}

/// A task graph with its buffers and its placement.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    pub operator: Operator,
    /// The strategy that wrote it, with its parameters, or `file`.
    pub strategy: String,
    pub tensors: Vec<Tensor>,
    pub buffers: Vec<Buffer>,
    pub tasks: Vec<Task>,
    /// `deps[dep_start[t]..dep_start[t + 1]]` are task t's dependencies (compressed rows).
    pub dep_start: Vec<u32>,
    pub deps: Vec<Dep>,
    pub computes: Vec<Compute>,
    pub collectives: Vec<Collective>,
    pub launches: Vec<Launch>,
    /// Rank → GPU number; several ranks may share a GPU (virtual ranks).
    pub placement: Vec<u32>,
    /// Names of lanes, for traces: `(rank-independent lane, name)`.
    pub lanes: Vec<(Lane, String)>,
}

impl Schedule {
    /// The dependencies of `task`.
    pub fn deps(&self, task: TaskId) -> &[Dep] {
        let start = self.dep_start[task.index()] as usize;
        let end = self.dep_start[task.index() + 1] as usize;
        &self.deps[start..end]
    }

    /// The task with this id.
    pub fn task(&self, task: TaskId) -> &Task {
        &self.tasks[task.index()]
    }

    /// The rank that owns the slice's memory.
    pub fn rank_of(&self, slice: &Slice) -> Rank {
        self.buffers[slice.buffer.index()].rank
    }

    /// Bytes of a slice.
    pub fn bytes(&self, slice: &Slice) -> u64 {
        slice.elements() * self.operator.dtype.size()
    }

    /// A slice of the whole slot `slot` of a buffer.
    pub fn whole(&self, buffer: BufferId, slot: u16) -> Slice {
        let b = &self.buffers[buffer.index()];
        Slice {
            buffer,
            slot,
            rows: Extent::new(0, b.rows),
            cols: Extent::new(0, b.cols),
        }
    }

    /// A name for messages: `task 17 (rank 2, lane comm, transfer)`.
    pub fn describe(&self, id: TaskId) -> String {
        let task = self.task(id);
        let lane = self
            .lanes
            .iter()
            .find(|(lane, _)| *lane == task.lane)
            .map_or_else(|| task.lane.0.to_string(), |(_, name)| name.clone());
        let work = match task.work {
            Work::Transfer { .. } => "transfer",
            Work::Compute(c) => match self.computes[c.index()] {
                Compute::Gemm { .. } => "gemm",
                Compute::Reduce { .. } => "reduce",
                Compute::Pointwise { .. } => "pointwise",
            },
            Work::Collective(_) => "collective",
        };
        format!("task {} (rank {}, lane {lane}, {work})", id.0, task.rank.0)
    }

    /// A name for messages: `A_gather[rank 1, slot 0, rows 0..64, cols 0..128]`.
    pub fn describe_slice(&self, slice: &Slice) -> String {
        let buffer = &self.buffers[slice.buffer.index()];
        format!(
            "{}[rank {}, slot {}, rows {}..{}, cols {}..{}]",
            buffer.name,
            buffer.rank.0,
            slice.slot,
            slice.rows.start,
            slice.rows.end(),
            slice.cols.start,
            slice.cols.end()
        )
    }
}
