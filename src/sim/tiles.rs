//! The tiles of a GEMM whose blocks take one after another, some from the beginning and some late.
//!
//! N tiles of τ each are for R blocks that begin at once and L that begin at u. Blocks that stay until there is no
//! tile left have their first ones from the start, whenever they begin: two, and one in wide clusters, as section
//! `race` of calibrations shows. One that begins late leaves nothing of them to the others. The rest are taken from
//! a common list. Blocks of Duet's own products have all of theirs. With all done, e rounds by the first and k by the late ones,
//!
//! ```text
//! end = max(e · τ, u + k · τ)
//! ```
//!
//! What late ones do after the others have left goes faster where all shared the memory's rate: a tile takes
//! L/(R + L) of τ, and no less than its arithmetic.

use smallvec::SmallVec;

/// A GEMM as tiles.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Tiles {
    pub count: u32,
    /// What one takes beside all others, and at least [s].
    pub each: f64,
    pub least: f64,
    /// Tiles that each block has from the start, whenever it begins.
    pub own: u32,
}

impl Tiles {
    /// Rounds of the first blocks and of the late ones until all tiles are done, and how many of the first
    /// have a tile in their last.
    fn rounds(self, (first, late): (u32, u32), from: f64) -> (u32, u32, u32) {
        let all = first.saturating_add(late).max(1);
        let own = self.count.div_ceil(all).min(self.own);
        let mut left = self.count.saturating_sub(own.saturating_mul(all));
        let of_last = self
            .count
            .saturating_sub(own.saturating_sub(1).saturating_mul(all));
        // Blocks have them in order, so that the late ones go without where there are too few.
        let none = of_last <= first;
        let (mut early, mut after) = (own, own.saturating_sub(u32::from(none)));
        let mut last = of_last.min(first);
        while left > 0 {
            if f64::from(early) * self.each <= from + f64::from(after) * self.each {
                last = left.min(first.max(1));
                early += 1;
                left -= last;
            } else {
                after += 1;
                left -= left.min(late);
            }
        }
        (early, after, last)
    }

    /// From when on how many blocks have no tile, in order of time, where `late` begin at `from` \[s\], which
    /// may be never.
    pub fn idle(self, (first, late): (u32, u32), from: f64) -> SmallVec<[(f64, u32); 4]> {
        if self.each <= 0.0 || first == 0 {
            return SmallVec::new();
        }
        if late == 0 {
            let rounds = self.count.div_ceil(first);
            let idle = rounds * first - self.count;
            let at = f64::from(rounds.saturating_sub(1)) * self.each;
            return (idle > 0).then_some((at, idle)).into_iter().collect();
        }
        let (early, _, last) = self.rounds((first, late), from);
        let at = |rounds: u32| f64::from(rounds) * self.each;
        let mut idle = SmallVec::new();
        if last < first && early > 0 {
            idle.push((at(early - 1), first - last));
        }
        if last > 0 {
            idle.push((at(early), last.min(first)));
        }
        idle
    }

