//! The simulator: a fluid solver and an event engine that perform a schedule on a topology.
//!
//! A task becomes *ready* when its dependencies (each plus its sync cost), the task before it in
//! its lane and its submission by the host are done. It then takes what it holds whole (a copy
//! engine, SMs), waits its start-up and latency, and flows: transfers over links, shared
//! capacities and memories; GEMMs through their waves, sharing memory bandwidth. Speeds are
//! max-min fair at every instant ([`fluid`]), so
//!
//! ```text
//! end = ready + queueing + α + ∫ dt until ∫ rate dt = work
//! ```
//!
//! Worked example: a ring all-gather over n ranks sends n − 1 chunks of S/n one after another, so
//! it takes (n − 1)·(α + S/(n·B)); for 8 ranks, 8 MiB, 50 GB/s and 500 ns that is 150.30064 µs.
//!
//! Not modelled: packets and their headers (bandwidths are payload rates), congestion control,
//! clock changes within a run, and cache contents carried from one task to the next but for the second
//! operand of GEMMs.

mod beside;
mod blocks;
mod cost;
mod engine;
mod executed;
mod explain;
pub mod flows;
pub mod fluid;
mod graph;
mod host;
mod kernels;
mod machine;
mod operands;
mod orders;
mod own;
mod pool;
mod queue;
mod races;
mod scattered;
mod slabs;
mod staging;
mod stored;
mod sums;
mod tiles;
mod waits;

pub use executed::{Executed, executed, sms};
pub use explain::{Evaluation, evaluate, unsplit_gemm, unsplit_own};
pub use orders::Order;
pub use own::{Fused, Rows, Tiled, Tiling};
#[cfg(test)]
pub(crate) use waits::shares;

use crate::device::DType;
use crate::schedule::Schedule;
use crate::timeline::Timeline;
use crate::topology::Topology;
use crate::topology::route::RouteError;
use crate::units::Bytes;

/// How the host hands the work to the GPUs.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum LaunchMode {
    /// Call by call into streams, while the GPUs run.
    #[default]
    Stream,
    /// One graph launch.
    Graph,
}

impl LaunchMode {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Stream, Self::Graph];

    /// The name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Graph => "graph",
        }
    }
}

/// Parts of the model that can be switched off, to see what each costs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Launches, start-ups, waits, flags and submissions take time.
    pub sync_and_launch: bool,
    /// Contention curves, memory sharing, and SMs taken by other kernels.
    pub contention: bool,
    /// GEMMs run in whole waves.
    pub wave_quantisation: bool,
    /// Transfers and collectives take time.
    pub communication: bool,
    /// GEMMs and elementwise kernels take time.
    pub compute: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            sync_and_launch: true,
            contention: true,
            wave_quantisation: true,
            communication: true,
            compute: true,
        }
    }
}

/// When the host hands over the work.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Submission {
    /// While the GPUs run: every task waits for its submission.
    #[default]
    Along,
    /// Before anything begins, as where times are taken behind a gate. What a run costs from its
    /// start event to its end event is part of its time
    /// ([`MoreCosts::run`](crate::device::MoreCosts::run)).
    Beforehand,
}

/// Which lanes are one queue.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Streams {
    /// Every lane of every rank is a queue of its own.
    #[default]
    PerLane,
    /// As on real GPUs: the compute lanes (lane 0) of the ranks of one GPU are one queue, in task
    /// order, and all others are served before it.
    PerGpu,
}

/// Options of a simulation.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub launch: LaunchMode,
    pub submission: Submission,
    pub streams: Streams,
    pub terms: Terms,
    /// Keep counters over time, for traces.
    pub record: bool,
    /// Tiles of fused kernels; without, these take the library's time.
    pub tiling: Option<Tiling>,
    /// Which of the orders in which collectives and GEMMs may take the SMs; none: the middle of all.
    pub order: Option<Order>,
}

/// Why a schedule cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// Two ranks that exchange data have no route.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The placement names a GPU that is not there.
    #[error(
        "rank {rank} is placed on GPU {gpu}, but `{topology}` has {gpus} GPUs: place it on one of 0..{gpus}"
    )]
    Placement {
        rank: usize,
        gpu: u32,
        topology: String,
        gpus: usize,
    },
    /// The GPU cannot compute in this type.
    #[error("`{device}` has no {} peak: choose another --dtype or add it to the GPU profile", dtype.name())]
    NoPeak { device: String, dtype: DType },
    /// A kernel reads or writes memory that it cannot reach directly.
    #[error(
        "{task} reads or writes GPU {gpu} from inside a kernel, but there is no direct path: copy the slice first"
    )]
    NotDirect { task: String, gpu: u32 },
    /// A transfer that no product can perform.
    #[error("{transfer} cannot be performed by an epilogue: {why}")]
    Epilogue { transfer: String, why: String },
    /// The same of a transfer that the product that reads it is to perform.
    #[error("{transfer} cannot be performed by the product that reads it: {why}")]
    Loader { transfer: String, why: String },
    /// A kernel asks for more SMs than the GPU has.
    #[error("{task} asks for {want} SMs, but `{device}` has {have}: ask for fewer blocks")]
    TooManySms {
        task: String,
        want: u32,
        have: u32,
        device: String,
    },
    /// Staged transfers would move more chunks than can be simulated.
    #[error(
        "{task} is staged in chunks of {chunk}: with it, more than {most} chunks move; state larger ones with `staging_chunk` or `chunk`"
    )]
    TooManyChunks {
        task: String,
        chunk: Bytes,
        most: u64,
    },
    /// Tasks wait for one another for ever.
    #[error(
        "deadlock: {} tasks never run, first {first}: it waits for a task that waits for it, or for SMs held by a kernel that waits for it",
        count
    )]
    Deadlock { count: usize, first: String },
}

/// Performs `schedule` on `topology`. Where collectives and GEMMs race and no order is asked for, the timeline is that
/// of the order nearest to the middle of all, stretched to it ([`Order`]).
///
/// # Errors
/// [`SimError`]; a schedule that passed [`crate::schedule`]'s verifier can still ask for routes,
/// SMs or types that the machine does not have.
pub fn simulate(
    schedule: &Schedule,
    topology: &Topology,
    options: &Options,
) -> Result<Timeline, SimError> {
    match options.order.is_none() && orders::races(schedule, topology, options) {
        true => orders::expected(schedule, topology, options),
        false => engine::Engine::new(schedule, topology, *options)?.run(),
    }
}
