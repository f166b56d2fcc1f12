//! Mistakes in a result table, shown under their line.

use super::ResultsError;
use crate::input::csv::records;
use crate::input::{Diagnostic, Diagnostics, decode};

/// What is wrong on a line.
#[derive(Debug)]
pub(super) struct Mistake {
    /// From 1.
    pub line: u64,
    /// The cell at fault; `None`: the whole line.
    pub cell: Option<usize>,
    pub words: String,
}

impl Mistake {
    /// The mistake under its line of the file.
    pub fn show(&self, file: &str, bytes: &[u8]) -> ResultsError {
        let text = match decode(file, bytes) {
            Ok(text) => text,
            Err(text) => return ResultsError::Invalid(text),
        };
        let before = usize::try_from(self.line).unwrap_or(usize::MAX).max(1) - 1;
        let start = match before.checked_sub(1) {
            None => 0,
            Some(nth) => text
                .match_indices('\n')
                .nth(nth)
                .map_or(text.len(), |(at, _)| at + 1),
        };
        let line = text[start..].lines().next().unwrap_or("");
        let cell = self.cell.and_then(|cell| {
            let record = records(line).next()?.ok()?;
            Some(record.cells.get(cell)?.span.clone())
        });
        let span = cell.unwrap_or(0..line.len());
        let diagnostic = Diagnostic::from_words(
            start + span.start..start + span.end,
            "not as `duet run` writes it",
            &self.words,
        );
        let mut found = Diagnostics::default();
        found.push(match diagnostic.help.is_empty() {
            true => diagnostic.help("put it right, or perform it anew: `duet run` with `--fresh`"),
            false => diagnostic,
        });
        ResultsError::Invalid(found.render(file, text))
    }
}

/// What is wrong with a row.
#[derive(Debug)]
pub(crate) struct Wrong {
    /// The column at fault.
    pub column: String,
    pub words: String,
}

impl Wrong {
    pub fn new(column: &str, words: impl Into<String>) -> Self {
        Self {
            column: column.to_owned(),
            words: words.into(),
        }
    }
}

/// Why a line cannot be read.
pub(super) fn unread(error: &::csv::Error) -> String {
    match error.kind() {
        ::csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => format!(
            "the row has {len} cells, the header {expected_len}: the file is torn or was edited; `duet run` with `--fresh` writes it anew"
        ),
        _ => format!("no line of a table: {error}"),
    }
}
