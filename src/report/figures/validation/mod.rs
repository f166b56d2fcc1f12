//! The figures of a validation: measured beside predicted. One file and one line of [`registry`]
//! each; `docs/plots.md` has a row for every one.

mod errors;
mod forms;
mod overlap;
mod predicted;
mod speed;
mod winners;

use super::{Drawn, Picture};
use crate::report::plot::{BarSeries, Caption, Look};
use crate::validate::analysis::Validation;

/// A figure that can be drawn.
#[derive(Copy, Clone, Debug)]
pub struct Figure {
    pub name: &'static str,
    /// What it shows, in one line.
    pub about: &'static str,
    /// The pictures, or why there are none.
    pub draw: fn(&Validation) -> Result<Vec<Picture>, String>,
}

/// All figures, in the order of reports.
pub fn registry() -> &'static [Figure] {
    &[
        predicted::FIGURE,
        errors::FIGURE,
        forms::FIGURE,
        speed::FIGURE,
        overlap::FIGURE,
        winners::FIGURE,
    ]
}

/// Bars of a value with the interval it has, if any, by group; a group may have none.
fn series_of(
    name: String,
    nth: usize,
    groups: impl Iterator<Item = Option<(f64, Option<[f64; 2]>)>>,
) -> BarSeries {
    let (values, intervals) = groups
        .map(|group| {
            let (value, ends) = group.unwrap_or((f64::NAN, None));
            (
                value,
                ends.map_or((value, value), |[low, high]| (low, high)),
            )
        })
        .unzip();
    BarSeries {
        name,
        look: Look::nth(nth),
        values,
        intervals,
    }
}

/// Draws all of them.
pub fn draw(found: &Validation) -> Drawn {
    let mut drawn = Drawn::default();
    for figure in registry() {
        match (figure.draw)(found) {
            Ok(pictures) => drawn.pictures.extend(pictures),
            Err(reason) => drawn.left_out.push((figure.name, reason)),
        }
    }
    drawn
}

/// The words around a figure; its source line says what was measured.
fn caption(found: &Validation, title: impl Into<String>, subtitle: impl Into<String>) -> Caption {
    let facts = &found.facts;
    Caption {
        title: title.into(),
        subtitle: subtitle.into(),
        source: format!(
            "Measured on {}, {}; predicted from {} · duet validate {}",
            facts.machines.join(" and "),
            facts.dates.join(" and "),
            found.topology,
            found.experiment
        ),
    }
}

/// The strategy without parameters, as looks know it.
fn class(strategy: &str) -> &str {
    strategy.split(':').next().unwrap_or(strategy)
}
