//! Predicted against measured: the tables of both, and what follows from them.
//!
//! [`cases`] are what an experiment asks for, [`measure`] performs them on real GPUs into the tables
//! [`mod@table`] and [`tasks`]. [`prediction`] is the table of what the model says before;
//! [`analysis`] is what follows from the two, [`peers`] other programs' times, [`divergence`] where a traced run leaves its simulation.

pub mod analysis;
pub mod cases;
mod cells;
pub mod divergence;
pub mod held;
pub mod key;
pub mod measure;
pub mod peers;
pub mod prediction;
pub mod simulated;
pub mod table;
pub mod tasks;
pub mod tiling;

pub use cells::TableError;
