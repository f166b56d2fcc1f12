//! Small multiples: panels of one size in rows, axes shared.

use super::axis::Scale;
use super::canvas::{Area, Canvas};
use super::frame::{self, BELOW, X_TITLE, Y_TITLE};
use super::style::TICK;
use super::text;

/// Panels in a grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tiles {
    count: usize,
    columns: usize,
    /// Height of a plot \[px\].
    pub high: f64,
    /// Room for the titles of panels \[px\].
    head: f64,
}

/// Between the rows of panels \[px\].
const ROW_GAP: f64 = 12.0;
/// Between a panel and the next one's labels \[px\].
const GAP: f64 = 16.0;

impl Tiles {
    /// `columns` 0 takes up to three beside one another, two for two or four; at most four fit.
    pub fn new(count: usize, columns: usize, high: f64, titled: bool) -> Self {
        let count = count.max(1);
        let columns = match (columns, count) {
            (0, 2 | 4) => 2,
            (0, _) => 3,
            (wanted, _) => wanted.min(4),
        };
        Self {
            count,
            columns: columns.min(count),
            high,
            head: if titled { 24.0 } else { 0.0 },
        }
    }

    fn rows(&self) -> usize {
        self.count.div_ceil(self.columns)
    }

    fn row_height(&self) -> f64 {
        // Labels below each row: a hole in the last row shows those of the row above.
        self.head + self.high + BELOW + ROW_GAP
    }

    /// Height of all with their axis titles \[px\].
    pub fn body(&self) -> f64 {
        Y_TITLE + self.rows() as f64 * self.row_height() - ROW_GAP + X_TITLE
    }

    /// Whether a panel stands at the left.
    pub fn first(&self, index: usize) -> bool {
        index.is_multiple_of(self.columns)
    }

    /// Whether no panel stands below.
    pub fn lowest(&self, index: usize) -> bool {
        index + self.columns >= self.count
    }

    /// The horizontal scale, which `scale` makes for a width, and the area of each plot.
    ///
    /// `gutter` is what the labels of a vertical axis need: once at the left, or in each panel if
    /// `each`.
    pub fn place(
        &self,
        area: Area,
        gutter: f64,
        each: bool,
        scale: impl Fn(f64) -> Scale,
    ) -> (Scale, Vec<Area>) {
        let columns = self.columns as f64;
        let (once, own) = if each { (0.0, gutter) } else { (gutter, 0.0) };
        let gap = |hang: (f64, f64)| GAP.max(hang.0 + hang.1 + 8.0) + own;
        let width = |hang: (f64, f64)| {
            let gaps = (columns - 1.0) * gap(hang) + hang.1;
            ((area.width() - once - own - gaps) / columns).max(40.0)
        };
        // Labels at the ends of the axis hang over; their width is known once there is a scale.
        let guess = width((20.0, 20.0));
        let hang = overhang(&scale(guess), guess);
        let wide = width(hang);
        let x = scale(wide);
        let areas = (0..self.count).map(|i| {
            let column = (i % self.columns) as f64;
            let row = (i / self.columns) as f64;
            let left = area.left + once + own + column * (wide + gap(hang));
            let top = area.top + Y_TITLE + row * self.row_height() + self.head;
            Area {
                left,
                top,
                right: left + wide,
                bottom: top + self.high,
            }
        });
        (x, areas.collect())
    }

    /// The title of a panel, above its plot.
    pub fn title(&self, canvas: &mut Canvas<'_>, title: &str, plot: Area) {
        let top = plot.top - self.head + 2.0;
        frame::panel_title(canvas, title, plot.left, top, plot.width());
    }

    /// The title of the horizontal axis, below all.
    pub fn x_title(&self, canvas: &mut Canvas<'_>, title: &str, plots: &[Area]) {
        let right = plots.iter().map(|plot| plot.right).fold(0.0, f64::max);
        if let [first, .., last] | [first @ last] = plots {
            let wide = Area { right, ..*first };
            frame::x_title(canvas, title, wide, last.bottom + BELOW + 6.0);
        }
    }
}

/// How far the labels at both ends of an axis reach beyond it.
fn overhang(x: &Scale, width: f64) -> (f64, f64) {
    let beyond = x.ticks.iter().filter_map(|tick| {
        let half = text::width(&tick.label, TICK, false) / 2.0;
        let at = x.at(tick.value)? * width;
        Some((half - at, half - (width - at)))
    });
    let (left, right) = beyond.fold((0.0, 0.0), |most: (f64, f64), label| {
        (most.0.max(label.0), most.1.max(label.1))
    });
    (left.ceil() + 2.0, right.ceil() + 2.0)
}
