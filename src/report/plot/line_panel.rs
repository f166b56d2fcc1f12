//! What is drawn between the axes of one panel of lines.

use super::canvas::{Align, Area, Canvas, Type};
use super::frame::{self, Frame};
use super::labels;
use super::lines::{Panel, Series};
use super::marks::Taken;
use super::palette::{Dash, Look};
use super::style::{self, AXIS, LABEL, SMALL, SOFT};
use super::text;

/// Room that one direct label needs \[px\].
const HEIGHT: f64 = 16.0;
/// Names wider than this go to a legend \[px\].
const WIDEST: f64 = 220.0;

/// Names at the ends of lines.
#[derive(Debug)]
pub(super) struct Ends {
    /// Width beside the plot \[px\].
    pub room: f64,
}

impl Ends {
    /// Room for the names of these lines beside a plot of that height; `None` where they do not
    /// fit.
    pub fn of(series: &[Series], high: f64) -> Option<Self> {
        let named = series.iter().filter(|s| !s.name.is_empty());
        let widths: Vec<f64> = named.map(|s| text::width(&s.name, LABEL, true)).collect();
        let widest = widths.iter().copied().fold(0.0, f64::max);
        let room = if widths.is_empty() {
            0.0
        } else {
            widest + 16.0
        };
        (widths.len() as f64 * HEIGHT <= high && widest <= WIDEST).then_some(Self { room })
    }
}

pub(super) fn draw(
    canvas: &mut Canvas<'_>,
    panel: &Panel,
    rules: &[(f64, String)],
    frame: &Frame,
    ends: Option<&Ends>,
) {
    let lines: Vec<Vec<(f64, f64)>> = panel
        .series
        .iter()
        .map(|s| {
            s.points
                .iter()
                .filter_map(|(x, y)| frame.at(*x, *y))
                .collect()
        })
        .collect();
    if lines.iter().all(Vec::is_empty) && panel.marks.is_empty() {
        frame::nothing(canvas, frame.area);
        return;
    }
    let mut taken = Taken::default();
    for series in &panel.series {
        band(canvas, series, frame);
    }
    for (y, _) in rules {
        if let Some(y) = frame.y_at(*y) {
            let ends = [(frame.area.left, y), (frame.area.right, y)];
            canvas.path(&ends, AXIS, 1.2, Dash::Dashed);
            taken.line(&ends);
        }
    }
    for (series, points) in panel.series.iter().zip(&lines) {
        canvas.path(points, series.look.colour, 2.2, series.look.dash);
        taken.line(points);
    }
    for (series, points) in panel.series.iter().zip(&lines) {
        // Where points are dense, markers would hide the line.
        let dense = points.len() as f64 * 9.0 > frame.area.width();
        if points.len() == 1 || (series.markers && !dense) {
            for at in points {
                canvas.marker(*at, 3.6, series.look, 1.0);
            }
        }
    }
    marks(canvas, panel, frame, &mut taken);
    for (value, name) in rules {
        if let Some(y) = frame.y_at(*value) {
            rule_name(canvas, name, y, frame.area, &mut taken);
        }
    }
    if ends.is_some() {
        names(canvas, panel, &lines, frame.area);
    }
}

/// The shaded band of a line.
fn band(canvas: &mut Canvas<'_>, series: &Series, frame: &Frame) {
    let edge = |upper: bool| {
        series.band.iter().filter_map(move |(x, lo, hi)| {
            // Both edges must have a place.
            let places = (frame.at(*x, *lo)?, frame.at(*x, *hi)?);
            Some(if upper { places.1 } else { places.0 })
        })
    };
    let mut outline: Vec<(f64, f64)> = edge(true).collect();
    let mut lower: Vec<(f64, f64)> = edge(false).collect();
    lower.reverse();
    outline.extend(lower);
    canvas.polygon(&outline, series.look.colour, 0.18);
}

/// Points of their own, all drawn before any of their labels.
fn marks(canvas: &mut Canvas<'_>, panel: &Panel, frame: &Frame, taken: &mut Taken) {
    let places = panel
        .marks
        .iter()
        .filter_map(|mark| Some((mark, frame.at(mark.x, mark.y)?)));
    let places: Vec<_> = places.collect();
    for (mark, at) in &places {
        let look = Look {
            colour: mark.colour,
            marker: mark.marker,
            dash: Dash::Solid,
        };
        canvas.marker(*at, 5.5, look, 1.0);
        taken.words(Area {
            left: at.0 - 8.0,
            top: at.1 - 8.0,
            right: at.0 + 8.0,
            bottom: at.1 + 8.0,
        });
    }
    for (mark, at) in &places {
        let kind = Type {
            size: SMALL,
            bold: true,
            colour: mark.colour.ink(),
        };
        taken.label(canvas, &mark.label, *at, frame.area, kind);
    }
}

/// The name of a horizontal rule, above or below it, where it covers the least.
fn rule_name(canvas: &mut Canvas<'_>, name: &str, y: f64, area: Area, taken: &mut Taken) {
    let kind = Type {
        size: SMALL,
        bold: false,
        colour: SOFT,
    };
    let half = text::width(name, SMALL, false) / 2.0;
    let sites = [
        area.right - half - 4.0,
        area.left + half + 6.0,
        (area.left + area.right) / 2.0,
    ];
    taken.beside(canvas, name, &sites, y, area, kind);
}

/// Names beside the ends of the lines, moved apart, with a thin leader where one moved far.
fn names(canvas: &mut Canvas<'_>, panel: &Panel, lines: &[Vec<(f64, f64)>], area: Area) {
    let named = panel
        .series
        .iter()
        .zip(lines)
        .filter(|(s, _)| !s.name.is_empty());
    let ends: Vec<_> = named
        .filter_map(|(s, points)| {
            Some((
                s,
                points.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?,
            ))
        })
        .collect();
    let wishes: Vec<f64> = ends.iter().map(|(_, end)| end.1).collect();
    let half = HEIGHT / 2.0;
    let places = labels::spread(&wishes, HEIGHT, area.top - half, area.bottom + half);
    for ((series, end), y) in ends.iter().zip(places.unwrap_or_default()) {
        let x = area.right + 12.0;
        if (y - end.1).abs() > 3.0 || area.right - end.0 > 6.0 {
            let leader = [(end.0 + 5.0, end.1), (x - 2.0, y)];
            canvas.path(&leader, series.look.colour, 0.7, Dash::Solid);
        }
        let kind = style::series(series.look.colour);
        let at = (x, y + text::CAPITAL * LABEL / 2.0);
        canvas.text(&series.name, at, Align::Left, kind);
    }
}
