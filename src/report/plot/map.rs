//! Which category wins where, over two axes.

use super::canvas::{Align, Area, Canvas, Type};
use super::frame;
use super::page::{self, Caption, Entry, Sheet, Swatch};
use super::palette::{Colour, Look};
use super::style::{EMPTY, SMALL, TICK, TICK_TYPE};
use super::text;

/// A category of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Category {
    pub name: String,
    pub look: Look,
}

/// A cell: the index of its category, and a few characters to stand in it where they fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub category: usize,
    pub text: String,
}

/// One map of a [`CategoryMap`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapPanel {
    pub title: String,
    /// `cells[row][column]`, rows as in `y`; missing ones stay blank.
    pub cells: Vec<Vec<Option<Cell>>>,
}

/// A figure of maps.
#[derive(Clone, Debug, PartialEq)]
pub struct CategoryMap {
    pub caption: Caption,
    /// What the texts in the cells say; added to the subtitle where they fit.
    pub texts: String,
    pub x_label: String,
    pub y_label: String,
    /// Names of the columns, left to right.
    pub x: Vec<String>,
    /// Names of the rows, bottom to top.
    pub y: Vec<String>,
    pub categories: Vec<Category>,
    pub panels: Vec<MapPanel>,
    /// Panels beside one another, at most 4; 0 chooses.
    pub columns: usize,
}

/// Height of a cell \[px\].
const CELL: f64 = 26.0;
const GAP: f64 = 22.0;
const HEAD: f64 = 24.0;

impl CategoryMap {
    /// The figure as SVG.
    #[must_use]
    pub fn draw(&self) -> String {
        let legend: Vec<Entry> = self
            .categories
            .iter()
            .enumerate()
            .filter(|(i, category)| self.wins(*i) && !category.name.is_empty())
            .map(|(_, category)| Entry {
                name: category.name.clone(),
                look: category.look,
                swatch: Swatch::Box,
            })
            .collect();
        let blank = [MapPanel::default()];
        let panels = match self.panels.as_slice() {
            [] => &blank[..],
            panels => panels,
        };
        let columns = match self.columns {
            0 if panels.len() == 4 => 2,
            0 => 3,
            wanted => wanted.min(4),
        };
        let columns = columns.min(panels.len());
        let head = if panels.iter().any(|p| !p.title.is_empty()) {
            HEAD
        } else {
            4.0
        };
        let high = CELL * self.y.len().max(1) as f64;
        let row = head + high + frame::BELOW + 10.0;
        let rows = panels.len().div_ceil(columns) as f64;
        let body = frame::Y_TITLE + rows * row - 10.0 + frame::X_TITLE;
        let gutter = self.gutter();
        let across = page::across().width() - gutter;
        let step = (across + GAP) / columns as f64;
        let write = self.texts_fit(step - GAP);
        let mut caption = self.caption.clone();
        if write && !self.texts.is_empty() {
            caption.subtitle = format!("{}; {}", caption.subtitle, self.texts);
        }
        let sheet = Sheet {
            caption: &caption,
            note: String::new(),
            legend,
            width: page::WIDTH,
            body,
        };
        sheet.draw(|canvas, area| {
            frame::y_title(canvas, &self.y_label, area);
            let mut last = area;
            for (i, panel) in panels.iter().enumerate() {
                let left = area.left + gutter + (i % columns) as f64 * step;
                let top = area.top + frame::Y_TITLE + (i / columns) as f64 * row;
                frame::panel_title(canvas, &panel.title, left, top + 2.0, step - GAP);
                let plot = Area {
                    left,
                    top: top + head,
                    right: left + step - GAP,
                    bottom: top + head + high,
                };
                self.cells(canvas, panel, plot, write);
                if i % columns == 0 {
                    self.row_names(canvas, plot, gutter - 8.0);
                }
                if i + columns >= panels.len() {
                    self.column_names(canvas, plot);
                }
                last = plot;
            }
            let all = Area {
                left: area.left + gutter,
                right: area.left + gutter + (columns as f64) * step - GAP,
                ..last
            };
            frame::x_title(canvas, &self.x_label, all, last.bottom + frame::BELOW + 6.0);
        })
    }

    /// Room for the names of the rows \[px\].
    fn gutter(&self) -> f64 {
        let widest = self.y.iter().map(|name| text::width(name, TICK, false));
        (widest.fold(0.0, f64::max) + 8.0).min(page::across().width() * 0.3)
    }

