//! Reading tables that this room writes: every cell by its column's name, every mistake with its
//! place.

use std::path::Path;
use std::str::FromStr;

use crate::input::csv::{Cell, Record, records};
use crate::input::{Diagnostic, Diagnostics, closest, decode, list, read_file};

/// Largest file \[bytes\].
const LARGEST: u64 = 256 << 20;

/// A file that is no such table; the text says where and how to put it right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The file cannot be read.
    #[error("cannot read `{file}`: {reason}\n  help: name a table that Duet wrote")]
    Unreadable { file: String, reason: String },
    /// The file has mistakes; all are rendered.
    #[error("{0}")]
    Invalid(String),
}

/// A table's columns and what it is called in messages.
pub(super) struct Format {
    /// E.g. `a table of measured times`.
    pub what: &'static str,
    /// All of them are needed, in any order; others are ignored.
    pub columns: &'static [&'static str],
    /// Columns that a table may lack; their cells are then empty.
    pub optional: &'static [&'static str],
    /// What to do about a file that is none.
    pub remedy: &'static str,
}

/// One line of a table.
pub(super) struct Line<'r, 't> {
    record: &'r Record<'t>,
    /// By column of the format, optional ones last: the cell.
    at: &'r [Option<usize>],
    format: &'r Format,
}

impl Format {
    /// Reads a file; `row` sees its lines in order.
    ///
    /// # Errors
    /// [`TableError`] with everything that is wrong, up to ten mistakes.
    pub fn read(
        &self,
        path: &Path,
        row: impl FnMut(&Line<'_, '_>, &mut Diagnostics),
    ) -> Result<(), TableError> {
        let file = path.display().to_string();
        match read_file(path, LARGEST) {
            Ok(bytes) => {
                let text = decode(&file, &bytes).map_err(TableError::Invalid)?;
                self.parse(&file, text, row)
            }
            Err(error) => Err(TableError::Unreadable {
                file,
                reason: error.to_string(),
            }),
        }
    }

    /// The same with a text.
    pub fn parse(
        &self,
        file: &str,
        text: &str,
        row: impl FnMut(&Line<'_, '_>, &mut Diagnostics),
    ) -> Result<(), TableError> {
        let mut found = Diagnostics::default();
        self.lines(text, row, &mut found);
        match found.is_empty() {
            true => Ok(()),
            false => Err(TableError::Invalid(found.render(file, text))),
        }
    }

    fn lines(
        &self,
        text: &str,
        mut row: impl FnMut(&Line<'_, '_>, &mut Diagnostics),
        found: &mut Diagnostics,
    ) {
        let mut records = records(text);
        let header = match records.next() {
            Some(Ok(header)) => header,
            Some(Err(error)) => return found.push(error),
            None => {
                let empty = Diagnostic::new(0..0, "the file is empty", "expected a header");
                return found.push(empty.help(self.remedy));
            }
        };
        let Some(at) = self.header(&header, found) else {
            return;
        };
        for record in records {
            let record = match record {
                Ok(record) => record,
                Err(error) => return found.push(error),
            };
            let (cells, expected) = (record.cells.len(), header.cells.len());
            if cells != expected {
                let message = format!("the row has {cells} cells, the header {expected}");
                let wrong = Diagnostic::new(record.span(), message, "torn or edited");
                found.push(wrong.help(self.remedy));
                continue;
            }
            let line = Line {
                record: &record,
                at: &at,
                format: self,
            };
            row(&line, found);
            if found.is_full() {
                return;
            }
        }
    }

    /// Where each column is.
    fn header(&self, header: &Record<'_>, found: &mut Diagnostics) -> Option<Vec<Option<usize>>> {
        let place = |name: &&str| header.cells.iter().position(|cell| cell.text == **name);
        let (known, absent): (Vec<&str>, Vec<&str>) =
            (self.columns.iter()).partition(|name| place(name).is_some());
        for (i, cell) in header.cells.iter().enumerate() {
            let known = self.columns.iter().chain(self.optional);
            let known = known.into_iter().any(|name| *name == cell.text);
            if known && place(&&*cell.text) != Some(i) {
                let message = format!("the column `{}` is there twice", cell.text);
                let twice = Diagnostic::new(cell.span.clone(), message, "the second one");
                found.push(twice.help("keep one of them"));
                return None;
            }
        }
        if absent.is_empty() {
            return Some(
                self.columns
                    .iter()
                    .chain(self.optional)
                    .map(place)
                    .collect(),
            );
        }
        let message = match known.len() {
            0 => format!("this is not {}", self.what),
            _ => {
                let (s, are) = match absent.len() {
                    1 => ("", "is"),
                    _ => ("s", "are"),
                };
                format!("the column{s} {} {are} missing", list(absent.clone()))
            }
        };
        let near = (header.cells.iter())
            .filter(|cell| !known.contains(&&*cell.text))
            .find_map(|cell| Some((cell, closest(&cell.text, absent.iter().copied())?)));
        found.push(match near {
            Some((cell, meant)) => Diagnostic::new(cell.span.clone(), message, "unknown column")
                .help(format!("did you mean `{meant}`?")),
            None => {
                Diagnostic::new(header.span(), message, "expected other columns").help(self.remedy)
            }
        });
        None
    }
}

