//! The machine as an SVG drawing: boxes in rows, links as lines, GPU-to-GPU links as arcs below.
//!
//! A link kind has a colour (Okabe and Ito's palette, told apart with any colour vision) and a dash
//! pattern; lines are the wider the faster. The legend names every looks of link.

mod wires;

use std::fmt::Write;

use wires::Way;

use super::layout::{CHARACTER, HEIGHT, Spot, place};
use super::rate;
use crate::topology::Topology;
use crate::topology::sketch::{Bundle, Part, Role, Sketch};

const COLORS: [&str; 7] = [
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
];
const DASHES: [&str; 4] = ["none", "8 3", "2 3", "10 3 2 3"];
const MARGIN: f64 = 24.0;
const TITLE: f64 = 46.0;
const LEGEND_ROW: f64 = 20.0;

/// Text for XML.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().filter(|c| !c.is_control()) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

struct Drawing<'s> {
    sketch: &'s Sketch,
    spots: Vec<Spot>,
    ways: Vec<Way>,
    kinds: &'s [String],
    slowest: f64,
    fastest: f64,
}

/// Draws `topology` as a complete SVG file.
pub fn draw(topology: &Topology) -> String {
    let sketch = Sketch::new(topology);
    let mut drawing = Drawing::new(&sketch, &topology.kinds);
    let legend = legend(&sketch);
    let (_, low, high) = drawing.wires();
    let right = |spot: &Spot| spot.x + spot.width / 2.0;
    let boxes = drawing.spots.iter().map(right).fold(0.0, f64::max);
    let heading = format!("{}: {}", topology.name, topology.about);
    let widest = (legend
        .iter()
        .map(|(_, text)| text.chars().count() as f64 * CHARACTER + 60.0))
    .chain([heading.chars().count() as f64 * CHARACTER * 1.1])
    .fold(boxes, f64::max);
    let width = widest + 2.0 * MARGIN;
    let top = TITLE - high.min(0.0);
    let legend_at = top + low + 34.0;
    let height = legend_at + legend.len() as f64 * LEGEND_ROW + MARGIN / 2.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"26\" font-size=\"15\">{}</text>\n",
        escaped(&heading)
    );
    out.push_str(&drawing.markers());
    for spot in &mut drawing.spots {
        spot.x += MARGIN + (widest - boxes) / 2.0;
        spot.y += top;
    }
    out.push_str(&drawing.wires().0);
    for (part, spot) in sketch.parts.iter().zip(&drawing.spots) {
        out.push_str(&node(part, spot));
    }
    for (row, (bundle, text)) in legend.iter().enumerate() {
        let y = legend_at + row as f64 * LEGEND_ROW;
        let (from, to, stroke) = (MARGIN, MARGIN + 40.0, drawing.stroke(bundle));
        let _ = writeln!(out, "<path d=\"M{from} {y:.1}H{to}\" {stroke}/>");
        let (x, y) = (MARGIN + 50.0, y + 4.5);
        let _ = writeln!(out, "<text x=\"{x}\" y=\"{y:.1}\">{}</text>", escaped(text));
    }
    out.push_str("</svg>\n");
    out
}

fn node(part: &Part, spot: &Spot) -> String {
    let (fill, radius) = match part.role {
        Role::Gpu => ("#dcebf7", 3.0),
        Role::Host => ("#f3ead3", 3.0),
        Role::Switch => ("#eeeeee", 14.0),
        Role::Root => ("#e3f1e6", 8.0),
    };
    let (x, y, width) = (spot.x - spot.width / 2.0, spot.y - HEIGHT / 2.0, spot.width);
    let mut out = String::new();
    let copies: &[f64] = if part.count > 1 {
        &[6.0, 3.0, 0.0]
    } else {
        &[0.0]
    };
    for d in copies {
        let (x, y) = (x + d, y - d);
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" \
             rx=\"{radius}\" fill=\"{fill}\" stroke=\"#333333\"/>"
        );
    }
    let below = match (part.count, part.role) {
        (1, Role::Gpu) => String::new(),
        (1, Role::Host) => "host".to_owned(),
        (1, Role::Root) => "root".to_owned(),
        (1, Role::Switch) => "switch".to_owned(),
        (count, role) => format!("{count} {}", role.noun(count)),
    };
    let lines = [(escaped(&part.name), 13), (below, 10)];
    let first = if lines[1].0.is_empty() { 4.5 } else { -1.5 };
    for ((text, size), y) in lines.iter().zip([spot.y + first, spot.y + 12.0]) {
        if !text.is_empty() {
            let x = spot.x;
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" \
                 text-anchor=\"middle\">{text}</text>"
            );
        }
    }
    out
}

impl<'s> Drawing<'s> {
    fn new(sketch: &'s Sketch, kinds: &'s [String]) -> Self {
        let spots = place(sketch);
        let ways = sketch
            .bundles
            .iter()
            .map(|bundle| Way::of(bundle, &spots))
            .collect();
        let rates = || sketch.bundles.iter().map(|bundle| bundle.bandwidth.get());
        Self {
            sketch,
            ways,
            kinds,
            slowest: rates().fold(f64::INFINITY, f64::min),
            fastest: rates().filter(|rate| rate.is_finite()).fold(0.0, f64::max),
            spots,
        }
    }

