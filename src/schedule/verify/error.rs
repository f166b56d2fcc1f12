//! Why a schedule was refused. Places are named as [`Schedule::describe`] and
//! [`Schedule::describe_slice`] name them.
//!
//! [`Schedule::describe`]: crate::schedule::Schedule::describe
//! [`Schedule::describe_slice`]: crate::schedule::Schedule::describe_slice

/// The kind of a race.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Race {
    /// One task reads what the other writes.
    ReadWrite,
    /// Both write.
    WriteWrite,
}

impl std::fmt::Display for Race {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ReadWrite => "read-write race",
            Self::WriteWrite => "write-write race",
        })
    }
}

/// Why a schedule was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// An id out of range, a slice outside its buffer, shapes that disagree, a task in a place
    /// where it cannot be performed.
    #[error("{place}: {problem}; {remedy}")]
    Structure {
        place: String,
        problem: String,
        remedy: &'static str,
    },
    /// The tensors, inputs or outputs are not those of the operator.
    #[error("not a schedule of {operator}: {problem}; {remedy}")]
    Contract {
        operator: String,
        problem: String,
        remedy: &'static str,
    },
    /// Tasks wait for one another in a circle; each waits for the next, the last for the first.
    #[error(
        "{name}: {cycle}; remove one of these waits or put the tasks of a lane in another order"
    )]
    Cycle { name: &'static str, cycle: String },
    /// A read of memory that holds nothing by then.
    #[error("{task} reads {slice}, but {missing} was not written before{hint}")]
    Missing {
        task: String,
        slice: String,
        missing: String,
        hint: String,
    },
    /// Two tasks touch the same memory, one of them writes, and neither comes before the other.
    #[error(
        "{race} on {slice}: {first} and {second} are in no order; let the second wait for the first"
    )]
    Race {
        race: Race,
        slice: String,
        first: String,
        second: String,
    },
    /// What the operands hold does not fit the operation.
    #[error("{task}: {problem}; {remedy}")]
    Operand {
        task: String,
        problem: String,
        remedy: &'static str,
    },
    /// The same contribution would be added twice.
    #[error(
        "{task}: contributions {contributions} of {slice} would be counted twice; drop the operand that repeats them"
    )]
    CountedTwice {
        task: String,
        slice: String,
        contributions: String,
    },
    /// An output does not hold what it must at the end.
    #[error("output {slice} is incomplete at the end: {problem}; {remedy}")]
    Output {
        slice: String,
        problem: String,
        remedy: &'static str,
    },
    /// Kernels that wait on one another do not fit the SMs of the GPU they share.
    #[error(
        "can deadlock: {kernel} holds {held} of GPU {gpu}'s {sms} SMs while it waits, and {needed} more are needed by {others}; give the kernels fewer SMs or let {kernel} start later"
    )]
    CanDeadlock {
        kernel: String,
        gpu: u32,
        sms: u32,
        held: u32,
        needed: u64,
        others: String,
    },
}
