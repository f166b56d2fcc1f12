//! `duet predict`: what the closed forms say of one operator on one machine.

mod written;

use std::fmt::Write;

use super::grid::{Grid, Look, Paint, clean, paint, wrap};
use super::table::{TIE, percent, time};
use super::{ExpectedError, Skipped};
use crate::operator::Operator;
use crate::predict::Prediction;
use crate::units::Bytes;
pub use written::{csv, json};

/// One strategy's closed form.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub strategy: String,
    pub prediction: Prediction,
    /// Sequential's time over this one's; `None` without a baseline.
    pub speedup: Option<f64>,
}

/// What the closed forms choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    pub strategy: String,
    /// `selector`, or `closed-forms`: the least of the rows.
    pub by: &'static str,
    pub runner_up: Option<String>,
    /// How much longer the runner-up takes, relative to the choice.
    pub margin: Option<f64>,
}

/// All strategies on one machine.
#[derive(Clone, Debug)]
pub struct Predictions {
    pub topology: String,
    pub operator: Operator,
    /// The terms that count, as `--terms` takes them.
    pub terms: String,
    /// Fitted overheads that apply to this machine and operator.
    pub fitted: usize,
    /// Ascending by time; equal ones in the order of the registry.
    pub rows: Vec<Row>,
    pub skipped: Vec<Skipped>,
    pub chosen: Chosen,
    pub expected_error: ExpectedError,
}

/// The table.
pub fn table(predictions: &Predictions, look: &Look) -> String {
    let mut out = String::new();
    let title = format!(
        "{} on {}",
        paint(&predictions.operator.to_string(), Paint::Bold),
        paint(&clean(&predictions.topology), Paint::Bold)
    );
    out.push_str(&wrap(&title, 0, 2, look.width));
    let message = predictions.operator.message_bytes();
    let facts = format!(
        "closed forms · message {} · terms {} · fitted overheads: {}",
        Bytes::new(message),
        predictions.terms,
        match predictions.fitted {
            0 => "none".to_owned(),
            count => count.to_string(),
        }
    );
    out.push_str(&wrap(&facts, 0, 2, look.width));
    out.push('\n');
    out.push_str(&stages(predictions).draw(look));
    out.push('\n');
    remarks(&mut out, predictions, look);
    out
}

/// A row per strategy with the resource that rules it, and rows for its other resources.
fn stages(predictions: &Predictions) -> Grid {
    let mut grid = Grid::default()
        .left("strategy", 0)
        .right("time", 0)
        .right("speed-up", 5)
        .left("resource", 0)
        .right("before", 2)
        .right("stages", 1)
        .right("each", 1)
        .right("after", 2)
        .right("fitted", 4);
    for row in &predictions.rows {
        let Prediction {
            stages, binding, ..
        } = &row.prediction;
        let ruling = stages.get(*binding).into_iter();
        let others = stages.iter().enumerate().filter(|(i, _)| i != binding);
        for (i, stage) in ruling.chain(others.map(|(_, stage)| stage)).enumerate() {
            let mut cells = vec![String::new(); 9];
            if i == 0 {
                let name = clean(&row.strategy);
                cells[0] = match row.strategy == predictions.chosen.strategy {
                    true => paint(&name, Paint::Bold),
                    false => name,
                };
                cells[1] = time(row.prediction.seconds);
                cells[2] = row
                    .speedup
                    .map_or_else(|| "–".to_owned(), |s| format!("{s:.3}x"));
                if row.prediction.overhead > 0.0 {
                    cells[8] = time(row.prediction.overhead);
                }
            }
            cells[3] = stage.resource.to_owned();
            cells[4] = time(stage.before);
            cells[5] = format!("{:.0} x", stage.count);
            cells[6] = time(stage.each);
            cells[7] = time(stage.after);
            if i > 0 {
                cells[1] = time(stage.seconds());
                cells = cells
                    .into_iter()
                    .map(|cell| paint(&cell, Paint::Dim))
                    .collect();
            }
            grid.row(cells);
        }
    }
    grid
}

fn remarks(out: &mut String, predictions: &Predictions, look: &Look) {
    let mut say = |label: &str, mark: Paint, text: &str| {
        let _ = write!(out, "{} ", paint(label, mark));
        out.push_str(&wrap(
            &clean(text),
            label.chars().count() + 1,
            2,
            look.width,
        ));
    };
    let chosen = &predictions.chosen;
    let text = match (&chosen.runner_up, chosen.margin) {
        (Some(second), Some(margin)) if margin <= TIE => {
            format!("{}, level with {second}", chosen.strategy)
        }
        (Some(second), Some(margin)) => {
            format!("{}, {} ahead of {second}", chosen.strategy, percent(margin))
        }
        _ => chosen.strategy.clone(),
    };
    say("choice:", Paint::Good, &text);
    let time_of = |name: &str| {
        let row = predictions.rows.iter().find(|row| row.strategy == name);
        row.map(|row| row.prediction.seconds)
    };
    if let (Some(first), Some(seconds)) = (predictions.rows.first(), time_of(&chosen.strategy))
        && first.prediction.seconds * (1.0 + TIE) < seconds
    {
        let lead = seconds / first.prediction.seconds - 1.0;
        let text = format!(
            "{} is {} faster, and none that the selector chooses among",
            first.strategy,
            percent(lead)
        );
        say("in the table:", Paint::Bold, &text);
    }
    let mut told: Vec<&str> = Vec::new();
    for row in &predictions.rows {
        let Some(form) = &row.prediction.decomposition else {
            continue;
        };
        let family = row.strategy.split(':').next().unwrap_or("");
        let direct = row.strategy.contains("comm=direct");
        let label = if direct { "T(d), direct:" } else { "T(d):" };
        if told.contains(&label) {
            continue;
        }
        told.push(label);
        let pieces = match row.prediction.pieces {
            Some(1) => ", not worth cutting".to_owned(),
            Some(pieces) => format!(", so d = {pieces}"),
            None => String::new(),
        };
        let optimum = match form.optimum.is_finite() {
            true => format!("{:.1}", form.optimum),
            false => "without bound".to_owned(),
        };
        let text = format!(
            "{family} takes A·d + B + C/d with A = {}, B = {}, C = {}: d* = √(C/A) = {optimum}{pieces}",
            time(form.a),
            time(form.b),
            time(form.c)
        );
        say(label, Paint::Bold, &text);
    }
    for skipped in &predictions.skipped {
        say(
            "skipped:",
            Paint::Dim,
            &format!("{}: {}", skipped.strategy, skipped.reason),
        );
    }
    let error = &predictions.expected_error;
    let text = match error.relative {
        Some(relative) => format!("± {} ({})", percent(relative), error.basis),
        None => error.basis.clone(),
    };
    say("expected error:", Paint::Dim, &text);
}
