//! How values are distributed.

use super::axis::{Axis, Direction, Scale, Spacing};
use super::canvas::{Align, Area, Canvas, Type};
use super::frame::{self, Frame};
use super::page::{self, Caption, Entry, Sheet, Swatch};
use super::palette::{Dash, Look};
use super::quantity::Quantity;
use super::style::{INK, SMALL};
use super::text;

/// The values of one distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub name: String,
    pub look: Look,
    pub values: Vec<f64>,
}

/// Bars of counts, or the share of values up to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Counts in about so many bins of equal width (on the axis).
    Bins(usize),
    Cumulative,
}

/// A figure of distributions.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    pub caption: Caption,
    pub axis: Axis,
    pub samples: Vec<Sample>,
    pub form: Form,
    /// Vertical dashed lines with a name, e.g. `(mean, "mean 4.1%")`.
    pub rules: Vec<(f64, String)>,
}

const HIGH: f64 = 320.0;
/// Room for one name of a rule above the plot \[px\].
const NAME: f64 = 17.0;

impl Histogram {
    /// The figure as SVG.
    #[must_use]
    pub fn draw(&self) -> String {
        let several = self.samples.len() > 1;
        let legend = self
            .samples
            .iter()
            .filter(|s| several && !s.name.is_empty());
        let legend: Vec<Entry> = legend
            .map(|s| Entry {
                name: s.name.clone(),
                look: s.look,
                swatch: match self.form {
                    Form::Bins(_) => Swatch::Box,
                    Form::Cumulative => Swatch::Line { marker: false },
                },
            })
            .collect();
        let all = self.samples.iter().flat_map(|s| &s.values);
        let missing = all.filter(|v| !self.axis.takes(**v)).count();
        // The width of a frame does not depend on the room above it.
        let (_, levels) = self.rules(&self.frame(page::across(), 0.0));
        let head = frame::Y_TITLE + levels as f64 * NAME;
        let body = head + HIGH + frame::BELOW + frame::X_TITLE;
        let sheet = Sheet {
            caption: &self.caption,
            note: page::left_out(missing),
            legend,
            width: page::WIDTH,
            body,
        };
        sheet.draw(|canvas, area| {
            let frame = self.frame(area, head);
            frame.draw_alone(canvas, area, false);
            if self.kept().next().is_none() {
                frame::nothing(canvas, frame.area);
            } else {
                self.content(canvas, &frame);
            }
            self.draw_rules(canvas, &frame);
        })
    }

    fn kept(&self) -> impl Iterator<Item = f64> {
        let all = self.samples.iter().flat_map(|s| s.values.iter().copied());
        all.filter(|v| self.axis.takes(*v))
    }

    fn frame(&self, area: Area, head: f64) -> Frame {
        // The labels of counts and of per cent are about as wide as `100%`.
        let guess = area.shrink(48.0, head, 20.0, frame::BELOW + frame::X_TITLE);
        let values = || self.kept().chain(self.rules.iter().map(|rule| rule.0));
        let x = self
            .axis
            .scale(values(), guess.width(), Direction::Across, None);
        let y = match self.form {
            Form::Cumulative => Axis::from_zero("share of cases at most so large", Quantity::Share)
                .scale([1.0], HIGH, Direction::Up, None),
            Form::Bins(_) => {
                let most = self.counts(&x).into_iter().flatten().max().unwrap_or(0);
                // A count axis that would need halves shows one step.
                Axis::from_zero("cases", Quantity::Number).scale(
                    [most.max(5) as f64],
                    HIGH,
                    Direction::Up,
                    None,
                )
            }
        };
        let plot = Area {
            left: area.left + frame::gutter(&y).max(48.0),
            ..guess
        };
        Frame { area: plot, x, y }
    }

    /// About as many bins as wished for; on a linear axis so that each tick is an edge.
    fn bins(&self, x: &Scale) -> usize {
        let wished = match self.form {
            Form::Bins(bins) => bins.clamp(1, 200),
            Form::Cumulative => 1,
        };
        if x.spacing != Spacing::Linear {
            return wished;
        }
        let steps = x.ticks.len().saturating_sub(1).max(1);
        steps * ((wished as f64 / steps as f64).round() as usize).max(1)
    }

    /// Values of each sample in each bin.
    fn counts(&self, x: &Scale) -> Vec<Vec<usize>> {
        let bins = self.bins(x);
        let count = |sample: &Sample| {
            let mut counts = vec![0; bins];
            for place in sample.values.iter().filter_map(|v| x.at(*v)) {
                counts[((place * bins as f64) as usize).min(bins - 1)] += 1;
            }
            counts
        };
        self.samples.iter().map(count).collect()
    }

