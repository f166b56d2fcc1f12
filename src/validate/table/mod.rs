//! The table of measured times: one row per case and reference.
//!
//! Times are in microseconds with 0.01 us in the file, in seconds here. `samples_us` holds one
//! makespan per round, joined by `;`; round i of all rows of a group is the same round, so that
//! differences of samples are paired. `makespan_us` is their median. A row that must not be judged
//! (`excluded` = `yes`) stays, with its reason; it may have no times.
//!
//! ```
//! use duet::validate::table;
//! let row = "ag-gemm/8192x4096x8192/bf16/2on2/p2p/stream/sequential,ag-gemm,bf16,8192,4096,8192,2,2,0 1,p2p,\
//! stream,nccl,sequential,3,1,yes,600.00,592.00,609.60,590.00;600.00;612.00,1.50,yes,0.004,no,,1430,690,61,a,580.1,13.0,2026-11-30,7\n";
//! let rows = table::parse("measured.csv", &(table::header() + row)).unwrap();
//! assert_eq!(rows[0].samples.len(), 3);
//! assert!((rows[0].makespan.unwrap() - 600e-6).abs() < 1e-12);
//! assert_eq!(rows[0].line(), row);
//! ```

mod read;
#[cfg(test)]
mod tests;

use std::path::Path;

pub(super) use read::read_case;

use read::Rows;

use super::cells::{Format, TableError, line, micros, yes};
use super::key::{Case, Group};
use crate::gpu::campaign::{library_name, path_name};
use crate::gpu::plan::Library;
use crate::operator::Operator;

/// The columns, in the order of writing.
const COLUMNS: [&str; 33] = [
    "case",
    "op",
    "dtype",
    "m",
    "n",
    "k",
    "tp",
    "gpus",
    "placement",
    "path",
    "launch",
    "library",
    "strategy",
    "rounds",
    "repeats",
    "gated",
    "makespan_us",
    "p10_us",
    "p90_us",
    "samples_us",
    "rank_skew_us",
    "checked",
    "error",
    "excluded",
    "reason",
    "sm_clock_mhz",
    "power_w",
    "temperature_c",
    "machine",
    "driver",
    "cuda",
    "date",
    "seed",
];

const FORMAT: Format = Format {
    what: "a table of measured times",
    columns: &COLUMNS,
    optional: &[],
    remedy: "`duet validate` writes such tables: remove all rows of its group and measure them again",
};

/// How far a median may be from that of its samples, both rounded to 0.01 us \[s\].
const ROUNDING: f64 = 0.02e-6;

/// One case or reference, measured; times in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub case: Case,
    /// Who performs collectives.
    pub library: Library,
    pub rounds: u32,
    /// Runs of the schedule in one sample, which is their mean.
    pub repeats: u32,
    /// Whether everything was submitted before the clock started.
    pub gated: bool,
    /// Median of the samples; there unless the row is excluded, like the two that follow.
    pub makespan: Option<f64>,
    pub p10: Option<f64>,
    pub p90: Option<f64>,
    /// One per round.
    pub samples: Vec<f64>,
    /// Median difference between the first rank's end and the last's.
    pub skew: Option<f64>,
    /// Whether the results were compared with a reference's.
    pub checked: bool,
    /// Largest relative error of the results.
    pub error: Option<f64>,
    /// Why the row must not be judged.
    pub excluded: Option<String>,
    pub conditions: Conditions,
}

/// Under what it was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    pub sm_clock_mhz: Option<f64>,
    pub power_w: Option<f64>,
    pub temperature_c: Option<f64>,
    /// The machine's name, so that two of a kind are told apart.
    pub machine: String,
    pub driver: String,
    pub cuda: String,
    /// `2026-11-30`.
    pub date: String,
    /// Of inputs and of the order within rounds.
    pub seed: u64,
}

/// The first line, its end included.
pub fn header() -> String {
    line(COLUMNS)
}

/// The columns from `op` to `launch`, as measured and predicted tables have them.
pub(super) const KEY: [&str; 10] = [
    "op",
    "dtype",
    "m",
    "n",
    "k",
    "tp",
    "gpus",
    "placement",
    "path",
    "launch",
];

/// The cells of [`KEY`].
pub(super) fn key_cells(group: &Group) -> [String; 10] {
    let Operator {
        kind, dtype, tp, ..
    } = group.operator;
    let whole = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let mnk = group.operator.mnk();
    let placement: Vec<String> = group.placement.iter().map(u32::to_string).collect();
    [
        kind.name().to_owned(),
        dtype.name().to_owned(),
        whole(mnk.map(|(m, ..)| m)),
        whole(mnk.map(|(_, n, _)| n)),
        whole(mnk.map(|(.., k)| k)),
        tp.to_string(),
        group.gpus().to_string(),
        placement.join(" "),
        path_name(&group.path),
        group.launch.name().to_owned(),
    ]
}

impl Row {
    /// As it is written, the line's end included.
    pub fn line(&self) -> String {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let samples: Vec<String> = self.samples.iter().map(|s| micros(Some(*s))).collect();
        let Conditions {
            machine,
            driver,
            cuda,
            date,
            seed,
            ..
        } = &self.conditions;
        let mut cells = vec![self.case.to_string()];
        cells.extend(key_cells(&self.case.group));
        cells.extend([
            library_name(self.library).to_owned(),
            self.case.subject.to_string(),
            self.rounds.to_string(),
            self.repeats.to_string(),
            yes(self.gated).to_owned(),
            micros(self.makespan),
            micros(self.p10),
            micros(self.p90),
            samples.join(";"),
            micros(self.skew),
            yes(self.checked).to_owned(),
            number(self.error),
            yes(self.excluded.is_some()).to_owned(),
            self.excluded.clone().unwrap_or_default(),
            number(self.conditions.sm_clock_mhz),
            number(self.conditions.power_w),
            number(self.conditions.temperature_c),
            machine.clone(),
            driver.clone(),
            cuda.clone(),
            date.clone(),
            seed.to_string(),
        ]);
        line(cells.iter().map(String::as_str))
    }
}

/// The middle value, or the mean of the two in the middle.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.get(sorted.len() / 2)?;
    Some(match sorted.len() % 2 {
        1 => *middle,
        _ => f64::midpoint(sorted[sorted.len() / 2 - 1], *middle),
    })
}

/// Reads a file.
///
/// # Errors
/// [`TableError`] with everything that is wrong, up to ten mistakes.
pub fn read(path: &Path) -> Result<Vec<Row>, TableError> {
    let mut rows = Rows::default();
    FORMAT.read(path, |line, found| rows.push(line, found))?;
    Ok(rows.list)
}

/// Reads a text; `file` is its name in messages.
///
/// # Errors
/// [`TableError::Invalid`] with everything that is wrong, up to ten mistakes.
pub fn parse(file: &str, text: &str) -> Result<Vec<Row>, TableError> {
    let mut rows = Rows::default();
    FORMAT.parse(file, text, |line, found| rows.push(line, found))?;
    Ok(rows.list)
}
