//! Rows of A that a product's kernel brings itself: `struct Fetch` of `kernels/gemm.cuh`.

use crate::gpu::GpuError;
use crate::gpu::raw::{Copy2d, Region};

/// Bytes of `struct Fetch`.
pub(super) const FETCH: usize = 64;
/// Bytes that a thread moves at a time where it can.
const UNIT: u64 = 16;
/// Bytes of an element, which a thread moves otherwise.
const ELEMENT: u64 = 2;
/// A row's bytes from the next: warps step over as many rows as there are of them, in 32 bits.
const MOST_PITCH: u64 = 1 << 19;

/// What a kernel brings while it computes.
#[derive(Copy, Clone, Debug)]
pub struct Fetch {
    pub copy: Copy2d,
    /// A word that counts blocks, 0 before and after.
    pub done: Region,
    /// Set to the run's epoch when it is there.
    pub flag: Region,
}

/// The table of what a kernel brings, in that order.
///
/// # Errors
/// [`GpuError::Argument`] for rows too far apart or no whole elements, [`GpuError::Bounds`].
pub fn fetches(fetches: &[Fetch]) -> Result<Vec<u8>, GpuError> {
    let mut table = Vec::with_capacity(FETCH * fetches.len());
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
        let words = [
            start,
            source,
            to_pitch,
            from_pitch,
            width | rows << 32,
            unit,
            done.need("a count of blocks", 4)?,
            flag.need("a flag", 4)?,
        ];
        table.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    Ok(table)
}
