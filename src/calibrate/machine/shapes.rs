//! The GEMMs that are measured, and those whose algorithm the library is asked for.
//!
//! Columns (k, n) lie on a lattice of `EXTENTS`, every second of its points like the fields of one
//! colour of a chessboard, and on one of the geometric means between them likewise, so that a shape
//! has measured ones on all sides; further columns are shards of transformer layers and odd sizes.
//! Rows m are powers of two from 16 on, three times them, and in each column other ones between: the
//! library takes another tile at nearly every one of them.

use std::collections::BTreeSet;

use crate::operator::models::{self, Layer};

/// Values of k and n.
const EXTENTS: [u64; 14] = [
    256, 512, 1024, 2048, 3072, 4096, 5120, 6144, 8192, 10240, 12288, 16384, 20480, 28672,
];
/// Further (k, n): near-misses of the lattice, and odd ones.
const FURTHER: [(u64, u64); 27] = [
    (8192, 3584),
    (3584, 8192),
    (4096, 14336),
    (14336, 4096),
    (5504, 4096),
    (4096, 6912),
    (11008, 5120),
    (4999, 3001),
    (2000, 7000),
    (7168, 3000),
    (4096, 3001),
    (4999, 4096),
    (4100, 5132),
    (8198, 3070),
    (2051, 6149),
    (8192, 2049),
    (1025, 12_290),
    (12_290, 5122),
    (2050, 7170),
    (3076, 9220),
    (9220, 2052),
    (2566, 5134),
    (3499, 4486),
    (5164, 2582),
    (7708, 3844),
    (5001, 3003),
    (12_292, 3076),
];
/// (k, n) of a quick calibration.
const QUICK: [(u64, u64); 3] = [(8192, 8192), (8192, 3584), (4096, 4096)];
/// Rows that no tile divides.
const ODD: [u64; 8] = [100, 199, 333, 500, 777, 1000, 1999, 5000];
/// Elements of a matrix at most, and operations of a GEMM: what takes a few milliseconds.
const MOST: u64 = 1 << 29;
const MOST_FLOPS: f64 = 2.2e12;
/// Columns with an extent below are narrow.
const NARROW: u64 = 1024;
/// The library takes another tile at nearly every number of rows up to this.
const TILES: u64 = 4096;
/// Rows between powers of two that each column has one of, in sixteens.
const BETWEEN: [(u64, u64); 6] = [(5, 15), (12, 24), (16, 32), (24, 48), (32, 64), (64, 160)];
/// Largest m.
const ROWS: u64 = 32_768;

/// Shapes [m, n, k] to be measured, by column.
pub fn measured(quick: bool) -> Vec<[u64; 3]> {
    let mut columns = chessboard(&EXTENTS);
    columns.extend(chessboard(&between(&EXTENTS)));
    columns.extend(FURTHER);
    if quick {
        columns = QUICK.to_vec();
    }
    let mut all = Vec::new();
    for (i, &(k, n)) in columns.iter().enumerate() {
        for m in rows(i, k.min(n) < NARROW, quick) {
            if fits([m, n, k]) {
                all.push([m, n, k]);
            }
        }
    }
    all
}

/// Whether a GEMM takes no more memory and time than those that are measured.
pub(super) fn fits([m, n, k]: [u64; 3]) -> bool {
    let small = [m * k, k * n, m * n].iter().all(|size| *size <= MOST);
    small && 2.0 * (m * n) as f64 * k as f64 <= MOST_FLOPS
}

/// Every second point of a lattice with these values of k and n.
fn chessboard(extents: &[u64]) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    for (i, &k) in extents.iter().enumerate() {
        let row = extents.iter().enumerate();
        all.extend(row.filter(|(j, _)| (i + j) % 2 == 0).map(|(_, &n)| (k, n)));
    }
    all
}

/// Geometric means of neighbours, to multiples of 64.
fn between(extents: &[u64]) -> Vec<u64> {
    let mean = |pair: &[u64]| (pair[0] * pair[1]).isqrt() / 64 * 64;
    extents.windows(2).map(mean).collect()
}

/// Rows m of column `i`: powers of two, three times them, every second of five times them, an odd one, and
/// some multiples of 16 between: tiles of few rows whose number is odd are slow, and none of the others has
/// five or seven of them. Narrow columns, which no layer's shard has, have fewer.
fn rows(i: usize, narrow: bool, quick: bool) -> Vec<u64> {
    let doubled = |from: u64, most: u64| {
        (0..)
            .map(move |e| from << e)
            .take_while(move |m| *m <= most)
    };
    if quick {
        return doubled(128, ROWS).step_by(2).collect();
    }
    // One that no tile divides.
    let odd = ODD[i % ODD.len()];
    let mut all: BTreeSet<u64> = [odd].into();
    if narrow {
        all.extend(doubled(64, ROWS));
        all.extend(doubled([96, 80][i % 2], TILES).step_by(2));
    } else {
        all.extend(doubled(16, ROWS).chain(doubled(48, TILES)));
        all.extend(doubled([80, 160][i % 2], TILES).step_by(2));
        let mut random = fastrand::Rng::with_seed(i as u64);
        all.extend(BETWEEN.map(|few| 16 * random.u64(few.0..few.1)));
    }
    all.into_iter().collect()
}

