//! Predictions as CSV.

use std::path::Path;

use super::super::cells::{Format, Line, TableError, line, micros, yes};
use super::super::table::{key_cells, read_case};
use super::{Chosen, Prediction, Predictions};
use crate::input::Diagnostics;

const COLUMNS: [&str; 27] = [
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
    "strategy",
    "simulated_us",
    "low_us",
    "high_us",
    "closed_us",
    "closed_no_overhead_us",
    "compass_us",
    "spec_us",
    "chosen",
    "steps",
    "message_bytes",
    "tasks",
    "handoffs",
    "skipped",
    "topology",
    "model",
];

/// Columns that earlier tables lack.
const OPTIONAL: [&str; 1] = ["gemm_measured"];

const FORMAT: Format = Format {
    what: "a table of predictions",
    columns: &COLUMNS,
    optional: &OPTIONAL,
    remedy: "`duet validate EXPERIMENT -t TOPOLOGY --predict --out FILE` writes such tables: write it anew",
};

/// By whom a strategy is chosen, in words.
const CHOSEN: [(&str, Chosen); 4] = [
    ("", by(false, false)),
    ("simulation", by(true, false)),
    ("selector", by(false, true)),
    ("both", by(true, true)),
];

const fn by(simulation: bool, selector: bool) -> Chosen {
    Chosen {
        simulation,
        selector,
    }
}

pub(super) fn write(table: &Predictions) -> String {
    // A table that was read without it is written without it.
    let known = table.rows.iter().any(|row| row.gemm_measured.is_some());
    let optional = known.then_some(OPTIONAL).into_iter().flatten();
    let mut text = line(COLUMNS.into_iter().chain(optional));
    for row in &table.rows {
        let mut cells = vec![row.case.to_string()];
        cells.extend(key_cells(&row.case.group));
        let [low, high] = row.interval.map_or([None; 2], |ends| ends.map(Some));
        let chosen = CHOSEN.iter().find(|(_, chosen)| *chosen == row.chosen);
        cells.extend([
            row.case.subject.to_string(),
            micros(row.simulated),
            micros(low),
            micros(high),
            micros(row.closed),
            micros(row.closed_no_overhead),
            micros(row.compass),
            micros(row.spec),
            chosen.map_or(String::new(), |(word, _)| (*word).to_owned()),
            row.steps.to_string(),
            row.message.to_string(),
            row.tasks.to_string(),
            row.handoffs.to_string(),
            row.skipped.clone().unwrap_or_default(),
            table.topology.clone(),
            table.model.clone(),
        ]);
        if known {
            cells.push(row.gemm_measured.map_or("", yes).to_owned());
        }
        text += &line(cells.iter().map(String::as_str));
    }
    text
}

pub(super) fn read(path: &Path) -> Result<Predictions, TableError> {
    let mut rows = Rows::default();
    FORMAT.read(path, |line, found| rows.push(line, found))?;
    rows.table(&path.display().to_string())
}

pub(super) fn parse(file: &str, text: &str) -> Result<Predictions, TableError> {
    let mut rows = Rows::default();
    FORMAT.parse(file, text, |line, found| rows.push(line, found))?;
    rows.table(file)
}

#[derive(Default)]
struct Rows {
    list: Vec<Prediction>,
    /// Topology and hash of the first row.
    model: Option<[String; 2]>,
}

impl Rows {
    fn push(&mut self, line: &Line<'_, '_>, found: &mut Diagnostics) {
        let Some(row) = row(line, found) else { return };
        let of = ["topology", "model"].map(|name| line.text(name).to_owned());
        if of[0].is_empty() {
            line.wrong("topology", "a name is missing", found);
        }
        if !is_hash(&of[1]) {
            let words = format!("`{}` is no hash of a model", of[1]);
            line.wrong("model", &words, found);
        }
        let first = self.model.get_or_insert_with(|| of.clone());
        if *first != of {
            line.wrong(
                "model",
                "two models in one table: keep the rows of one",
                found,
            );
        }
        if self.list.iter().rev().any(|other| other.case == row.case) {
            line.wrong(
                "case",
                "this case is there twice: keep one of the rows",
                found,
            );
        }
        self.list.push(row);
    }

    fn table(self, file: &str) -> Result<Predictions, TableError> {
        let Some([topology, model]) = self.model else {
            let words = format!(
                "error: `{file}` predicts nothing: below its header there is no row\n  help: {}",
                FORMAT.remedy
            );
            return Err(TableError::Invalid(words));
        };
        Ok(Predictions::new(topology, model, self.list))
    }
}

/// A number that may not be missing.
fn filled(line: &Line<'_, '_>, name: &'static str, found: &mut Diagnostics) -> Option<f64> {
    let number = line.number(name, found)?;
    if number.is_none() {
        line.wrong(name, "a number is missing", found);
    }
    number
}

/// A fingerprint as it is written.
fn is_hash(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn row(line: &Line<'_, '_>, found: &mut Diagnostics) -> Option<Prediction> {
    let case = read_case(line, found)?;
    let word = line.text("chosen");
    let Some((_, chosen)) = CHOSEN.iter().find(|(known, _)| *known == word) else {
        let words =
            format!("`{word}` chooses nothing: write `simulation`, `selector`, `both` or nothing");
        line.wrong("chosen", &words, found);
        return None;
    };
    let interval = [
        line.micros("low_us", found)?,
        line.micros("high_us", found)?,
    ];
    let simulated = line.micros("simulated_us", found)?;
    let interval = match interval {
        [None, None] => None,
        [Some(_), None] | [None, Some(_)] => {
            line.wrong("high_us", "an interval with one end", found);
            return None;
        }
        [Some(low), Some(high)] => {
            // Both are written with 0.01 us.
            let outside = |time| !(low - 1e-8..=high + 1e-8).contains(&time);
            if low > high || simulated.is_some_and(outside) {
                let words = "the simulated time is not within its interval";
                line.wrong("low_us", words, found);
                return None;
            }
            Some([low, high])
        }
    };
    let skipped = line.text("skipped").to_owned();
    if simulated.is_some() != skipped.is_empty() {
        let words =
            "a row has either a simulated time or a reason why it has none: write one of them";
        line.wrong("skipped", words, found);
        return None;
    }
    Some(Prediction {
        case,
        simulated,
        interval,
        closed: line.micros("closed_us", found)?,
        closed_no_overhead: line.micros("closed_no_overhead_us", found)?,
        compass: line.micros("compass_us", found)?,
        spec: line.micros("spec_us", found)?,
        chosen: *chosen,
        gemm_measured: match line.text("gemm_measured") {
            "" => None,
            _ => Some(line.yes("gemm_measured", found)?),
        },
        steps: filled(line, "steps", found)?,
        message: filled(line, "message_bytes", found)?,
        tasks: line.parse("tasks", "a number of tasks", found)?,
        handoffs: line.parse("handoffs", "a number of hand-offs", found)?,
        skipped: (!skipped.is_empty()).then_some(skipped),
    })
}
