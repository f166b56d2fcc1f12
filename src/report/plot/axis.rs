//! Axes: from values to places and ticks.
//!
//! A [`Scale`] maps a value to a fraction of the axis, 0 at its start and 1 at its end:
//! `(v − lo)/(hi − lo)`, of logarithms where spacing is logarithmic. Whatever the data, `lo < hi`
//! and both are numbers: no data gives 0 to 1, one value gets room on both sides.

use super::quantity::{Quantity, Unit};
use super::ticks::{self, Tick};

/// How values are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    Linear,
    /// Ticks at 1, 2, 5 and powers of ten.
    Log,
    /// Ticks at powers of two.
    Log2,
}

/// What is asked of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is measured, without the unit: `time`, `message size`.
    pub label: String,
    pub quantity: Quantity,
    pub spacing: Spacing,
    /// Values that the axis spans at least, besides those of the data.
    pub spans: Vec<f64>,
}

impl Axis {
    /// Linear and starting at zero.
    #[must_use]
    pub fn from_zero(label: &str, quantity: Quantity) -> Self {
        Self::linear(label, quantity).spanning(&[0.0])
    }

    /// Linear, as far as the data reach.
    #[must_use]
    pub fn linear(label: &str, quantity: Quantity) -> Self {
        Self {
            label: label.to_owned(),
            quantity,
            spacing: Spacing::Linear,
            spans: Vec::new(),
        }
    }

    /// Logarithmic: powers of two for bytes, of ten for all else.
    #[must_use]
    pub fn log(label: &str, quantity: Quantity) -> Self {
        let spacing = if quantity == Quantity::Bytes {
            Spacing::Log2
        } else {
            Spacing::Log
        };
        Self {
            spacing,
            ..Self::linear(label, quantity)
        }
    }

    /// Logarithmic with ticks at powers of two.
    #[must_use]
    pub fn log2(label: &str, quantity: Quantity) -> Self {
        Self {
            spacing: Spacing::Log2,
            ..Self::linear(label, quantity)
        }
    }

    /// Spans these values too.
    #[must_use]
    pub fn spanning(mut self, values: &[f64]) -> Self {
        self.spans.extend_from_slice(values);
        self
    }

    /// Whether a value has a place: a number of sane size, positive where spacing is logarithmic.
    pub(super) fn takes(&self, value: f64) -> bool {
        let size = value.abs();
        match self.spacing {
            Spacing::Linear => size <= LARGEST,
            Spacing::Log | Spacing::Log2 => {
                value > 0.0 && (1.0 / LARGEST..=LARGEST).contains(&size)
            }
        }
    }

    /// The scale for these values along so many pixels, in a unit that suits them or is given.
    pub(super) fn scale(
        &self,
        values: impl IntoIterator<Item = f64>,
        pixels: f64,
        direction: Direction,
        unit: Option<Unit>,
    ) -> Scale {
        let spans = self.spans.iter().copied();
        let (lo, hi) = spans
            .chain(values)
            .filter(|value| self.takes(*value))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| {
                (lo.min(v), hi.max(v))
            });
        let largest = if lo <= hi {
            lo.abs().max(hi.abs())
        } else {
            1.0
        };
        let mut scale = Scale {
            spacing: self.spacing,
            lo,
            hi,
            unit: unit.unwrap_or_else(|| self.quantity.unit(largest)),
            ticks: Vec::new(),
            title: String::new(),
        };
        scale.widen();
        ticks::place(&mut scale, &self.quantity, pixels, direction);
        scale.title = self.title(scale.unit, &scale.ticks);
        scale
    }

    fn title(&self, (_, name): Unit, ticks: &[Tick]) -> String {
        let told = self.quantity.unit_on_ticks() || ticks.iter().any(|t| t.label.contains(name));
        match (self.label.as_str(), name) {
            (label, "") => label.to_owned(),
            (label, _) if told => label.to_owned(),
            ("", name) => name.to_owned(),
            (label, name) => format!("{label} ({name})"),
        }
    }
}

/// Beyond this a value is taken for a mistake, and differences of two could overflow.
const LARGEST: f64 = 1e100;

/// Where labels stand beside one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Across,
    Up,
}

/// An axis with its range and ticks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    pub spacing: Spacing,
    pub lo: f64,
    pub hi: f64,
    pub unit: Unit,
    pub ticks: Vec<Tick>,
    /// The label with its unit.
    pub title: String,
}

impl Scale {
    /// Gives every range a length; values that differ by less than a millionth are the same.
    fn widen(&mut self) {
        let log = self.spacing != Spacing::Linear;
        if self.lo > self.hi {
            (self.lo, self.hi) = if log { (1.0, 10.0) } else { (0.0, 1.0) };
        } else if log && self.hi / self.lo < 1.0 + 1e-6 {
            (self.lo, self.hi) = (self.lo / 2.0, self.hi * 2.0);
        } else if !log && self.hi - self.lo <= 1e-6 * self.hi.abs().max(self.lo.abs()) {
            let room = match self.hi.abs().max(self.lo.abs()) {
                0.0 => 1.0,
                size => size / 2.0,
            };
            (self.lo, self.hi) = if self.lo == 0.0 {
                (0.0, room)
            } else {
                (self.lo - room, self.hi + room)
            };
        }
    }

    /// The fraction of the axis where a value lies; `None` if it has no place.
    pub fn at(&self, value: f64) -> Option<f64> {
        let place = match self.spacing {
            Spacing::Linear => (value - self.lo) / (self.hi - self.lo),
            Spacing::Log | Spacing::Log2 if value > 0.0 => {
                (value / self.lo).ln() / (self.hi / self.lo).ln()
            }
            Spacing::Log | Spacing::Log2 => return None,
        };
        (-1e-6..=1.0 + 1e-6)
            .contains(&place)
            .then(|| place.clamp(0.0, 1.0))
    }

    /// The value at a fraction of the axis.
    pub fn value(&self, place: f64) -> f64 {
        match self.spacing {
            Spacing::Linear => self.lo + place * (self.hi - self.lo),
            Spacing::Log | Spacing::Log2 => self.lo * (self.hi / self.lo).powf(place),
        }
    }

    /// Makes the range longer by so much of itself at each end; an end at zero stays.
    pub fn pad(&mut self, share: f64) {
        let (lo, hi) = (self.value(-share), self.value(1.0 + share));
        if self.lo != 0.0 {
            self.lo = lo;
        }
        if self.hi != 0.0 {
            self.hi = hi;
        }
    }

    /// A value as a tick would say it, to three digits and without the unit in the title; a whole
    /// number without decimals if `whole`.
    pub fn short(&self, quantity: &Quantity, value: f64, whole: bool) -> String {
        let value = value / self.unit.0;
        let text = if whole {
            super::quantity::digits(value)
        } else {
            super::quantity::three(value)
        };
        if quantity.unit_on_ticks() {
            text + self.unit.1
        } else {
            text
        }
    }
}
