//! Values over two axes, looked up without a search.

use crate::predict::form::greater;

/// The numbers whose binary form has a few leading digits: evenly spaced within every doubling, so
/// that a place is found by looking at the digits.
#[derive(Clone, Debug, Default)]
pub(super) struct Axis {
    /// Bits of a double below the digits that count.
    below: u32,
    /// The first number, and its place as if places began at 0.
    first: f64,
    offset: u64,
    /// The last place.
    last: usize,
}

impl Axis {
    /// `digits` binary digits beyond the leading one, from the first of `range` (a power of two) to
    /// the first number not below the last.
    pub fn new(digits: u32, range: (f64, f64)) -> Self {
        let below = 52 - digits;
        let offset = range.0.to_bits() >> below;
        let number = |place: usize| f64::from_bits((offset + place as u64) << below);
        Self {
            below,
            first: range.0,
            offset,
            last: (0..).find(|place| number(*place) >= range.1).unwrap_or(0),
        }
    }

    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        let places = self.offset..=self.offset + self.last as u64;
        places.map(|place| f64::from_bits(place << self.below))
    }

    /// The place of a number, and how far it is on the way to the next.
    #[inline]
    pub fn place(&self, x: f64) -> (usize, f64) {
        let bits = greater(x, self.first).to_bits();
        let place = ((bits >> self.below) - self.offset) as usize;
        // Within a doubling, what is left of the digits is the share of the step.
        let left = bits & ((1 << self.below) - 1);
        match place < self.last {
            true => (
                place,
                left as i64 as f64 * f64::from_bits((1023 - u64::from(self.below)) << 52),
            ),
            false => (self.last, 0.0),
        }
    }
}

/// Values over two axes: linear between, constant beyond the ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    rows: Axis,
    columns: Axis,
    values: Vec<f64>,
}

impl Table {
    pub fn new(rows: Axis, columns: Axis, mut value: impl FnMut(f64, f64) -> f64) -> Self {
        let mut values = Vec::new();
        for row in rows.numbers() {
            values.extend(columns.numbers().map(|column| value(row, column)));
        }
        Self {
            rows,
            columns,
            values,
        }
    }

    /// The least of values and `slope` times their column, 0 without any: in between both are linear, and
    /// before the first column, which holds there, nothing is added.
    pub fn least(&self, slope: f64) -> f64 {
        let width = self.columns.last + 1;
        let added = |place: usize, column: f64| if place == 0 { 0.0 } else { slope * column };
        let added: Vec<f64> = (self.columns.numbers().enumerate())
            .map(|(place, column)| added(place, column))
            .collect();
        let rows = self.values.chunks(width);
        let all = rows.flat_map(|row| row.iter().zip(&added).map(|(value, more)| value + more));
        all.reduce(f64::min).unwrap_or(0.0)
    }

    #[inline]
    pub fn at(&self, row: f64, column: f64) -> f64 {
        let (row, down) = self.rows.place(row);
        let (column, across) = self.columns.place(column);
        let width = self.columns.last + 1;
        let at = row * width + column;
        let value = |at: usize| self.values.get(at).copied().unwrap_or(0.0);
        let along = |at: usize| match across > 0.0 {
            true => value(at) + (value(at + 1) - value(at)) * across,
            false => value(at),
        };
        let low = along(at);
        match down > 0.0 {
            true => low + (along(at + width) - low) * down,
            false => low,
        }
    }
}