    fn content(&self, canvas: &mut Canvas<'_>, frame: &Frame) {
        match self.form {
            Form::Bins(_) => self.bars(canvas, frame),
            Form::Cumulative => {
                for sample in &self.samples {
                    let line = steps(sample, frame);
                    canvas.path(&line, sample.look.colour, 2.2, sample.look.dash);
                }
            }
        }
    }

    fn bars(&self, canvas: &mut Canvas<'_>, frame: &Frame) {
        let wide = frame.area.width() / self.bins(&frame.x) as f64;
        let each = (wide - 1.5).max(0.5) / self.samples.len() as f64;
        let counts = self.counts(&frame.x);
        for (s, (sample, counts)) in self.samples.iter().zip(&counts).enumerate() {
            for (bin, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                let left = frame.area.left + bin as f64 * wide + s as f64 * each + 0.75;
                if let Some(top) = frame.y_at(*count as f64) {
                    let bar = Area {
                        left,
                        top,
                        right: left + each,
                        bottom: frame.area.bottom,
                    };
                    canvas.fill_box(bar, sample.look.colour, 1.0);
                }
            }
        }
    }

    /// The vertical rules from left to right, and how many levels their names take above the
    /// plot: one where no name meets another name or rule, else one for each.
    fn rules(&self, frame: &Frame) -> (Vec<Rule>, usize) {
        let rule = |(value, name): &(f64, String)| {
            let x = frame.x_at(*value)?;
            let room = (x - frame.area.left).max(frame.area.right - x) - 6.0;
            let name = text::shorten(name, SMALL, false, room);
            let width = text::width(&name, SMALL, false);
            let right = width + 6.0 <= frame.area.right - x;
            let left = if right { x + 5.0 } else { x - 5.0 - width };
            Some(Rule {
                x,
                name,
                left,
                width,
            })
        };
        let mut rules: Vec<Rule> = self.rules.iter().filter_map(rule).collect();
        rules.sort_by(|a, b| a.x.total_cmp(&b.x));
        let meet = |a: &Rule, b: &Rule| {
            let (from, to) = (a.left - 6.0, a.left + a.width + 6.0);
            (from < b.left + b.width && b.left < to) || (from..to).contains(&b.x)
        };
        let apart = (0..rules.len())
            .all(|i| (0..rules.len()).all(|j| i == j || !meet(&rules[i], &rules[j])));
        let levels = if apart {
            rules.len().min(1)
        } else {
            rules.len()
        };
        (rules, levels)
    }

    /// Rules and their names; where each has a level, the leftmost is at the top.
    fn draw_rules(&self, canvas: &mut Canvas<'_>, frame: &Frame) {
        let (rules, levels) = self.rules(frame);
        let baseline = |i: usize| {
            let level = if levels > 1 { levels - 1 - i } else { 0 };
            frame.area.top - 5.0 - level as f64 * NAME
        };
        for (i, rule) in rules.iter().enumerate() {
            let top = baseline(i) - SMALL * 0.7;
            let line = [(rule.x, frame.area.bottom), (rule.x, top)];
            canvas.path(&line, INK, 1.0, Dash::Dashed);
        }
        let kind = Type {
            size: SMALL,
            bold: false,
            colour: INK,
        };
        for (i, rule) in rules.iter().enumerate() {
            let at = (rule.left, baseline(i));
            canvas.text_on_white(&rule.name, at, Align::Left, kind);
        }
    }
}

/// A vertical line with its name.
struct Rule {
    x: f64,
    name: String,
    left: f64,
    width: f64,
}

/// The share of values up to each, as steps.
fn steps(sample: &Sample, frame: &Frame) -> Vec<(f64, f64)> {
    let mut places: Vec<f64> = sample
        .values
        .iter()
        .filter_map(|v| frame.x_at(*v))
        .collect();
    places.sort_by(f64::total_cmp);
    let all = places.len() as f64;
    let mut line = vec![(frame.area.left, frame.area.bottom)];
    for (i, x) in places.iter().enumerate() {
        let before = line[line.len() - 1].1;
        if let Some(y) = frame.y_at((i + 1) as f64 / all) {
            line.push((*x, before));
            line.push((*x, y));
        }
    }
    if !places.is_empty() {
        line.push((frame.area.right, line[line.len() - 1].1));
    }
    line
}
