//! What was chosen against what was right.

use super::canvas::{Align, Area, Canvas, Type};
use super::frame;
use super::page::{self, Caption, Sheet};
use super::palette::{Colour, Look};
use super::style::{AXIS, EMPTY, INK, LABEL, LABEL_TYPE, LEADING, SMALL, SOFT};
use super::text;

/// A confusion matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Confusion {
    pub caption: Caption,
    /// What rows are, e.g. `fastest in the simulator`.
    pub rows: String,
    /// What columns are, e.g. `chosen`.
    pub columns: String,
    /// Of both rows and columns; strategies wear their colours.
    pub names: Vec<String>,
    /// `counts[row][column]`; missing ones are 0.
    pub counts: Vec<Vec<u64>>,
}

const HIGH: f64 = 46.0;
/// Cells are no wider, however few there are \[px\].
const WIDEST: f64 = 150.0;
/// The column of the rows' totals \[px\].
const TOTAL: f64 = 76.0;
const NAME_LINES: usize = 3;

impl Confusion {
    /// The figure as SVG.
    #[must_use]
    pub fn draw(&self) -> String {
        let count = self.names.len().max(1) as f64;
        let gutter = self.names.iter().map(|n| text::width(n, LABEL, true));
        let gutter = (gutter.fold(0.0, f64::max) + 12.0).clamp(60.0, 220.0);
        let inner = page::WIDTH - 2.0 * super::style::MARGIN;
        let wide = ((inner - gutter - TOTAL) / count).min(WIDEST);
        let headings: Vec<Vec<String>> = self.names.iter().map(|n| heading(n, wide)).collect();
        let lines = headings.iter().map(Vec::len).max().unwrap_or(0) as f64;
        let head = 24.0 + lines * LABEL * LEADING + 8.0;
        let body = head + count * HIGH + 4.0;
        let sheet = Sheet {
            caption: &self.caption,
            note: String::new(),
            legend: Vec::new(),
            width: page::WIDTH,
            body,
        };
        sheet.draw(|canvas, area| {
            let left = area.left + gutter;
            let right = left + count * wide;
            let top = area.top + head;
            let rows = text::shorten(&format!("{} ↓", self.rows), LABEL, false, inner * 0.45);
            let rows_wide = text::width(&rows, LABEL, false);
            canvas.text(
                &rows,
                (area.left, area.top + LABEL),
                Align::Left,
                LABEL_TYPE,
            );
            let at = left.max(area.left + rows_wide + 24.0);
            let limit = area.right - at;
            let columns = text::shorten(&format!("{} →", self.columns), LABEL, false, limit);
            canvas.text(&columns, (at, area.top + LABEL), Align::Left, LABEL_TYPE);
            if self.names.is_empty() {
                frame::nothing(canvas, area);
                return;
            }
            for (i, (name, words)) in self.names.iter().zip(&headings).enumerate() {
                let kind = super::style::series(name_colour(name));
                let middle = left + (i as f64 + 0.5) * wide;
                let first = top - 8.0 - (words.len() as f64 - 1.0) * LABEL * LEADING;
                for (line, word) in words.iter().enumerate() {
                    let y = first + line as f64 * LABEL * LEADING;
                    canvas.text(word, (middle, y), Align::Centre, kind);
                }
                let y = top + (i as f64 + 0.5) * HIGH;
                let name = text::shorten(name, LABEL, true, gutter - 12.0);
                let at = (left - 12.0, y + text::CAPITAL * LABEL / 2.0);
                canvas.text(&name, at, Align::Right, kind);
                let row = Area {
                    left,
                    top: top + i as f64 * HIGH,
                    right,
                    bottom: top + (i as f64 + 1.0) * HIGH,
                };
                self.row(canvas, i, row, wide);
            }
        })
    }

    fn count(&self, row: usize, column: usize) -> u64 {
        let counts = self.counts.get(row);
        counts.and_then(|c| c.get(column)).copied().unwrap_or(0)
    }

    fn row(&self, canvas: &mut Canvas<'_>, row: usize, area: Area, wide: f64) {
        let all = (0..self.names.len()).map(|c| self.count(row, c) as f64);
        let total: f64 = all.sum();
        for column in 0..self.names.len() {
            let count = self.count(row, column);
            let share = if total > 0.0 {
                count as f64 / total
            } else {
                0.0
            };
            let right = column == row;
            let base = if right {
                Colour::BLUE
            } else {
                Colour::VERMILLION
            };
            let colour = if count == 0 {
                EMPTY
            } else {
                base.mix(Colour::WHITE, 0.12 + 0.88 * share)
            };
            let left = area.left + column as f64 * wide;
            let cell = Area {
                left,
                right: left + wide,
                ..area
            };
            let cell = cell.shrink(1.0, 1.0, 1.0, 1.0);
            canvas.fill_box(cell, colour, 1.0);
            if right {
                canvas.outline(cell, AXIS, 1.0);
            }
            number(canvas, count, share, cell, colour);
        }
        let kind = Type {
            size: SMALL,
            bold: false,
            colour: SOFT,
        };
        let at = (
            area.right + 10.0,
            (area.top + area.bottom) / 2.0 + SMALL * 0.36,
        );
        let total = text::shorten(&format!("of {total}"), SMALL, false, TOTAL - 10.0);
        canvas.text(&total, at, Align::Left, kind);
    }
}

/// A count, and below it its share of the row.
fn number(canvas: &mut Canvas<'_>, count: u64, share: f64, cell: Area, colour: Colour) {
    let middle = (cell.left + cell.right) / 2.0;
    let centre = (cell.top + cell.bottom) / 2.0;
    if count == 0 {
        let kind = Type {
            size: LABEL,
            bold: false,
            colour: SOFT,
        };
        canvas.text("0", (middle, centre + LABEL * 0.36), Align::Centre, kind);
        return;
    }
    let ink = colour.on_top();
    let bold = Type {
        size: 14.0,
        bold: true,
        colour: ink,
    };
    let small = Type {
        size: SMALL,
        bold: false,
        colour: ink,
    };
    let percent = share_words(share);
    let count = text::shorten(&count.to_string(), 14.0, true, cell.width());
    canvas.text(&count, (middle, centre - 1.0), Align::Centre, bold);
    let percent = text::shorten(&percent, SMALL, false, cell.width());
    canvas.text(&percent, (middle, centre + 15.0), Align::Centre, small);
}

/// To one decimal; 100% only where it is all.
fn share_words(share: f64) -> String {
    if share >= 1.0 {
        "100%".to_owned()
    } else {
        format!("{:.1}%", (share * 100.0).min(99.9))
    }
}

fn name_colour(name: &str) -> Colour {
    match Look::of(name) {
        Look::NEUTRAL => INK,
        look => look.colour,
    }
}

/// A name above a column, broken after hyphens where it is too long.
fn heading(name: &str, wide: f64) -> Vec<String> {
    if text::width(name, LABEL, true) <= wide - 6.0 {
        return vec![name.to_owned()];
    }
    let apart = name.replace('-', "- ").replace(':', ": ");
    let mut lines = text::wrap(&apart, LABEL, true, wide - 6.0);
    for line in &mut lines {
        *line = line.replace("- ", "-").replace(": ", ":");
    }
    lines.truncate(NAME_LINES);
    lines
}
