//! Tensors, the buffers that hold them, and rectangles of buffers.

use super::{BufferId, Rank, TensorId};

/// A half-open range of rows or columns \[elements\].
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    pub start: u32,
    pub len: u32,
}

impl Extent {
    /// `[start, start + len)`.
    pub const fn new(start: u32, len: u32) -> Self {
        Self { start, len }
    }

    /// One past the last; in u64 because a file may state any start and length.
    pub const fn end(self) -> u64 {
        self.start as u64 + self.len as u64
    }

    /// Whether the two share an element.
    pub const fn overlaps(self, other: Self) -> bool {
        (self.start as u64) < other.end() && (other.start as u64) < self.end()
    }

    /// Whether `other` lies inside.
    pub const fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end() <= self.end()
    }
}

/// A rectangle of one slot of a buffer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    pub buffer: BufferId,
    pub slot: u16,
    pub rows: Extent,
    pub cols: Extent,
}

impl Slice {
    /// Elements in the rectangle.
    pub const fn elements(&self) -> u64 {
        self.rows.len as u64 * self.cols.len as u64
    }

    /// The rows `[start, start + len)` of this slice, counted from its own first row.
    pub const fn rows(&self, start: u32, len: u32) -> Self {
        Self {
            rows: Extent::new(self.rows.start + start, len),
            ..*self
        }
    }

    /// The columns `[start, start + len)` of this slice, counted from its own first column.
    pub const fn cols(&self, start: u32, len: u32) -> Self {
        Self {
            cols: Extent::new(self.cols.start + start, len),
            ..*self
        }
    }
}

/// A global tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    pub name: String,
    pub rows: u32,
    pub cols: u32,
    /// The full set of contributions is `[0, contributions)`; 1 for a tensor that is not a sum.
    pub contributions: u32,
}

/// What a buffer holds before the first task, or must hold after the last.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Holds its pieces from the start.
    Input,
    /// Must hold its pieces, complete, at the end.
    Output,
    /// Both (an all-gather's buffer holds the own shard at the start and everything at the end).
    /// The pieces with `initial` are there at the start; all must be complete at the end.
    InputOutput,
    /// Neither.
    Scratch,
}

/// Which part of the global tensor a rectangle of the buffer's slot 0 holds, 1:1.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Rows of the buffer.
    pub rows: Extent,
    /// Columns of the buffer.
    pub cols: Extent,
    /// Global row of the first row.
    pub global_row: u32,
    /// Global column of the first column.
    pub global_col: u32,
    /// For inputs: the contributions that the data holds at the start; empty (`len` 0): not there
    /// at the start, only required at the end.
    pub initial: Extent,
}

/// Memory of one rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    pub name: String,
    pub tensor: TensorId,
    pub rank: Rank,
    pub rows: u32,
    pub cols: u32,
    /// Copies of the shape; more than one for double buffering.
    pub slots: u16,
    pub role: Role,
    /// Empty for scratch.
    pub pieces: Vec<Piece>,
}