    /// When all are done of which `first` blocks take some from the beginning, and `late` more from
    /// `from` on [s].
    pub fn end(self, (first, late): (u32, u32), from: f64) -> f64 {
        let (first, from) = (first.max(1), from.max(0.0));
        if late == 0 || self.each <= 0.0 {
            return f64::from(self.count.div_ceil(first)) * self.each;
        }
        let (early, after, _) = self.rounds((first, late), from);
        let others = f64::from(early) * self.each;
        if after == 0 {
            return others;
        }
        let share = f64::from(late) / f64::from(first + late);
        let alone = (share * self.each).max(self.least).min(self.each) / self.each;
        // Beside the others, and alone.
        let work = f64::from(after) * self.each;
        let beside = (others - from).clamp(0.0, work);
        let end = from + beside + (work - beside) * alone;
        let all = f64::from(self.count.div_ceil(first + late)) * self.each;
        end.max(others).max(all)
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
            own: 2,
        };
        assert_eq!(gemm.end((132, 0), 0.0), 4.0);
        // 108 do 432 in four; the others do two waves of 24 from 1.4 on and 32 are left for a fifth.
        assert_eq!(gemm.end((108, 24), 1.4), 5.0);
        // With three waves of the others 504, with a fourth 528.
        assert_eq!(gemm.end((108, 24), 0.25), 4.25);
        // They come when the first leave, with two tiles each.
        assert_eq!(gemm.end((108, 24), 5.0), 7.0);
        // With all tiles their own the late ones do four waves whenever they come.
        let all = Tiles {
            own: u32::MAX,
            ..gemm
        };
        assert_eq!(all.end((108, 24), 1.4), 5.4);
        let passing = Tiles { own: 0, ..gemm };
        assert_eq!(passing.end((108, 24), 7.0), 5.0);
        // Of 128 tiles that share the memory's rate, 32 by themselves take what their arithmetic takes.
        let shared = Tiles {
            count: 128,
            each: 1.0,
            least: 0.4,
            own: 2,
        };
        assert_eq!(shared.end((96, 32), 2.0), 2.4);
        assert_eq!(shared.end((96, 32), 0.5), 1.2);
    }

    #[test]
    fn blocks_without_a_tile_are_idle() {
        let gemm = Tiles {
            count: 256,
            each: 1.0,
            least: 1.0,
            own: 2,
        };
        // Two waves of 108 and 40 tiles for 68 too many.
        assert_eq!(gemm.idle((108, 0), 0.0)[..], [(2.0, 68)]);
        assert!(gemm.idle((128, 0), 0.0).is_empty());
        // With 24 more to come, which have two each, two rounds are for the first.
        assert_eq!(gemm.idle((108, 24), 0.5)[..], [(2.0, 108)]);
        assert_eq!(gemm.idle((108, 24), f64::INFINITY)[..], [(2.0, 108)]);
        // 120 are on the list: 108 and 12.
        let more = Tiles { count: 384, ..gemm };
        let idle = more.idle((108, 24), f64::INFINITY);
        assert_eq!(idle[..], [(3.0, 96), (4.0, 12)]);
        // The 12 are for late blocks that come before the others have done three.
        assert_eq!(more.idle((108, 24), 0.5)[..], [(3.0, 108)]);
    }

    #[test]
    fn blocks_have_their_first_tiles_in_order() {
        // 132 and 18 tiles: the first 18 blocks have two, the late ones one each.
        let few = Tiles {
            count: 150,
            each: 1.0,
            least: 1.0,
            own: 2,
        };
        assert_eq!(few.end((108, 24), 1.0), 2.0);
        assert_eq!(few.end((108, 24), 1.5), 2.5);
        assert_eq!(few.idle((108, 24), 1.0)[..], [(1.0, 90), (2.0, 18)]);
        // 132 and 110: two of the late ones have two.
        let more = Tiles { count: 242, ..few };
        assert_eq!(more.end((108, 24), 1.0), 3.0);
    }

    /// When each of `first` and `late` blocks has done its last tile, where each takes its next as it is free,
    /// the first blocks before the others.
    fn by_block(tiles: Tiles, (first, late): (u32, u32), from: f64) -> Vec<f64> {
        let all = first + late;
        let own = tiles.count.min(tiles.own.saturating_mul(all));
        let free = |block: u32| match block < first {
            true => 0.0,
            false => from,
        };
        let mut blocks: Vec<(f64, bool)> = (0..all)
            .map(|block| {
                let has = own / all + u32::from(block < own % all);
                (free(block) + f64::from(has) * tiles.each, has > 0)
            })
            .collect();
        for _ in own..tiles.count {
            if let Some(next) = blocks.iter_mut().min_by(|a, b| a.0.total_cmp(&b.0)) {
                *next = (next.0 + tiles.each, true);
            }
        }
        let done = |(at, has): (f64, bool)| if has { at } else { 0.0 };
        blocks.into_iter().map(done).collect()
    }

    proptest! {
        #[test]
        fn rounds_are_those_of_blocks_one_by_one(
            count in 1u32..1500,
            first in 1u32..132,
            late in 1u32..64,
            quarters in 0u32..80,
            own in prop_oneof![Just(0), Just(1), Just(2), Just(u32::MAX)],
        ) {
            let tiles = Tiles { count, each: 1.0, least: 1.0, own };
            let from = f64::from(quarters) / 4.0;
            let blocks = by_block(tiles, (first, late), from);
            let end = blocks.iter().copied().fold(0.0, f64::max);
            prop_assert_eq!(tiles.end((first, late), from), end);
            let (early, _) = blocks.split_at(first as usize);
            for (at, _) in tiles.idle((first, late), from) {
                let gone: u32 = tiles.idle((first, late), from).iter()
                    .filter(|(other, _)| *other <= at).map(|(_, blocks)| blocks).sum();
                prop_assert_eq!(gone as usize, early.iter().filter(|end| **end <= at).count());
            }
        }

        #[test]
        fn more_and_earlier_blocks_never_end_later(
            count in 1u32..3000,
            first in 1u32..132,
            late in 1u32..64,
            from in 0.0..20.0_f64,
        ) {
            let tiles = Tiles { count, each: 1.0, least: 1.0, own: 2 };
            let end = tiles.end((first, late), from);
            let alone = tiles.end((first, 0), 0.0);
            let all = f64::from(count.div_ceil(first + late));
            prop_assert!(end >= all);
            prop_assert!(alone >= all);
            prop_assert!(tiles.end((first, late), from + 0.5) >= end - 1e-9);
            prop_assert!(end <= alone.max(from + 2.0) + 1e-9);
        }
    }
}