    /// Whether every text fits its cell in panels of this width: texts of some cells only would look
    /// like a message of their own.
    fn texts_fit(&self, width: f64) -> bool {
        let wide = width / self.x.len().max(1) as f64;
        let fits = |cell: &Cell| text::width(&cell.text, SMALL, false) + 4.0 <= wide;
        let cells = self.panels.iter().flat_map(|panel| &panel.cells);
        cells.flatten().flatten().all(fits)
    }

    fn wins(&self, category: usize) -> bool {
        let cells = self.panels.iter().flat_map(|panel| &panel.cells).flatten();
        cells.flatten().any(|cell| cell.category == category)
    }

    fn cells(&self, canvas: &mut Canvas<'_>, panel: &MapPanel, plot: Area, write: bool) {
        if self.x.is_empty() || self.y.is_empty() {
            canvas.fill_box(plot, EMPTY, 1.0);
            frame::nothing(canvas, plot);
            return;
        }
        let wide = plot.width() / self.x.len() as f64;
        for row in 0..self.y.len() {
            for column in 0..self.x.len() {
                let cell = panel.cells.get(row).and_then(|cells| cells.get(column));
                let cell = cell.and_then(Option::as_ref);
                let category = cell.and_then(|cell| self.categories.get(cell.category));
                let colour = category.map_or(EMPTY, |category| category.look.colour);
                let left = plot.left + column as f64 * wide;
                let bottom = plot.bottom - row as f64 * CELL;
                let area = Area {
                    left,
                    top: bottom - CELL,
                    right: left + wide,
                    bottom,
                };
                // A hair of white between cells.
                let hair = if wide > 6.0 { 0.7 } else { 0.0 };
                canvas.fill_box(area.shrink(hair, 0.7, hair, 0.7), colour, 1.0);
                if let (Some(cell), true) = (cell, write) {
                    inscribe(canvas, &cell.text, area, colour);
                }
            }
        }
    }

    fn row_names(&self, canvas: &mut Canvas<'_>, plot: Area, room: f64) {
        for (row, name) in self.y.iter().enumerate() {
            let middle = plot.bottom - (row as f64 + 0.5) * CELL;
            let at = (plot.left - 8.0, middle + text::CAPITAL * TICK / 2.0);
            let name = text::shorten(name, TICK, false, room);
            canvas.text(&name, at, Align::Right, TICK_TYPE);
        }
    }

    /// As many of the names as fit, at a regular distance.
    fn column_names(&self, canvas: &mut Canvas<'_>, plot: Area) {
        let count = self.x.len();
        if count == 0 {
            return;
        }
        let wide = plot.width() / count as f64;
        let widest = self.x.iter().map(|name| text::width(name, TICK, false));
        let widest = widest.fold(0.0, f64::max).min(plot.width());
        let every = ((widest + 8.0) / wide).ceil().max(1.0) as usize;
        for (column, name) in self.x.iter().enumerate().step_by(every) {
            let middle = plot.left + (column as f64 + 0.5) * wide;
            // Names at the ends reach a little beyond the plot at most.
            let side = (middle - plot.left).min(plot.right - middle) + 8.0;
            let room = (every as f64 * wide - 4.0).min(2.0 * side);
            let name = text::shorten(name, TICK, false, room);
            let at = (middle, plot.bottom + 6.0 + TICK * 0.9);
            canvas.text(&name, at, Align::Centre, TICK_TYPE);
        }
    }
}

/// A text in the middle of a cell of that colour.
pub(super) fn inscribe(canvas: &mut Canvas<'_>, words: &str, area: Area, colour: Colour) {
    let kind = Type {
        size: SMALL,
        bold: false,
        colour: colour.on_top(),
    };
    let at = (
        (area.left + area.right) / 2.0,
        (area.top + area.bottom) / 2.0 + text::CAPITAL * SMALL / 2.0,
    );
    canvas.text(words, at, Align::Centre, kind);
}

#[cfg(test)]
mod tests {
    use super::super::samples::winners;

    #[test]
    fn the_subtitle_speaks_of_texts_where_they_stand() {
        let speaks = |svg: &str| svg.contains("speed-up over");
        let mut map = winners();
        assert!(speaks(&map.draw()));
        let cells = map.panels.iter_mut().flat_map(|panel| &mut panel.cells);
        for cell in cells.flatten().flatten() {
            cell.text += " and by how much";
        }
        let svg = map.draw();
        assert!(!speaks(&svg) && !svg.contains("by how much"));
    }
}
