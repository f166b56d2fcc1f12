//! Dots: one row per group, a marker per series, joined by a thin line.

use super::bars::{self, Bars};
use super::page::Swatch;
use super::style::GREY_LINE;

const ROW: f64 = 34.0;

pub(super) fn draw(chart: &Bars) -> String {
    let high = chart.groups.len().max(1) as f64 * ROW;
    let left = bars::names_room(chart.groups.iter(), false);
    bars::lying(chart, Swatch::Point, left, 24.0, high, |canvas, lying| {
        for (g, name) in chart.groups.iter().enumerate() {
            let y = lying.area.top + (g as f64 + 0.5) * ROW;
            lying.name(canvas, name, y, left - 12.0, false);
            let dots =
                (0..chart.series.len()).filter_map(|s| Some((s, lying.x_at(chart.value(s, g)?)?)));
            let dots: Vec<(usize, f64)> = dots.collect();
            let xs = || dots.iter().map(|dot| dot.1);
            let (from, to) = (xs().fold(f64::INFINITY, f64::min), xs().fold(0.0, f64::max));
            if from < to {
                canvas.line((from, y), (to, y), GREY_LINE, 1.5);
            }
            for (s, x) in dots {
                let look = chart.series[s].look;
                if let Some((a, b)) = chart.interval(s, g)
                    && let (Some(a), Some(b)) = (lying.x_at(a), lying.x_at(b))
                {
                    canvas.line((a, y), (b, y), look.colour, 2.4);
                }
                canvas.marker((x, y), 5.2, look, 1.0);
            }
        }
    })
}
