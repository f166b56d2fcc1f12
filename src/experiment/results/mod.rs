//! The result table: one row per case and strategy.
//!
//! Columns: `grid,case,topology,<set paths…>,operator,m,n,k,bytes,tp,dtype,launch,<axes…>,strategy`
//! say what was performed; `makespan_s,unsplit_gemm_s,lower_bound_s,verified,skipped` what came of
//! it. Where a strategy does not apply, `makespan_s` is empty and `skipped` says why.

mod csv;
mod mistake;
mod parquet;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use csv::{Columns, Words, read_line};
pub use csv::{header, identity, line, record};

use crate::operator::Operator;
use crate::sim::LaunchMode;
use crate::units::count;

/// Columns before the set paths, between them and the axes, and after the axes.
pub(crate) const HEAD: [&str; 3] = ["grid", "case", "topology"];
pub(crate) const MIDDLE: [&str; 8] = ["operator", "m", "n", "k", "bytes", "tp", "dtype", "launch"];
pub(crate) const TAIL: [&str; 6] = [
    "strategy",
    "makespan_s",
    "unsplit_gemm_s",
    "lower_bound_s",
    "verified",
    "skipped",
];

/// A result table; rows in the order of the grid.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Paths set: the names of [`Row::sets`].
    pub sets: Vec<String>,
    /// Axes: the names of [`Row::axes`].
    pub axes: Vec<String>,
    pub rows: Vec<Row>,
}

/// One case under one strategy; times in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub grid: Arc<str>,
    /// Number of the case within the experiment, from 1; its rows stand together.
    pub case: u32,
    pub topology: Arc<str>,
    /// The value set for each path of [`Results::sets`]; `None`: as the topology's file says.
    pub sets: Box<[Option<Arc<str>>]>,
    pub operator: Operator,
    pub launch: LaunchMode,
    /// The value of each axis of [`Results::axes`]; `None`: the grid has no such axis.
    pub axes: Box<[Option<u64>]>,
    /// As written on the command line.
    pub strategy: Arc<str>,
    /// What came of it.
    pub outcome: Outcome,
    /// Fastest unsplit GEMM of one rank; 0 for a bare collective.
    pub unsplit_gemm: f64,
    /// No strategy can be faster.
    pub lower_bound: Option<f64>,
}

/// What came of a strategy.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Performed {
        makespan: f64,
        /// Whether the schedule was proved to compute its operator.
        verified: bool,
    },
    /// It does not apply, and why.
    Skipped(Arc<str>),
}

impl Row {
    /// The makespan \[s\], where the strategy applies.
    pub fn makespan(&self) -> Option<f64> {
        match self.outcome {
            Outcome::Performed { makespan, .. } => Some(makespan),
            Outcome::Skipped(_) => None,
        }
    }
}

/// The form of a result file.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Table {
    #[default]
    Csv,
    Parquet,
}

impl Table {
    /// How its file's name ends.
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }

    /// The whole file.
    ///
    /// # Errors
    /// What the encoder refuses, in words.
    pub fn write(self, results: &Results) -> Result<Vec<u8>, String> {
        match self {
            Self::Parquet => parquet::write(results),
            Self::Csv => {
                let head = line(&header(&results.sets, &results.axes));
                let rows = results.rows.iter().flat_map(|row| line(&record(row)));
                Ok(head.into_iter().chain(rows).collect())
            }
        }
    }
}

/// Why a result file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResultsError {
    /// The file cannot be read.
    #[error("cannot read the results `{path}`: {reason}")]
    Unreadable { path: String, reason: String },
    /// A place is not as `duet run` writes it; rendered.
    #[error("{0}")]
    Invalid(String),
    /// A row of a Parquet file, counted from 1, is not as `duet run` writes it; 0 is its schema.
    #[error("`{path}`, row {row}: {words}")]
    Row {
        path: String,
        row: u64,
        words: String,
    },
    /// A row, counted from 1 below the header, is not what the experiment has in its place.
    #[error("`{path}` was edited: row {row} is not case {case} under {strategy}")]
    Foreign {
        path: String,
        row: u64,
        case: u32,
        strategy: String,
    },
    /// Rows were lost or added.
    #[error("`{path}` has {}, not the {expected} that were written", count(*rows, "row"))]
    Rows {
        path: String,
        rows: u64,
        expected: u64,
    },
}

impl Results {
    /// Reads a result table: a CSV or Parquet file, or the one of the two in a folder.
    ///
    /// # Errors
    /// [`ResultsError`], with the line of a CSV or the number of a Parquet row.
    pub fn read(path: &Path) -> Result<Self, ResultsError> {
        let path = &Self::find(path)?;
        match path.extension().is_some_and(|ending| ending == "parquet") {
            true => parquet::read(path),
            false => csv::read(path),
        }
    }

    /// The number of rows of a CSV or Parquet file, counted without reading them.
    ///
    /// # Errors
    /// [`ResultsError::Unreadable`].
    pub fn count(path: &Path) -> Result<u64, ResultsError> {
        match path.extension().is_some_and(|ending| ending == "parquet") {
            true => parquet::count(path),
            false => csv::count(path),
        }
    }

    /// The result table that `path` stands for: itself, or the one in it.
    ///
    /// # Errors
    /// [`ResultsError::Unreadable`] where there is none.
    pub fn find(path: &Path) -> Result<PathBuf, ResultsError> {
        if !path.is_dir() {
            return match path.exists() {
                true => Ok(path.to_owned()),
                false => Err(ResultsError::Unreadable {
                    path: path.display().to_string(),
                    reason: "there is no such file or folder: `duet run` makes one".to_owned(),
                }),
            };
        }
        let tables = [Table::Csv, Table::Parquet]
            .map(|table| path.join("results").with_extension(table.ending()));
        let partial = path.join("results.csv.partial").exists();
        tables
            .into_iter()
            .find(|path| path.is_file())
            .ok_or_else(|| ResultsError::Unreadable {
                path: path.display().to_string(),
                reason: match partial {
                    true => "the run in this folder is not finished: run the same `duet run` again",
                    false => {
                        "no `results.csv` or `results.parquet` in this folder: `duet run` makes one"
                    }
                }
                .to_owned(),
            })
    }

    /// The rows case by case.
    pub fn cases(&self) -> impl Iterator<Item = &[Row]> {
        self.rows.chunk_by(|a, b| a.case == b.case)
    }

    /// The index of an axis.
    pub fn axis(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|axis| axis == name)
    }
}
