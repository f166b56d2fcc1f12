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
        let needs = entry.swatch.room() + text::width(&entry.name, LABEL, false);
        if x > 0.0 && x + needs > width {
            (x, row) = (0.0, row + 1);
        }
        places.push((x, row));
        x += needs + BETWEEN;
    }
    (places, if entries.is_empty() { 0 } else { row + 1 })
}

impl Swatch {
    /// Where the name begins, from the left of the swatch \[px\].
    fn room(self) -> f64 {
        match self {
            Self::Line { .. } => 26.0,
            Self::Box | Self::Point => 20.0,
        }
    }
}

/// What a page of the usual width has inside its margins; its height is not known yet.
pub(super) fn across() -> Area {
    Area {
        left: MARGIN,
        right: WIDTH - MARGIN,
        ..Area::default()
    }
}

/// A page around a drawing.
pub(super) struct Sheet<'a> {
    pub caption: &'a Caption,
    /// A remark added to the source line, e.g. on points that have no value.
    pub note: String,
    pub legend: Vec<Entry>,
    /// Width of the page and height of the drawing \[px\].
    pub width: f64,
    pub body: f64,
}

impl Sheet<'_> {
    /// Draws the page; `draw` gets the area of the drawing.
    pub fn draw(self, draw: impl FnOnce(&mut Canvas<'_>, Area)) -> String {
        let inner = self.width - 2.0 * MARGIN;
        let title = text::wrap(&self.caption.title, TITLE, true, inner);
        let subtitle = text::wrap(&self.caption.subtitle, SUBTITLE, false, inner);
        let source = format!("{} {}", self.caption.source, self.note);
        let source = text::wrap(&source, SMALL, false, inner);
        let legend = self.legend.into_iter().map(|entry| Entry {
            name: text::shorten(&entry.name, LABEL, false, inner - entry.swatch.room()),
            ..entry
        });
        let legend: Vec<Entry> = legend.collect();
        let (places, rows) = arrange(&legend, inner);
        let heading =
            title.len() as f64 * TITLE * LEADING + subtitle.len() as f64 * SUBTITLE * LEADING;
        let legend_top = MARGIN + heading + if heading > 0.0 { 10.0 } else { 0.0 };
        let top = legend_top + rows as f64 * ROW + if rows > 0 { 8.0 } else { 0.0 };
        let footer = match source.len() {
            0 => 0.0,
            lines => 14.0 + (lines - 1) as f64 * SMALL * LEADING + SMALL,
        };
        let height = top + self.body + footer + MARGIN * 0.75;
        let about = format!("{} – {}", self.caption.title, self.caption.subtitle);
        let area = Area {
            left: MARGIN,
            top,
            right: self.width - MARGIN,
            bottom: top + self.body,
        };
        canvas::paint(
            self.width,
            height,
            about.trim_matches([' ', '–']),
            |canvas| {
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
                for (entry, (x, row)) in legend.iter().zip(places) {
                    let middle = legend_top + row as f64 * ROW + ROW / 2.0;
                    draw_entry(canvas, entry, (MARGIN + x, middle));
                }
                draw(canvas, area);
                let mut y = area.bottom + 14.0 + SMALL * 0.9;
                for line in &source {
                    canvas.text(line, (MARGIN, y), Align::Left, SOURCE_TYPE);
                    y += SMALL * LEADING;
                }
            },
        )
    }
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
                left: x,
                top: y - 6.0,
                right: x + 14.0,
                bottom: y + 6.0,
            },
            look.colour,
            1.0,
        ),
        Swatch::Point => canvas.marker((x + 7.0, y), 4.6, look, 1.0),
    }
    let kind = canvas::Type {
        size: LABEL,
        bold: false,
        colour: INK,
    };
    let baseline = y + text::CAPITAL * LABEL / 2.0;
    canvas.text(
        &entry.name,
        (x + entry.swatch.room(), baseline),
        Align::Left,
        kind,
    );
}
