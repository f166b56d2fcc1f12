//! Lying bars: one row per value, so that any number of them stays readable.

use super::bars::{self, Bars, Lying, ROW};
use super::canvas::{Align, Area, Canvas, Type};
use super::page::Swatch;
use super::palette::Dash;
use super::style::{AXIS, INK, SMALL};
use super::text;

/// Height of a bar, and of what parts groups \[px\].
const BAR: f64 = 17.0;
const BETWEEN: f64 = 12.0;

pub(super) fn draw(chart: &Bars) -> String {
    let series = chart.series.len().max(1);
    let group = (series as f64 * BAR).max(ROW) + BETWEEN;
    let high = chart.groups.len().max(1) as f64 * group;
    let left = bars::names_room(chart.groups.iter(), false);
    // Room for the longest value right of the longest bar.
    let right = 76.0;
    bars::lying(chart, Swatch::Box, left, right, high, |canvas, lying| {
        for (g, name) in chart.groups.iter().enumerate() {
            let middle = lying.area.top + (g as f64 + 0.5) * group;
            lying.name(canvas, name, middle, left - 12.0, false);
            for s in 0..chart.series.len() {
                let top = middle + (s as f64 - series as f64 / 2.0) * BAR;
                bar(canvas, chart, lying, (s, g), top);
            }
        }
        let zero = lying.x_at(chart.base(&lying.scale));
        if let Some(x) = zero {
            canvas.line((x, lying.area.top), (x, lying.area.bottom), AXIS, 1.0);
        }
    })
}

fn bar(canvas: &mut Canvas<'_>, chart: &Bars, lying: &Lying, (s, g): (usize, usize), top: f64) {
    let (Some(value), Some(base)) = (chart.value(s, g), lying.x_at(chart.base(&lying.scale)))
    else {
        return;
    };
    let Some(x) = lying.x_at(value) else {
        return;
    };
    let middle = top + BAR / 2.0;
    let area = Area {
        left: base.min(x),
        top: top + 1.5,
        right: base.max(x),
        bottom: top + BAR - 1.5,
    };
    canvas.fill_box(area, chart.series[s].look.colour, 1.0);
    let (mut low, mut high) = (area.left, area.right);
    if let Some((from, to)) = chart.interval(s, g)
        && let (Some(from), Some(to)) = (lying.x_at(from), lying.x_at(to))
    {
        canvas.path(&[(from, middle), (to, middle)], INK, 1.3, Dash::Solid);
        for end in [from, to] {
            canvas.line((end, middle - 3.5), (end, middle + 3.5), INK, 1.3);
        }
        (low, high) = (low.min(from), high.max(to));
    }
    let words = chart.words(&lying.scale, value);
    let kind = Type {
        size: SMALL,
        bold: false,
        colour: INK,
    };
    let baseline = middle + text::CAPITAL * SMALL / 2.0;
    // Left of a bar that points left, unless names begin there.
    if value < 0.0 && low - text::width(&words, SMALL, false) - 8.0 > lying.area.left {
        canvas.text_on_white(&words, (low - 5.0, baseline), Align::Right, kind);
    } else {
        canvas.text_on_white(&words, (high + 5.0, baseline), Align::Left, kind);
    }
}
