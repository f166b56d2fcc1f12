//! Means, percentiles and rank correlation, each defined once.

/// Arithmetic mean; `None` without values.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_usize);
    for value in values {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / count as f64)
}

/// Geometric mean of positive values; `None` without values.
pub fn geomean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    mean(values.into_iter().map(f64::ln)).map(f64::exp)
}

/// The value below which a share `p` of the values lies, linear between neighbours; `None` without
/// values.
///
/// ```
/// use duet::experiment::analysis::statistics::percentile;
/// assert_eq!(percentile(&[4.0, 1.0, 3.0, 2.0], 0.5), Some(2.5));
/// assert_eq!(percentile(&[], 0.5), None);
/// ```
pub fn percentile(values: &[f64], p: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = p.clamp(0.0, 1.0) * (sorted.len().checked_sub(1)? as f64);
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    Some(low + (high - low) * at.fract())
}

/// The largest value and its place; the first of equals.
pub fn largest(values: impl IntoIterator<Item = f64>) -> Option<(usize, f64)> {
    let values = values.into_iter().enumerate();
    values.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_of_few_values() {
        assert_eq!(mean([1.0, 2.0, 6.0]), Some(3.0));
        assert!((geomean([1.0, 4.0]).unwrap() - 2.0).abs() < 1e-15);
        assert_eq!((mean([]), geomean([]), largest([])), (None, None, None));
        assert_eq!(largest([1.0, 3.0, 3.0]), Some((1, 3.0)));
        assert_eq!(percentile(&[1.0, 2.0], 1.0), Some(2.0));
    }
}
