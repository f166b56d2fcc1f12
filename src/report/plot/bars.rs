//! Grouped bars and dots, with values written beside them.

use super::axis::{Axis, Direction, Scale};
use super::canvas::{Align, Area, Canvas, Type};
use super::frame;
use super::page::{self, Caption, Entry, Sheet, Swatch};
use super::palette::{Dash, Look};
use super::style::{AXIS, INK, LABEL, LEADING, MARGIN, SMALL, SOFT, TICK_TYPE};
use super::{columns, dots, rows, text};

/// One value per group.
#[derive(Clone, Debug, PartialEq)]
pub struct BarSeries {
    pub name: String,
    pub look: Look,
    /// One per group; NaN where there is none.
    pub values: Vec<f64>,
    /// Lower and upper ends of intervals, one per group; empty where there are none.
    pub intervals: Vec<(f64, f64)>,
}

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Upright bars where all labels fit, else lying ones.
    Auto,
    /// Lying bars, one row per value.
    Rows,
    /// One row per group, a dot per series.
    Dots,
}

/// A figure of bars or dots.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    pub caption: Caption,
    pub groups: Vec<String>,
    pub series: Vec<BarSeries>,
    /// The axis of the values; bars start at its zero, or at its low end where it has none.
    pub axis: Axis,
    /// A dashed line with a name, e.g. `(1.0, "sequential")`.
    pub reference: Option<(f64, String)>,
    pub shape: Shape,
}

impl Bars {
    /// The figure as SVG.
    #[must_use]
    pub fn draw(&self) -> String {
        match self.shape {
            Shape::Auto if columns::fit(self) => columns::draw(self),
            Shape::Auto | Shape::Rows => rows::draw(self),
            Shape::Dots => dots::draw(self),
        }
    }

    /// The value of a series in a group, if the axis has a place for it.
    pub(super) fn value(&self, series: usize, group: usize) -> Option<f64> {
        let value = self.series.get(series)?.values.get(group).copied()?;
        self.axis.takes(value).then_some(value)
    }

    /// The interval of a value, ends in order.
    pub(super) fn interval(&self, series: usize, group: usize) -> Option<(f64, f64)> {
        self.value(series, group)?;
        let (a, b) = self.series.get(series)?.intervals.get(group).copied()?;
        let ends = (a.min(b), a.max(b));
        (self.axis.takes(a) && self.axis.takes(b)).then_some(ends)
    }

    /// The scale of the values.
    pub(super) fn scale(&self, pixels: f64, direction: Direction) -> Scale {
        let all = (0..self.series.len())
            .flat_map(|s| (0..self.groups.len()).map(move |g| (s, g)))
            .filter_map(|(s, g)| Some((self.value(s, g)?, self.interval(s, g))));
        let ends = all.flat_map(|(v, i)| [v, i.map_or(v, |i| i.0), i.map_or(v, |i| i.1)]);
        let reference = self.reference.iter().map(|reference| reference.0);
        self.axis
            .scale(ends.chain(reference), pixels, direction, None)
    }

    /// Where bars start.
    pub(super) fn base(&self, scale: &Scale) -> f64 {
        0f64.clamp(scale.lo, scale.hi)
    }

    /// What is written beside a value.
    pub(super) fn words(&self, scale: &Scale, value: f64) -> String {
        let mut all = self.series.iter().flat_map(|s| &s.values);
        // Among broken numbers a whole one has decimals too.
        let whole = all.all(|v| !v.is_finite() || (v / scale.unit.0).fract() == 0.0);
        scale.short(&self.axis.quantity, value, whole)
    }

    pub(super) fn legend(&self, swatch: Swatch) -> Vec<Entry> {
        let named = self.series.iter().filter(|s| !s.name.is_empty());
        let entries: Vec<Entry> = named
            .map(|s| Entry {
                name: s.name.clone(),
                look: s.look,
                swatch,
            })
            .collect();
        // One series needs no key if the title speaks of it.
        if self.series.len() > 1 {
            entries
        } else {
            Vec::new()
        }
    }

    pub(super) fn note(&self) -> String {
        let groups = self.groups.len();
        let values = self
            .series
            .iter()
            .flat_map(|s| s.values.iter().take(groups));
        // NaN says that there is no value; an infinity or a zero on a logarithmic axis is one.
        page::left_out(
            values
                .filter(|v| !v.is_nan() && !self.axis.takes(**v))
                .count(),
        )
    }
}

