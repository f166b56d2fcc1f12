//! The tiles of a GEMM whose blocks take one after another, some from the beginning and some late.
//!
//! N tiles of τ each are for R blocks that begin at once and L that begin at u. Blocks that stay until there is no
//! tile left have their first two from the start, whenever they begin, as section `held` of calibrations shows. One
//! that begins late leaves nothing of them to the others. The rest are taken from a common list. Where there are
//! fewer than two for each, those with one are as many of the late blocks as of the first. Blocks of Duet's own
//! products have all of theirs, in order. With all done, e rounds by the first and k by the late ones,
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
        let late_ones = match self.own {
            // In order, so that the late ones go without where there are too few.
            u32::MAX => of_last.saturating_sub(first),
            _ => of_last - of_last.min(share(of_last, first, all)),
        };
        let mut last = (of_last - late_ones).min(first);
        let rounds = |some: bool| own.saturating_sub(u32::from(!some));
        let (mut early, mut after) = (rounds(last > 0), rounds(late_ones > 0));
        if last == 0 {
            last = first;
        }
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

/// Blocks of a GEMM of so many tiles on at most `want` SMs: whole clusters of `of`, if as many fit, in the last of
/// which some may have no tile.
pub(super) fn blocks(tiles: u32, want: u32, of: u32) -> u32 {
    let of = of.max(1);
    match want / of * of {
        0 => want.min(tiles),
        most => tiles.div_ceil(of).saturating_mul(of).min(most),
    }
}

/// Of so many tiles, those of `first` blocks of all.
fn share(tiles: u32, first: u32, all: u32) -> u32 {
    let part = u64::from(tiles) * u64::from(first) + u64::from(all) / 2;
    u32::try_from(part / u64::from(all)).unwrap_or(tiles)
}

#[cfg(test)]
mod tests;
