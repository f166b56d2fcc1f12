//! Where the boxes of a drawing stand: GPUs at the bottom, what joins them above, hosts on top.
//!
//! A switch or root stands as many rows above the GPUs as it is links away from the nearest one,
//! a host one row above what it hangs on. Within a row, boxes stand as near as possible (least
//! squares) to the middle of what they join below, in that order, without touching.

use crate::topology::sketch::{Bundle, Role, Sketch};

/// Space between boxes of a row, and between rows [px].
const GAP: f64 = 22.0;
const ROW: f64 = 92.0;
/// Space for a line that meets a box [px].
const PORT: f64 = 9.0;
/// Height of a box \[px\].
pub const HEIGHT: f64 = 40.0;
/// Width of a character \[px\], generous, because fonts differ.
pub const CHARACTER: f64 = 7.6;

/// A box by its centre.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Spot {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    /// Row from the bottom.
    pub row: usize,
}

/// By part, its box; the leftmost edge is at x = 0, the top row's upper edge at y = 0.
pub fn place(sketch: &Sketch) -> Vec<Spot> {
    let rows = rows(sketch);
    let top = rows.iter().copied().max().unwrap_or(0);
    let lines = |part: usize| {
        let ends = |bundle: &&Bundle| (bundle.from == part) != (bundle.to == part);
        sketch.bundles.iter().filter(ends).count() as f64
    };
    let mut spots: Vec<Spot> = (sketch.parts.iter().zip(&rows).enumerate())
        .map(|(at, (part, &row))| Spot {
            x: 0.0,
            y: (top - row) as f64 * ROW + HEIGHT / 2.0,
            width: (part.name.chars().count() as f64 * CHARACTER + 18.0)
                .max(lines(at) * PORT)
                .max(64.0),
            row,
        })
        .collect();
    for row in 0..=top {
        let mut members: Vec<usize> = (0..spots.len()).filter(|i| spots[*i].row == row).collect();
        let wish = |part: usize| -> Option<f64> {
            let below: Vec<f64> = (sketch.bundles.iter())
                .filter_map(|bundle| match (bundle.from == part, bundle.to == part) {
                    (true, false) => Some(bundle.to),
                    (false, true) => Some(bundle.from),
                    _ => None,
                })
                .filter(|other| spots[*other].row < row)
                .map(|other| spots[other].x)
                .collect();
            (!below.is_empty()).then(|| below.iter().sum::<f64>() / below.len() as f64)
        };
        let wishes: Vec<Option<f64>> = members.iter().map(|part| wish(*part)).collect();
        let mut wished: Vec<(f64, usize)> = Vec::new();
        let mut at = 0.0;
        for (part, wish) in members.iter().zip(wishes) {
            // Without anything below: after the one before, in file order.
            let x = wish.unwrap_or(at);
            at = x + spots[*part].width + GAP;
            wished.push((x, *part));
        }
        wished.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        members = wished.iter().map(|(_, part)| *part).collect();
        let widths: Vec<f64> = members.iter().map(|part| spots[*part].width).collect();
        let wishes: Vec<f64> = wished.iter().map(|(x, _)| *x).collect();
        for (part, x) in members.into_iter().zip(spread(&wishes, &widths)) {
            spots[part].x = x;
        }
    }
    let left = (spots.iter().map(|spot| spot.x - spot.width / 2.0)).fold(f64::INFINITY, f64::min);
    for spot in &mut spots {
        spot.x -= left;
    }
    spots
}

/// Centres nearest to the ascending `wishes` at which boxes of `widths` keep their distance:
/// isotonic regression by pooling neighbours that would overlap.
fn spread(wishes: &[f64], widths: &[f64]) -> Vec<f64> {
    let mut offsets = vec![0.0; wishes.len()];
    for i in 1..wishes.len() {
        offsets[i] = offsets[i - 1] + (widths[i - 1] + widths[i]) / 2.0 + GAP;
    }
    // Pools of (sum of wish − offset, boxes), their means ascending.
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (wish, offset) in wishes.iter().zip(&offsets) {
        pools.push((wish - offset, 1));
        while let [.., (a, n), (b, m)] = pools[..] {
            if a / (n as f64) < b / (m as f64) {
                break;
            }
            pools.pop();
            pools.pop();
            pools.push((a + b, n + m));
        }
    }
    let means = pools
        .iter()
        .flat_map(|&(sum, n)| std::iter::repeat_n(sum / n as f64, n));
    means
        .zip(offsets)
        .map(|(mean, offset)| mean + offset)
        .collect()
}

/// By part, its row from the bottom; no row is empty.
fn rows(sketch: &Sketch) -> Vec<usize> {
    let neighbours = |part: usize| {
        (sketch.bundles.iter()).filter_map(move |bundle| match part {
            _ if bundle.from == part => Some(bundle.to),
            _ if bundle.to == part => Some(bundle.from),
            _ => None,
        })
    };
    let forwards = |part: usize| matches!(sketch.parts[part].role, Role::Switch | Role::Root);
    let gpu = |part: usize| sketch.parts[part].role == Role::Gpu;
    let count = sketch.parts.len();
    let mut rows = vec![usize::MAX; count];
    let mut wave: Vec<usize> = (0..count).filter(|part| gpu(*part)).collect();
    let mut distance = 0;
    while !wave.is_empty() {
        for part in &wave {
            rows[*part] = distance;
        }
        distance += 1;
        let mut next: Vec<usize> = (wave.iter().flat_map(|part| neighbours(*part)))
            .filter(|part| forwards(*part) && rows[*part] == usize::MAX)
            .collect();
        next.sort_unstable();
        next.dedup();
        wave = next;
    }
    for part in 0..count {
        if sketch.parts[part].role == Role::Host {
            let below = neighbours(part).filter(|other| forwards(*other));
            let below = below
                .map(|other| rows[other])
                .filter(|row| *row != usize::MAX);
            rows[part] = below.max().unwrap_or(0) + 1;
        }
    }
    // Whatever no GPU reaches stands above the GPUs; then empty rows are closed up.
    for row in &mut rows {
        *row = if *row == usize::MAX { 1 } else { *row };
    }
    let mut used = rows.clone();
    used.sort_unstable();
    used.dedup();
    let close = |row: &usize| used.partition_point(|used| used < row);
    rows.iter().map(close).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_of_every_machine_keep_apart() {
        for name in crate::topology::names() {
            let sketch = Sketch::new(&crate::topology::load(name, &[]).unwrap());
            let spots = place(&sketch);
            for (i, a) in spots.iter().enumerate() {
                assert!(a.x - a.width / 2.0 >= -1e-9, "{name}");
                for b in &spots[i + 1..] {
                    let apart = (a.x - b.x).abs() - (a.width + b.width) / 2.0;
                    assert!(a.row != b.row || apart >= GAP - 1e-6, "{name}: {a:?} {b:?}");
                }
            }
            let gpus_below = (sketch.parts.iter().zip(&spots))
                .all(|(part, spot)| (part.role == Role::Gpu) == (spot.row == 0));
            assert!(gpus_below, "{name}");
        }
    }

    #[test]
    fn spreading_moves_no_further_than_needed() {
        assert_eq!(spread(&[0.0, 200.0], &[50.0, 50.0]), [0.0, 200.0]);
        assert_eq!(spread(&[100.0, 100.0], &[50.0, 50.0]), [64.0, 136.0]);
    }
}
