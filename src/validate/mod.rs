//! Predicted against measured: the tables of both, and what follows from them.
//!
//! [`cases`] are what an experiment asks for, [`measure`] performs them on real GPUs into the tables
//! [`mod@table`] and [`tasks`].

pub mod cases;
mod cells;
pub mod key;
pub mod measure;
pub mod prediction;
pub mod table;
pub mod tasks;

pub use cells::TableError;
