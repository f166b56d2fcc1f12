//! The figures of an experiment: one file and one line of [`registry`] each; `docs/plots.md` has a
//! row for every one. They draw an [`Analysis`] with the chart kinds of [`super::plot`] and compute
//! nothing.
//!
//! A figure that the data do not suit says why it is left out.

mod bandwidth;
mod confusion;
mod decomposition;
mod errors;
mod gain;
mod penalty;
mod pieces;
mod predicted;
mod strategies;
mod sweep;
pub mod validation;
mod winner_map;

use crate::experiment::analysis::Analysis;
use crate::input::did_you_mean;

use super::plot::Caption;

/// A finished drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The file's name without its ending.
    pub stem: String,
    pub svg: String,
}

/// A figure that can be drawn.
#[derive(Copy, Clone, Debug)]
pub struct Figure {
    /// As `--figure` and `figures:` name it.
    pub name: &'static str,
    /// What it shows, in one line.
    pub about: &'static str,
    /// The pictures, or why there are none.
    pub draw: fn(&Analysis) -> Result<Vec<Picture>, String>,
}

/// All figures, in the order of reports.
pub fn registry() -> &'static [Figure] {
    &[
        bandwidth::FIGURE,
        strategies::FIGURE,
        winner_map::FIGURE,
        decomposition::FIGURE,
        gain::FIGURE,
        penalty::FIGURE,
        errors::FIGURE,
        predicted::FIGURE,
        confusion::FIGURE,
        sweep::FIGURE,
        pieces::FIGURE,
    ]
}

/// What was drawn, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    pub pictures: Vec<Picture>,
    /// Name of a figure and why it is left out.
    pub left_out: Vec<(&'static str, String)>,
}

/// A name that is no figure's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a figure: {remedy}")]
pub struct UnknownFigure {
    pub name: String,
    pub remedy: String,
}

/// The figures of these names; all for `None`.
///
/// # Errors
/// [`UnknownFigure`] with the nearest known name.
pub fn named(names: Option<&[String]>) -> Result<Vec<Figure>, UnknownFigure> {
    let Some(names) = names else {
        return Ok(registry().to_vec());
    };
    let one = |name: &String| {
        let figure = registry().iter().find(|figure| figure.name == *name);
        figure.copied().ok_or_else(|| UnknownFigure {
            name: name.clone(),
            remedy: did_you_mean(name, registry().iter().map(|figure| figure.name)),
        })
    };
    let figures = names.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    // Each once, however often it is asked for.
    let again = |at: usize| figures[..at].iter().any(|f| f.name == figures[at].name);
    let first = (0..figures.len()).filter(|&at| !again(at));
    Ok(first.map(|at| figures[at]).collect())
}

/// Draws figures.
pub fn draw(analysis: &Analysis, figures: &[Figure]) -> Drawn {
    use rayon::prelude::*;
    let all: Vec<_> = figures
        .par_iter()
        .map(|figure| (figure.name, (figure.draw)(analysis)))
        .collect();
    let mut drawn = Drawn::default();
    for (name, result) in all {
        match result {
            Ok(pictures) => drawn.pictures.extend(pictures),
            Err(reason) => drawn.left_out.push((name, reason)),
        }
    }
    drawn
}

/// The words around a figure; its source line says what produced it.
fn caption(analysis: &Analysis, title: impl Into<String>, subtitle: impl Into<String>) -> Caption {
    Caption {
        title: title.into(),
        subtitle: subtitle.into(),
        source: format!(
            "Against the simulator, not measured · duet run {}",
            analysis.name
        ),
    }
}

/// The one picture of a figure.
fn one(stem: &str, svg: String) -> Vec<Picture> {
    vec![Picture {
        stem: stem.to_owned(),
        svg,
    }]
}

/// `1024`, `64 Ki`, as short as a label of an axis must be.
fn short(value: u64) -> String {
    match value {
        v if v >= 1 << 20 && v % (1 << 20) == 0 => format!("{}Mi", v >> 20),
        v if v >= 100 << 10 && v % 1024 == 0 => format!("{}Ki", v >> 10),
        v => v.to_string(),
    }
}

/// What an axis of an experiment counts, in words and as the title of an axis with its unit; one
/// that is not known by its name is called as the file calls it.
fn axis_words(name: &str) -> (&str, String) {
    let (words, unit) = match name {
        "seq" => ("sequence length", "tokens"),
        "hidden" => ("hidden size", "elements"),
        "batch" => ("batch", "sequences"),
        "m" => ("rows m", "elements"),
        "n" => ("columns n", "elements"),
        "k" => ("depth k", "elements"),
        name => return (name, name.to_owned()),
    };
    (words, format!("{words} ({unit})"))
}

/// The machines of the main cases, for a subtitle.
fn machines(analysis: &Analysis) -> String {
    let mut names: Vec<String> = analysis
        .groups()
        .iter()
        .map(|g| g.topology.to_string())
        .collect();
    names.sort();
    names.dedup();
    names.join(", ")
}
