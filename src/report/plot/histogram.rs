//! How values are distributed.

use super::axis::Axis;
use super::page::Caption;
use super::palette::Look;

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
