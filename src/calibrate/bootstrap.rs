//! Percentile bootstrap (Efron 1979): how much a statistic moves when the cases are drawn again.
//!
//! With n cases, each resample draws n of them with replacement and computes the statistic of what
//! it drew; the interval lies between the (1 ± confidence)/2 quantiles of those. Resample r has its
//! own generator, seeded by (seed, r), so the result does not depend on the number of threads.

use rayon::prelude::*;

use crate::gpu::timing::quantile;

/// How to resample.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Bootstrap {
    pub seed: u64,
    /// How often; 0 gives no interval.
    pub resamples: u32,
    /// Share of resamples inside the interval, between 0 and 1.
    pub confidence: f64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self {
            seed: 1,
            resamples: 1000,
            confidence: 0.95,
        }
    }
}

impl Bootstrap {
    /// The statistic of every resample, which is given as indices below `cases`. Those where there
    /// is none (`None`) are left out.
    pub fn draw<T: Send>(
        &self,
        cases: usize,
        statistic: impl Fn(&[usize]) -> Option<T> + Sync,
    ) -> Vec<T> {
        if cases == 0 {
            return Vec::new();
        }
        let resample = |r: u32| {
            let mut rng = fastrand::Rng::with_seed(mix(self.seed ^ mix(u64::from(r))));
            let picks: Vec<usize> = (0..cases).map(|_| rng.usize(..cases)).collect();
            statistic(&picks)
        };
        (0..self.resamples)
            .into_par_iter()
            .filter_map(resample)
            .collect()
    }

    /// The interval of a statistic's resampled values; `None` where fewer than half the resamples
    /// had one.
    pub fn interval(&self, mut values: Vec<f64>) -> Option<[f64; 2]> {
        values.retain(|value| value.is_finite());
        if values.is_empty() || values.len() * 2 < self.resamples as usize {
            return None;
        }
        values.sort_by(f64::total_cmp);
        let outside = (1.0 - self.confidence) / 2.0;
        let [low, high] = [outside, 1.0 - outside].map(|share| quantile(&values, share));
        Some([low?, high?])
    }
}

/// The mixer of SplitMix64 (Steele, Lea and Flood 2014): neighbouring numbers become unrelated ones.
pub(super) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_for_any_number_of_threads() {
        let draw = || Bootstrap::default().draw(20, |picks| Some(picks.iter().sum::<usize>()));
        let pool = |n| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(n)
                .build()
                .unwrap()
        };
        let one = pool(1).install(draw);
        assert_eq!(one.len(), 1000);
        assert_eq!(pool(3).install(draw), one);
    }

    /// The mean of n values with standard deviation s has standard error s/√n, so that 95 % of
    /// resampled means lie within 1.96 of those.
    #[test]
    fn the_mean_of_many_values_has_the_interval_of_the_normal_law() {
        let values: Vec<f64> = (0..400).map(|i| f64::from(i % 20)).collect();
        let (mean, s) = (9.5, (399.0_f64 / 12.0).sqrt());
        let means = Bootstrap {
            resamples: 4000,
            ..Bootstrap::default()
        }
        .draw(400, |picks| {
            Some(picks.iter().map(|at| values[*at]).sum::<f64>() / 400.0)
        });
        let [low, high] = Bootstrap {
            resamples: 4000,
            ..Bootstrap::default()
        }
        .interval(means)
        .unwrap();
        let half = 1.96 * s / 20.0;
        assert!(
            (low - (mean - half)).abs() < 0.1 * half && (high - (mean + half)).abs() < 0.1 * half,
            "{low} {high}"
        );
    }

    #[test]
    fn no_interval_without_enough_resamples() {
        let bootstrap = Bootstrap {
            resamples: 10,
            ..Bootstrap::default()
        };
        assert_eq!(bootstrap.interval(vec![1.0; 4]), None);
        assert_eq!(bootstrap.interval(vec![1.0; 5]), Some([1.0, 1.0]));
        assert_eq!(
            Bootstrap {
                resamples: 0,
                ..bootstrap
            }
            .interval(vec![]),
            None
        );
        assert!(bootstrap.draw(0, |_| Some(0)).is_empty());
    }
}
