//! Points, e.g. predicted against measured.

use super::axis::{Axis, Direction, Scale};
use super::canvas::{Area, Canvas};
use super::frame::{self, Frame};
use super::page::{self, Caption, Entry, Sheet, Swatch};
use super::palette::{Colour, Dash, Look};
use super::style::AXIS;

/// Points of one category.
#[derive(Clone, Debug, PartialEq)]
pub struct Cloud {
    pub name: String,
    pub look: Look,
    pub points: Vec<(f64, f64)>,
}

/// A figure of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Scatter {
    pub caption: Caption,
    pub x: Axis,
    pub y: Axis,
    pub clouds: Vec<Cloud>,
    /// Draws the diagonal and a band of so much about it (0.05 for ±5 %); both axes then span the
    /// same.
    pub diagonal: Option<f64>,
}

/// Width of the page and height of the plot \[px\].
const WIDTH: f64 = 640.0;
const HIGH: f64 = 500.0;
const RADIUS: f64 = 3.2;
/// Of the band about the diagonal; light, and darker than the grid.
const BAND: Colour = Colour(214, 214, 214);

impl Scatter {
    /// The figure as SVG.
    #[must_use]
    pub fn draw(&self) -> String {
        let legend = self.clouds.iter().filter(|cloud| !cloud.name.is_empty());
        let mut legend: Vec<Entry> = legend
            .map(|cloud| Entry {
                name: cloud.name.clone(),
                look: cloud.look,
                swatch: Swatch::Point,
            })
            .collect();
        if let Some(share) = self.diagonal.filter(|share| *share > 0.0) {
            legend.push(Entry {
                name: format!("±{}", super::Quantity::Share.show(share)),
                look: Look {
                    colour: BAND,
                    ..Look::NEUTRAL
                },
                swatch: Swatch::Box,
            });
        }
        let points = self.clouds.iter().flat_map(|cloud| &cloud.points);
        let note = page::left_out(points.filter(|p| !self.takes(**p)).count());
        let body = frame::Y_TITLE + HIGH + frame::BELOW + frame::X_TITLE;
        let sheet = Sheet {
            caption: &self.caption,
            note,
            legend,
            width: WIDTH,
            body,
        };
        sheet.draw(|canvas, area| {
            let frame = self.frame(area);
            frame.draw_alone(canvas, area, true);
            if let Some(share) = self.diagonal {
                diagonal(canvas, &frame, share.clamp(0.0, 0.9));
            }
            self.dots(canvas, &frame);
        })
    }

    fn takes(&self, (x, y): (f64, f64)) -> bool {
        self.x.takes(x) && self.y.takes(y)
    }

    /// Whether both axes are to span the same.
    fn agree(&self) -> bool {
        self.diagonal.is_some() && self.x.spacing == self.y.spacing
    }

    fn frame(&self, area: Area) -> Frame {
        let points = self.clouds.iter().flat_map(|cloud| &cloud.points);
        let kept: Vec<(f64, f64)> = points.copied().filter(|p| self.takes(*p)).collect();
        let (xs, ys) = (kept.iter().map(|p| p.0), kept.iter().map(|p| p.1));
        let (x, y): (Vec<f64>, Vec<f64>) = if self.agree() {
            let spans = [&self.x.spans, &self.y.spans].into_iter().flatten();
            let both: Vec<f64> = xs.chain(ys).chain(spans.copied()).collect();
            (both.clone(), both)
        } else {
            (xs.collect(), ys.collect())
        };
        let mut y = self.y.scale(y, HIGH, Direction::Up, None);
        let right = 24.0;
        let left = frame::gutter(&y);
        let plot = area.shrink(left, frame::Y_TITLE, right, frame::BELOW + frame::X_TITLE);
        let unit = self.agree().then_some(y.unit);
        let mut x = self.x.scale(x, plot.width(), Direction::Across, unit);
        for scale in [&mut x, &mut y] {
            scale.pad(0.03);
        }
        if self.agree() {
            join(&mut x, &mut y);
        }
        Frame { area: plot, x, y }
    }

    /// The points in turn, so that no category hides another everywhere.
    fn dots(&self, canvas: &mut Canvas<'_>, frame: &Frame) {
        let most = self.clouds.iter().map(|cloud| cloud.points.len()).max();
        let count: usize = self.clouds.iter().map(|cloud| cloud.points.len()).sum();
        if count == 0 {
            frame::nothing(canvas, frame.area);
        }
        let radius = if count > 600 { RADIUS * 0.7 } else { RADIUS };
        for i in 0..most.unwrap_or(0) {
            for cloud in &self.clouds {
                let point = cloud.points.get(i).filter(|p| self.takes(**p));
                if let Some(at) = point.and_then(|(x, y)| frame.at(*x, *y)) {
                    canvas.marker(at, radius, cloud.look, 0.85);
                }
            }
        }
    }
}

/// One range for both axes.
fn join(x: &mut Scale, y: &mut Scale) {
    let (lo, hi) = (x.lo.min(y.lo), x.hi.max(y.hi));
    for scale in [x, y] {
        (scale.lo, scale.hi) = (lo, hi);
    }
}

/// The line on which both agree, and the band of so much about it.
fn diagonal(canvas: &mut Canvas<'_>, frame: &Frame, share: f64) {
    let (lo, hi) = (frame.x.lo.max(frame.y.lo), frame.x.hi.min(frame.y.hi));
    if lo >= hi {
        return;
    }
    // Enough steps for the band to be straight on either spacing and cut at the frame.
    let steps = (0..=60).map(|i| frame.x.value(f64::from(i) / 60.0));
    let steps: Vec<f64> = steps.filter(|v| (lo..=hi).contains(v)).collect();
    let edge = |factor: f64| {
        steps
            .iter()
            .filter_map(|v| frame.at(*v, (v * factor).clamp(frame.y.lo, frame.y.hi)))
            .collect::<Vec<_>>()
    };
    let mut band = edge(1.0 + share);
    let mut lower = edge(1.0 - share);
    lower.reverse();
    band.extend(lower);
    canvas.polygon(&band, BAND, 1.0);
    canvas.path(&edge(1.0), AXIS, 1.0, Dash::Solid);
}
