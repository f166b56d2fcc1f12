//! Strokes, fills and words on a page: the only file that sees plotters.
//!
//! Coordinates are pixels from the top left, as f64. plotters' SVG backend takes whole numbers, so
//! a page is drawn ten times as large and scaled back by the `viewBox`.

use plotters::backend::SVGBackend;
use plotters::prelude::{DrawingBackend, IntoFont, RGBAColor, ShapeStyle, TextStyle};
use plotters::style::FontStyle;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::palette::{Colour, Dash, Look, Marker};

/// Steps per pixel.
const FINE: f64 = 10.0;
/// Families a reader's machine is likely to have; the first is bundled for PNG, the second is about
/// as wide, the others are narrower.
const FAMILY: &str = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Area {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Area {
    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    pub fn height(&self) -> f64 {
        self.bottom - self.top
    }

    /// Less by so much on each side.
    pub fn shrink(&self, left: f64, top: f64, right: f64, bottom: f64) -> Self {
        Self {
            left: self.left + left,
            top: self.top + top,
            right: self.right - right,
            bottom: self.bottom - bottom,
        }
    }

    pub fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    pub fn contains(&self, other: &Self) -> bool {
        self.left <= other.left
            && self.top <= other.top
            && self.right >= other.right
            && self.bottom >= other.bottom
    }
}

/// Which part of a text stands at its x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Centre,
    Right,
}

/// Size and colour of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Type {
    /// Pixels per em.
    pub size: f64,
    pub bold: bool,
    pub colour: Colour,
}

/// A page being drawn.
pub(super) struct Canvas<'a> {
    backend: SVGBackend<'a>,
}

/// Draws a page of `width` × `height` pixels; `about` is what screen readers say.
pub(super) fn paint(
    width: f64,
    height: f64,
    about: &str,
    draw: impl FnOnce(&mut Canvas<'_>),
) -> String {
    let (wide, high) = (fine(width).max(1), fine(height).max(1));
    let mut svg = String::new();
    {
        let backend = SVGBackend::with_string(&mut svg, (wide as u32, high as u32));
        let mut canvas = Canvas { backend };
        canvas.fill_box(
            Area {
                left: 0.0,
                top: 0.0,
                right: width,
                bottom: height,
            },
            Colour::WHITE,
            1.0,
        );
        draw(&mut canvas);
        // Only a file can fail to be written, and this is a string.
        canvas.backend.present().ok();
    }
    let body = svg.split_once('\n').map_or("", |(_, body)| body);
    // Said once for the page instead of at each element; quotes inside of texts are escaped, so
    // that no text can look like an attribute.
    let body = body
        .replace(&format!(" font-family=\"{FAMILY}\""), "")
        .replace(" opacity=\"1\"", "");
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" \
         viewBox=\"0 0 {wide} {high}\" role=\"img\" stroke-linejoin=\"round\" \
         font-family=\"{FAMILY}\">\n<title>{}</title>\n{body}",
        number(wide),
        number(high),
        escape(about)
    )
}

fn number(fine: i32) -> String {
    format!("{}", f64::from(fine) / FINE)
}

/// Whole steps; what is no number or far outside lands on an edge that no page reaches.
fn fine(pixels: f64) -> i32 {
    (pixels * FINE).round().clamp(-1e8, 1e8) as i32
}

/// Text as XML content; characters that XML forbids become blanks.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(printable(c)),
        }
    }
    out
}

/// XML knows neither most control characters nor the non-characters, and a picture has no use for
/// line breaks.
fn printable(c: char) -> char {
    if c.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&c) {
        ' '
    } else {
        c
    }
}

fn paint_of(colour: Colour, alpha: f64) -> RGBAColor {
    RGBAColor(colour.0, colour.1, colour.2, alpha)
}

fn stroke(colour: Colour, width: f64) -> ShapeStyle {
    ShapeStyle {
        color: paint_of(colour, 1.0),
        filled: false,
        stroke_width: fine(width).max(1) as u32,
    }
}

