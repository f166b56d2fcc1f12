//! The header of a table of times.

use crate::input::csv::{Cell, Record};
use crate::input::{Diagnostic, Diagnostics, closest, list};

/// A header, for messages.
pub(super) const EXAMPLE: &str = "topology,operator,m,n,k,tp,dtype,strategy,makespan_s";

/// The columns that mean something.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Topology,
    Operator,
    M,
    N,
    K,
    Bytes,
    Tp,
    DType,
    Launch,
    Strategy,
    Makespan,
    Weight,
    Skipped,
}

use Name::*;

impl Name {
    const ALL: [Self; 13] = [
        Topology, Operator, M, N, K, Bytes, Tp, DType, Launch, Strategy, Makespan, Weight, Skipped,
    ];

    /// The names in a header, the first one being the one to use.
    const fn spelt(self) -> &'static [&'static str] {
        match self {
            Topology => &["topology"],
            Operator => &["operator"],
            M => &["m"],
            N => &["n"],
            K => &["k"],
            Bytes => &["bytes"],
            Tp => &["tp"],
            DType => &["dtype"],
            Launch => &["launch"],
            Strategy => &["strategy"],
            Makespan => &["makespan_s", "seconds"],
            Weight => &["weight"],
            Skipped => &["skipped"],
        }
    }

    pub(super) const fn text(self) -> &'static str {
        self.spelt()[0]
    }

    const fn optional(self) -> bool {
        matches!(self, Bytes | Launch | Weight | Skipped)
    }
}

/// Whether a column changes the machine, like a path of `--set`.
fn is_path(name: &str) -> bool {
    ["links.", "shared.", "gpu."]
        .iter()
        .any(|start| name.starts_with(start))
        || ["p2p", "staging_chunk", "default_tp", "ties"].contains(&name)
}

/// Which column is where.
#[derive(Debug)]
pub(super) struct Columns {
    at: [Option<usize>; Name::ALL.len()],
    /// As the header spells them, for messages.
    names: Vec<String>,
    /// Columns that change the machine.
    pub(super) paths: Vec<usize>,
}

impl Columns {
    /// Reads the header; `None` where columns are missing or doubled, with the mistakes pushed.
    pub(super) fn of(header: &Record<'_>, found: &mut Diagnostics) -> Option<Self> {
        if let Some(error) = other_separator(header) {
            found.push(error);
            return None;
        }
        let mut columns = Self {
            at: [None; Name::ALL.len()],
            names: header
                .cells
                .iter()
                .map(|cell| cell.text.to_string())
                .collect(),
            paths: Vec::new(),
        };
        let mut unknown = Vec::new();
        let mut right = true;
        for (i, cell) in header.cells.iter().enumerate() {
            let name = Name::ALL
                .into_iter()
                .find(|name| name.spelt().contains(&&*cell.text));
            let path = is_path(&cell.text);
            let before = match name {
                Some(name) => columns.at[name as usize].replace(i),
                None if path => (0..i).find(|&before| columns.names[before] == *cell.text),
                None => None,
            };
            if let Some(before) = before {
                right = false;
                found.push(doubled(cell, &columns.names[before]));
            }
            match name {
                None if path => columns.paths.push(i),
                None => unknown.push(cell),
                Some(_) => {}
            }
        }
        right &= columns.complete(header, &unknown, found);
        right.then_some(columns)
    }

    /// Whether what is needed is there, and nothing that is not looks misspelt.
    fn complete(
        &self,
        header: &Record<'_>,
        unknown: &[&Cell<'_>],
        found: &mut Diagnostics,
    ) -> bool {
        let (mut right, mut absent) = (true, Vec::new());
        for name in Name::ALL
            .into_iter()
            .filter(|name| self.find(*name).is_none())
        {
            let meant = unknown
                .iter()
                .find(|cell| closest(&cell.text, name.spelt().iter().copied()).is_some());
            if let Some(cell) = meant {
                let near = closest(&cell.text, name.spelt().iter().copied());
                let mistake = Diagnostic::new(
                    cell.span.clone(),
                    format!("`{}` is not a column of a table of times", cell.text),
                    "unknown column",
                );
                found
                    .push(mistake.help(format!("did you mean `{}`?", near.unwrap_or(name.text()))));
                right = false;
            } else if !(name.optional() || matches!(name, M | N | K) && self.find(Bytes).is_some())
            {
                absent.push(name);
            }
        }
        if !absent.is_empty() {
            found.push(missing(&absent, self.at.iter().flatten().count(), header));
            right = false;
        }
        right
    }

    pub(super) fn find(&self, name: Name) -> Option<usize> {
        self.at[name as usize]
    }

    /// The cell of a column in a record as long as the header.
    pub(super) fn cell<'r, 't>(&self, name: Name, record: &'r Record<'t>) -> Option<&'r Cell<'t>> {
        record.cells.get(self.find(name)?)
    }

    /// What the header calls a column.
    pub(super) fn called(&self, name: Name) -> &str {
        self.find(name).map_or(name.text(), |at| &self.names[at])
    }

    /// The header's spelling of the column at an index.
    pub(super) fn spelling(&self, at: usize) -> &str {
        &self.names[at]
    }

    pub(super) fn count(&self) -> usize {
        self.names.len()
    }
}

/// A header in one cell that falls into columns by another separator.
fn other_separator(header: &Record<'_>) -> Option<Diagnostic> {
    let [cell] = header.cells.as_slice() else {
        return None;
    };
    let at = cell.text.find([';', '\t'])?;
    let what = if cell.text[at..].starts_with(';') {
        "`;`"
    } else {
        "tabs"
    };
    let start = (cell.span.start + at).min(cell.span.end);
    let wrong = Diagnostic::new(
        start..start + 1,
        format!("the columns are separated by {what}"),
        "expected `,`",
    );
    Some(wrong.help("save the file as CSV with commas"))
}

/// Says which columns are missing from a header with `known` others.
fn missing(absent: &[Name], known: usize, header: &Record<'_>) -> Diagnostic {
    if known == 0 {
        let message = "the first line names no column of a table of times";
        let wrong = Diagnostic::new(header.span(), message, "expected a line of columns");
        return wrong.help(format!("begin with `{EXAMPLE}`"));
    }
    let names = list(absent.iter().map(|name| name.text()));
    let (s, are) = if absent.len() == 1 {
        ("", "is")
    } else {
        ("s", "are")
    };
    let wrong = Diagnostic::new(
        header.span(),
        format!("the column{s} {names} {are} missing"),
        format!("expected {names} among these"),
    );
    wrong.help(match absent {
        [Makespan] => "add the time in seconds as `makespan_s` or `seconds`".to_owned(),
        [M | N | K, ..] => format!("add {names}, or `bytes` for bare collectives"),
        _ => format!("a whole header is `{EXAMPLE}`"),
    })
}

fn doubled(cell: &Cell<'_>, before: &str) -> Diagnostic {
    let message = match before == cell.text {
        true => format!("the column `{before}` is there twice"),
        false => format!("`{}` and `{before}` are the same column", cell.text),
    };
    Diagnostic::new(cell.span.clone(), message, "the second one").help("keep one of them")
}