    fn kind(&self, bundle: &Bundle) -> usize {
        (self.kinds.iter().position(|kind| *kind == bundle.kind)).unwrap_or(0)
    }

    fn stroke(&self, bundle: &Bundle) -> String {
        let kind = self.kind(bundle);
        let rate = bundle.bandwidth.get().min(self.fastest.max(self.slowest));
        let range = (self.fastest / self.slowest).ln();
        let part = if range > 0.0 {
            (rate / self.slowest).ln() / range
        } else {
            0.5
        };
        let width = 1.2 + 3.6 * part;
        let color = COLORS[kind % COLORS.len()];
        let dash = DASHES[kind % DASHES.len()];
        let marker = match bundle.both_ways {
            true => String::new(),
            false => format!(" marker-end=\"url(#arrow{})\"", kind % COLORS.len()),
        };
        format!(
            "fill=\"none\" stroke=\"{color}\" stroke-width=\"{width:.1}\" \
             stroke-dasharray=\"{dash}\"{marker}"
        )
    }

    /// Arrow heads by colour, for links that run one way.
    fn markers(&self) -> String {
        let mut out = String::new();
        for (at, color) in COLORS.iter().enumerate() {
            let used = |bundle: &&Bundle| self.kind(bundle) % COLORS.len() == at;
            if self
                .sketch
                .bundles
                .iter()
                .filter(used)
                .any(|bundle| !bundle.both_ways)
            {
                let _ = writeln!(
                    out,
                    "<marker id=\"arrow{at}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" \
                     markerWidth=\"9\" markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" \
                     orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"{color}\"/></marker>"
                );
            }
        }
        out
    }
}

/// One line for each looks of link; in a summary one for each bundle.
fn legend(sketch: &Sketch) -> Vec<(&Bundle, String)> {
    let mut rows: Vec<(&Bundle, u64)> = Vec::new();
    let mut texts = Vec::new();
    for bundle in &sketch.bundles {
        let what = format!("{} {}, {}", bundle.kind, rate(bundle), bundle.latency);
        if sketch.summarised {
            let [from, to] = [bundle.from, bundle.to].map(|part| &sketch.parts[part]);
            let (here, there) = (from.role.noun(1), to.role.noun(1));
            let text = format!(
                "{} {}, {}: {} – {}, {} at each {here}, {} at each {there}",
                bundle.kind,
                bundle.bandwidth,
                bundle.latency,
                from.name,
                to.name,
                bundle.at_from,
                bundle.at_to
            );
            texts.push((bundle, text));
            continue;
        }
        let same = |row: &&mut (&Bundle, u64)| {
            let (a, b) = (row.0, bundle);
            (&a.kind, a.bandwidth, a.latency, a.at_from, a.both_ways)
                == (&b.kind, b.bandwidth, b.latency, b.at_from, b.both_ways)
        };
        match rows.iter_mut().find(same) {
            Some(row) => row.1 += 1,
            None => {
                rows.push((bundle, 1));
                texts.push((bundle, what));
            }
        }
    }
    for ((_, count), (_, text)) in rows.iter().zip(&mut texts) {
        let _ = write!(text, " ({count})");
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::build::Builder;

    /// The numbers of attribute `name` in `text`.
    fn numbers(text: &str, name: &str) -> Vec<f64> {
        let key = format!(" {name}=\"");
        let values = text.split(&key).skip(1);
        values
            .filter_map(|rest| rest.split('"').next()?.parse().ok())
            .collect()
    }

    #[test]
    fn every_machine_is_drawn_within_its_page() {
        for name in crate::topology::names() {
            let svg = draw(&crate::topology::load(name, &[]).unwrap());
            let (width, height) = (numbers(&svg, "width")[0], numbers(&svg, "height")[0]);
            let inside = |list: Vec<f64>, most: f64| list.iter().all(|v| (0.0..=most).contains(v));
            assert!(inside(numbers(&svg, "x"), width), "{name}");
            assert!(inside(numbers(&svg, "y"), height), "{name}");
            assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{name}");
        }
    }

    #[test]
    fn names_are_escaped_and_one_way_links_have_arrows() {
        let mut b = Builder::new("<&>");
        let gpus = b.gpus(2);
        let odd = b.switch("a\"<b");
        b.one_way(gpus[0], odd, "x", 1e9, 1e-6);
        b.one_way(odd, gpus[1], "x", 1e9, 1e-6);
        let svg = draw(&b.build());
        assert!(svg.contains("&lt;&amp;&gt;") && svg.contains("a&quot;&lt;b"));
        assert_eq!(svg.matches("marker-end=\"url(#arrow0)\"").count(), 3); // two and the legend
        assert_eq!(svg.matches("<marker ").count(), 1);
    }
}
