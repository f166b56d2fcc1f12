//! Points, e.g. predicted against measured.

use super::axis::Axis;
use super::page::Caption;
use super::palette::Look;

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
