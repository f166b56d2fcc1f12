//! Upright bars, grouped, each with its value above it.

use super::axis::{Direction, Scale};
use super::bars::Bars;
use super::canvas::{Align, Area, Canvas, Type};
use super::frame;
use super::page::{self, Sheet, Swatch};
use super::palette::{Colour, Dash};
use super::style::{AXIS, GRID, INK, LABEL, LEADING, SMALL, SOFT, TICK, TICK_TYPE};
use super::text;

const HIGH: f64 = 320.0;
const HEAD: f64 = frame::Y_TITLE + SMALL;
/// Share of a group's width that is blank.
const BLANK: f64 = 0.18;
const WIDEST_BAR: f64 = 64.0;
/// A group's name takes no more lines.
const LINES: usize = 2;
const LINE: f64 = LABEL * LEADING;
/// Of the name of the reference line \[px\].
const WIDEST_NAME: f64 = 160.0;

/// A chart whose places are settled; the page's top is at 0.
struct Layout {
    scale: Scale,
    plot: Area,
    /// Widths of a group and of a bar.
    group: f64,
    bar: f64,
    /// The names of groups in lines.
    names: Vec<Vec<String>>,
    /// From the plot to the names: values of bars that point down may stand between.
    below: f64,
}

impl Layout {
    fn of(chart: &Bars) -> Self {
        let scale = chart.scale(HIGH, Direction::Up);
        let name = chart.reference.as_ref();
        let right = name.map_or(0.0, |r| text::width(&r.1, SMALL, false) + 8.0);
        let mut plot = page::across().shrink(frame::gutter(&scale), HEAD, right, 0.0);
        plot.bottom = plot.top + HIGH;
        let group = plot.width() / chart.groups.len().max(1) as f64;
        let bars = chart.series.len().max(1) as f64;
        let names = chart.groups.iter();
        let mut values = chart.series.iter().flat_map(|s| &s.values);
        let below = if values.any(|v| *v < 0.0) {
            6.0 + SMALL + 8.0
        } else {
            6.0
        };
        Self {
            below,
            bar: (group * (1.0 - BLANK) / bars).min(WIDEST_BAR),
            names: names
                .map(|name| text::wrap(name, LABEL, false, group - 8.0))
                .collect(),
            scale,
            plot,
            group,
        }
    }

    fn y_at(&self, value: f64) -> Option<f64> {
        Some(self.plot.bottom - self.scale.at(value)? * self.plot.height())
    }
}

/// Whether each value fits its bar's width and each name its group's, on two lines.
pub(super) fn fit(chart: &Bars) -> bool {
    let layout = Layout::of(chart);
    let words = (0..chart.series.len())
        .flat_map(|s| (0..chart.groups.len()).map(move |g| (s, g)))
        .filter_map(|(s, g)| Some(chart.words(&layout.scale, chart.value(s, g)?)));
    let widest = words.map(|w| text::width(&w, SMALL, false));
    let widest = widest.fold(0.0, f64::max);
    let words = chart.groups.iter().flat_map(|name| name.split_whitespace());
    let word = words.map(|word| text::width(word, LABEL, false));
    let name = chart.reference.as_ref();
    widest + 4.0 <= layout.bar
        && word.fold(0.0, f64::max) <= layout.group - 8.0
        && layout.names.iter().all(|lines| lines.len() <= LINES)
        && name.is_none_or(|r| text::width(&r.1, SMALL, false) <= WIDEST_NAME)
}

pub(super) fn draw(chart: &Bars) -> String {
    let mut layout = Layout::of(chart);
    let lines = layout.names.iter().map(Vec::len).max().unwrap_or(0);
    let sheet = Sheet {
        caption: &chart.caption,
        note: chart.note(),
        legend: chart.legend(Swatch::Box),
        width: page::WIDTH,
        body: HEAD + HIGH + layout.below + lines as f64 * LINE,
    };
    sheet.draw(|canvas, area| {
        layout.plot.top += area.top;
        layout.plot.bottom += area.top;
        frame::y_title(canvas, &layout.scale.title, area);
        grid(canvas, &layout);
        if chart.groups.is_empty() || chart.series.is_empty() {
            frame::nothing(canvas, layout.plot);
        }
        reference(canvas, chart, &layout);
        bars(canvas, chart, &layout);
    })
}

