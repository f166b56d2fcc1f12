//! Experiments: grids of cases from a YAML file, performed resumably, and what follows from them.

pub mod published;
mod quantity;

pub use quantity::{Quantity, QuantityError, milliseconds, percent};