/// (k, n) whose algorithms are asked for, the most wanted first: of the layers of known models in 1, 2, 4
/// and 8 shards both ways, of the lattice, of one twice as fine both ways, and of one twice as fine again.
pub fn asked() -> Vec<(u64, u64)> {
    let mut layers: BTreeSet<(u64, u64)> = BTreeSet::new();
    for model in models::MODELS {
        for layer in Layer::ALL {
            // One token: only n and k matter.
            let Ok(gemm) = model.gemm(layer, 1, 1) else {
                continue;
            };
            for shards in [1, 2, 4, 8] {
                layers.insert((gemm.k, gemm.n / shards));
                layers.insert((gemm.k / shards, gemm.n));
            }
        }
    }
    let mut all: Vec<(u64, u64)> = layers.into_iter().collect();
    let mut extents = EXTENTS.to_vec();
    for _ in 0..3 {
        let lattice = extents.iter();
        all.extend(lattice.flat_map(|&k| extents.iter().map(move |&n| (k, n))));
        extents.extend(between(&extents));
        extents.sort_unstable();
        extents.dedup();
    }
    let mut met = BTreeSet::new();
    all.retain(|&(k, n)| k > 0 && n > 0 && k * n <= MOST && met.insert((k, n)));
    all
}

/// Rows m that algorithms are asked for: multiples of 16 up to 2048, then of a 32nd of the next power of
/// two.
pub fn asked_rows() -> Vec<u64> {
    let below = (1..=128).map(|i| 16 * i);
    let above = [4096, 8192, 16_384, 32_768].into_iter();
    below
        .chain(above.flat_map(|power| (17..=32).map(move |i| power / 32 * i)))
        .collect()
}

/// What the samples of earlier calibrations were asked for, which do not say it: multiples of 64 up to
/// 1024, of an eighth of the next power of two beyond, and `more`.
pub fn asked_once(more: &[u64]) -> Vec<u64> {
    let mut all: BTreeSet<u64> = more.iter().copied().collect();
    all.extend([16, 32, 48, 96]);
    all.extend((1..=16).map(|i| 64 * i));
    for power in [2048, 4096, 8192, 16_384, 32_768] {
        all.extend((5..=8).map(|i| power / 8 * i));
    }
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_covers_what_is_used() {
        let all = measured(false);
        assert!((4500..5500).contains(&all.len()), "{}", all.len());
        let mut once = all.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), all.len());
        // A layer's shape has a measured one within a factor of 1.5 in n and k, of 2 below 1024.
        for (k, n) in asked() {
            if k.min(n) < 256 || k.max(n) > 28_672 {
                continue;
            }
            for m in [128, 1024, 4096_u64] {
                if 2.0 * (m * n) as f64 * k as f64 > MOST_FLOPS {
                    continue;
                }
                let near = |a: u64, b: u64| {
                    let most: f64 = if b < 1024 { 2.01 } else { 1.51 };
                    (a as f64 / b as f64).ln().abs() <= most.ln()
                };
                let found = all
                    .iter()
                    .any(|s| s[0] == m && near(s[1], n) && near(s[2], k));
                assert!(found, "{m} {n} {k}");
            }
        }
        assert!(measured(true).len() < 20);
        assert!(
            all.iter()
                .any(|[m, n, k]| m % 2 == 1 && n % 2 == 1 && k % 2 == 1)
        );
    }

    #[test]
    fn layers_and_their_shards_are_asked_for() {
        let all = asked();
        // Llama 3 70B, two shards: the second feed-forward GEMM and the projections.
        for column in [(14_336, 8192), (8192, 5120), (2496, 2048)] {
            assert!(all.contains(&column), "{column:?}");
        }
        assert!((2000..4000).contains(&all.len()), "{}", all.len());
        assert!(asked_once(&[1000]).windows(2).all(|w| w[0] < w[1]));
        let rows = asked_rows();
        assert!(rows.windows(2).all(|w| w[0] < w[1]) && rows.iter().all(|m| m % 16 == 0));
        assert_eq!((rows.len(), rows[191]), (192, ROWS));
    }
}
