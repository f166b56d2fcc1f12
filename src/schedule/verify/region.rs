//! The map of one buffer slot: which part of which tensor lies where, who wrote it last and who
//! has read it since.
//!
//! Rows are cut into strips, each strip into segments of columns; both are cut further on demand.
//! Gaps were never written.

use std::collections::BTreeMap;

use super::value::{Band, Cell, Grid, Value};
use crate::schedule::{Extent, Slice};

/// Writer of what is there at the start.
pub(super) const INITIAL: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Segment {
    start: u32,
    end: u32,
    value: Value,
    /// The task that wrote it last, or [`INITIAL`].
    pub writer: u32,
    pub readers: Readers,
}

/// Tasks that have read a segment since it was written: the last one of each chain stands for the
/// earlier ones of that chain.
#[derive(Clone, Debug, Default)]
pub(super) struct Readers {
    /// The newest; most segments have one reader, which needs no list.
    last: Option<u32>,
    earlier: Vec<u32>,
    compact_at: u32,
}

impl Readers {
    /// Adds a reader; `chain_of` and the order of chains tell which earlier readers it stands for.
    pub(super) fn add(&mut self, task: u32, chain_of: &[u32]) {
        let chain = |t: u32| chain_of[t as usize];
        let Some(last) = self.last.replace(task) else {
            return;
        };
        if chain(last) == chain(task) {
            return;
        }
        self.earlier.push(last);
        if self.earlier.len() as u32 > self.compact_at.max(16) {
            // Later readers come later in the list, so the last of each chain is kept.
            self.earlier.reverse();
            self.earlier.sort_by_key(|t| chain(*t));
            self.earlier.dedup_by_key(|t| chain(*t));
            self.compact_at = 2 * self.earlier.len() as u32;
        }
    }

    pub(super) fn tasks(&self) -> impl Iterator<Item = u32> {
        self.last.into_iter().chain(self.earlier.iter().copied())
    }
}

#[derive(Debug)]
struct Strip {
    end: u32,
    /// By column; gaps were never written.
    segments: Vec<Segment>,
}

/// One slot of one buffer.
#[derive(Debug, Default)]
pub(super) struct Slot {
    strips: BTreeMap<u32, Strip>,
}

/// Why a slice could not be read.
pub(super) enum Unread<E> {
    /// This rectangle of the slot was never written.
    Gap(Extent, Extent),
    /// The visitor said no.
    Refused(E),
}

impl Slot {
    /// Reads a slice: shows every segment to `visit`, returns what they hold.
    pub(super) fn read<E>(
        &mut self,
        slice: &Slice,
        mut visit: impl FnMut(&mut Segment) -> Result<(), E>,
    ) -> Result<Grid, Unread<E>> {
        let (rows, cols) = (bounds(slice.rows), bounds(slice.cols));
        self.cut_rows(rows);
        let mut grid = Grid::new();
        let mut row = rows.0;
        for (&start, strip) in self.strips.range_mut(rows.0..rows.1) {
            if start > row {
                return Err(gap((row, start), cols));
            }
            strip.cut(cols);
            let end = strip.end;
            let mut cells = Vec::with_capacity(1);
            let mut col = cols.0;
            for segment in strip.within(cols) {
                if segment.start > col {
                    return Err(gap((start, end), (col, segment.start)));
                }
                visit(segment).map_err(Unread::Refused)?;
                cells.push(Cell {
                    start: segment.start - cols.0,
                    end: segment.end - cols.0,
                    value: segment.value.clone(),
                });
                col = segment.end;
            }
            if col < cols.1 {
                return Err(gap((start, end), (col, cols.1)));
            }
            grid.push(Band {
                start: start - rows.0,
                end: end - rows.0,
                cells,
            });
            row = end;
        }
        if row < rows.1 {
            return Err(gap((row, rows.1), cols));
        }
        Ok(super::value::coalesce(grid))
    }

    /// Shows every segment that overlaps the slice to `visit`, without reading.
    pub(super) fn touch<E>(
        &mut self,
        slice: &Slice,
        mut visit: impl FnMut(&Segment) -> Result<(), E>,
    ) -> Result<(), E> {
        let (rows, cols) = (bounds(slice.rows), bounds(slice.cols));
        self.cut_rows(rows);
        for strip in self.strips.range_mut(rows.0..rows.1).map(|(_, s)| s) {
            strip.cut(cols);
            strip.within(cols).iter().try_for_each(&mut visit)?;
        }
        Ok(())
    }