impl<'t> Line<'_, 't> {
    /// The cell of a column of the format; `None` where the table lacks it.
    fn cell(&self, name: &'static str) -> Option<&Cell<'t>> {
        let mut names = self.format.columns.iter().chain(self.format.optional);
        let place = names.position(|known| *known == name)?;
        self.record.cells.get(self.at[place]?)
    }

    /// What stands there.
    pub fn text(&self, name: &'static str) -> &str {
        self.cell(name).map_or("", |cell| &cell.text)
    }

    /// Pushes a mistake about a cell.
    pub fn wrong(&self, name: &'static str, words: &str, found: &mut Diagnostics) {
        let span = self
            .cell(name)
            .map_or_else(|| self.record.span(), |cell| cell.span.clone());
        let wrong = Diagnostic::from_words(span, format!("in the column `{name}`"), words);
        found.push(match wrong.help.is_empty() {
            true => wrong.help(self.format.remedy),
            false => wrong,
        });
    }

    /// A cell that must be a `T`.
    pub fn parse<T: FromStr>(
        &self,
        name: &'static str,
        expected: &str,
        found: &mut Diagnostics,
    ) -> Option<T> {
        let read = self.text(name).parse().ok();
        if read.is_none() {
            let text = self.text(name);
            self.wrong(name, &format!("`{text}` is not {expected}"), found);
        }
        read
    }

    /// A cell that says itself what is wrong with it.
    pub fn explained<T: FromStr<Err = String>>(
        &self,
        name: &'static str,
        found: &mut Diagnostics,
    ) -> Option<T> {
        match self.text(name).parse() {
            Ok(read) => Some(read),
            Err(words) => {
                self.wrong(name, &words, found);
                None
            }
        }
    }

    /// A finite number not below 0, or an empty cell: `Some(None)`.
    pub fn number(&self, name: &'static str, found: &mut Diagnostics) -> Option<Option<f64>> {
        let text = self.text(name);
        if text.is_empty() {
            return Some(None);
        }
        let value = text.parse().ok();
        let value = value.filter(|value: &f64| value.is_finite() && *value >= 0.0);
        if value.is_none() {
            self.wrong(
                name,
                &format!("`{text}` is not a number of at least 0"),
                found,
            );
        }
        Some(Some(value?))
    }

    /// Microseconds as seconds, above 0, or an empty cell.
    pub fn micros(&self, name: &'static str, found: &mut Diagnostics) -> Option<Option<f64>> {
        let value = self.number(name, found)?;
        if value == Some(0.0) {
            self.wrong(name, "a time of 0", found);
            return None;
        }
        Some(value.map(|value| value * 1e-6))
    }

    /// `yes` or `no`.
    pub fn yes(&self, name: &'static str, found: &mut Diagnostics) -> Option<bool> {
        match self.text(name) {
            "yes" => Some(true),
            "no" => Some(false),
            text => {
                self.wrong(name, &format!("`{text}` is neither `yes` nor `no`"), found);
                None
            }
        }
    }
}

/// `yes` or `no`.
pub(super) const fn yes(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

/// Seconds as microseconds with 0.01 us, or nothing.
pub(super) fn micros(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{:.2}", value * 1e6))
}

/// Cells as a line of CSV, its end included.
pub(super) fn line<'c>(cells: impl IntoIterator<Item = &'c str>) -> String {
    // Spaces round a cell are not read; without them what is read is written with the same bytes.
    let trimmed = |cell: &'c str| cell.trim();
    let quoted = |cell: &str| match cell.contains([',', '"', '\n', '\r']) {
        // A row is a line, so that a torn one can be told.
        true => format!(
            "\"{}\"",
            cell.replace(['\n', '\r'], " ").replace('"', "\"\"")
        ),
        false => cell.to_owned(),
    };
    let cells: Vec<String> = cells.into_iter().map(trimmed).map(quoted).collect();
    cells.join(",") + "\n"
}
