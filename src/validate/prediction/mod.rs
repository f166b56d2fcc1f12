//! The table of predictions: what the model says of every case, written before it is measured.
//!
//! One row per case and reference, with the key columns of the measured table. Times are in
//! microseconds with 0.01 us in the file, in seconds here. Every row names the topology and the hash
//! of all its numbers, so that a table says which model it is of.

mod csv;
mod interval;
mod perform;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

pub use interval::{Sigmas, gemm_table_error};
pub use perform::{Model, predict};

use super::cells::TableError;
use super::key::{Case, Subject};

/// What is said of one case; times in seconds, `None` where a model does not apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    pub case: Case,
    /// The simulated makespan.
    pub simulated: Option<f64>,
    /// Where 95 % of measurements should lie, see [`Sigmas`].
    pub interval: Option<[f64; 2]>,
    /// The extended closed form with the overheads it was given, and without any.
    pub closed: Option<f64>,
    pub closed_no_overhead: Option<f64>,
    /// The closed form of Compass without overhead.
    pub compass: Option<f64>,
    /// The closed form's overlap steps, and the operator's message \[bytes\].
    pub steps: f64,
    pub message: f64,
    /// Simulated on the data sheet's machine.
    pub spec: Option<f64>,
    pub chosen: Chosen,
    /// Whether the calibration measured products of the rank's n × k; earlier tables do not say.
    pub gemm_measured: Option<bool>,
    /// Tasks of the schedule, and dependencies between different ranks.
    pub tasks: u32,
    pub handoffs: u32,
    /// Why it is not simulated.
    pub skipped: Option<String>,
}

/// Who takes this strategy for the fastest of its group.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// The simulator, of all strategies of the group.
    pub simulation: bool,
    /// The selector of the closed forms, of those that it can choose.
    pub selector: bool,
}

/// A table of predictions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Predictions {
    pub topology: String,
    /// Hash of all numbers of the topology and of the data sheet's, in hexadecimal.
    pub model: String,
    pub rows: Vec<Prediction>,
    /// By case: the row.
    index: BTreeMap<String, usize>,
}

impl Predictions {
    /// A table of rows, of which the last of a case counts.
    pub fn new(topology: String, model: String, rows: Vec<Prediction>) -> Self {
        let index = rows.iter().enumerate();
        let index = index.map(|(at, row)| (row.case.to_string(), at)).collect();
        Self {
            topology,
            model,
            rows,
            index,
        }
    }

    /// What is said of a case.
    pub fn get(&self, case: &Case) -> Option<&Prediction> {
        self.rows.get(*self.index.get(&case.to_string())?)
    }

    /// What is said of another subject of the same group.
    pub fn beside(&self, case: &Case, subject: Subject) -> Option<&Prediction> {
        self.get(&Case {
            group: case.group.clone(),
            subject,
        })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`TableError`] with everything that is wrong, up to ten mistakes.
    pub fn read(path: &Path) -> Result<Self, TableError> {
        csv::read(path)
    }

    /// Reads a text; `file` is its name in messages.
    ///
    /// # Errors
    /// [`TableError::Invalid`] with everything that is wrong, up to ten mistakes.
    pub fn parse(file: &str, text: &str) -> Result<Self, TableError> {
        csv::parse(file, text)
    }

    /// The whole file.
    pub fn write(&self) -> String {
        csv::write(self)
    }
}
