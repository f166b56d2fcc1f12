//! What is left out is never the greatest.

use super::*;
use proptest::prelude::*;

/// No quantity is negative, a wave takes no longer than all tiles.
fn shape() -> impl Strategy<Value = Quantities> {
    let some = || prop_oneof![Just(0.0), 0.0..1.0f64];
    [some(), some(), some(), some(), some()].prop_map(|[shard, overhead, tiles, wave, memory]| {
        [1.0, shard, overhead, tiles, tiles * wave, tiles + memory]
    })
}

fn line() -> impl Strategy<Value = Linear> {
    // Few values, so that lines are often below others.
    let some = || prop::sample::select(vec![0.0, 0.0, 0.25, 0.5, 1.0, 2.0]);
    let line = [some(), some(), some(), some(), some()];
    (line, any::<bool>()).prop_map(|([one, shard, overhead, tiles, wave], busy)| {
        Linear(match busy {
            true => [one, shard, 1.0, 0.0, 0.0, 1.0],
            false => [one, shard, overhead, tiles, wave, 0.0],
        })
    })
}

proptest! {
    #[test]
    fn what_is_left_out_is_never_the_greatest(
        lines in prop::collection::vec(line(), 0..12),
        shapes in prop::collection::vec(shape(), 20),
    ) {
        let envelope = Envelope::new(lines.iter().copied());
        for shape in shapes {
            let all = lines.iter().map(|line| line.at(&shape)).fold(0.0, f64::max);
            let found = envelope.at(&shape, f64::INFINITY);
            prop_assert!((found - all).abs() <= 1e-14 * all, "{found} {all}");
            prop_assert!(envelope.at(&shape, all * 0.9) >= all * 0.9);
        }
    }
}

#[test]
fn lines_below_another_or_a_mean_are_left_out() {
    let [a, b] = [Linear::SHARD * 2.0, Linear::TILES * 2.0];
    assert_eq!(greatest(vec![a, b, Linear::SHARD]), [a, b]);
    assert_eq!(greatest(vec![a, Linear::SHARD + Linear::TILES, b]), [a, b]);
    let above = Linear::SHARD + Linear::TILES * 1.1;
    assert_eq!(greatest(vec![a, above, b]).len(), 3);
    // A wave is part of the tiles.
    assert_eq!(greatest(vec![Linear::WAVE, Linear::TILES]), [Linear::TILES]);
    assert_eq!(greatest(vec![a, a]), [a]);
}
