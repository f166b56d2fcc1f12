//! Free SMs beside a GEMM, and what of a collective can begin on them at once.
//!
//! The SMs of a GPU lie in groups, and blocks that begin together, as a cluster, need free SMs of one
//! group: a GPU has so many *places* for clusters, fewer than its SMs would make. So a collective of B blocks
//! may find B free SMs beside a GEMM that leaves it as many, and still begin with fewer; the others follow in
//! turns. GEMMs begin in clusters of c blocks:
//!
//! ```text
//! room  = places − ⌈SMs of the GEMM / c⌉ · c / cluster    clusters that begin at once, for c of a cluster on
//!       = free SMs / cluster                              for fewer: pairs lie side by side
//! turns = ⌈⌈B / cluster⌉ / room⌉
//! ```
//!
//! And the other way round: clusters of a collective that came first each take a place of a GEMM's, be these as
//! large or twice as large, of which there are `wide`.
//!
//! With t turns it takes t times as long as one of its blocks, which is busy for a share of the time of
//! a collective all of whose blocks run: fewer blocks than all are enough for the links. Where the
//! collective comes first it is the GEMM whose last clusters wait.
//!
//! In streams it is open which of two comes first that wait for the end of the same GEMM.

/// Numbers that a profile may leave out; without them free SMs serve every collective.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Scatter {
    /// Blocks of a collective that begin together.
    pub cluster: Option<u32>,
    /// Clusters of as many blocks, an SM for each, that the GPU holds at once.
    pub places: Option<u32>,
    /// Clusters of twice as many; half as many, if not stated.
    pub wide: Option<u32>,
    /// What a block of a collective is busy for when few run, of the time of all \[0–1\].
    pub share: Option<f64>,
    /// How often a collective comes before a GEMM that becomes ready with it, in streams \[0–1\].
    pub first: Option<f64>,
}

/// A number that a profile may leave out, with its name.
type Named<'d, T> = (&'static str, &'d mut Option<T>);

impl Scatter {
    /// The counts and the shares, each with its name.
    pub(super) fn fields(&mut self) -> ([Named<'_, u32>; 3], [Named<'_, f64>; 2]) {
        (
            [
                ("library.cluster", &mut self.cluster),
                ("library.places", &mut self.places),
                ("library.places_wide", &mut self.wide),
            ],
            [
                ("library.block_share", &mut self.share),
                ("library.first", &mut self.first),
            ],
        )
    }

    /// Blocks of a GEMM of `blocks` in clusters of `of` (0: as the collective's) that begin at once where
    /// collectives hold `busy` SMs and leave as many free.
    ///
    /// ```
    /// use duet::device::Scatter;
    /// let h200 = Scatter { cluster: Some(4), places: Some(32), ..Scatter::default() };
    /// assert_eq!(h200.room(24, 108, 4), 104);
    /// assert_eq!(h200.room(24, 96, 4), 96);
    /// assert_eq!(h200.room(24, 96, 8), 80); // 16 places, of which 6 are broken
    /// assert_eq!(h200.room(24, 108, 2), 108);
    /// ```
    pub fn room(&self, busy: u32, blocks: u32, of: u32) -> u32 {
        let (Some(cluster), Some(places)) = (self.cluster, self.places) else {
            return blocks;
        };
        let cluster = cluster.max(1);
        let of = if of == 0 { cluster } else { of };
        let places = match of > cluster {
            true => self.wide.unwrap_or(places / 2),
            false => places,
        };
        if of < cluster {
            return blocks;
        }
        let room = places.saturating_sub(busy.div_ceil(cluster)).max(1);
        blocks.min(room.saturating_mul(of))
    }

    /// In how many turns `blocks` of a collective run beside a GEMM that holds `busy` SMs, in clusters of `of`
    /// (0: as the collective's), and leaves it `free`; 1: all at once.
    ///
    /// ```
    /// use duet::device::Scatter;
    /// // 132 SMs in eight groups of 16 or 18 hold four clusters of 4 each.
    /// let h200 = Scatter { cluster: Some(4), places: Some(32), ..Scatter::default() };
    /// assert_eq!(h200.turns((108, 4), (24, 24)), 2); // 27 places are taken, 6 are wanted
    /// assert_eq!(h200.turns((104, 4), (24, 28)), 1);
    /// assert_eq!(h200.turns((108, 2), (24, 24)), 1);
    /// assert_eq!(h200.turns((0, 0), (24, 132)), 1);
    /// ```
    pub fn turns(&self, (busy, of): (u32, u32), (blocks, free): (u32, u32)) -> u32 {
        let (Some(cluster), Some(places)) = (self.cluster, self.places) else {
            return 1;
        };
        let cluster = cluster.max(1);
        let of = if of == 0 { cluster } else { of };
        let room = match of < cluster {
            true => places.min(free / cluster),
            false => places.saturating_sub(busy.div_ceil(of) * of.div_ceil(cluster)),
        };
        // With room for none, one at a time: whoever asks has SMs.
        blocks.div_ceil(cluster).div_ceil(room.max(1)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_smaller_gemm_never_costs_more_turns(
            busy in 0u32..200,
            blocks in 1u32..64,
            cluster in 1u32..16,
            places in 1u32..70,
        ) {
            let scatter = Scatter { cluster: Some(cluster), places: Some(places), ..Scatter::default() };
            let turns = |busy: u32| scatter.turns((busy, 0), (blocks, 200));
            prop_assert!((1..=blocks.div_ceil(cluster)).contains(&turns(busy + 1)));
            prop_assert!(turns(busy) <= turns(busy + 1));
            // Where everything fits there is one turn, and only there.
            let fits = busy.div_ceil(cluster) + blocks.div_ceil(cluster) <= places;
            let one = turns(busy) == 1;
            prop_assert_eq!(one, fits || blocks.div_ceil(cluster) == 1);
            prop_assert_eq!(scatter.room(busy, blocks, 0) == blocks, fits || blocks <= cluster);
            for without in [
                Scatter { cluster: None, ..scatter },
                Scatter { places: None, ..scatter },
            ] {
                prop_assert_eq!(without.turns((busy, 0), (blocks, 0)), 1);
            }
        }
    }
}
