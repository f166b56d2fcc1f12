//! Whose choices a shape takes that is not listed itself.
//!
//! A library's choice hangs on how many tiles there are, and little on k: columns with the same n and a k
//! within a factor of [`LEND`] take the same algorithm five times in six. Columns of another n do so every
//! second time; the fastest of the choices for the [`NEAREST`] of them, by the squared distance
//! 16·Δ(ln n)² + Δ(ln k)², is off by 3 % on average, the fastest of all algorithms by 4.5 %, because a library
//! does not always take what is fastest.

use super::{Choices, Library};

/// Largest distance in ln k, and in ln n: a factor of 2.
const LEND: f64 = std::f64::consts::LN_2;
/// Columns of another n that lend; fewer than half as many in reach are too few to choose from, and those of twice
/// the reach are looked at.
const NEAREST: usize = 8;
/// What a difference of 1 in ln n counts, as a squared distance.
const OVER_N: f64 = 16.0;

/// Places among the choices.
#[derive(Clone, Debug, Default)]
pub(in crate::device::gemm) struct Lenders {
    places: [usize; NEAREST],
    count: usize,
}

impl Lenders {
    /// The algorithms that they take for `m` rows.
    pub fn of<'c>(&'c self, choices: &'c [Choices], m: u64) -> impl Iterator<Item = u16> + 'c {
        let places = self.places.iter().take(self.count);
        places.filter_map(move |at| choices.get(*at)?.of(m))
    }

    /// One.
    fn one(at: usize) -> Self {
        let mut lenders = Self::default();
        lenders.places[0] = at;
        lenders.count = 1;
        lenders
    }
}

impl Library {
    /// Whose choices (n, k) takes: its own, else those for the same n and the nearest k, else those of
    /// the nearest columns; none where there are few of its alignment.
    pub(super) fn lenders(&self, n: u64, k: u64) -> Lenders {
        let ln = |of: u64, to: u64| (of as f64 / to.max(1) as f64).ln().abs();
        let align = self.align(n, k);
        let alike = |c: &Choices| (c.n, c.k) == (n, k) || self.align(c.n, c.k) == align;
        let [from, to] = [n, n + 1].map(|n| self.choices.partition_point(|c| c.n < n));
        let same = self.choices[from..to].iter().zip(from..);
        let same = same.filter(|(choice, _)| alike(choice));
        let same = same.map(|(choice, at)| (ln(choice.k, k), at));
        let nearest = same.min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((_, at)) = nearest.filter(|(far, _)| *far <= LEND) {
            return Lenders::one(at);
        }
        // Beyond what is listed those that are nearest lend, from however far.
        let reaches = (0..5).map(|doubled| 1 << doubled);
        let mut found = reaches.map(|reach| self.around((n, k), reach, alike));
        let enough = found.find(|found| found.count >= NEAREST / 2);
        enough.unwrap_or_default()
    }

    /// The nearest columns within a factor of 2 to the `reach`, of those that are alike.
    fn around(&self, (n, k): (u64, u64), reach: u32, alike: impl Fn(&Choices) -> bool) -> Lenders {
        let ln = |of: u64, to: u64| (of as f64 / to.max(1) as f64).ln().abs();
        let most = LEND * f64::from(reach);
        let mut nearest = [(f64::INFINITY, 0); NEAREST];
        let mut count = 0;
        // No other n is within reach.
        let ends = [n >> reach, n.saturating_mul(1 << reach).saturating_add(1)];
        let [from, to] = ends.map(|n| self.choices.partition_point(|c| c.n < n));
        for (choice, at) in self.choices[from..to].iter().zip(from..) {
            let (over_n, over_k) = (ln(choice.n, n), ln(choice.k, k));
            if over_n > most || over_k > most || !alike(choice) {
                continue;
            }
            let distance = OVER_N * over_n * over_n + over_k * over_k;
            if distance < nearest[NEAREST - 1].0 {
                let slot = nearest.partition_point(|(other, _)| *other <= distance);
                nearest[slot..].rotate_right(1);
                nearest[slot] = (distance, at);
                count = (count + 1).min(NEAREST);
            }
        }
        Lenders {
            places: nearest.map(|(_, at)| at),
            count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ALIGNED, Algorithm, Rates};
    use super::*;
    use crate::device::DType;
    use crate::units::{BytesPerSecond, Seconds};

    /// Columns of k = 4096: of the i-th n up to 512 rows the algorithm i, then 0.
    fn library(all: &[u64]) -> Library {
        let column = |(i, &n): (usize, &u64)| Choices {
            n,
            k: 4096,
            rows: vec![(512, i as u16), (8192, 0)],
        };
        let choices = all.iter().enumerate().map(column).collect();
        let rates = Rates {
            arithmetic: 1.0,
            memory: 1.0,
            overhead: 1.0,
            load: BytesPerSecond::of(1e11),
            epilogue: Seconds::ZERO,
            partials: BytesPerSecond::of(1e12),
            latency: Seconds::ZERO,
            cached: 0.0,
            reduction: Seconds::ZERO,
        };
        let algorithm = Algorithm {
            tile: (128, 128),
            split: 1,
            cluster: (1, 1),
            align: ALIGNED,
            work: 1.0,
            efficiency: 1.0,
        };
        Library::new(DType::Bf16, rates, vec![algorithm; all.len()], choices)
    }

    fn lent(library: &Library, n: u64, k: u64, m: u64) -> Vec<u16> {
        library.lenders(n, k).of(&library.choices, m).collect()
    }

    #[test]
    fn the_same_n_lends_alone_and_others_together() {
        // A column of the same n whose rows are of another kind lends nothing, whichever is nearer.
        let mut mixed = library(&[5120]);
        mixed.choices.push(Choices {
            k: 6144,
            ..mixed.choices[0].clone()
        });
        mixed.choices[0].k = 6148;
        mixed.choices.sort_by_key(|c| (c.n, c.k));
        assert_eq!(mixed.lenders(5120, 6152).of(&mixed.choices, 1).count(), 1);
        assert_eq!(mixed.choices[mixed.lenders(5120, 6152).places[0]].k, 6144);
        let library = library(&[2560, 3072, 4096, 5120, 6144, 7168, 16_384]);
        // Its own, and the same n up to twice the k.
        assert_eq!(lent(&library, 5120, 4096, 512), [3]);
        assert_eq!(lent(&library, 5120, 8192, 513), [0]);
        // Within a factor of 2 of 4096 · 1.1 are six, the nearest first.
        assert_eq!(lent(&library, 4504, 4096, 512), [2, 3, 4, 1, 5, 0]);
        // Of 11000 there are three, too few, and six within a factor of 4; of another k all; rows of 8 bytes are
        // another kind.
        assert_eq!(lent(&library, 11_000, 4096, 512), [6, 5, 4, 3, 2, 1]);
        assert_eq!(lent(&library, 4504, 8200, 512).len(), 7);
        assert!(lent(&library, 4500, 4096, 512).is_empty());
    }
}
