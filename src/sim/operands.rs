//! Which operands GEMMs find in cache.
//!
//! A GEMM leaves its B in the level-2 cache, where the next on that GPU finds it if it has the same:
//! chunks of one operator do. Others read it from memory, which takes what the GPU's profile says
//! ([`GemmTime::cold`](crate::device::gemm::GemmTime::cold)). What runs between two GEMMs is taken to
//! leave the cache as it is.

use rustc_hash::FxHashSet;

use crate::schedule::{Rank, Slice};

/// The last B of each GPU, and the GEMMs that had to read theirs.
#[derive(Debug, Default)]
pub(super) struct Operands {
    last: Vec<Option<(Rank, Slice)>>,
    cold: FxHashSet<u32>,
}

impl Operands {
    /// Before anything ran.
    pub fn new(gpus: usize) -> Self {
        Self {
            last: vec![None; gpus],
            cold: FxHashSet::default(),
        }
    }

    /// A GEMM of `rank` begins on a GPU.
    pub fn begins(&mut self, task: u32, gpu: u32, rank: Rank, b: Slice) {
        let Some(last) = self.last.get_mut(gpu as usize) else {
            return;
        };
        if last.replace((rank, b)) != Some((rank, b)) {
            self.cold.insert(task);
        }
    }

    /// Whether a GEMM that began read its B from memory.
    pub fn cold(&self, task: u32) -> bool {
        self.cold.contains(&task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{BufferId, Extent};

    #[test]
    fn the_same_b_is_read_once() {
        let b = |from| Slice {
            buffer: BufferId(1),
            slot: 0,
            rows: Extent {
                start: from,
                len: 8,
            },
            cols: Extent { start: 0, len: 8 },
        };
        let mut operands = Operands::new(2);
        // Two chunks with one B, another part of B, another rank's, another GPU's, and the first again.
        for (task, gpu, rank, from) in [
            (0, 0, 0, 0),
            (1, 0, 0, 0),
            (2, 0, 0, 8),
            (3, 0, 1, 8),
            (4, 1, 1, 8),
            (5, 0, 0, 0),
        ] {
            operands.begins(task, gpu, Rank(rank), b(from));
        }
        let cold: Vec<bool> = (0..6).map(|task| operands.cold(task)).collect();
        assert_eq!(cold, [true, false, true, true, true, true]);
    }
}
