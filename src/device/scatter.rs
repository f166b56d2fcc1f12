//! Free SMs beside a GEMM, and what of a collective can begin on them at once.
//!
//! The SMs of a GPU lie in groups, and blocks that begin together, as a cluster, need free SMs of one
//! group: a GPU has so many *places* for clusters, fewer than its SMs would make. The library's GEMMs begin
//! in clusters as large as those of its collectives. So a collective of B blocks may find B free SMs
//! beside a GEMM that leaves it as many, and still begin with fewer; the others follow in turns.
//!
//! ```text
//! room  = places − ⌈SMs of the GEMM / cluster⌉            clusters that begin at once
//! turns = ⌈⌈B / cluster⌉ / room⌉
//! ```
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
    /// What a block of a collective is busy for when few run, of the time of all \[0–1\].
    pub share: Option<f64>,
    /// How often a collective comes before a GEMM that becomes ready with it, in streams \[0–1\].
    pub first: Option<f64>,
}

/// A number that a profile may leave out, with its name.
type Named<'d, T> = (&'static str, &'d mut Option<T>);

impl Scatter {
    /// The counts and the shares, each with its name.
    pub(super) fn fields(&mut self) -> ([Named<'_, u32>; 2], [Named<'_, f64>; 2]) {
        (
            [
                ("library.cluster", &mut self.cluster),
                ("library.places", &mut self.places),
            ],
            [
                ("library.block_share", &mut self.share),
                ("library.first", &mut self.first),
            ],
        )
    }

    /// Blocks of a GEMM of `blocks` that begin at once where collectives hold `busy` SMs and leave as many
    /// free.
    ///
    /// ```
    /// use duet::device::Scatter;
    /// let h200 = Scatter { cluster: Some(4), places: Some(32), ..Scatter::default() };
    /// assert_eq!(h200.room(24, 108), 104);
    /// assert_eq!(h200.room(24, 96), 96);
    /// ```
    pub fn room(&self, busy: u32, blocks: u32) -> u32 {
        match (self.cluster, self.places) {
            (Some(cluster), Some(places)) => {
                let taken = busy.div_ceil(cluster.max(1));
                let room = places.saturating_sub(taken).max(1);
                blocks.min(room.saturating_mul(cluster))
            }
            _ => blocks,
        }
    }

    /// In how many turns `blocks` of a collective run beside a GEMM that holds `busy` SMs and leaves it as
    /// many as it has blocks; 1: all at once.
    ///
    /// ```
    /// use duet::device::Scatter;
    /// // 132 SMs in eight groups of 16 or 18 hold four clusters of 4 each.
    /// let h200 = Scatter { cluster: Some(4), places: Some(32), ..Scatter::default() };
    /// assert_eq!(h200.turns(108, 24), 2); // 27 places are taken, 6 are wanted
    /// assert_eq!(h200.turns(104, 24), 1);
    /// assert_eq!(h200.turns(0, 24), 1);
    /// ```
    pub fn turns(&self, busy: u32, blocks: u32) -> u32 {
        let (Some(cluster), Some(places)) = (self.cluster, self.places) else {
            return 1;
        };
        let clusters = |blocks: u32| blocks.div_ceil(cluster.max(1));
        // With room for none, one at a time: whoever asks has SMs.
        let room = places.saturating_sub(clusters(busy)).max(1);
        clusters(blocks).div_ceil(room).max(1)
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
            let turns = scatter.turns(busy + 1, blocks);
            prop_assert!((1..=blocks.div_ceil(cluster)).contains(&turns));
            prop_assert!(scatter.turns(busy, blocks) <= turns);
            // Where everything fits there is one turn, and only there.
            let fits = busy.div_ceil(cluster) + blocks.div_ceil(cluster) <= places;
            let one = scatter.turns(busy, blocks) == 1;
            prop_assert_eq!(one, fits || blocks.div_ceil(cluster) == 1);
            prop_assert_eq!(scatter.room(busy, blocks) == blocks, fits || blocks <= cluster);
            for without in [
                Scatter { cluster: None, ..scatter },
                Scatter { places: None, ..scatter },
            ] {
                prop_assert_eq!(without.turns(busy, blocks), 1);
            }
        }
    }
}
