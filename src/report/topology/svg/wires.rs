//! Where the lines of a drawing run.

use std::fmt::Write;

use super::super::layout::{HEIGHT, Spot};
use super::Drawing;
use crate::topology::sketch::Bundle;

/// How a bundle runs.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// From the upper side of one box to the lower side of a box in a higher row.
    Up,
    /// Below the GPUs.
    Below,
    /// Between neighbours of a row, side by side.
    Across,
    /// Over the boxes between two of a row.
    Over,
}

impl Way {
    /// The way of `bundle` between boxes at `spots`.
    pub fn of(bundle: &Bundle, spots: &[Spot]) -> Self {
        let (a, b) = (spots[bundle.from], spots[bundle.to]);
        let inside = |s: &Spot| s.row == a.row && s.x > a.x.min(b.x) && s.x < a.x.max(b.x);
        match a.row == b.row {
            false => Way::Up,
            true if a.row == 0 => Way::Below,
            true if bundle.from == bundle.to || spots.iter().any(inside) => Way::Over,
            true => Way::Across,
        }
    }
}

impl Drawing<'_> {
    /// The x at which bundle `at` meets `part`, so that lines at one side of a box stand apart and
    /// do not cross next to it.
    fn port(&self, at: usize, part: usize) -> f64 {
        let spot = self.spots[part];
        let side = |at: usize| {
            let bundle = &self.sketch.bundles[at];
            let other = if bundle.from == part {
                bundle.to
            } else {
                bundle.from
            };
            let above = match self.ways[at] {
                Way::Up => self.spots[other].row > spot.row,
                way => way == Way::Over,
            };
            (above, self.spots[other].x - spot.x, self.ways[at])
        };
        let (above, ..) = side(at);
        let mut here: Vec<((u8, f64), usize)> = (0..self.sketch.bundles.len())
            .filter(|i| {
                let bundle = &self.sketch.bundles[*i];
                let ends = bundle.from == part || bundle.to == part;
                ends && self.ways[*i] != Way::Across && side(*i).0 == above
            })
            .map(|i| {
                let (_, dx, way) = side(i);
                // Arcs nest: on either side of the middle the shortest is outermost.
                let key = match (way, dx < 0.0) {
                    (Way::Up, _) => (1, dx),
                    (_, true) => (0, -dx),
                    (_, false) => (2, -dx),
                };
                (key, i)
            })
            .collect();
        here.sort_by(|a, b| {
            a.0.0
                .cmp(&b.0.0)
                .then(a.0.1.total_cmp(&b.0.1))
                .then(a.1.cmp(&b.1))
        });
        let place = here.iter().position(|(_, i)| *i == at).unwrap_or(0) as f64;
        let gaps = (here.len() as f64 - 1.0).max(1.0);
        let step = ((spot.width - 16.0) / gaps).min(12.0);
        spot.x + (place - (here.len() as f64 - 1.0) / 2.0) * step
    }

    /// All lines, and the lowest and highest y that boxes and lines reach.
    pub fn wires(&self) -> (String, f64, f64) {
        let mut out = String::new();
        let (mut low, mut high) = (0.0_f64, 0.0_f64);
        for spot in &self.spots {
            low = low.max(spot.y + HEIGHT / 2.0);
        }
        for (at, bundle) in self.sketch.bundles.iter().enumerate() {
            let (a, b) = (self.spots[bundle.from], self.spots[bundle.to]);
            let (mut x, mut to) = (self.port(at, bundle.from), self.port(at, bundle.to));
            if bundle.from == bundle.to {
                (x, to) = (a.x - a.width / 4.0, a.x + a.width / 4.0);
            }
            let half = HEIGHT / 2.0;
            let stroke = self.stroke(bundle);
            let path = match self.ways[at] {
                Way::Up => {
                    let down = if a.row < b.row { -half } else { half };
                    format!("M{x:.1} {:.1}L{to:.1} {:.1}", a.y + down, b.y - down)
                }
                Way::Across => {
                    let side = (b.x - a.x).signum();
                    let ends = (a.x + side * a.width / 2.0, b.x - side * b.width / 2.0);
                    format!("M{:.1} {:.1}H{:.1}", ends.0, a.y, ends.1)
                }
                Way::Below | Way::Over => {
                    let sign = if self.ways[at] == Way::Below {
                        1.0
                    } else {
                        -1.0
                    };
                    let depth = 16.0 + (to - x).abs() * 0.16;
                    let y = a.y + sign * half;
                    // A cubic reaches three quarters of its control points' depth.
                    let control = y + sign * depth * 4.0 / 3.0;
                    low = low.max(y + sign * depth);
                    high = high.min(y + sign * depth - 4.0);
                    format!(
                        "M{x:.1} {y:.1}C{x:.1} {control:.1} {to:.1} {control:.1} {to:.1} {y:.1}"
                    )
                }
            };
            let _ = writeln!(out, "<path d=\"{path}\" {stroke}/>");
        }
        (out, low, high)
    }
}
