//! The verifier's oracle: performs a schedule on small matrices of integers modulo a prime, in
//! many random orders, and compares the outputs with the plain product.
//!
//! A task occupies the time from its start to its end. In every order each task draws whether it
//! reads at its start or at its end and whether it writes at its start or at its end; memory that
//! nobody wrote is poison, and whatever is computed from poison is poison. A schedule with a race,
//! a missing wait, a lost or a doubled contribution then computes something else in some order,
//! and the more orders are tried the more surely it is found. What it finds is certain; that it
//! finds nothing is evidence only.
//!
//! Nothing is shared with [`mod@super::verify`] but the schedule itself.
//!
//! ```
//! use duet::schedule::{interpret, json};
//! let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/two-gpu.json"));
//! let mut schedule = json::read(text, "two-gpu.json").unwrap();
//! assert_eq!(interpret(&schedule, 1, 20), Ok(()));
//! // The last task waits for rank 0's rows of A; without that it multiplies what is not there yet.
//! schedule.deps.pop();
//! *schedule.dep_start.last_mut().unwrap() -= 1;
//! assert!(interpret(&schedule, 1, 20).is_err());
//! ```

mod check;
mod machine;
mod orders;
pub(crate) mod reference;

use std::fmt;

use super::Schedule;

/// Numbers are residues modulo this prime.
pub(crate) const PRIME: u64 = (1 << 31) - 1;

/// What memory holds before it is written.
pub(crate) const POISON: u64 = u64::MAX;

/// Largest number of matrix elements, and of multiplications in one order, that is performed.
const LIMIT: u64 = 1 << 24;

/// Why the outputs are not the plain product in every order tried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterpretError {
    /// More than the oracle is made for.
    #[error("{what} come to {size}, more than {LIMIT}; interpret a smaller shape")]
    TooLarge { what: &'static str, size: u64 },
    /// It cannot be performed at all.
    #[error("{place}: {problem}; correct the schedule")]
    Broken { place: String, problem: String },
    /// No task can start and none runs.
    #[error("{done} of {tasks} tasks end, then all wait; the first that waits is {first}")]
    Stuck {
        done: usize,
        tasks: usize,
        first: String,
    },
    /// An output is wrong.
    #[error(
        "in order {order}, row {row}, column {col} of {buffer} ends as {found} instead of {expected}"
    )]
    Wrong {
        order: u32,
        buffer: String,
        row: u32,
        col: u32,
        found: Number,
        expected: Number,
    },
}

/// A residue, or poison.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Number(u64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            POISON => f.write_str("uninitialised memory"),
            n => write!(f, "{n}"),
        }
    }
}

/// Performs `schedule` in `orders` orders drawn from `seed`.
///
/// # Errors
/// [`InterpretError::Wrong`] with the first wrong element of the first wrong order; the other
/// kinds if the schedule cannot be performed.
pub fn interpret(schedule: &Schedule, seed: u64, orders: u32) -> Result<(), InterpretError> {
    check::check(schedule)?;
    let reference = reference::Reference::new(schedule, seed)?;
    let start = machine::Memory::initial(schedule, &reference)?;
    for order in 0..orders {
        let mut random = Random::new(seed ^ (u64::from(order) << 32) ^ 0x5eed);
        let mut memory = start.clone();
        orders::perform(schedule, order, &mut random, &mut memory)?;
        memory.compare(schedule, &reference, order)?;
    }
    Ok(())
}

/// A xorshift64* generator (Vigna 2016, doi:10.1145/2845077).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        // Any state but 0 is good; the multiplication spreads small seeds over all bits.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }
}
