//! The executor: performs a [`Plan`](super::plan::Plan) on real GPUs.
//!
//! A [`Machine`] is some GPUs, opened, with their peers' memory mapped and every library and
//! kernel loaded: whatever loads later would wait for a kernel or a stream that waits itself. A
//! [`Run`] is a plan with the memory, the streams and the signals it needs; each performance has an
//! **epoch**, 1, 2, …, which is the value of its flags, and works in one of the two halves of the
//! arenas.
//!
//! ```text
//! stream mode   fork → steps one by one in issue order → join          flags and events
//! graph mode    the same, captured once for each half, then launched   events, and words inside kernels
//! ```
//!
//! **Nothing waits without a limit.** [`Run::finish`] polls. When the limit passes, it reads the
//! flags, names the first one in issue order that was not written (issue order is a topological
//! order, so nothing before it is missing), opens all of them from the host by writing an epoch
//! 2^30 later, waits once more, and gives the machine up. Since a driver whose queue is full blocks
//! its caller, no stream ever has more than [`2 · HALF`](HALF) commands beyond a point that has
//! passed; the host polls for more room.

mod asked;
mod faults;
mod graphs;
mod issue;
mod lane;
mod machine;
mod memory;
mod needs;
mod places;
mod run;
mod step;
mod tables;
mod warm;
mod watch;

pub use asked::{Asked, asked};
pub use faults::Faults;
pub use issue::{Extras, Start};
pub use lane::HALF;
pub use machine::{Device, Machine, Settings};
pub use memory::memory;
pub use run::Run;
pub use tables::Traced;
pub use watch::{Awaited, first_unmet};
