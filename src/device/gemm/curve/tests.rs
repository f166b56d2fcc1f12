//! The short way against the model in full.

use super::super::gemm;
use super::*;
use crate::device;
use proptest::prelude::*;

proptest! {
    #[test]
    fn the_short_way_leads_to_the_same_time(
        gpu in prop::sample::select(vec!["rtx-a6000", "h200", "h200-datasheet", "mi300x", "ideal"]),
        m in 1u64..40_000, n in 1u64..40_000, k in 1u64..40_000,
        whole in any::<bool>(), on_table in any::<bool>(), power in 0u32..8,
    ) {
        let device = device::load(gpu).unwrap();
        let round = |x: u64| if whole { x.next_multiple_of(64) } else { x };
        let [m, mut n, mut k] = [m, n, k].map(round);
        if on_table {
            (n, k) = (6144, 12288);
        }
        let curve = Curve::new(&device, DType::Bf16).unwrap();
        let column = curve.at(n, k);
        // The arithmetic of a whole is no more than that of its pieces.
        let pieces = 1u64 << power;
        let (of_all, arithmetic) = column.time_and_arithmetic(m * pieces);
        prop_assert_eq!(of_all, column.time(m * pieces));
        if let Some([factor, ratio]) = column.correction(m) {
            prop_assert!(ratio >= 1.0 - 1e-12, "{ratio}");
            for piece in column.time_with_and_beside(m) {
                let all = (piece.seconds - piece.overhead) * pieces as f64;
                let least = arithmetic * factor;
                prop_assert!(all >= least * (1.0 - 1e-12), "{all} {least}");
            }
        }
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs().max(b.abs());
        let (least, (weights, moved)) = (column.least(m), column.least_memory(m));
        let left = device.sms.saturating_sub(device.library.sms).max(1);
        let both = column.time_with_and_beside(m);
        prop_assert_eq!(both[0], column.time(m));
        for (fast, sms) in both.into_iter().zip([device.sms, left]) {
            let slow = gemm(&device, DType::Bf16, m, n, k, sms).unwrap();
            prop_assert!(near(fast.seconds, slow.seconds), "{fast:?} {slow:?}");
            prop_assert!(slow.seconds >= least.max(weights + moved) * (1.0 - 1e-12));
            prop_assert!(near(fast.overhead, slow.overhead));
            prop_assert!(near(fast.hbm_bytes, slow.hbm_bytes), "{fast:?} {slow:?}");
            prop_assert!(near(fast.wave, slow.wave) || fast.seconds == 0.0, "{fast:?} {slow:?}");
            prop_assert!(fast.tiles == slow.tiles || fast.seconds == 0.0);
        }
    }
}
