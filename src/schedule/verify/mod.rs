//! The verifier: abstract interpretation of a schedule, before any performer sees it.
//!
//! The meaning of a region of memory is (global tensor, rectangle, set of contributions). One
//! sweep over one topological order performs every task on meanings instead of numbers:
//!
//! * `out = a · b`: a holds rows R and columns K of A, b rows K and columns N of B, both complete;
//!   out then holds (C, R × N, {K}). With `accumulate`, and in sums, sets are united; they must be
//!   disjoint, else a contribution is counted twice.
//! * A transfer copies meanings; a collective permutes and sums them block by block.
//! * In the end every output piece must hold its own rectangle with the full set.
//!
//! One order stands for all of them, because every two accesses to the same memory of which one
//! writes must be ordered by happens-before ([`VerifyError::Race`] else): then each read sees the
//! same write in every order. Reuse of a slot is nothing special: it is a write after reads.
//!
//! Cost: O((T + E) · log T) for T tasks and E dependencies as long as tasks wait directly, or
//! through few lanes, for what they touch, as those of the registry's strategies do. Whatever the
//! schedule, no more than [`Limits::budget`] steps are taken.
//!
//! ```
//! use duet::device::DType;
//! use duet::operator::{Kind, Operator, Shape};
//! use duet::schedule::verify::{Limits, Verified, VerifyError, verify};
//! use duet::schedule::{Buffer, Builder, Extent, Lane, Mover, Piece, Rank, Role};
//! use duet::units::Bytes;
//!
//! let operator = Operator {
//!     kind: Kind::PointToPoint,
//!     shape: Shape::Bytes(Bytes::new(16)),
//!     tp: 2,
//!     dtype: DType::Bf16,
//! };
//! let mut b = Builder::new(operator, "direct", vec![0, 1]);
//! let x = b.tensor("X", 1, 8, 1);
//! let buffer = |name: &str, rank, role, initial| Buffer {
//!     name: name.into(),
//!     tensor: x,
//!     rank: Rank(rank),
//!     rows: 1,
//!     cols: 8,
//!     slots: 1,
//!     role,
//!     pieces: vec![Piece {
//!         rows: Extent::new(0, 1),
//!         cols: Extent::new(0, 8),
//!         global_row: 0,
//!         global_col: 0,
//!         initial: Extent::new(0, initial),
//!     }],
//! };
//! let from = b.buffer(buffer("send", 0, Role::Input, 1));
//! let to = b.buffer(buffer("receive", 1, Role::Output, 0));
//! let empty = b.clone().finish();
//! b.transfer(Rank(0), Lane(1), b.whole(from), b.whole(to), Mover::CopyEngine, &[]);
//! let verified = verify(&b.finish(), &Limits::default()).unwrap();
//! assert!(matches!(verified, Verified::Yes { .. }));
//! let error = verify(&empty, &Limits::default()).unwrap_err();
//! assert!(matches!(error, VerifyError::Output { .. }));
//! ```

mod clocks;
mod contract;
mod error;
mod group;
mod made;
mod memory;
mod operations;
mod order;
mod region;
mod residency;
mod structure;
mod sweep;
mod task;
mod value;

use crate::schedule::Schedule;

pub use error::{Race, VerifyError};

/// What the SM check must know of a GPU.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct GpuSms {
    /// All of them.
    pub total: u32,
    /// Those that a library collective holds when the schedule does not say.
    pub collective: u32,
}

/// How far to look.
#[derive(Copy, Clone)]
pub struct Limits<'a> {
    /// Steps after which the answer is [`Verified::NotVerified`]. A step is a visit to a region or
    /// to a lane, some tens of nanoseconds.
    pub budget: u64,
    /// SMs by GPU number; `None`: whether kernels fit together is not checked.
    pub sms: Option<&'a dyn Fn(u32) -> GpuSms>,
}

impl Limits<'_> {
    /// The default budget; ring all-gather over 256 ranks takes under a hundredth of it.
    pub const BUDGET: u64 = 100_000_000;
}

impl Default for Limits<'_> {
    fn default() -> Self {
        Self {
            budget: Self::BUDGET,
            sms: None,
        }
    }
}

/// The answer where nothing is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verified {
    /// Every performance of the schedule computes what it should.
    Yes {
        /// Steps taken, see [`Limits::budget`].
        steps: u64,
    },
    /// Nobody knows.
    NotVerified {
        /// Why, in words.
        reason: String,
    },
}

/// Why a sweep ended early.
enum Stop {
    Budget,
    Refused(VerifyError),
}

impl From<VerifyError> for Stop {
    fn from(error: VerifyError) -> Self {
        Self::Refused(error)
    }
}

/// Verifies a schedule, whatever is in it.
///
/// # Errors
/// The first fault in the order of checks: structure, the operator's tensors and shares, cycles, the sweep in topological order,
/// outputs, SMs.
pub fn verify(schedule: &Schedule, limits: &Limits<'_>) -> Result<Verified, VerifyError> {
    structure::check(schedule)?;
    contract::check(schedule)?;
    let order = order::Order::new(schedule)?;
    let mut clocks = clocks::Clocks::new(&order);
    let swept = sweep::sweep(schedule, &order, &mut clocks, limits.budget).and_then(|()| {
        match limits.sms {
            Some(sms) => residency::check(schedule, &order, &mut clocks, sms, limits.budget),
            None => Ok(()),
        }
    });
    match swept {
        Ok(()) => Ok(Verified::Yes {
            steps: clocks.steps,
        }),
        Err(Stop::Refused(error)) => Err(error),
        Err(Stop::Budget) => Ok(Verified::NotVerified {
            reason: format!(
                "the budget of {} steps ran out; raise it to verify this schedule",
                limits.budget
            ),
        }),
    }
}
