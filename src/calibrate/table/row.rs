//! One row of a table of times.

use super::columns::{Columns, Name};
use super::{Places, Row};
use crate::device::DType;
use crate::input::csv::{Cell, Record};
use crate::input::{Diagnostic, Diagnostics, did_you_mean};
use crate::operator::{Kind, Operator, OperatorError, Shape};
use crate::strategy::{self, Choice};
use crate::units::{Bytes, Seconds};

/// Whole numbers up to here are exact as floats.
const EXACT: f64 = (1_u64 << 53) as f64;

/// What a row holds.
pub(super) enum Read {
    Time(Box<Row>),
    /// No time, and the reason is there.
    Skipped,
}

impl Columns {
    /// Reads a row; `None` where a mistake was pushed.
    pub(super) fn row(&self, record: &Record<'_>, found: &mut Diagnostics) -> Option<Read> {
        if record.cells.len() != self.count() {
            found.push(ragged(record, self.count()));
            return None;
        }
        let time = self.cell(Name::Makespan, record)?;
        let skipped = self
            .cell(Name::Skipped, record)
            .filter(|cell| !cell.text.is_empty());
        match (time.text.is_empty(), skipped) {
            (true, Some(_)) => return Some(Read::Skipped),
            (false, Some(cell)) => {
                let both = Diagnostic::new(
                    cell.span.clone(),
                    "a row with a time is marked as skipped",
                    "expected nothing here",
                );
                found.push(both.help("take away the time or the reason"));
                return None;
            }
            _ => {}
        }
        // All parts are read before any is missed, so that all mistakes of a row are shown.
        let topology = self.word(Name::Topology, record, found);
        let operator = self.operator(record, found);
        let strategy = self.strategy(record, found);
        let seconds = self.positive(Name::Makespan, record, found);
        let launch = self.launch(record, found);
        let weight = match self.cell(Name::Weight, record) {
            Some(cell) if !cell.text.is_empty() => self.positive(Name::Weight, record, found),
            _ => Some(1.0),
        };
        let (operator, strategy) = (operator?, strategy?);
        let place = |name| {
            self.cell(name, record)
                .map_or(0..0, |cell| cell.span.clone())
        };
        if !strategy.strategy().applies(operator.kind) {
            let words = format!(
                "`{}` does not perform {}",
                strategy.strategy().name(),
                operator.kind
            );
            let wrong = Diagnostic::new(
                place(Name::Strategy),
                words,
                "expected a strategy for this operator",
            );
            found.push(wrong.help(format!("see `duet strategies --op {}`", operator.kind)));
            return None;
        }
        Some(Read::Time(Box::new(Row {
            line: 0,
            topology: topology?.text.to_string(),
            sets: self.sets(record),
            operator,
            strategy,
            launch: launch?,
            seconds: seconds?,
            weight: weight?,
            places: Places {
                topology: place(Name::Topology),
                tp: place(Name::Tp),
                strategy: place(Name::Strategy),
            },
        })))
    }

    /// A cell that must hold something.
    fn word<'r, 't>(
        &self,
        name: Name,
        record: &'r Record<'t>,
        found: &mut Diagnostics,
    ) -> Option<&'r Cell<'t>> {
        let Some(cell) = self.cell(name, record) else {
            let wrong = Diagnostic::new(
                record.span(),
                format!("this row needs the column `{}`", name.text()),
                "no such column",
            );
            found.push(wrong.help(format!(
                "add `{}` to the header and to every row",
                name.text()
            )));
            return None;
        };
        if cell.text.is_empty() {
            let called = self.called(name);
            let wrong = Diagnostic::new(
                cell.span.clone(),
                format!("`{called}` is empty"),
                "expected a value",
            );
            found.push(wrong.help(match name {
                Name::Makespan => {
                    "write the time in seconds, or why there is none into a column `skipped`"
                }
                _ => "fill it in, or leave the row out",
            }));
            return None;
        }
        Some(cell)
    }

    fn wrong(&self, name: Name, cell: &Cell<'_>, label: &str, help: String) -> Diagnostic {
        let message = format!(
            "`{}` cannot be `{}`",
            self.called(name),
            shorten(&cell.text)
        );
        Diagnostic::new(cell.span.clone(), message, label).help(help)
    }

    /// A whole number; `8192.0`, as some tools write them, is one.
    fn whole(&self, name: Name, record: &Record<'_>, found: &mut Diagnostics) -> Option<u64> {
        let cell = self.word(name, record, found)?;
        let float = || {
            let value: f64 = cell.text.parse().ok()?;
            (value.fract() == 0.0 && (0.0..EXACT).contains(&value)).then_some(value as u64)
        };
        let value = cell.text.parse().ok().or_else(float);
        if value.is_none() {
            let unit = cell
                .text
                .parse::<Bytes>()
                .ok()
                .filter(|_| name == Name::Bytes);
            let help = match unit {
                Some(bytes) => format!("write {}", bytes.get()),
                None => "write digits only".to_owned(),
            };
            found.push(self.wrong(name, cell, "expected a whole number", help));
        }
        value
    }

    fn ranks(&self, record: &Record<'_>, found: &mut Diagnostics) -> Option<u32> {
        let tp = self.whole(Name::Tp, record, found)?;
        let ranks = u32::try_from(tp).ok();
        if let (None, Some(cell)) = (ranks, self.cell(Name::Tp, record)) {
            let help = "write the number of ranks".to_owned();
            found.push(self.wrong(Name::Tp, cell, "expected at most 65535", help));
        }
        ranks
    }

