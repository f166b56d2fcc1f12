//! Upright bars, grouped, each with its value above it.

use super::axis::Direction;
use super::bars::Bars;
use super::canvas::{Align, Area, Canvas, Type};
use super::frame;
use super::page::{self, Swatch};
use super::palette::Dash;
use super::style::{AXIS, GRID, INK, LABEL, LEADING, MARGIN, SMALL, SOFT, TICK, TICK_TYPE};
use super::text;

const HIGH: f64 = 320.0;
/// Share of a group's width that is blank.
const BLANK: f64 = 0.18;
const WIDEST_BAR: f64 = 64.0;
const LINES: usize = 2;
const LINE: f64 = LABEL * LEADING;

/// Widths of a group and of a bar for `count` groups in `wide` pixels.
fn widths(chart: &Bars, wide: f64) -> (f64, f64) {
    let group = wide / chart.groups.len().max(1) as f64;
    let bars = chart.series.len().max(1) as f64;
    (group, (group * (1.0 - BLANK) / bars).min(WIDEST_BAR))
}

/// Whether each value fits its bar's width and each name its group's, on two lines.
pub(super) fn fit(chart: &Bars) -> bool {
    let scale = chart.scale(HIGH, Direction::Up);
    let (group, bar) = widths(chart, page::WIDTH - 2.0 * MARGIN - frame::gutter(&scale));
    let words = (0..chart.series.len())
        .flat_map(|s| (0..chart.groups.len()).map(move |g| (s, g)))
        .filter_map(|(s, g)| Some(chart.words(&scale, chart.value(s, g)?)));
    let widest = words
        .map(|w| text::width(&w, SMALL, false))
        .fold(0.0, f64::max);
    let reference = chart.reference.as_ref();
    widest + 4.0 <= bar
        && reference.is_none_or(|r| text::width(&r.1, SMALL, false) < 160.0)
        && chart.groups.iter().all(|name| {
            let words = name.split_whitespace();
            words
                .map(|w| text::width(w, LABEL, false))
                .fold(0.0, f64::max)
                <= group - 8.0
                && text::wrap(name, LABEL, false, group - 8.0).len() <= LINES
        })
}

pub(super) fn draw(chart: &Bars) -> String {
    let scale = chart.scale(HIGH, Direction::Up);
    let head = frame::Y_TITLE + SMALL;
    let body = head + HIGH + 6.0 + LINES as f64 * LINE;
    let size = (page::WIDTH, body);
    let legend = chart.legend(Swatch::Box);
    page::sheet(
        &chart.caption,
        &chart.note(),
        &legend,
        size,
        |canvas, area| {
            let named = chart.reference.as_ref();
            let right = named.map_or(0.0, |r| text::width(&r.1, SMALL, false) + 8.0);
            let bottom = area.bottom - head - HIGH - area.top;
            let plot = area.shrink(frame::gutter(&scale), head, right, bottom);
            let y_at = |value| Some(plot.bottom - scale.at(value)? * plot.height());
            frame::y_title(canvas, &scale.title, area.left, area.top, area.width());
            for tick in &scale.ticks {
                if let Some(y) = y_at(tick.value) {
                    canvas.line((plot.left, y), (plot.right, y), GRID, 1.0);
                    let at = (plot.left - 8.0, y + text::CAPITAL * TICK / 2.0);
                    canvas.text(&tick.label, at, Align::Right, TICK_TYPE);
                }
            }
            if chart.groups.is_empty() || chart.series.is_empty() {
                frame::nothing(canvas, plot);
            }
            let base = y_at(chart.base(&scale)).unwrap_or(plot.bottom);
            if let Some((value, name)) = named
                && let Some(y) = y_at(*value)
            {
                canvas.path(&[(plot.left, y), (plot.right, y)], AXIS, 1.2, Dash::Dashed);
                let kind = plain(SOFT);
                let at = (plot.right + 6.0, y + text::CAPITAL * SMALL / 2.0);
                canvas.text(name, at, Align::Left, kind);
            }
            let (group, bar) = widths(chart, plot.width());
            for (g, name) in chart.groups.iter().enumerate() {
                let middle = plot.left + (g as f64 + 0.5) * group;
                let first = middle - bar * chart.series.len() as f64 / 2.0;
                for s in 0..chart.series.len() {
                    if let Some(value) = chart.value(s, g)
                        && let Some(y) = y_at(value)
                    {
                        let left = first + s as f64 * bar;
                        let area = Area {
                            left: left + 1.0,
                            top: y.min(base),
                            right: left + bar - 1.0,
                            bottom: y.max(base),
                        };
                        canvas.fill_box(area, chart.series[s].look.colour, 1.0);
                        let ends = chart.interval(s, g);
                        let ends = ends.and_then(|(a, b)| Some((y_at(a)?, y_at(b)?)));
                        let words = chart.words(&scale, value);
                        finish(canvas, area, ends, &words, value < 0.0);
                    }
                }
                for (i, line) in text::wrap(name, LABEL, false, group - 8.0)
                    .iter()
                    .enumerate()
                {
                    let at = (middle, plot.bottom + 6.0 + LABEL + i as f64 * LINE);
                    canvas.text(line, at, Align::Centre, plain_label());
                }
            }
            canvas.line((plot.left, base), (plot.right, base), AXIS, 1.0);
        },
    )
}

fn plain(colour: super::Colour) -> Type {
    Type {
        size: SMALL,
        bold: false,
        colour,
    }
}

fn plain_label() -> Type {
    Type {
        size: LABEL,
        bold: false,
        colour: INK,
    }
}

/// The interval of a bar and its value beyond both.
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
    canvas.text(words, (middle, baseline), Align::Centre, plain(INK));
}
