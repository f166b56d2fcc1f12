//! The axes of one panel: grid, ticks and their labels.

use super::axis::Scale;
use super::canvas::{Align, Area, Canvas};
use super::style::{AXIS, GRID, LABEL, LABEL_TYPE, LEADING, PANEL_TYPE, SMALL, TICK, TICK_TYPE};
use super::text;

/// Room for tick labels and the axis title below a plot \[px\].
pub(super) const BELOW: f64 = 20.0;
pub(super) const X_TITLE: f64 = 20.0;
/// Room for the title of the vertical axis, which stands above it, unrotated.
pub(super) const Y_TITLE: f64 = 26.0;

/// A panel with its two scales; `area` is what the axes enclose.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub area: Area,
    pub x: Scale,
    pub y: Scale,
}

/// Which words a frame gets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Show {
    pub x_labels: bool,
    pub y_labels: bool,
    /// Vertical grid lines too.
    pub vertical: bool,
}

/// The width that the tick labels of a vertical axis need.
pub(super) fn gutter(scale: &Scale) -> f64 {
    let widths = scale
        .ticks
        .iter()
        .map(|t| text::width(&t.label, TICK, false));
    widths.fold(0.0, f64::max) + 8.0
}

impl Frame {
    /// The place of a point, `None` if it has none.
    pub fn at(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.x_at(x)?, self.y_at(y)?))
    }

    pub fn x_at(&self, x: f64) -> Option<f64> {
        Some(self.area.left + self.x.at(x)? * self.area.width())
    }

    pub fn y_at(&self, y: f64) -> Option<f64> {
        Some(self.area.bottom - self.y.at(y)? * self.area.height())
    }

    /// Both axes with labels and titles, the only frame in `drawing`.
    pub fn draw_alone(&self, canvas: &mut Canvas<'_>, drawing: Area, vertical: bool) {
        y_title(canvas, &self.y.title, drawing);
        self.draw(
            canvas,
            Show {
                x_labels: true,
                y_labels: true,
                vertical,
            },
        );
        let bottom = self.area.bottom + BELOW + 6.0;
        x_title(canvas, &self.x.title, self.area, bottom);
    }

    /// Grid and tick labels; to be drawn before the data.
    pub fn draw(&self, canvas: &mut Canvas<'_>, show: Show) {
        let area = self.area;
        for tick in &self.y.ticks {
            let Some(y) = self.y_at(tick.value) else {
                continue;
            };
            canvas.line((area.left, y), (area.right, y), GRID, 1.0);
            if show.y_labels {
                let baseline = y + text::CAPITAL * TICK / 2.0;
                let at = (area.left - 8.0, baseline);
                canvas.text(&tick.label, at, Align::Right, TICK_TYPE);
            }
        }
        for tick in &self.x.ticks {
            let Some(x) = self.x_at(tick.value) else {
                continue;
            };
            if show.vertical {
                canvas.line((x, area.top), (x, area.bottom), GRID, 1.0);
            }
            canvas.line((x, area.bottom), (x, area.bottom + 4.0), AXIS, 1.0);
            if show.x_labels {
                let at = (x, area.bottom + 7.0 + TICK * 0.9);
                canvas.text(&tick.label, at, Align::Centre, TICK_TYPE);
            }
        }
        let floor = area.bottom;
        canvas.line((area.left, floor), (area.right, floor), AXIS, 1.0);
    }
}

/// The title of the vertical axis, at the top of the drawing.
pub(super) fn y_title(canvas: &mut Canvas<'_>, title: &str, drawing: Area) {
    let title = text::shorten(title, LABEL, false, drawing.width());
    let at = (drawing.left, drawing.top + LABEL);
    canvas.text(&title, at, Align::Left, LABEL_TYPE);
}

/// The title of the horizontal axis, centred below its labels; `y` is its top.
pub(super) fn x_title(canvas: &mut Canvas<'_>, title: &str, area: Area, y: f64) {
    let title = text::shorten(title, LABEL, false, area.width().max(60.0));
    let middle = (area.left + area.right) / 2.0;
    canvas.text(&title, (middle, y + LABEL), Align::Centre, LABEL_TYPE);
}

/// The title of a panel: bold, above it.
pub(super) fn panel_title(canvas: &mut Canvas<'_>, title: &str, left: f64, top: f64, limit: f64) {
    let title = text::shorten(title, LABEL, true, limit);
    canvas.text(&title, (left, top + LABEL), Align::Left, PANEL_TYPE);
}

/// What stands in a plot that has nothing to show.
pub(super) fn nothing(canvas: &mut Canvas<'_>, area: Area) {
    let at = (
        (area.left + area.right) / 2.0,
        (area.top + area.bottom) / 2.0 + SMALL * (LEADING - 1.0),
    );
    canvas.text("no data", at, Align::Centre, LABEL_TYPE);
}
