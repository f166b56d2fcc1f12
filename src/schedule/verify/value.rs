//! What a region of memory means: a rectangle of a global tensor and the contributions summed in
//! it, and grids of such rectangles as one read of a slice yields them.

use std::fmt;
use std::rc::Rc;

/// A set of contributions: sorted, disjoint, non-adjacent half-open intervals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Set {
    One(u32, u32),
    Many(Rc<[(u32, u32)]>),
}

impl Set {
    /// The union of disjoint intervals in any order; `Err` with an interval that occurs twice.
    pub(super) fn from_intervals(mut parts: Vec<(u32, u32)>) -> Result<Self, (u32, u32)> {
        parts.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(parts.len());
        for (start, end) in parts {
            match merged.last_mut() {
                Some(last) if start < last.1 => return Err((start, end.min(last.1))),
                Some(last) if start == last.1 => last.1 = end,
                _ => merged.push((start, end)),
            }
        }
        Ok(match merged[..] {
            [] => Self::One(0, 0),
            [(start, end)] => Self::One(start, end),
            _ => Self::Many(merged.into()),
        })
    }

    /// The union with a disjoint set; `Err` with an interval that both hold.
    pub(super) fn union(&self, other: &Self) -> Result<Self, (u32, u32)> {
        if let (Self::One(a, b), Self::One(c, d)) = (self, other) {
            if b == c {
                return Ok(Self::One(*a, *d));
            }
            if d == a {
                return Ok(Self::One(*c, *b));
            }
        }
        let mut parts = self.intervals();
        parts.extend(other.intervals());
        Self::from_intervals(parts)
    }

    /// Whether it is `[0, contributions)`.
    pub(super) fn is_full(&self, contributions: u32) -> bool {
        *self == Self::One(0, contributions)
    }

    fn intervals(&self) -> Vec<(u32, u32)> {
        match self {
            Self::One(start, end) => vec![(*start, *end)],
            Self::Many(parts) => parts.to_vec(),
        }
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (start, end)) in self.intervals().iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{start}..{end}")?;
        }
        Ok(())
    }
}

/// The meaning of a rectangle whose first element is `(row, col)` of the global tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub tensor: u32,
    pub row: u32,
    pub col: u32,
    pub set: Set,
}

impl Value {
    /// The same region seen from `rows` rows and `cols` columns further in.
    pub(super) fn offset(&self, rows: u32, cols: u32) -> Self {
        Self {
            row: self.row + rows,
            col: self.col + cols,
            ..self.clone()
        }
    }
}

/// Columns `[start, end)` of a band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub start: u32,
    pub end: u32,
    pub value: Value,
}

/// Rows `[start, end)` of a grid; its cells cover the columns without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Band {
    pub start: u32,
    pub end: u32,
    pub cells: Vec<Cell>,
}

/// What a slice holds, rows and columns counted from the slice's own first; bands cover the rows
/// without gaps.
pub(super) type Grid = Vec<Band>;

/// Merges neighbours that continue one another, so that equal contents have equal grids however
/// they were written.
pub(super) fn coalesce(grid: Grid) -> Grid {
    if let [band] = &grid[..]
        && band.cells.len() == 1
    {
        return grid;
    }
    let mut merged: Grid = Vec::with_capacity(grid.len().min(4));
    for mut band in grid {
        band.cells.dedup_by(|right, left| {
            let width = left.end - left.start;
            let continues = right.value.tensor == left.value.tensor
                && right.value.row == left.value.row
                && right.value.col == left.value.col + width
                && right.value.set == left.value.set;
            if continues {
                left.end = right.end;
            }
            continues
        });
        if let Some(above) = merged.last_mut()
            && continues_below(above, &band)
        {
            above.end = band.end;
            continue;
        }
        merged.push(band);
    }
    merged
}

fn continues_below(above: &Band, below: &Band) -> bool {
    let height = above.end - above.start;
    above.cells.len() == below.cells.len()
        && above.cells.iter().zip(&below.cells).all(|(a, b)| {
            (a.start, a.end) == (b.start, b.end)
                && a.value.tensor == b.value.tensor
                && a.value.col == b.value.col
                && a.value.row + height == b.value.row
                && a.value.set == b.value.set
        })
}

/// Combines two grids of the same shape region by region.
pub(super) fn overlay<E>(
    a: &Grid,
    b: &Grid,
    mut combine: impl FnMut(&Value, &Value) -> Result<Value, E>,
) -> Result<Grid, E> {
    let mut out = Grid::with_capacity(a.len().max(b.len()));
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let (start, end) = (x.start.max(y.start), x.end.min(y.end));
        let mut cells = Vec::with_capacity(x.cells.len().max(y.cells.len()));
        let (mut p, mut q) = (0, 0);
        while let (Some(u), Some(v)) = (x.cells.get(p), y.cells.get(q)) {
            let (left, right) = (u.start.max(v.start), u.end.min(v.end));
            let first = u.value.offset(start - x.start, left - u.start);
            let second = v.value.offset(start - y.start, left - v.start);
            cells.push(Cell {
                start: left,
                end: right,
                value: combine(&first, &second)?,
            });
            p += usize::from(u.end == right);
            q += usize::from(v.end == right);
        }
        out.push(Band { start, end, cells });
        i += usize::from(x.end == end);
        j += usize::from(y.end == end);
    }
    Ok(coalesce(out))
}

/// The rows `[start, end)` of a grid, counted anew from `start`.
pub(super) fn rows(grid: &Grid, start: u32, end: u32) -> Grid {
    grid.iter()
        .filter(|band| band.start < end && start < band.end)
        .map(|band| {
            let from = band.start.max(start);
            Band {
                start: from - start,
                end: band.end.min(end) - start,
                cells: band
                    .cells
                    .iter()
                    .map(|cell| Cell {
                        value: cell.value.offset(from - band.start, 0),
                        ..*cell
                    })
                    .collect(),
            }
        })
        .collect()
}

/// Puts `grid` below `above`, whose rows end at `height`.
pub(super) fn append(above: &mut Grid, grid: Grid, height: u32) {
    above.extend(grid.into_iter().map(|band| Band {
        start: band.start + height,
        end: band.end + height,
        cells: band.cells,
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unions_are_disjoint_and_merge_neighbours() {
        let union = Set::One(0, 4).union(&Set::One(8, 12)).unwrap();
        assert_eq!(union.to_string(), "0..4, 8..12");
        assert_eq!(union.union(&Set::One(4, 8)), Ok(Set::One(0, 12)));
        assert_eq!(union.union(&Set::One(3, 6)), Err((3, 4)));
    }

    #[test]
    fn equal_contents_have_equal_grids() {
        let value = |row| Value {
            tensor: 0,
            row,
            col: 0,
            set: Set::One(0, 1),
        };
        let band = |start, end, row| Band {
            start,
            end,
            cells: vec![Cell {
                start: 0,
                end: 4,
                value: value(row),
            }],
        };
        let split = vec![band(0, 2, 10), band(2, 5, 12)];
        assert_eq!(coalesce(split.clone()), vec![band(0, 5, 10)]);
        // Rows 10, 11 then 20: not one piece.
        assert_eq!(coalesce(vec![band(0, 2, 10), band(2, 3, 20)]).len(), 2);
        assert_eq!(coalesce(rows(&split, 1, 4)), vec![band(0, 3, 11)]);
    }
}
