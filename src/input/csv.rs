//! CSV as records whose every cell knows its place (RFC 4180; blank lines are passed over, spaces
//! round a cell do not count).
//!
//! ```
//! use duet::input::csv;
//! let text = "name, seconds\n\"a, b\", 1e-3\n";
//! let records: Vec<_> = csv::records(text).collect::<Result<_, _>>().unwrap();
//! assert_eq!(records[1].cells[0].text, "a, b");
//! assert_eq!(&text[records[1].cells[1].span.clone()], "1e-3");
//! let error = csv::records("a\n\"b").nth(1).unwrap().unwrap_err();
//! assert_eq!(error.message, "the quotation mark is never closed");
//! ```

use std::borrow::Cow;

use super::{Diagnostic, Span};

/// A cell without its quotation marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell<'t> {
    pub text: Cow<'t, str>,
    /// Where it stands, marks included.
    pub span: Span,
}

/// A line, or several where a quoted cell holds line breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'t> {
    /// At least one.
    pub cells: Vec<Cell<'t>>,
}

impl Record<'_> {
    /// From the first cell to the last.
    pub fn span(&self) -> Span {
        let ends = (self.cells.first(), self.cells.last());
        ends.0.map_or(0, |cell| cell.span.start)..ends.1.map_or(0, |cell| cell.span.end)
    }
}

/// The records of a text, the header being the first. After a mistake there are no more.
pub fn records(text: &str) -> impl Iterator<Item = Result<Record<'_>, Diagnostic>> {
    // Spreadsheets write a byte order mark.
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let mut reader = Reader { text, at: start };
    std::iter::from_fn(move || {
        reader.blank_lines();
        if reader.at >= text.len() {
            return None;
        }
        let record = reader.record();
        if record.is_err() {
            reader.at = text.len();
        }
        Some(record)
    })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn blank_lines(&mut self) {
        while let Some((line, _)) = self.rest().split_once('\n') {
            if !line.trim().is_empty() {
                return;
            }
            self.at += line.len() + 1;
        }
        if self.rest().trim().is_empty() {
            self.at = self.text.len();
        }
    }

    fn record(&mut self) -> Result<Record<'t>, Diagnostic> {
        let mut cells = Vec::new();
        loop {
            cells.push(self.cell()?);
            let end = self.rest().chars().next();
            self.at += end.map_or(0, char::len_utf8);
            if end != Some(',') {
                return Ok(Record { cells });
            }
        }
    }

    /// A cell up to its comma or line end.
    fn cell(&mut self) -> Result<Cell<'t>, Diagnostic> {
        let rest = self.rest();
        let length = rest.find([',', '\n']).unwrap_or(rest.len());
        let word = rest[..length].trim();
        if word.starts_with('"') {
            self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
            return self.quoted();
        }
        let start = self.at + (rest.len() - rest.trim_start().len()).min(length);
        self.at += length;
        Ok(Cell {
            text: Cow::Borrowed(word),
            span: start..start + word.len(),
        })
    }

    /// A cell in quotation marks; two of them inside stand for one.
    fn quoted(&mut self) -> Result<Cell<'t>, Diagnostic> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let Some(mark) = rest.find('"') else {
                let wrong = Diagnostic::new(
                    start..start + 1,
                    "the quotation mark is never closed",
                    "opened here",
                );
                return Err(wrong.help("close it with `\"`; write `\"\"` for a mark inside a cell"));
            };
            text += &rest[..mark];
            self.at += mark + 1;
            if !self.rest().starts_with('"') {
                break;
            }
            text.push('"');
            self.at += 1;
        }
        let span = start..self.at;
        let rest = self.rest();
        let length = rest.find([',', '\n']).unwrap_or(rest.len());
        if !rest[..length].trim().is_empty() {
            let wrong = Diagnostic::new(
                self.at..self.at + length,
                "text after a closing quotation mark",
                "expected a comma or the end of the line",
            );
            return Err(wrong.help("write `\"\"` for a mark inside a cell"));
        }
        self.at += length;
        Ok(Cell {
            text: Cow::Owned(text.trim().to_owned()),
            span,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cells(text: &str) -> Vec<Vec<String>> {
        let owned = |record: Record<'_>| {
            let text = record.cells.into_iter().map(|cell| cell.text.into_owned());
            text.collect()
        };
        records(text).map(|record| owned(record.unwrap())).collect()
    }

    #[test]
    fn reads_what_spreadsheets_write() {
        assert_eq!(cells("\u{feff}a,b\r\n1,\r\n"), [["a", "b"], ["1", ""]]);
        assert_eq!(
            cells("a , \"b \"\"c\"\"\nd\" ,\n\n  \nx"),
            [vec!["a", "b \"c\"\nd", ""], vec!["x"]]
        );
        assert!(cells("").is_empty() && cells(" \n\n \t").is_empty());
        assert_eq!(cells(","), [["", ""]]);
    }

    #[test]
    fn points_at_stray_text() {
        let text = "a\n\"b\" c,d";
        let error = records(text).nth(1).unwrap().unwrap_err();
        assert_eq!(&text[error.span], " c");
        assert_eq!(records(text).count(), 2, "nothing after a mistake");
    }

    proptest! {
        #[test]
        fn reads_what_the_writer_writes(rows in prop::collection::vec(prop::collection::vec("[a-z,\"\n ]{0,6}", 2), 1..5)) {
            let mut writer = ::csv::Writer::from_writer(Vec::new());
            for row in &rows { writer.write_record(row).unwrap(); }
            let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            let want: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| cell.trim().to_owned()).collect()).collect();
            prop_assert_eq!(cells(&text), want);
        }

        #[test]
        fn spans_lie_in_any_text(text in "\\PC*|[a,\"\n\r \u{feff}é]{0,40}") {
            for record in records(&text).flatten() {
                prop_assert!(!record.cells.is_empty());
                for cell in record.cells {
                    prop_assert!(text.get(cell.span).is_some());
                }
            }
        }
    }
}
