//! Medians and percentiles.

/// The distribution of some values.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Summary {
    pub count: usize,
    pub p10: f64,
    pub median: f64,
    pub p90: f64,
}

impl Summary {
    /// Of at least one value; NaN counts as largest.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            count: sorted.len(),
            p10: quantile(&sorted, 0.1)?,
            median: quantile(&sorted, 0.5)?,
            p90: quantile(&sorted, 0.9)?,
        })
    }
}

/// The `q`-quantile of ascending values, linear between neighbours (R's type 7).
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = q.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    Some(match below == above {
        true => below,
        false => below + (above - below) * at.fract(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_type_seven() {
        // R: quantile(c(1, 2, 4, 8, 16), c(.1, .5, .9)) = 1.4 4.0 12.8
        let summary = Summary::of(&[16.0, 1.0, 4.0, 2.0, 8.0]).unwrap();
        assert_eq!(summary.count, 5);
        assert!((summary.p10 - 1.4).abs() < 1e-12);
        assert_eq!(summary.median, 4.0);
        assert!((summary.p90 - 12.8).abs() < 1e-12);
        assert_eq!(Summary::of(&[]), None);
        let one = Summary::of(&[3.0]).unwrap();
        assert_eq!((one.p10, one.median, one.p90), (3.0, 3.0, 3.0));
        let ends = [0.0, 0.25, 1.0].map(|q| quantile(&[1.0, 2.0, 4.0], q));
        assert_eq!(ends, [Some(1.0), Some(1.5), Some(4.0)]);
        let infinite = Summary::of(&[1.0, f64::INFINITY, f64::INFINITY]).unwrap();
        assert_eq!(infinite.p90, f64::INFINITY);
    }
}
