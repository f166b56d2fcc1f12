//! Lines, alone or as small multiples.

use super::axis::{Axis, Direction, Scale};
use super::canvas::{Area, Canvas};
use super::frame::{self, Frame, Show};
use super::line_panel::{self, Ends};
use super::page::{self, Caption, Entry, Sheet, Swatch};
use super::palette::{Colour, Look, Marker};
use super::tiles::Tiles;

/// A line through points in the order given.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Empty: neither labelled nor in the legend.
    pub name: String,
    pub look: Look,
    pub points: Vec<(f64, f64)>,
    /// Whether each point gets a marker.
    pub markers: bool,
    /// A shaded band: x, lower and upper edge.
    pub band: Vec<(f64, f64, f64)>,
}

impl Series {
    /// A line with the look of a strategy (neutral for other names).
    #[must_use]
    pub fn of(strategy: &str, points: Vec<(f64, f64)>) -> Self {
        Self::new(strategy, Look::of(strategy), points)
    }

    #[must_use]
    pub fn new(name: &str, look: Look, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.to_owned(),
            look,
            points,
            markers: true,
            band: Vec::new(),
        }
    }
}

/// A point of its own, e.g. an optimum.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    pub x: f64,
    pub y: f64,
    /// Written beside it where there is room.
    pub label: String,
    pub marker: Marker,
    pub colour: Colour,
}

/// One plot of a [`Lines`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    pub title: String,
    pub series: Vec<Series>,
    pub marks: Vec<Mark>,
}

/// A figure of lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    pub caption: Caption,
    pub x: Axis,
    pub y: Axis,
    pub panels: Vec<Panel>,
    /// Panels beside one another, at most 4; 0 chooses.
    pub columns: usize,
    /// Whether each panel has a vertical scale of its own.
    pub own_y: bool,
    /// Horizontal dashed lines with a name, e.g. `(1.0, "sequential")`.
    pub rules: Vec<(f64, String)>,
}

const ALONE: f64 = 380.0;
const BESIDE: f64 = 190.0;

impl Lines {
    /// The figure as SVG.
    #[must_use]
    pub fn draw(&self) -> String {
        let blank = [Panel::default()];
        let panels = match self.panels.as_slice() {
            [] => &blank[..],
            panels => panels,
        };
        let alone = panels.len() == 1;
        let high = if alone { ALONE } else { BESIDE };
        let ends = alone.then(|| Ends::of(&panels[0].series, high)).flatten();
        let legend = if ends.is_some() {
            Vec::new()
        } else {
            legend(panels)
        };
        let titled = panels.iter().any(|panel| !panel.title.is_empty());
        let tiles = Tiles::new(panels.len(), self.columns, high, titled);
        let sheet = Sheet {
            caption: &self.caption,
            note: self.note(),
            legend,
            width: page::WIDTH,
            body: tiles.body(),
        };
        sheet.draw(|canvas, area| {
            let room = ends.as_ref().map_or(0.0, |ends| ends.room);
            self.plots(
                canvas,
                panels,
                &tiles,
                area.shrink(0.0, 0.0, room, 0.0),
                &ends,
            );
        })
    }

    fn plots(
        &self,
        canvas: &mut Canvas<'_>,
        panels: &[Panel],
        tiles: &Tiles,
        area: Area,
        ends: &Option<Ends>,
    ) {
        let all = panels.iter().flat_map(|panel| self.ys(panel));
        let ys: Vec<Scale> = if self.own_y {
            // One title stands for all, so they share the unit.
            let unit = Some(self.y.scale(all, tiles.high, Direction::Up, None).unit);
            let of = |panel| {
                self.y
                    .scale(self.ys(panel), tiles.high, Direction::Up, unit)
            };
            panels.iter().map(of).collect()
        } else {
            vec![self.y.scale(all, tiles.high, Direction::Up, None)]
        };
        let gutter = ys.iter().map(frame::gutter).fold(0.0, f64::max);
        let (x, places) = tiles.place(area, gutter, self.own_y, |width| {
            let values = panels.iter().flat_map(|panel| self.xs(panel));
            self.x.scale(values, width, Direction::Across, None)
        });
        frame::y_title(canvas, &ys[0].title, area);
        for (i, (panel, plot)) in panels.iter().zip(&places).enumerate() {
            let y = ys[if self.own_y { i } else { 0 }].clone();
            let frame = Frame {
                area: *plot,
                x: x.clone(),
                y,
            };
            tiles.title(canvas, &panel.title, *plot);
            frame.draw(
                canvas,
                Show {
                    x_labels: tiles.lowest(i),
                    y_labels: self.own_y || tiles.first(i),
                    vertical: false,
                },
            );
            line_panel::draw(canvas, panel, &self.rules, &frame, ends.as_ref());
        }
        tiles.x_title(canvas, &x.title, &places);
    }

    fn xs(&self, panel: &Panel) -> impl Iterator<Item = f64> {
        let points = panel.series.iter().flat_map(|s| &s.points);
        let bands = panel.series.iter().flat_map(|s| &s.band);
        let marks = panel.marks.iter().map(|mark| (mark.x, mark.y));
        let points = points.copied().chain(marks);
        let kept = points.filter(|p| self.takes(*p)).map(|p| p.0);
        kept.chain(bands.map(|b| b.0).filter(|x| self.x.takes(*x)))
    }

    fn ys(&self, panel: &Panel) -> impl Iterator<Item = f64> {
        let points = panel.series.iter().flat_map(|s| &s.points);
        let bands = panel.series.iter().flat_map(|s| &s.band);
        let marks = panel.marks.iter().map(|mark| (mark.x, mark.y));
        let points = points.copied().chain(marks);
        let kept = points.filter(|p| self.takes(*p)).map(|p| p.1);
        kept.chain(bands.flat_map(|b| [b.1, b.2]))
            .chain(self.rules.iter().map(|rule| rule.0))
    }

    fn takes(&self, (x, y): (f64, f64)) -> bool {
        self.x.takes(x) && self.y.takes(y)
    }

    fn note(&self) -> String {
        let points = self.panels.iter().flat_map(|panel| &panel.series);
        let points = points.flat_map(|series| &series.points);
        page::left_out(points.filter(|p| !self.takes(**p)).count())
    }
}

/// Each name once, in order of appearance.
fn legend(panels: &[Panel]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for series in panels.iter().flat_map(|panel| &panel.series) {
        if !series.name.is_empty() && entries.iter().all(|entry| entry.name != series.name) {
            entries.push(Entry {
                name: series.name.clone(),
                look: series.look,
                swatch: Swatch::Line {
                    marker: series.markers,
                },
            });
        }
    }
    entries
}
