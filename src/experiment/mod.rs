//! Experiments: a grid of cases in a file, performed in parallel into one table.
//!
//! An experiment's file lists topologies, operators with named axes, and strategies; their product
//! is a list of [`Case`]s in a fixed order, each with the strategies tried on it. [`read()`] checks
//! all of it before anything runs. Everything that can be known without performing (which rows,
//! in which order, what they are called) follows from the file alone, so a result table has the
//! same bytes whatever the number of threads, of shards, or of interruptions.
//!
//! ```
//! use duet::experiment;
//! let text = "
//! name: tiny
//! grids:
//!   - name: operators
//!     topologies: [a6000-pairs-4]
//!     axes: { seq: [1024, 2048], hidden: [4096] }
//!     operators: [{ op: ag-gemm, m: seq, n: 4*hidden, k: hidden }]
//!     strategies: [sequential, 'interdecom:d=4']
//! ";
//! let tiny = experiment::parse(text, "tiny.yaml", &[])?;
//! assert_eq!(tiny.cases.len(), 2);
//! assert_eq!(tiny.cases[1].operator.mnk(), Some((2048, 16384, 4096)));
//! assert_eq!(tiny.rows(), 4);
//! # Ok::<(), experiment::ExperimentError>(())
//! ```

pub mod analysis;
pub mod judge;
mod measure;
pub mod merge;
pub mod published;
mod quantity;
mod read;
pub mod results;
pub mod run;

use std::path::PathBuf;
use std::sync::Arc;

pub use measure::Measure;
pub use quantity::{Quantity, QuantityError, milliseconds, percent};
pub use read::{parse, read};

use crate::device::{DType, Device};
use crate::gpu::plan::Products;
use crate::operator::Operator;
use crate::sim::LaunchMode;
use crate::strategy::Choice;
use crate::topology::Topology;
use crate::topology::paths::PathChoice;

/// Why there is no experiment; the text is complete, with the place in the file and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExperimentError {
    /// The file cannot be read.
    #[error("cannot read the experiment `{path}`: {reason}")]
    Unreadable { path: String, reason: String },
    /// The file has mistakes; all are rendered.
    #[error("{0}")]
    Invalid(String),
}

/// An experiment, checked.
#[derive(Clone, Debug)]
pub struct Experiment {
    pub name: String,
    /// What it is for, in one line; may be empty.
    pub about: String,
    /// The file, as it was named.
    pub file: PathBuf,
    pub machines: Vec<Machine>,
    pub grids: Vec<Grid>,
    /// All cases, grid after grid.
    pub cases: Vec<Case>,
    /// Paths set by any grid: columns of the results.
    pub sets: Vec<String>,
    /// Axes of any grid: columns of the results.
    pub axes: Vec<String>,
    /// Names of the figures wanted; `None`: all that fit.
    pub figures: Option<Vec<String>>,
    pub analysis: Option<AnalysisOptions>,
    pub measure: Measure,
}

/// A topology with some of its numbers changed, and where ranks lie on it.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its transfers take [`Self::path`].
    pub topology: Arc<Topology>,
    /// What was changed: path and value as written; also `path` and `gpus`, where the grid has
    /// them.
    pub sets: Vec<(String, String)>,
    pub path: PathChoice,
    /// GPUs that the ranks share; `None`: each has its own.
    pub gpus: Option<u32>,
}

impl Machine {
    /// Rank → GPU: `tp` ranks in blocks of equal size (to one) on the GPUs.
    pub fn placement(&self, tp: u32) -> Vec<u32> {
        let gpus = u64::from(self.gpus.unwrap_or(tp));
        let on = |rank: u32| (u64::from(rank) * gpus / u64::from(tp.max(1))) as u32;
        (0..tp).map(on).collect()
    }
}

/// A named grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    pub name: String,
    pub axes: Vec<Axis>,
}

/// A named list of whole numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    pub name: String,
    pub values: Vec<u64>,
}

/// One operator on one machine.
#[derive(Clone, Debug)]
pub struct Case {
    /// Index into [`Experiment::grids`].
    pub grid: u32,
    /// Index into [`Experiment::machines`].
    pub machine: u32,
    pub operator: Operator,
    pub launch: LaunchMode,
    /// Who multiplies on real GPUs.
    pub products: Products,
    /// A value for each axis of the grid.
    pub values: Box<[u64]>,
    /// What is tried on it, in the order of rows.
    pub strategies: Arc<[Choice]>,
}

/// How overheads are fitted and judged; by default on a third of the cases.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct AnalysisOptions {
    /// Share of the cases to fit on (0–1); the rest judges the fit.
    pub train: f64,
    /// Seed of the hash that chooses them.
    pub seed: u64,
}

impl Default for AnalysisOptions {
    fn default() -> Self {
        Self {
            train: 1.0 / 3.0,
            seed: 1,
        }
    }
}

impl Experiment {
    /// Rows of the result table: the strategies of all cases.
    pub fn rows(&self) -> u64 {
        let rows = self.cases.iter().map(|case| case.strategies.len() as u64);
        rows.sum()
    }
}

/// The element type where none is named: bf16, or fp16 where one of the first `tp` GPUs lacks bf16
/// and none lacks fp16.
pub fn default_dtype(topology: &Topology, tp: u32) -> DType {
    let all = |dtype| lacking(topology, tp, dtype).is_none();
    match !all(DType::Bf16) && all(DType::Fp16) {
        true => DType::Fp16,
        false => DType::Bf16,
    }
}

/// The first of the first `tp` GPUs that cannot multiply this element type.
pub fn lacking(topology: &Topology, tp: u32, dtype: DType) -> Option<&Device> {
    (0..tp)
        .map(|gpu| &**topology.device(gpu))
        .find(|device| device.rate(dtype).is_none())
}
