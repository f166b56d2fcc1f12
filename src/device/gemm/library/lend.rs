//! Whose choices a shape takes that is not listed itself.
//!
//! A library's choice hangs on how many tiles there are, and little on k: columns with the same n and a k
//! within a factor of [`LEND`] take the same algorithm nine times in ten. Columns of another n do so every second
//! time; the fastest of the choices for the [`NEAREST`] of them, by the squared distance Δ(ln n)² + Δ(ln k)²,
//! is off by 3 % on average, the fastest of all algorithms by 4.5 %, because a library
//! does not always take what is fastest.

use super::{Choices, Library};

/// Largest distance in ln k, and in ln n: a factor of 2.
const LEND: f64 = std::f64::consts::LN_2;
/// Columns of another n that lend; fewer than half as many in reach are too few to choose from.
const NEAREST: usize = 12;

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
    /// the nearest columns; none where they are few.
    pub(super) fn lenders(&self, n: u64, k: u64) -> Lenders {
        let from = self.choices.partition_point(|c| (c.n, c.k) < (n, k));
        let ln = |of: u64, to: u64| (of as f64 / to.max(1) as f64).ln().abs();
        let align = self.align(n, k);
        let alike = |c: &Choices| (c.n, c.k) == (n, k) || self.align(c.n, c.k) == align;
        let far = |at: usize| {
            let choice = self.choices.get(at).filter(|c| c.n == n && alike(c))?;
            let far = ln(choice.k, k);
            (far <= LEND).then_some((far, at))
        };
        let near = [Some(from), from.checked_sub(1)];
        let near = near.into_iter().flatten().filter_map(far);
        if let Some((_, at)) = near.min_by(|a, b| a.0.total_cmp(&b.0)) {
            return Lenders::one(at);
        }
        let mut nearest = [(f64::INFINITY, 0); NEAREST];
        let mut count = 0;
        for (at, choice) in self.choices.iter().enumerate() {
            let (over_n, over_k) = (ln(choice.n, n), ln(choice.k, k));
            if over_n > LEND || over_k > LEND || !alike(choice) {
                continue;
            }
            let distance = over_n * over_n + over_k * over_k;
            if distance < nearest[NEAREST - 1].0 {
                let slot = nearest.partition_point(|(other, _)| *other <= distance);
                nearest[slot..].rotate_right(1);
                nearest[slot] = (distance, at);
                count = (count + 1).min(NEAREST);
            }
        }
        if count < NEAREST / 2 {
            return Lenders::default();
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
            efficiency: 1.0,
        };
        Library::new(DType::Bf16, rates, vec![algorithm; all.len()], choices)
    }

    fn lent(library: &Library, n: u64, k: u64, m: u64) -> Vec<u16> {
        library.lenders(n, k).of(&library.choices, m).collect()
    }

    #[test]
    fn the_same_n_lends_alone_and_others_together() {
        let library = library(&[2560, 3072, 4096, 5120, 6144, 7168, 16_384]);
        // Its own, and the same n up to twice the k.
        assert_eq!(lent(&library, 5120, 4096, 512), [3]);
        assert_eq!(lent(&library, 5120, 8192, 513), [0]);
        // Within a factor of 2 of 4096 · 1.1 are six, the nearest first.
        assert_eq!(lent(&library, 4504, 4096, 512), [2, 3, 4, 1, 5, 0]);
        // Of 9000 there are four, too few; of another k none; rows of 8 bytes are another kind.
        assert!(lent(&library, 9000, 4096, 512).is_empty());
        assert!(lent(&library, 4504, 8200, 512).is_empty());
        assert!(lent(&library, 4500, 4096, 512).is_empty());
    }
}
