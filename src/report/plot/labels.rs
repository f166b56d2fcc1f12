//! Moves labels apart.

/// Places for labels of one height along a line, each as near to where it wants to be as its
/// neighbours allow, in the order of their wishes: least squares under `place[i + 1] − place[i] ≥
/// height` (neighbours that would touch are pooled at their mean). `None` where `lo..hi` is too
/// short for all of them.
///
/// Places and wishes are the labels' centres.
pub(super) fn spread(wishes: &[f64], height: f64, lo: f64, hi: f64) -> Option<Vec<f64>> {
    let count = wishes.len();
    if count as f64 * height > hi - lo + 1e-6 {
        return None;
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| wishes[*a].total_cmp(&wishes[*b]));
    // A pool: sum of (wish − height × rank inside the pool), members; its first centre is the mean.
    let mut pools: Vec<(f64, usize)> = Vec::new();
    let first = |(sum, members): (f64, usize), before: usize, after: usize| {
        let least = lo + height * (0.5 + before as f64);
        let most = hi - height * (0.5 + after as f64 + (members - 1) as f64);
        (sum / members as f64).max(least).min(most)
    };
    for (rank, &label) in order.iter().enumerate() {
        pools.push((wishes[label], 1));
        while let [.., above, below] = pools.as_slice() {
            let before = rank + 1 - above.1 - below.1;
            let after = count - rank - 1;
            let end = first(*above, before, after + below.1) + height * above.1 as f64;
            if end <= first(*below, before + above.1, after) + 1e-9 {
                break;
            }
            let joined = (
                above.0 + below.0 - height * (above.1 * below.1) as f64,
                above.1 + below.1,
            );
            pools.truncate(pools.len() - 2);
            pools.push(joined);
        }
    }
    let mut places = vec![0.0; count];
    let mut done = 0;
    for pool in pools {
        let start = first(pool, done, count - done - pool.1);
        for i in 0..pool.1 {
            places[order[done + i]] = start + height * i as f64;
        }
        done += pool.1;
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::spread;
    use proptest::prelude::*;

    #[test]
    fn those_with_room_stay_and_neighbours_share_the_move() {
        // Wishes 50 and 52 of height 10 part evenly about 51.
        let places = spread(&[10.0, 52.0, 50.0], 10.0, 0.0, 100.0).unwrap();
        assert_eq!(places, [10.0, 56.0, 46.0]);
        assert_eq!(spread(&[0.0, 0.0], 10.0, 0.0, 100.0).unwrap(), [5.0, 15.0]);
        assert_eq!(spread(&[0.0; 3], 10.0, 0.0, 29.0), None);
    }

    proptest! {
        #[test]
        fn labels_never_touch_nor_leave(wishes in prop::collection::vec(-50.0..250.0f64, 0..20)) {
            let places = spread(&wishes, 10.0, 0.0, 200.0).unwrap();
            let mut sorted = places.clone();
            sorted.sort_by(f64::total_cmp);
            prop_assert!(sorted.windows(2).all(|w| w[1] - w[0] >= 10.0 - 1e-6));
            prop_assert!(places.iter().all(|p| (5.0 - 1e-6..=195.0 + 1e-6).contains(p)));
        }
    }
}
