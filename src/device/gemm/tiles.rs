//! Tile shapes and waves with everything worked out that does not depend on the GEMM.

use super::super::Tile;
use super::{K_FILL, wave};

/// A tile shape.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    /// Its rows and columns, and the inverse of each.
    pub m: f64,
    pub n: f64,
    pub per_m: f64,
    pub per_n: f64,
    /// Operations per element of k, and what one SM does of them per second.
    pub flops: f64,
    pub rate: f64,
    /// Place in the profile, where the first of equals wins.
    pub place: usize,
}

/// Waves on a number of SMs.
#[derive(Clone, Debug)]
pub(super) struct Waves {
    pub sms: f64,
    pub per_sms: f64,
    /// By tile shape: a whole wave's tiles side by side, as a square of elements has them, and the
    /// inverses of its columns and rows.
    pub squares: Vec<(f64, f64, f64)>,
}

/// The tile shape and split of k that take the least arithmetic.
#[derive(Copy, Clone, Debug)]
pub(super) struct Choice {
    /// Seconds of the arithmetic.
    pub compute: f64,
    /// Index into the tile shapes, and its place in the profile.
    pub tile: usize,
    pub place: usize,
    pub split: f64,
}

impl Waves {
    pub fn new(sms: u32, tiles: &[Prepared]) -> Self {
        let sms = f64::from(sms);
        let square = |prepared: &Prepared| {
            let square = (sms * prepared.m / prepared.n).sqrt();
            // A wave of less than a row or a column of tiles is left to the general way.
            let square = match (1.0..=sms).contains(&square) {
                true => square,
                false => f64::INFINITY,
            };
            (square, 1.0 / square, square / sms)
        };
        Self {
            sms,
            per_sms: 1.0 / sms,
            squares: tiles.iter().map(square).collect(),
        }
    }
}

/// Two tile shapes side by side; the second is the first again where there is one only.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    m: [f64; 2],
    n: [f64; 2],
    per_m: [f64; 2],
    per_n: [f64; 2],
    flops: [f64; 2],
    pub rate: [f64; 2],
}

impl Pair {
    pub fn new(two: &[Prepared]) -> Self {
        let both = |of: fn(&Prepared) -> f64| [of(&two[0]), of(&two[two.len() - 1])];
        Self {
            m: both(|tile| tile.m),
            n: both(|tile| tile.n),
            per_m: both(|tile| tile.per_m),
            per_n: both(|tile| tile.per_n),
            flops: both(|tile| tile.flops),
            rate: both(|tile| tile.rate),
        }
    }

    /// Tiles of C, and the seconds of one of depth k, by the operations of [`Prepared`].
    #[inline(always)]
    pub fn tiles(&self, m: f64, n: f64, k: f64) -> ([f64; 2], [f64; 2]) {
        let (mut tiles, mut one) = ([0.0; 2], [0.0; 2]);
        for lane in 0..2 {
            let rows = quotient(m, self.m[lane], self.per_m[lane]);
            tiles[lane] = rows * quotient(n, self.n[lane], self.per_n[lane]);
            one[lane] = self.flops[lane] * (k + K_FILL) / self.rate[lane];
        }
        (tiles, one)
    }
}

impl Choice {
    /// Takes the other where it is faster, or as fast and earlier in the profile.
    #[inline]
    pub fn or(&mut self, other: Self) {
        let equal = other.compute == self.compute && other.place < self.place;
        if other.compute < self.compute || equal {
            *self = other;
        }
    }
}

impl Prepared {
    /// On SMs that do `rate` operations per second each at best.
    pub fn new(rate: f64, place: usize, tile: &Tile) -> Self {
        let (m, n) = (f64::from(tile.m), f64::from(tile.n));
        Self {
            m,
            n,
            per_m: 1.0 / m,
            per_n: 1.0 / n,
            flops: 2.0 * m * n,
            rate: rate * tile.efficiency,
            place,
        }
    }

    /// Rows and columns of tiles of C, and all of them.
    #[inline]
    pub fn rows(&self, m: f64) -> f64 {
        quotient(m, self.m, self.per_m)
    }

    #[inline]
    pub fn columns(&self, n: f64) -> f64 {
        quotient(n, self.n, self.per_n)
    }

    #[inline]
    pub fn tiles(&self, m: f64, n: f64) -> f64 {
        self.rows(m) * self.columns(n)
    }

    /// Seconds of one tile of depth k.
    #[inline]
    pub fn one(&self, k: f64) -> f64 {
        self.flops * (k + K_FILL) / self.rate
    }

    /// Doubles the split of k where the SMs are not filled and pieces stay long enough.
    #[inline]
    pub fn splits(&self, tiles: f64, sms: f64, k: f64, split: &mut f64) -> bool {
        let double = *split * 2.0;
        let more =
            tiles * double <= sms && double <= wave::MAX_SPLIT && k >= double * wave::MIN_SPLIT_K;
        if more {
            *split = double;
        }
        more
    }
}

/// A piece of k.
#[inline]
pub(super) fn part(k: f64, split: f64) -> f64 {
    match split > 1.0 {
        true => quotient(k, split, 1.0 / split),
        false => k,
    }
}

/// ⌈x / by⌉ of whole numbers below 2^51; plain arithmetic, where `ceil` is a call on old x86.
#[inline]
pub(super) fn quotient(x: f64, by: f64, inverse: f64) -> f64 {
    // Beyond 2^52 doubles are whole numbers: adding this rounds to the nearest.
    const WHOLE: f64 = 1.5 * (1u64 << 52) as f64;
    let near = (x * inverse + WHOLE) - WHOLE;
    // The nearest is the floor or the ceiling, and a multiple is exact.
    near + if near * by < x { 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::quotient;

    #[test]
    fn quotients_round_up() {
        for by in [64u64, 84, 128, 132, 192, 256] {
            for x in (0u64..5000).chain((1 << 40)..(1 << 40) + 500) {
                let (real, inverse) = (by as f64, 1.0 / by as f64);
                let found = quotient(x as f64, real, inverse);
                assert_eq!(found, x.div_ceil(by) as f64, "{x}/{by}");
            }
        }
    }
}
