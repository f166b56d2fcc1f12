//! Predicted against measured: the tables of both, and what follows from them.

mod cells;
pub mod key;
pub mod prediction;
pub mod table;

pub use cells::TableError;
