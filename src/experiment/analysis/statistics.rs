//! Means and percentiles, each defined once.

pub use crate::calibrate::metrics::{largest, mean};

use crate::gpu::timing::quantile;

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
    quantile(&sorted, p)
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
