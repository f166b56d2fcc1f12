//! Rows of A that a product's kernel brings itself: `struct Fetch` of `kernels/gemm.cuh`.

use crate::gpu::GpuError;
use crate::gpu::raw::{Copy2d, Region};

/// Bytes of `struct Fetch`.
pub(super) const FETCH: u64 = 80;
/// Most of them that a kernel of Hopper brings by copy engine.
pub(super) const MOST_FETCHES: u64 = 16;
/// Bytes that a thread moves at a time where it can.
const UNIT: u64 = 16;
/// Bytes of an element, which a thread moves otherwise.
const ELEMENT: u64 = 2;
/// A row's bytes from the next: warps step over as many rows as there are of them, in 32 bits.
const MOST_PITCH: u64 = 1 << 19;
/// Bytes of a box that the copy engine moves: of a piece of C, in whose place in shared memory it lies meanwhile.
const BOX: u64 = 64 * 64 * 2;
/// Blocks that boxes should be enough for: half of a GPU's.
const LOADERS: u64 = 64;

/// What a kernel brings while it computes.
#[derive(Copy, Clone, Debug)]
pub struct Fetch {
    pub copy: Copy2d,
    /// A word that counts shares, 0 before and after.
    pub done: Region,
    /// Set to the run's epoch when it is there.
    pub flag: Region,
}

impl Fetch {
    /// Whether it is whole units of 16 bytes, which Hopper's copy engine moves.
    pub fn whole(&self) -> bool {
        let Copy2d {
            to,
            to_pitch,
            from,
            from_pitch,
            width,
            rows,
        } = self.copy;
        let places = to.address() | from.address() | to_pitch | from_pitch | width;
        places.is_multiple_of(UNIT) && width > 0 && rows > 0
    }
}

/// Rows of A that a kernel brings itself.
#[derive(Copy, Clone, Debug)]
pub struct Brought {
    /// The table of [`fetches`].
    pub table: Region,
    /// Its first entry.
    pub first: [u64; FETCH as usize / 8],
    /// Whether Hopper's copy engine moves all of it ([`Fetch::whole`]).
    pub whole: bool,
    /// Tiles of clusters before the first that waits ([`Order::ready`](super::Order)).
    pub ready: u64,
}

impl Brought {
    /// Of what [`fetches`] made of `all`, and where it is uploaded to; `ready`: as
    /// [`Order`](super::Order) says.
    pub fn new((table, bytes): (Region, &[u8]), all: &[Fetch], ready: u64) -> Self {
        let mut first = [0; FETCH as usize / 8];
        for (word, bytes) in first.iter_mut().zip(bytes.chunks_exact(8)) {
            let mut all = [0; 8];
            all.copy_from_slice(bytes);
            *word = u64::from_le_bytes(all);
        }
        Self {
            table,
            first,
            whole: all.iter().all(Fetch::whole),
            ready,
        }
    }

    /// The block from which on blocks bring by copy engine: those that would begin with waiting, if they are
    /// a quarter of the kernel's or more; else the last number.
    pub(super) fn loaders(&self, clusters: u64, cluster: u64) -> u64 {
        let fits = self.table.bytes() <= FETCH * MOST_FETCHES;
        match self.whole && fits && 4 * self.ready <= 3 * clusters {
            true => self.ready * cluster,
            false => u32::MAX.into(),
        }
    }
}

/// The table of what a kernel brings, in that order.
///
/// # Errors
/// [`GpuError::Argument`] for rows too far apart or no whole elements, [`GpuError::Bounds`].
pub fn fetches(fetches: &[Fetch]) -> Result<Vec<u8>, GpuError> {
    let mut table = Vec::with_capacity(FETCH as usize * fetches.len());
    let mut begin = 0;
    for Fetch { copy, done, flag } in fetches {
        let Copy2d {
            to,
            to_pitch,
            from,
            from_pitch,
            width,
            rows,
        } = *copy;
        let span = |pitch: u64| rows.saturating_sub(1) * pitch + width;
        let (start, source) = (
            to.need("rows that a kernel brings", span(to_pitch))?,
            from.need("rows that a kernel brings", span(from_pitch))?,
        );
        let places = start | source | to_pitch | from_pitch;
        let small = |bytes: u64| bytes <= MOST_PITCH;
        if !(places | width).is_multiple_of(ELEMENT)
            || ![to_pitch, from_pitch].map(small)[..].iter().all(|&ok| ok)
        {
            return Err(GpuError::Argument(format!(
                "rows of {width} bytes that a kernel would bring, {from_pitch} and {to_pitch} bytes apart"
            )));
        }
        let unit = if places.is_multiple_of(UNIT) {
            UNIT
        } else {
            ELEMENT
        };
        let [each, down, across, count] = boxes(width, rows);
        let words = [
            start,
            source,
            to_pitch | from_pitch << 32,
            width | rows << 32,
            done.need("a count of shares", 4)?,
            flag.need("a flag", 4)?,
            unit | each << 32,
            down | across << 32,
            count | begin << 32,
            0,
        ];
        begin += count;
        table.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    Ok(table)
}

/// Bytes and rows of the boxes of a rectangle, how many are side by side, and all of them: as large as [`BOX`], but
/// smaller where they would not be one for each of [`LOADERS`].
fn boxes(width: u64, rows: u64) -> [u64; 4] {
    let across = width.div_ceil(BOX).max(1);
    let each = (width.div_ceil(UNIT).div_ceil(across) * UNIT).max(UNIT);
    let share = (rows * width).div_ceil(LOADERS);
    let down = share.div_ceil(each).clamp(1, BOX / each);
    [each, down, across, across * rows.div_ceil(down)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_hold_a_rectangle_and_are_enough_for_all_that_bring_it() {
        // 256 rows of 2 KiB: four rows make 64 boxes of 8 KiB; of 1 KiB: four make 64 of 4 KiB.
        assert_eq!(boxes(2048, 256), [2048, 4, 1, 64]);
        assert_eq!(boxes(1024, 256), [1024, 4, 1, 64]);
        // Rows longer than a box are cut, few rows stay alone.
        assert_eq!(boxes(16384, 256), [8192, 1, 2, 512]);
        assert_eq!(boxes(8208, 3), [4112, 1, 2, 6]);
        assert_eq!(boxes(32, 7), [32, 1, 1, 7]);
        for (width, rows) in [(16, 1), (400, 100), (8192, 5000), (24592, 77), (0, 4)] {
            let [each, down, across, count] = boxes(width, rows);
            assert!(each % UNIT == 0 && each * down <= BOX && each * across >= width);
            assert!(width == 0 || each * (across - 1) < width, "{width}");
            assert!(count / across * down >= rows && (count / across - 1) * down < rows);
        }
    }
}
