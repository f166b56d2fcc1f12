//! Rows of A that a product's kernel brings itself: `struct Fetch` of `kernels/gemm.cuh`.

use crate::gpu::GpuError;
use crate::gpu::raw::{Copy2d, Region};

/// Bytes of `struct Fetch`.
pub(super) const FETCH: u64 = 64;
/// Most of them that blocks of Hopper bring that would wait.
pub(super) const MOST_FETCHES: u64 = 16;
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
    /// A word that counts shares, [`shares_before`] the epoch of the run before it; rows wait for this.
    pub done: Region,
    /// Set to the run's epoch when it is there, for the watchdog.
    pub flag: Region,
}

/// What counts shares before a run of an epoch: the kernel is run once with each, and counts so many shares each time.
pub const fn shares_before(epoch: u32) -> u32 {
    /// `ALL_SHARES`.
    const ALL: u32 = 1 << 24;
    epoch.wrapping_sub(1).wrapping_mul(ALL)
}

/// Whether blocks that would begin with waiting bring rows, a quarter of the kernel's or more: of `clusters` with
/// `ready` tiles before the first that waits.
pub const fn waiting_bring(ready: u64, clusters: u64) -> bool {
    4 * ready <= 3 * clusters
}

/// Rows of A that a kernel brings itself.
#[derive(Copy, Clone, Debug)]
pub struct Brought {
    /// The table of [`fetches`].
    pub table: Region,
    /// Its first entry.
    pub first: [u64; FETCH as usize / 8],
    /// Tiles of clusters before the first that waits ([`Order::ready`](super::Order)).
    pub ready: u64,
}

impl Brought {
    /// Of what [`fetches`] made, and where it is uploaded to; `ready`: as
    /// [`Order`](super::Order) says.
    pub fn new((table, bytes): (Region, &[u8]), ready: u64) -> Self {
        let mut first = [0; FETCH as usize / 8];
        for (word, bytes) in first.iter_mut().zip(bytes.chunks_exact(8)) {
            let mut all = [0; 8];
            all.copy_from_slice(bytes);
            *word = u64::from_le_bytes(all);
        }
        Self {
            table,
            first,
            ready,
        }
    }

    /// The block from which on blocks bring, if [those that wait](waiting_bring) do; else the last number.
    pub(super) fn loaders(&self, clusters: u64, cluster: u64) -> u64 {
        let fits = self.table.bytes() <= FETCH * MOST_FETCHES;
        match fits && waiting_bring(self.ready, clusters) {
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
            to_pitch | from_pitch << 32,
            width | rows << 32,
            done.need("a count of shares", 4)?,
            flag.need("a flag", 4)?,
            unit,
            0,
        ];
        table.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_run_lead_to_those_before_the_next() {
        // Blocks of every grid count ALL in a run, b of them ALL / blocks or one more, so that the count is
        // ALL times the epoch, modulo 2³²; a run before is behind it in cyclic order.
        let all = 1_u32 << 24;
        for (epoch, blocks) in [(0, 1), (1, 7), (255, 64), (256, 132), (u32::MAX, 128)] {
            let share = |b: u32| all / blocks + u32::from(b < all % blocks);
            let brought = (0..blocks).map(share).fold(0, u32::wrapping_add);
            assert_eq!(brought, all);
            let after = shares_before(epoch).wrapping_add(brought);
            assert_eq!(after, epoch.wrapping_mul(all));
            assert_eq!(after, shares_before(epoch.wrapping_add(1)));
            assert!(shares_before(epoch).wrapping_sub(after).cast_signed() < 0);
        }
    }
}
