//! An experiment's analysis in words and tables: [`markdown()`] writes `report.md`, [`summary()`]
//! writes `summary.json`, [`brief`] the few lines that the command line prints.

mod brief;
mod decomposition;
pub mod markdown;
mod models;
mod overview;
pub mod summary;
mod sweeps;
mod tables;

pub(super) use tables::Table;

pub use brief::brief;
pub use markdown::markdown;
pub use summary::summary;