    /// A number above 0; for a time, in seconds.
    fn positive(&self, name: Name, record: &Record<'_>, found: &mut Diagnostics) -> Option<f64> {
        let cell = self.word(name, record, found)?;
        let time = name == Name::Makespan;
        let (label, leave) = match time {
            true => (
                "expected seconds above 0",
                "leave out what was not measured",
            ),
            false => (
                "expected a number above 0",
                "leave out rows that are not to count",
            ),
        };
        let help = match cell.text.parse::<f64>() {
            Ok(value) if value.is_finite() && value > 0.0 => return Some(value),
            Ok(_) => leave.to_owned(),
            Err(_) => match cell.text.parse::<Seconds>() {
                Ok(seconds) if time => format!("write {}", seconds.get()),
                _ if time => "write a plain number, e.g. 0.0125 or 1.25e-2".to_owned(),
                _ => "write a plain number, e.g. 0.5".to_owned(),
            },
        };
        found.push(self.wrong(name, cell, label, help));
        None
    }

    fn operator(&self, record: &Record<'_>, found: &mut Diagnostics) -> Option<Operator> {
        let kind = self.one_of(Name::Operator, record, &Kind::ALL, Kind::name, found);
        let tp = self.ranks(record, found);
        let dtype = self.one_of(Name::DType, record, &DType::ALL, DType::name, found);
        let kind = kind?;
        let shape = if kind.is_fused() {
            let [m, n, k] = [Name::M, Name::N, Name::K].map(|name| self.whole(name, record, found));
            Shape::Gemm {
                m: m?,
                n: n?,
                k: k?,
            }
        } else {
            Shape::Bytes(Bytes::new(self.whole(Name::Bytes, record, found)?))
        };
        let operator = Operator {
            kind,
            shape,
            tp: tp?,
            dtype: dtype?,
        };
        let error = operator.check().err();
        if let Some(error) = &error {
            let column = match error {
                OperatorError::Zero(name)
                | OperatorError::Indivisible { name, .. }
                | OperatorError::TooLarge { name, .. } => match *name {
                    "m" => Name::M,
                    "n" => Name::N,
                    "k" => Name::K,
                    _ => Name::Bytes,
                },
                OperatorError::Uneven { .. } => Name::Bytes,
                OperatorError::Ranks { .. } => Name::Tp,
                _ => Name::Operator,
            };
            let span = self
                .cell(column, record)
                .map_or(record.span(), |cell| cell.span.clone());
            found.push(Diagnostic::from_words(
                span,
                format!("expected another `{}`", column.text()),
                &error.to_string(),
            ));
        }
        error.is_none().then_some(operator)
    }

    fn strategy(&self, record: &Record<'_>, found: &mut Diagnostics) -> Option<Choice> {
        let cell = self.word(Name::Strategy, record, found)?;
        let choice = strategy::parse(&cell.text);
        if let Err(error) = &choice {
            found.push(Diagnostic::from_words(
                cell.span.clone(),
                "expected a strategy",
                &error.to_string(),
            ));
        }
        choice.ok()
    }

    fn launch(&self, record: &Record<'_>, found: &mut Diagnostics) -> Option<Option<String>> {
        match self.cell(Name::Launch, record) {
            Some(cell) if !cell.text.is_empty() => {
                let launch = self.one_of(
                    Name::Launch,
                    record,
                    &["stream", "graph"],
                    |word| word,
                    found,
                )?;
                Some(Some(launch.to_owned()))
            }
            _ => Some(None),
        }
    }

    fn one_of<T: Copy>(
        &self,
        name: Name,
        record: &Record<'_>,
        all: &[T],
        spelt: fn(T) -> &'static str,
        found: &mut Diagnostics,
    ) -> Option<T> {
        let cell = self.word(name, record, found)?;
        let value = all.iter().copied().find(|value| spelt(*value) == cell.text);
        if value.is_none() {
            let names: Vec<&str> = all.iter().map(|value| spelt(*value)).collect();
            let help = did_you_mean(&cell.text, names.iter().copied());
            found.push(self.wrong(name, cell, "unknown", help));
        }
        value
    }

    /// Overrides of the machine from columns named like paths; an empty cell changes nothing.
    fn sets(&self, record: &Record<'_>) -> Vec<String> {
        self.paths
            .iter()
            .map(|&at| (self.spelling(at), &record.cells[at].text))
            .filter(|(_, value)| !value.is_empty())
            .map(|(path, value)| format!("{path}={value}"))
            .collect()
    }
}

fn ragged(record: &Record<'_>, want: usize) -> Diagnostic {
    let has = record.cells.len();
    let cells = format!("{has} cell{}", if has == 1 { "" } else { "s" });
    let (span, help) = match record.cells.get(want) {
        Some(cell) => (
            cell.span.start..record.span().end,
            "put cells that hold a comma into quotation marks",
        ),
        None => (record.span(), "write a comma for every empty cell"),
    };
    Diagnostic::new(
        span,
        format!("the row has {cells}, the header {want}"),
        format!("expected {want} cells"),
    )
    .help(help)
}

/// A cell for a message.
fn shorten(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
