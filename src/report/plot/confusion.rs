//! What was chosen against what was right.

use super::page::Caption;

/// A confusion matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Confusion {
    pub caption: Caption,
    /// What rows are, e.g. `fastest in the simulator`.
    pub rows: String,
    /// What columns are, e.g. `chosen`.
    pub columns: String,
    pub names: Vec<String>,
    /// `counts[row][column]`.
    pub counts: Vec<Vec<u64>>,
}
