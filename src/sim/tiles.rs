//! The tiles of a GEMM whose blocks begin some at once and some late.
//!
//! Blocks of a library's GEMM take them from a common list. With N tiles of τ each, R blocks that begin at once and L more from u on, it ends at the first t by which
//! all tiles are done:
//!
//! ```text
//! R · ⌊t/τ⌋ + L · ⌊(t − u)/τ⌋ ≥ N
//! ```
//!
//! With a tile for each block nobody takes another's. The r tiles that are left to themselves at the end go on
//! faster where all shared the memory's rate: in r/(R + L) of τ, and no less than a tile's arithmetic.
//!
//! Each block of Duet's own products has tiles of its own, so that the late ones end last: at u + ⌈N / (R + L)⌉ τ.

/// A GEMM as tiles.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Tiles {
    pub count: u32,
    /// What one takes beside all others, and at least [s].
    pub each: f64,
    pub least: f64,
    /// Whether any block may take any tile.
    pub common: bool,
}

impl Tiles {
    /// When all are done of which `first` blocks take some from the beginning, and `late` more from
    /// `from` on [s].
    pub fn end(self, (first, late): (u32, u32), from: f64) -> f64 {
        let (first, count) = (first.max(1), u64::from(self.count));
        if late == 0 || self.each <= 0.0 {
            return f64::from(self.count.div_ceil(first)) * self.each;
        }
        if !self.common {
            return from + f64::from(self.count.div_ceil(first + late)) * self.each;
        }
        // Rounds of the first blocks and of the late ones until all tiles are done, in order of time.
        let (mut early, mut after) = (0_u32, 0_u32);
        let one_each = self.count <= first + late;
        loop {
            let next = [
                f64::from(early + 1) * self.each,
                from + f64::from(after + 1) * self.each,
            ];
            // With a tile for each block nobody takes another's.
            let second = next[0] > next[1] || (one_each && early > 0);
            match second {
                true => after += 1,
                false => early += 1,
            }
            let done = u64::from(early) * u64::from(first) + u64::from(after) * u64::from(late);
            if done < count {
                continue;
            }
            let end = next[usize::from(second)];
            let (busy, others) = match second {
                true => (late, f64::from(early) * self.each),
                false => (first, from + f64::from(after) * self.each),
            };
            // Tiles of the last round, and how long these are left to themselves.
            let tiles = busy.min((count + u64::from(busy) - done) as u32);
            let alone = (end - others.max(end - self.each)).max(0.0);
            let share = f64::from(tiles) / f64::from(first + late);
            let slower = (share * self.each).max(self.least).min(self.each) / self.each;
            let all = f64::from(self.count.div_ceil(first + late)) * self.each;
            return (end - alone * (1.0 - slower)).max(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn late_blocks_take_what_is_left() {
        // 512 tiles on 132 blocks: four waves.
        let gemm = Tiles {
            count: 512,
            each: 1.0,
            least: 1.0,
            common: true,
        };
        assert_eq!(gemm.end((132, 0), 0.0), 4.0);
        // With tiles of their own the late ones do four waves whenever they come.
        let own = Tiles {
            common: false,
            ..gemm
        };
        assert_eq!(own.end((108, 24), 1.4), 5.4);
        assert_eq!(own.end((132, 0), 0.0), 4.0);
        // 108 do 432 in four; the others do two waves of 24 from 1.4 on and 32 are left for a fifth.
        assert_eq!(gemm.end((108, 24), 1.4), 5.0);
        // With three waves of the others 504, with a fourth 528.
        assert_eq!(gemm.end((108, 24), 0.25), 4.25);
        // They come when all is done.
        assert_eq!(gemm.end((108, 24), 7.0), 5.0);
        // Of 128 tiles that share the memory's rate, 32 by themselves take what their arithmetic takes.
        let shared = Tiles {
            count: 128,
            each: 1.0,
            least: 0.4,
            common: true,
        };
        assert_eq!(shared.end((96, 32), 2.0), 2.4);
        assert_eq!(shared.end((96, 32), 0.5), 1.2);
    }

    proptest! {
        #[test]
        fn more_and_earlier_blocks_never_end_later(
            count in 1u32..3000,
            first in 1u32..132,
            late in 1u32..64,
            from in 0.0..20.0_f64,
        ) {
            let tiles = Tiles { count, each: 1.0, least: 1.0, common: true };
            let end = tiles.end((first, late), from);
            let alone = tiles.end((first, 0), 0.0);
            let all = f64::from(count.div_ceil(first + late));
            prop_assert!(end >= all);
            prop_assert!(end <= alone || count <= first + late);
            prop_assert!(tiles.end((first, late), from + 0.5) >= end);
            prop_assert!(end <= from + all);
        }
    }
}
