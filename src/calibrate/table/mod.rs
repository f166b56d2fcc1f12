//! Times of strategies as a CSV file: what `duet run` and `duet compare --format csv` write, and
//! what a measurement on real GPUs is typed into.
//!
//! Columns are found by name, in any order; others are ignored. Needed are `topology`, `operator`,
//! `m`, `n`, `k` (or `bytes`, for bare collectives), `tp`, `dtype`, `strategy` and `makespan_s` (or
//! `seconds`); `launch`, `weight` and `skipped` may be there. A column named like a path of `--set`
//! (`links.pcie.bandwidth`) changes the row's machine. A row without a time whose `skipped` says
//! why is passed over, and so is a line that repeats the header.
//!
//! ```
//! use duet::calibrate::table;
//! let text = "topology,operator,m,n,k,tp,dtype,strategy,seconds
//! a6000-pairs-8,ag-gemm,8192,49152,12288,8,bf16,interdecom:d=4,1.425e-2
//! ";
//! let table = table::parse("times.csv", text).unwrap();
//! assert_eq!(table.rows[0].case(), "a6000-pairs-8 ag-gemm m=8192 n=49152 k=12288 tp=8 bf16");
//! let error = table::parse("times.csv", &text.replace("1.425e-2", "14.25 ms")).unwrap_err();
//! assert!(error.to_string().ends_with("help: write 0.01425"));
//! ```

mod columns;
mod row;

use std::path::Path;

use crate::input::{Diagnostic, Diagnostics, Span, csv, decode, read_file};
use crate::operator::Operator;
use crate::strategy::Choice;
use columns::Columns;

/// Largest file \[bytes\].
const LARGEST: u64 = 256 << 20;

/// A file that is not a table of times; the text says where and how to put it right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The file cannot be read.
    #[error(
        "cannot read `{file}`: {reason}\n  help: give a CSV file, e.g. the `results.csv` that `duet run` wrote"
    )]
    Unreadable { file: String, reason: String },
    /// The file has mistakes; all are rendered.
    #[error("{0}")]
    Invalid(String),
}

/// One time.
#[derive(Clone, Debug)]
pub struct Row {
    /// Line in the file, from 1.
    pub line: usize,
    /// Built-in name, file, or the name that a file's topology has.
    pub topology: String,
    /// `PATH=VALUE` overrides of the machine.
    pub sets: Vec<String>,
    pub operator: Operator,
    pub strategy: Choice,
    /// `stream` or `graph`, where the file says.
    pub launch: Option<String>,
    /// Above 0.
    pub seconds: f64,
    /// Above 0; 1 where the file has none.
    pub weight: f64,
    /// Where its topology, ranks and strategy stand.
    pub places: Places,
}

/// Where the parts of a row stand in the file.
#[derive(Clone, Debug)]
pub struct Places {
    pub topology: Span,
    pub tp: Span,
    pub strategy: Span,
}

impl Row {
    /// The case: what is computed where. The rows of one case differ by their strategies.
    pub fn case(&self) -> String {
        let mut case = self.topology.clone();
        for set in &self.sets {
            case += &format!(" {set}");
        }
        case += &format!(" {}", self.operator);
        if let Some(launch) = &self.launch {
            case += &format!(" {launch}");
        }
        case
    }
}

/// A file's times.
#[derive(Clone, Debug)]
pub struct Table {
    file: String,
    text: String,
    pub rows: Vec<Row>,
    /// Rows without a time, passed over.
    pub skipped: usize,
}

impl Table {
    /// An error about places that the rows gave: all mistakes, rendered.
    pub fn wrong(&self, found: &Diagnostics) -> TableError {
        TableError::Invalid(found.render(&self.file, &self.text))
    }
}

/// Reads a file.
///
/// # Errors
/// [`TableError`] with everything that is wrong in it, up to ten mistakes.
pub fn read(path: &Path) -> Result<Table, TableError> {
    let file = path.display().to_string();
    match read_file(path, LARGEST) {
        Ok(bytes) => parse(&file, decode(&file, &bytes).map_err(TableError::Invalid)?),
        Err(error) => Err(TableError::Unreadable {
            file,
            reason: error.to_string(),
        }),
    }
}

/// Reads a text; `file` is its name in messages.
///
/// # Errors
/// [`TableError::Invalid`] with everything that is wrong in it, up to ten mistakes.
pub fn parse(file: &str, text: &str) -> Result<Table, TableError> {
    let mut found = Diagnostics::default();
    let mut table = Table {
        file: file.to_owned(),
        text: text.to_owned(),
        rows: Vec::new(),
        skipped: 0,
    };
    fill(&mut table, text, &mut found);
    match found.is_empty() {
        true => Ok(table),
        false => Err(table.wrong(&found)),
    }
}

/// Outputs written one after another into a file repeat the header.
fn is_header(record: &csv::Record<'_>, header: &csv::Record<'_>) -> bool {
    let texts = |record: &csv::Record<'_>| -> Vec<String> {
        record
            .cells
            .iter()
            .map(|cell| cell.text.to_string())
            .collect()
    };
    record.cells[0].text == header.cells[0].text && texts(record) == texts(header)
}

fn fill(table: &mut Table, text: &str, found: &mut Diagnostics) {
    let mut records = csv::records(text);
    let header = match records.next() {
        Some(Ok(header)) => header,
        Some(Err(error)) => return found.push(error),
        None => {
            let empty = Diagnostic::new(0..0, "the file is empty", "expected a line of columns");
            return found.push(empty.help(format!("begin with `{}`", columns::EXAMPLE)));
        }
    };
    let Some(columns) = Columns::of(&header, found) else {
        return;
    };
    // Lines are counted along the way: counting from the start for each row would be quadratic.
    let (mut line, mut counted) = (1, 0);
    for record in records {
        let record = match record {
            Ok(record) => record,
            Err(error) => return found.push(error),
        };
        let start = record.span().start;
        line += text[counted..start].matches('\n').count();
        counted = start;
        if is_header(&record, &header) {
            continue;
        }
        match columns.row(&record, found) {
            Some(row::Read::Time(row)) => table.rows.push(Row { line, ..*row }),
            Some(row::Read::Skipped) => table.skipped += 1,
            None => {}
        }
    }
    if table.rows.is_empty() && found.is_empty() {
        let message = match table.skipped {
            0 => "the file has no rows".to_owned(),
            1 => "its only row has no time".to_owned(),
            skipped => format!("none of {skipped} rows has a time"),
        };
        let empty = Diagnostic::new(header.span(), message, "expected times below these columns");
        found.push(empty.help("add a line per measured time"));
    }
}
