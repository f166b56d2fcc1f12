//! Grouped bars and dots, with values written beside them.

use super::axis::Axis;
use super::page::Caption;
use super::palette::Look;

/// One value per group.
#[derive(Clone, Debug, PartialEq)]
pub struct BarSeries {
    pub name: String,
    pub look: Look,
    /// One per group; NaN where there is none.
    pub values: Vec<f64>,
    /// Lower and upper ends of intervals, one per group; empty where there are none.
    pub intervals: Vec<(f64, f64)>,
}

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Upright bars where all labels fit, else lying ones.
    Auto,
    /// Lying bars, one row per value.
    Rows,
    /// One row per group, a dot per series.
    Dots,
}

/// A figure of bars or dots.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    pub caption: Caption,
    pub groups: Vec<String>,
    pub series: Vec<BarSeries>,
    /// The axis of the values.
    pub axis: Axis,
    /// A dashed line with a name, e.g. `(1.0, "sequential")`.
    pub reference: Option<(f64, String)>,
    pub shape: Shape,
}
