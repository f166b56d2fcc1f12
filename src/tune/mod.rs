//! Which setting is fastest for a shape: everything is simulated, the best few are measured.
//!
//! [`settings`] lists what there is for an operator: whose products, tiles, chunks, order, movers and SMs
//! for communication. [`rank`] has the simulator put them in order, [`measure()`] performs the first few of
//! that order in turns on real GPUs, and [`Store`] keeps what came of it by machine. A [`Tuned`] says how
//! far the simulator's first choice was from the best.

mod measure;
mod pieces;
mod rank;
mod setting;
mod store;
#[cfg(test)]
mod tests;

pub use measure::{How, measure};
pub use pieces::patient;
pub use rank::{Ranked, Ranking, rank, shortlist};
pub use setting::{Setting, settings};
pub use store::{Store, StoreError, Tried, Tuned};
