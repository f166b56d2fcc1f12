//! One tile shape's waves and memory traffic.
//!
//! A wave of W tiles is a rectangle of R × C tiles, R·tm ≈ C·tn (a grouped raster), so that its
//! tiles share R rows of A and C columns of B in the level-2 cache (L2). Groups of R tile rows
//! sweep over B one after another; half of L2 keeps what fits:
//!
//! ```text
//! W = min(P, tiles),  R = √(W·tn/tm),  C = W/R         (within the tiles there are)
//! B is read once, and again by each further group:  k·n·(1 + (rows/R − 1)·(1 − hit_B))
//! A is read once, and again by each further wave:   m·k·(1 + (columns/C − 1)·(1 − hit_A))
//! hit_B = min(1, L2/2 / bytes of B),  hit_A = min(1, L2/2 / bytes of a group's rows of A)
//! C is written once; with k split in s > 1, s partial sums of 4 bytes are written and read.
//! ```

use crate::device::{Device, Tile};

/// What filling and draining a tile's pipeline costs, as so many elements of k. Fitted together
/// with the tile efficiencies to 40 GEMMs measured on an H200.
pub const K_FILL: f64 = 180.0;

/// Largest split of k, and the shortest piece worth it, as in GEMM libraries' heuristics.
pub(super) const MAX_SPLIT: f64 = 16.0;
pub(super) const MIN_SPLIT_K: f64 = 256.0;

/// Share of L2 that keeps operands; the rest holds what streams through. Assumed.
const L2_SHARE: f64 = 0.5;

/// Bytes of a partial sum (fp32).
const PARTIAL: f64 = 4.0;

/// A GEMM's shape [elements] and element size [bytes], all at least 1.
pub(super) struct Shape {
    pub m: f64,
    pub n: f64,
    pub k: f64,
    pub size: f64,
}

/// One way a library can run it; without the fixed overhead.
#[derive(Copy, Clone, Debug)]
pub(super) struct Choice {
    pub seconds: f64,
    pub unquantised: f64,
    pub waves: f64,
    pub tiles: f64,
    pub bytes: f64,
}

/// The choices that one tile shape gives: unsplit, and k split while the SMs are not filled.
/// `rate` is the GPU's sustained rate [FLOP/s] on all its SMs.
pub(super) fn choices<'a>(
    device: &'a Device,
    shape: &'a Shape,
    tile: &'a Tile,
    rate: f64,
    sms: f64,
) -> impl Iterator<Item = Choice> + 'a {
    let (tm, tn) = (f64::from(tile.m), f64::from(tile.n));
    let rows = (shape.m / tm).ceil();
    let columns = (shape.n / tn).ceil();
    let tile_rate = rate / f64::from(device.sms.max(1)) * tile.efficiency;
    let tile_time = move |k: f64| 2.0 * tm * tn * (k + K_FILL) / tile_rate;
    let mut next = Some(1.0);
    std::iter::from_fn(move || {
        let split: f64 = next?;
        let tiles = rows * columns * split;
        let wave = sms.min(tiles);
        let square = (wave * tm / tn).sqrt();
        let bytes = traffic(device, shape, tm, (rows, columns), split, (wave, square));
        let memory = bytes / device.hbm.get();
        let part = (shape.k / split).ceil();
        let waves = (tiles / sms).ceil();
        let compute = waves * tile_time(part);
        let fraction = shape.m * shape.n / (tm * tn);
        let smooth = fraction / sms * tile_time(shape.k);
        let double = split * 2.0;
        next = (rows * columns * double <= sms
            && double <= MAX_SPLIT
            && shape.k / double >= MIN_SPLIT_K)
            .then_some(double);
        Some(Choice {
            seconds: compute.max(memory),
            unquantised: smooth.max(memory),
            waves,
            tiles,
            bytes,
        })
    })
}

/// Bytes read and written; `wave` is W and √(W·tm/tn), the columns of a square wave.
#[inline]
pub(super) fn traffic(
    device: &Device,
    shape: &Shape,
    tm: f64,
    (rows, columns): (f64, f64),
    split: f64,
    (wave, square): (f64, f64),
) -> f64 {
    // At most all rows and at least one of them.
    let across = if square * rows < wave {
        wave / rows
    } else {
        square.min(wave)
    };
    let per_across = 1.0 / across.clamp(1.0, columns);
    let per_down = 1.0 / (wave * per_across).clamp(1.0, rows);
    let again = (rows * per_down, columns * per_across);
    let partials = if split > 1.0 {
        partials(shape, split)
    } else {
        0.0
    };
    read_again(device, shape, (shape.m / tm, per_down), again) + partials
}

/// Bytes of partial sums written and read.
#[inline]
pub(super) fn partials(shape: &Shape, split: f64) -> f64 {
    2.0 * PARTIAL * shape.m * shape.n * split
}

/// Bytes read and written but for partial sums: `groups` of rows sweep over B in `waves` each, of
/// `rows` of tiles a group having the part `per_down`.
#[inline]
pub(super) fn read_again(
    device: &Device,
    shape: &Shape,
    (rows, per_down): (f64, f64),
    (groups, waves): (f64, f64),
) -> f64 {
    let Shape { m, n, k, size } = *shape;
    let cache = L2_SHARE * device.l2.as_f64();
    // What does not stay in L2 is read again: x · (1 − hit).
    let again_b = (k * n * size - cache).max(0.0);
    let again_a = (m * k * size - cache * rows * per_down).max(0.0);
    let b = k * n * size + (groups - 1.0) * again_b;
    let a = m * k * size + (waves - 1.0) * again_a;
    a + b + m * n * size
}
