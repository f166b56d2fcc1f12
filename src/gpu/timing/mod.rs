//! Times of real runs.
//!
//! One measurement:
//!
//! ```text
//! host     enqueue everything ──────────────────────► open the gate
//! GPU g    gate ─► heating ─► barrier of all GPUs ─► start_g ─► streams of g …  tail_s behind each s
//!
//! makespan = max over GPUs g, streams s of g of  tail_s − start_g
//! ```
//!
//! The gate is a word in pinned memory, so that the host's submission is not measured; the barrier
//! is a kernel of one block on each GPU. Both have a limit. Events of different GPUs are never
//! subtracted; the skew of the barrier (a write across the link, 1–2 µs) is what is left. Where
//! more than [`GATED`] steps would queue up in one stream behind the gate, the driver's queue
//! would fill and block the host: then nothing is gated and the row says so. A graph is timed on its
//! origin, from the gate to its end.
//!
//! **Clocks drift** by 13 % under load. So each measurement follows some milliseconds of a product on
//! every GPU ([`heat`](super::heat)), which bring the clock to that of sustained load; and variants
//! take turns, one round after another, beside a reference product and a reference copy of the same
//! round, and a row carries its round's references, the SM clock, power and temperature. Results
//! are medians over rounds with their 10th and 90th percentiles, and ratios to the same round's
//! reference.

mod reference;
mod row;
mod stats;
mod tiles;
mod timer;
mod trace;

pub use reference::{copy_plan, gemm_plan, gemm_plan_by};
pub use row::{Columns, Row, header};
pub use stats::{Summary, quantile};
pub use tiles::{TileTrace, Tiled, tile_trace};
pub use timer::{GATED, Sample, Timer};
pub use trace::trace;
