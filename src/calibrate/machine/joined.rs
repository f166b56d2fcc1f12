//! GEMMs of several machines of a kind as those of the first.
//!
//! Machines differ by some percent, one as a whole from another. So the others' times of shapes that the
//! first has not measured are taken times what shapes say that both have: the median of first / other over
//! those that take a third to three times as long.

use std::collections::{BTreeMap, BTreeSet};

use super::book::Product;
use super::estimate::median;

/// Shapes count that take at most so many times as long, or so many times less.
const ALIKE: f64 = 3.0;

const fn shape(p: &Product) -> [u64; 3] {
    [p.m, p.n, p.k]
}

/// Of shapes that both machines have: the other's time and first / other.
pub(super) fn both(first: &[Product], other: &[Product]) -> Vec<(f64, f64)> {
    let times = first.iter().map(|p| (shape(p), p.time.value));
    let known: BTreeMap<[u64; 3], f64> = times.collect();
    let ratio = |p: &Product| Some((p.time.value, known.get(&shape(p))? / p.time.value));
    other.iter().filter_map(ratio).collect()
}

/// The first machine's products, and those that only `other` has, as the first would have them by what [`both`] have.
pub(super) fn joined(
    both: &[(f64, f64)],
    mut first: Vec<Product>,
    other: Vec<Product>,
) -> Vec<Product> {
    let own: BTreeSet<[u64; 3]> = first.iter().map(shape).collect();
    for mut product in other {
        if own.contains(&shape(&product)) {
            continue;
        }
        let time = product.time.value;
        let alike = both
            .iter()
            .filter(|(t, _)| (t / time).ln().abs() <= ALIKE.ln());
        let ratios: Vec<f64> = alike.map(|(_, ratio)| *ratio).collect();
        if let Some(ratio) = median(&ratios) {
            product.time = product.time.map(|t| t * ratio);
            product.alone = product.alone.map(|t| t * ratio);
        }
        first.push(product);
    }
    first.sort_by_key(|p| (p.k, p.n, p.m));
    first
}

#[cfg(test)]
mod tests {
    use super::super::estimate::Estimate;
    use super::*;

    fn product(m: u64, time: f64) -> Product {
        let time = Estimate::exact(time, 3);
        Product::new([m, 64, 64], time, Some(time), 0.0, None)
    }

    /// Short shapes take as long on both machines, long ones a tenth longer on the first.
    #[test]
    fn only_shapes_of_the_other_are_taken_at_the_level_of_the_first() {
        let first = vec![product(16, 5e-6), product(1024, 110e-6)];
        let other = vec![
            product(16, 5e-6),
            product(1024, 100e-6),
            product(32, 6e-6),
            product(2048, 200e-6),
            product(99_999, 1.0),
        ];
        let all = joined(&both(&first, &other), first.clone(), other);
        let times: Vec<(u64, f64)> = all.iter().map(|p| (p.m, p.time.value)).collect();
        let wanted = [
            (16, 5e-6),
            (32, 6e-6),
            (1024, 110e-6),
            (2048, 220e-6),
            (99_999, 1.0),
        ];
        for ((m, time), (row, value)) in times.iter().zip(wanted) {
            assert!(
                *m == row && (time / value - 1.0).abs() < 1e-12,
                "{m} {time}"
            );
        }
        assert_eq!(joined(&[], first.clone(), Vec::new()), first);
    }
}
