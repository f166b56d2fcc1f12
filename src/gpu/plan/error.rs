//! Why a schedule is not performed.

use crate::schedule::lowered::MOST_STREAMS;
use crate::schedule::verify::VerifyError;

/// Why a schedule is not performed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LowerError {
    /// A setting that means nothing.
    #[error("{problem}")]
    Option { problem: String },
    /// The verifier refuses it.
    #[error("the schedule is wrong: {0}")]
    Schedule(VerifyError),
    /// The verifier refuses what would be run in its place.
    #[error("the schedule cannot run on these GPUs: {0}")]
    Lowered(VerifyError),
    /// A transfer that no product can perform.
    #[error("{transfer} cannot be performed by an epilogue: {why}")]
    Epilogue { transfer: String, why: String },
    /// The same of a transfer that the product that reads it is to perform.
    #[error("{transfer} cannot be performed by the product that reads it: {why}")]
    Loader { transfer: String, why: String },
    /// Streams would block one another.
    #[error(
        "GPU {gpu} would need {streams} streams, more than {MOST_STREAMS}; use a strategy with fewer lanes, fewer ranks, or another path"
    )]
    TooManyStreams { gpu: u32, streams: usize },
    /// Not addressable.
    #[error(
        "buffer {buffer} of rank {rank} leaves the address space of GPU {gpu}; use a smaller shape"
    )]
    TooLarge { buffer: String, rank: u16, gpu: u32 },
}