fn grid(canvas: &mut Canvas<'_>, layout: &Layout) {
    let (left, right) = (layout.plot.left, layout.plot.right);
    for tick in &layout.scale.ticks {
        if let Some(y) = layout.y_at(tick.value) {
            canvas.line((left, y), (right, y), GRID, 1.0);
            let at = (left - 8.0, y + text::CAPITAL * TICK / 2.0);
            canvas.text(&tick.label, at, Align::Right, TICK_TYPE);
        }
    }
}

/// The dashed line with its name at the right.
fn reference(canvas: &mut Canvas<'_>, chart: &Bars, layout: &Layout) {
    if let Some((value, name)) = &chart.reference
        && let Some(y) = layout.y_at(*value)
    {
        let (left, right) = (layout.plot.left, layout.plot.right);
        canvas.path(&[(left, y), (right, y)], AXIS, 1.2, Dash::Dashed);
        let at = (right + 6.0, y + text::CAPITAL * SMALL / 2.0);
        canvas.text(name, at, Align::Left, plain(SMALL, SOFT));
    }
}

fn bars(canvas: &mut Canvas<'_>, chart: &Bars, layout: &Layout) {
    let plot = layout.plot;
    let base = layout.y_at(chart.base(&layout.scale));
    let base = base.unwrap_or(plot.bottom);
    for (g, name) in layout.names.iter().enumerate() {
        let middle = plot.left + (g as f64 + 0.5) * layout.group;
        let first = middle - layout.bar * chart.series.len() as f64 / 2.0;
        for (s, series) in chart.series.iter().enumerate() {
            let Some(value) = chart.value(s, g) else {
                continue;
            };
            let left = first + s as f64 * layout.bar;
            let y = layout.y_at(value).unwrap_or(base);
            let bar = Area {
                left: left + 1.0,
                top: y.min(base),
                right: left + layout.bar - 1.0,
                bottom: y.max(base),
            };
            canvas.fill_box(bar, series.look.colour, 1.0);
            let ends = chart.interval(s, g);
            let ends = ends.and_then(|(a, b)| Some((layout.y_at(a)?, layout.y_at(b)?)));
            let words = chart.words(&layout.scale, value);
            finish(canvas, bar, ends, &words, value < 0.0);
        }
        for (i, line) in name.iter().enumerate() {
            let at = (middle, plot.bottom + layout.below + LABEL + i as f64 * LINE);
            canvas.text(line, at, Align::Centre, plain(LABEL, INK));
        }
    }
    canvas.line((plot.left, base), (plot.right, base), AXIS, 1.0);
}

fn plain(size: f64, colour: Colour) -> Type {
    Type {
        size,
        bold: false,
        colour,
    }
}

/// The interval of a bar, and its value beyond both.
fn finish(canvas: &mut Canvas<'_>, bar: Area, ends: Option<(f64, f64)>, words: &str, below: bool) {
    let middle = (bar.left + bar.right) / 2.0;
    let (mut top, mut bottom) = (bar.top, bar.bottom);
    if let Some((low, high)) = ends {
        canvas.line((middle, low), (middle, high), INK, 1.3);
        for end in [low, high] {
            canvas.line((middle - 3.5, end), (middle + 3.5, end), INK, 1.3);
        }
        (top, bottom) = (top.min(high), bottom.max(low));
    }
    let baseline = if below {
        bottom + 4.0 + text::CAPITAL * SMALL
    } else {
        top - 4.0
    };
    canvas.text_on_white(words, (middle, baseline), Align::Centre, plain(SMALL, INK));
}