impl Canvas<'_> {
    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: Colour, width: f64) {
        self.backend
            .draw_line(point(from), point(to), &stroke(colour, width))
            .ok();
    }

    /// A broken line through the points.
    pub fn path(&mut self, points: &[(f64, f64)], colour: Colour, width: f64, dash: Dash) {
        if points.len() < 2 {
            return;
        }
        for piece in super::dash::cut(points, dash.pattern()) {
            self.backend
                .draw_path(piece.into_iter().map(point), &stroke(colour, width))
                .ok();
        }
    }

    /// A filled polygon.
    pub fn polygon(&mut self, points: &[(f64, f64)], colour: Colour, alpha: f64) {
        if points.len() > 2 {
            self.backend
                .fill_polygon(points.iter().copied().map(point), &paint_of(colour, alpha))
                .ok();
        }
    }

    /// A filled rectangle.
    pub fn fill_box(&mut self, area: Area, colour: Colour, alpha: f64) {
        self.backend
            .draw_rect(
                point((area.left, area.top)),
                point((area.right.max(area.left), area.bottom.max(area.top))),
                &paint_of(colour, alpha),
                true,
            )
            .ok();
    }

    /// The outline of a rectangle.
    pub fn outline(&mut self, area: Area, colour: Colour, width: f64) {
        let (l, t, r, b) = (area.left, area.top, area.right, area.bottom);
        // One more point than needed, so that the corner where it closes is joined too.
        let corners = [(l, t), (r, t), (r, b), (l, b), (l, t), (r, t)];
        self.path(&corners, colour, width, Dash::Solid);
    }

    /// A filled circle.
    pub fn disc(&mut self, centre: (f64, f64), radius: f64, colour: Colour, alpha: f64) {
        let radius = fine(radius).max(1) as u32;
        self.backend
            .draw_circle(point(centre), radius, &paint_of(colour, alpha), true)
            .ok();
    }

    /// A marker with a thin white rim that keeps it apart from what is below.
    pub fn marker(&mut self, centre: (f64, f64), radius: f64, look: Look, alpha: f64) {
        if look.marker == Marker::Circle {
            self.disc(centre, radius + 1.0, Colour::WHITE, alpha);
            self.disc(centre, radius, look.colour, alpha);
        } else {
            self.polygon(
                &look.marker.outline(centre, radius + 1.4),
                Colour::WHITE,
                alpha,
            );
            self.polygon(&look.marker.outline(centre, radius), look.colour, alpha);
        }
    }

    /// A text on a patch of white that hides grid lines behind it.
    pub fn text_on_white(&mut self, text: &str, at: (f64, f64), align: Align, kind: Type) {
        let width = super::text::width(text, kind.size, kind.bold);
        let left = match align {
            Align::Left => at.0,
            Align::Centre => at.0 - width / 2.0,
            Align::Right => at.0 - width,
        };
        let patch = Area {
            left,
            top: at.1 - super::text::CAPITAL * kind.size,
            right: left + width,
            bottom: at.1,
        };
        self.fill_box(patch.shrink(-2.0, -1.5, -2.0, -1.5), Colour::WHITE, 0.85);
        self.text(text, at, align, kind);
    }

    /// A text whose baseline is at y.
    pub fn text(&mut self, text: &str, at: (f64, f64), align: Align, kind: Type) {
        if text.trim().is_empty() {
            return;
        }
        let text: String = text.chars().map(printable).collect();
        // Of plotters' anchors only the top one is given in em (0.76) and thus means the same
        // place to every reader of the file. plotters divides sizes by 1.24.
        let at = point((at.0, at.1 - 0.76 * kind.size));
        let weight = if kind.bold {
            FontStyle::Bold
        } else {
            FontStyle::Normal
        };
        let size = f64::from(fine(kind.size));
        let given = size * 1.24;
        let given = if given / 1.24 > size {
            given.next_down()
        } else {
            given
        };
        let font = (FAMILY, size, weight).into_font().resize(given);
        let anchor = match align {
            Align::Left => HPos::Left,
            Align::Centre => HPos::Center,
            Align::Right => HPos::Right,
        };
        let colour = paint_of(kind.colour, 1.0);
        let style = TextStyle::from(font)
            .pos(Pos::new(anchor, VPos::Top))
            .color(&colour);
        self.backend.draw_text(&text, &style, at).ok();
    }
}

fn point((x, y): (f64, f64)) -> (i32, i32) {
    (fine(x), fine(y))
}