/// A page whose values run from left to right: names of rows at the left, ticks below.
pub(super) struct Lying {
    pub area: Area,
    pub scale: Scale,
}

/// Width that the widest of these names needs, at most 40 % of the page.
pub(super) fn names_room<'a>(names: impl Iterator<Item = &'a String>, bold: bool) -> f64 {
    let widest = names.map(|name| text::width(name, LABEL, bold));
    let widest = widest.fold(0.0, f64::max);
    (widest + 12.0).min((page::WIDTH - 2.0 * MARGIN) * 0.4)
}

/// Draws the page of a lying chart; `rows` draws what is between the axes.
pub(super) fn lying(
    bars: &Bars,
    swatch: Swatch,
    left: f64,
    right: f64,
    high: f64,
    rows: impl FnOnce(&mut Canvas<'_>, &Lying),
) -> String {
    let head = if bars.reference.is_some() { 20.0 } else { 4.0 };
    let body = head + high + frame::BELOW + frame::X_TITLE;
    let sheet = Sheet {
        caption: &bars.caption,
        note: bars.note(),
        legend: bars.legend(swatch),
        width: page::WIDTH,
        body,
    };
    sheet.draw(|canvas, area| {
        let plot = area.shrink(left, head, right, frame::BELOW + frame::X_TITLE);
        let scale = bars.scale(plot.width(), Direction::Across);
        let lying = Lying { area: plot, scale };
        lying.grid(canvas);
        if bars.groups.is_empty() || bars.series.is_empty() {
            frame::nothing(canvas, plot);
        }
        rows(canvas, &lying);
        lying.reference(canvas, bars);
        let bottom = plot.bottom + frame::BELOW + 6.0;
        frame::x_title(canvas, &lying.scale.title, plot, bottom);
    })
}

impl Lying {
    pub fn x_at(&self, value: f64) -> Option<f64> {
        Some(self.area.left + self.scale.at(value)? * self.area.width())
    }

    fn grid(&self, canvas: &mut Canvas<'_>) {
        let (top, bottom) = (self.area.top, self.area.bottom);
        for tick in &self.scale.ticks {
            if let Some(x) = self.x_at(tick.value) {
                canvas.line((x, top), (x, bottom), super::style::GRID, 1.0);
                let at = (x, bottom + 7.0 + super::style::TICK * 0.9);
                canvas.text(&tick.label, at, Align::Centre, TICK_TYPE);
            }
        }
    }

    /// The dashed line and its name above the plot.
    fn reference(&self, canvas: &mut Canvas<'_>, bars: &Bars) {
        let Some((value, name)) = &bars.reference else {
            return;
        };
        let Some(x) = self.x_at(*value) else {
            return;
        };
        let line = [(x, self.area.bottom), (x, self.area.top - 2.0)];
        canvas.path(&line, AXIS, 1.2, Dash::Dashed);
        let name = text::shorten(name, SMALL, false, self.area.width());
        let half = text::width(&name, SMALL, false) / 2.0;
        let middle = x.clamp(
            self.area.left + half,
            (self.area.right - half).max(self.area.left + half),
        );
        let kind = Type {
            size: SMALL,
            bold: false,
            colour: SOFT,
        };
        canvas.text(&name, (middle, self.area.top - 7.0), Align::Centre, kind);
    }

    /// The name of a row, on up to two lines, its middle at `y`.
    pub fn name(&self, canvas: &mut Canvas<'_>, name: &str, y: f64, room: f64, bold: bool) {
        let mut lines = text::wrap(name, LABEL, bold, room);
        if lines.len() > 2 {
            lines.truncate(2);
            lines[1] = text::shorten(&format!("{} …", lines[1]), LABEL, bold, room);
        }
        let kind = Type {
            size: LABEL,
            bold,
            colour: INK,
        };
        let first = y + text::CAPITAL * LABEL / 2.0 - (lines.len() as f64 - 1.0) * LABEL * 0.6;
        for (i, line) in lines.iter().enumerate() {
            let at = (self.area.left - 10.0, first + i as f64 * LABEL * 1.2);
            canvas.text(line, at, Align::Right, kind);
        }
    }
}

/// Two lines of a row's name must fit its height \[px\].
pub(super) const ROW: f64 = 2.0 * LABEL * LEADING;
