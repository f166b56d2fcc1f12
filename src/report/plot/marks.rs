//! Labels of single points, set where they cover neither words nor lines.

use super::canvas::{Align, Area, Canvas, Type};
use super::text;

/// What labels must not cover.
#[derive(Default)]
pub(super) struct Taken {
    words: Vec<Area>,
    /// Points along drawn lines, a few pixels apart.
    ink: Vec<(f64, f64)>,
}

impl Taken {
    pub fn words(&mut self, area: Area) {
        self.words.push(area);
    }

    /// A drawn line.
    pub fn line(&mut self, points: &[(f64, f64)]) {
        for pair in points.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            let steps = ((b.0 - a.0).hypot(b.1 - a.1) / 4.0).clamp(1.0, 500.0) as usize;
            for i in 0..=steps {
                let part = i as f64 / steps as f64;
                self.ink
                    .push((a.0 + part * (b.0 - a.0), a.1 + part * (b.1 - a.1)));
            }
        }
        self.ink.extend(points.first());
    }

    /// The ink that an area would cover; `None` where it would cover words.
    fn cost(&self, area: Area) -> Option<usize> {
        // Letters such as g reach below the baseline.
        let near = area.shrink(-3.0, -4.5, -3.0, -4.5);
        if self.words.iter().any(|words| words.overlaps(&near)) {
            return None;
        }
        let inside = |p: &&(f64, f64)| {
            (near.left..near.right).contains(&p.0) && (near.top..near.bottom).contains(&p.1)
        };
        Some(self.ink.iter().filter(inside).count())
    }

    /// Writes a label near a point, at the place that covers the least; nowhere if every place
    /// would cover words or leave `within`.
    pub fn label(
        &mut self,
        canvas: &mut Canvas<'_>,
        words: &str,
        (x, y): (f64, f64),
        within: Area,
        kind: Type,
    ) {
        let width = text::width(words, kind.size, kind.bold);
        let high = text::CAPITAL * kind.size;
        let sides = [12.0, 18.0, 28.0, 42.0].into_iter().flat_map(|away: f64| {
            let slant = away * 0.7;
            [
                (x - width / 2.0, y - away - high),
                (x - width / 2.0, y + away),
                (x + away, y - high / 2.0),
                (x - away - width, y - high / 2.0),
                (x + slant, y - slant - high),
                (x - slant - width, y - slant - high),
                (x + slant, y + slant),
                (x - slant - width, y + slant),
            ]
        });
        self.best(canvas, words, sides, within, kind);
    }

    /// Writes words above or below a horizontal line at `y`, centred at one of `sites`.
    pub fn beside(
        &mut self,
        canvas: &mut Canvas<'_>,
        words: &str,
        sites: &[f64],
        y: f64,
        within: Area,
        kind: Type,
    ) {
        let half = text::width(words, kind.size, kind.bold) / 2.0;
        let high = text::CAPITAL * kind.size;
        let corners = sites
            .iter()
            .flat_map(|x| [(x - half, y - 5.0 - high), (x - half, y + 6.0)]);
        self.best(canvas, words, corners, within, kind);
    }

    /// Writes words at the first of the corners (top left) where they cover the least.
    fn best(
        &mut self,
        canvas: &mut Canvas<'_>,
        words: &str,
        corners: impl IntoIterator<Item = (f64, f64)>,
        within: Area,
        kind: Type,
    ) {
        let width = text::width(words, kind.size, kind.bold);
        let high = text::CAPITAL * kind.size;
        let mut best: Option<(usize, Area)> = None;
        for (left, top) in corners {
            let area = Area {
                left,
                top,
                right: left + width,
                bottom: top + high,
            };
            if !within.contains(&area) {
                continue;
            }
            if let Some(cost) = self.cost(area)
                && best.is_none_or(|(least, _)| cost < least)
            {
                best = Some((cost, area));
                if cost == 0 {
                    break;
                }
            }
        }
        if let Some((_, area)) = best {
            canvas.text_on_white(words, (area.left, area.bottom), Align::Left, kind);
            self.words(area);
        }
    }
}
