//! Figures: chart kinds that know nothing of experiments.
//!
//! A chart is plain data with a `draw` that gives a complete SVG file: the same data give the same
//! bytes. Whatever the data, there is a picture: values that have no place (not a number, not
//! positive on a logarithmic axis) are left out and counted below the plot, and a plot without any
//! says `no data`. [`super::png`] makes bitmaps of them; `docs/plots.md` shows each kind.
//!
//! To add a kind: one file here, one line in the list below, one sample in `samples.rs`, which
//! the tests then draw, measure for overlapping text, and draw again from broken data.

mod axis;
mod bars;
mod canvas;
mod columns;
mod confusion;
mod dash;
mod dots;
mod frame;
mod histogram;
#[doc(hidden)]
pub mod inspect;
mod labels;
mod line_panel;
mod lines;
mod map;
mod marks;
mod page;
mod palette;
mod quantity;
mod rows;
mod scatter;
mod style;
mod text;
mod ticks;
mod tiles;

pub use axis::{Axis, Spacing};
pub use bars::{BarSeries, Bars, Shape};
pub use confusion::Confusion;
pub use histogram::{Form, Histogram, Sample};
pub use lines::{Lines, Mark, Panel, Series};
pub use map::{Category, CategoryMap, Cell, MapPanel};
pub use page::Caption;
pub use palette::{Colour, Dash, Look, Marker};
pub use quantity::Quantity;
pub use scatter::{Cloud, Scatter};

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
