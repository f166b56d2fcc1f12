//! A page: title, subtitle, legend, drawing and source, all aligned at the left.

use super::canvas::{self, Align, Area, Canvas};
use super::palette::Look;
use super::style::{
    INK, LABEL, LEADING, MARGIN, SMALL, SOURCE_TYPE, SUBTITLE, SUBTITLE_TYPE, TITLE, TITLE_TYPE,
};
use super::text;

/// The words around a figure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caption {
    /// What is shown, as a sentence or a noun phrase.
    pub title: String,
    /// Against what, on which machine, how many cases.
    pub subtitle: String,
    /// Where the numbers come from; the last line of the page.
    pub source: String,
}

/// How a legend shows a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Swatch {
    Line { marker: bool },
    Box,
    Point,
}

/// A name in a legend.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub name: String,
    pub look: Look,
    pub swatch: Swatch,
}

/// Width of a page \[px\].
pub(super) const WIDTH: f64 = 840.0;
const SWATCH: f64 = 26.0;
const BETWEEN: f64 = 22.0;
const ROW: f64 = 20.0;

/// The remark on values without a place; empty where there are none.
pub(super) fn left_out(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => "One value without a place on these axes is left out.".to_owned(),
        n => format!("{n} values without a place on these axes are left out."),
    }
}

/// Where each entry of a legend stands: x from the left and the row.
fn arrange(entries: &[Entry], width: f64) -> (Vec<(f64, usize)>, usize) {
    let (mut x, mut row, mut places) = (0.0, 0, Vec::new());
    for entry in entries {
        let needs = SWATCH + text::width(&entry.name, LABEL, false);
        if x > 0.0 && x + needs > width {
            (x, row) = (0.0, row + 1);
        }
        places.push((x, row));
        x += needs + BETWEEN;
    }
    (places, if entries.is_empty() { 0 } else { row + 1 })
}

/// Draws a page around a drawing of `body` pixels in height.
///
/// `note` is a remark added to the source line, e.g. on points that have no value.
pub(super) fn sheet(
    caption: &Caption,
    note: &str,
    legend: &[Entry],
    (width, body): (f64, f64),
    draw: impl FnOnce(&mut Canvas<'_>, Area),
) -> String {
    let inner = width - 2.0 * MARGIN;
    let title = text::wrap(&caption.title, TITLE, true, inner);
    let subtitle = text::wrap(&caption.subtitle, SUBTITLE, false, inner);
    let source = [caption.source.trim(), note].map(str::trim);
    let source: Vec<&str> = source.into_iter().filter(|part| !part.is_empty()).collect();
    let source = text::wrap(&source.join(" "), SMALL, false, inner);
    let names: Vec<Entry> = legend
        .iter()
        .map(|entry| Entry {
            name: text::shorten(&entry.name, LABEL, false, inner - SWATCH),
            ..entry.clone()
        })
        .collect();
    let (places, rows) = arrange(&names, inner);
    let heading = title.len() as f64 * TITLE * LEADING + subtitle.len() as f64 * SUBTITLE * LEADING;
    let legend_top = MARGIN + heading + if heading > 0.0 { 10.0 } else { 0.0 };
    let top = legend_top + rows as f64 * ROW + if rows > 0 { 8.0 } else { 0.0 };
    let footer = if source.is_empty() {
        0.0
    } else {
        14.0 + (source.len() - 1) as f64 * SMALL * LEADING + SMALL
    };
    let height = top + body + footer + MARGIN * 0.75;
    let about = [caption.title.as_str(), &caption.subtitle].join(" – ");
    let about = about.trim_matches([' ', '–']);
    canvas::paint(width, height, about, |canvas| {
        let mut y = MARGIN - TITLE * (LEADING - 1.0);
        for line in &title {
            y += TITLE * LEADING;
            canvas.text(line, (MARGIN, y), Align::Left, TITLE_TYPE);
        }
        y += 2.0;
        for line in &subtitle {
            y += SUBTITLE * LEADING;
            canvas.text(line, (MARGIN, y), Align::Left, SUBTITLE_TYPE);
        }
        for (entry, (x, row)) in names.iter().zip(places) {
            let middle = legend_top + row as f64 * ROW + ROW / 2.0;
            draw_entry(canvas, entry, (MARGIN + x, middle));
        }
        let area = Area {
            left: MARGIN,
            top,
            right: width - MARGIN,
            bottom: top + body,
        };
        draw(canvas, area);
        let mut y = top + body + 14.0 + SMALL * 0.9;
        for line in &source {
            canvas.text(line, (MARGIN, y), Align::Left, SOURCE_TYPE);
            y += SMALL * LEADING;
        }
    })
}

fn draw_entry(canvas: &mut Canvas<'_>, entry: &Entry, (x, y): (f64, f64)) {
    let look = entry.look;
    match entry.swatch {
        Swatch::Line { marker } => {
            let line = [(x, y), (x + 20.0, y)];
            canvas.path(&line, look.colour, 2.2, look.dash);
            if marker {
                canvas.marker((x + 10.0, y), 3.6, look, 1.0);
            }
        }
        Swatch::Box => canvas.fill_box(
            Area {
                left: x + 4.0,
                top: y - 6.0,
                right: x + 18.0,
                bottom: y + 6.0,
            },
            look.colour,
            1.0,
        ),
        Swatch::Point => canvas.marker((x + 11.0, y), 4.6, look, 1.0),
    }
    let kind = canvas::Type {
        size: LABEL,
        bold: false,
        colour: INK,
    };
    let baseline = y + text::CAPITAL * LABEL / 2.0;
    canvas.text(&entry.name, (x + SWATCH, baseline), Align::Left, kind);
}