    /// Replaces what a slice holds by `grid`, written by `writer`.
    pub(super) fn write(&mut self, slice: &Slice, grid: Grid, writer: u32) {
        let (rows, cols) = (bounds(slice.rows), bounds(slice.cols));
        self.cut_rows(rows);
        let mut only_here = true;
        for strip in self.strips.range_mut(rows.0..rows.1).map(|(_, s)| s) {
            strip.cut(cols);
            strip
                .segments
                .retain(|s| s.end <= cols.0 || cols.1 <= s.start);
            only_here &= strip.segments.is_empty();
        }
        if only_here {
            let old: Vec<u32> = self.strips.range(rows.0..rows.1).map(|(k, _)| *k).collect();
            for key in old {
                self.strips.remove(&key);
            }
        }
        for band in grid {
            let (start, end) = (rows.0 + band.start, rows.0 + band.end);
            self.cut_rows((start, end));
            self.fill_gaps(start, end);
            for (&top, strip) in self.strips.range_mut(start..end) {
                let at = strip.segments.partition_point(|s| s.end <= cols.0);
                let new = band.cells.iter().map(|cell| Segment {
                    start: cols.0 + cell.start,
                    end: cols.0 + cell.end,
                    value: cell.value.offset(top - start, 0),
                    writer,
                    readers: Readers::default(),
                });
                strip.segments.splice(at..at, new);
            }
        }
    }

    /// Adds empty strips so that `[start, end)` is covered.
    fn fill_gaps(&mut self, start: u32, end: u32) {
        let mut gaps = Vec::new();
        let mut row = start;
        for (&top, strip) in self.strips.range(start..end) {
            if top > row {
                gaps.push((row, top));
            }
            row = strip.end;
        }
        if row < end {
            gaps.push((row, end));
        }
        for (top, end) in gaps {
            let segments = Vec::new();
            self.strips.insert(top, Strip { end, segments });
        }
    }

    fn cut_rows(&mut self, (start, end): (u32, u32)) {
        self.cut_row(start);
        self.cut_row(end);
    }

    /// Makes `row` a strip boundary.
    fn cut_row(&mut self, row: u32) {
        let Some((&top, strip)) = self.strips.range_mut(..row).next_back() else {
            return;
        };
        if strip.end <= row {
            return;
        }
        let lower = Strip {
            end: strip.end,
            segments: strip
                .segments
                .iter()
                .map(|s| Segment {
                    value: s.value.offset(row - top, 0),
                    readers: s.readers.clone(),
                    ..*s
                })
                .collect(),
        };
        strip.end = row;
        self.strips.insert(row, lower);
    }
}

impl Strip {
    fn cut(&mut self, (start, end): (u32, u32)) {
        self.cut_col(start);
        self.cut_col(end);
    }

    /// Makes `col` a segment boundary.
    fn cut_col(&mut self, col: u32) {
        let at = self.segments.partition_point(|s| s.end <= col);
        let Some(segment) = self.segments.get_mut(at) else {
            return;
        };
        if segment.start >= col {
            return;
        }
        let right = Segment {
            start: col,
            value: segment.value.offset(0, col - segment.start),
            readers: segment.readers.clone(),
            ..*segment
        };
        segment.end = col;
        self.segments.insert(at + 1, right);
    }

    /// The segments inside `[start, end)`, after [`Self::cut`].
    fn within(&mut self, (start, end): (u32, u32)) -> &mut [Segment] {
        let first = self.segments.partition_point(|s| s.end <= start);
        let last = self.segments.partition_point(|s| s.start < end);
        &mut self.segments[first..last.max(first)]
    }
}

/// Slices are checked to lie inside their buffers before they come here, so the end fits u32.
fn bounds(extent: Extent) -> (u32, u32) {
    (extent.start, extent.start + extent.len)
}

fn gap<E>(rows: (u32, u32), cols: (u32, u32)) -> Unread<E> {
    Unread::Gap(
        Extent::new(rows.0, rows.1 - rows.0),
        Extent::new(cols.0, cols.1 - cols.0),
    )
}
