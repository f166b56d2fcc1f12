use super::*;
use proptest::prelude::*;

const MIB: f64 = 1048576.0;

/// `cases` operators with messages of 8, 9, 10, … MiB, each with d = 2, 4, 8; the time of a case
/// errs by `noise(case)` of its overhead.
fn samples(cases: usize, alpha: f64, beta: f64, noise: impl Fn(usize) -> f64) -> Vec<Sample> {
    let one = |case: usize, d: f64| {
        let message = (case + 8) as f64 * MIB;
        let (base, steps) = (message * 1e-9, d - 1.0);
        let overhead = steps * (alpha + beta * message) * (1.0 + noise(case));
        Sample {
            case,
            seconds: base + overhead,
            base,
            steps,
            message,
            weight: 1.0,
        }
    };
    (0..cases)
        .flat_map(|case| [2.0, 4.0, 8.0].map(|d| one(case, d)))
        .collect()
}

fn quick() -> Bootstrap {
    Bootstrap {
        resamples: 100,
        ..Bootstrap::default()
    }
}

proptest! {
    /// Without noise the parameters come back, every resample agrees, and no error is left.
    #[test]
    fn exact_data_give_back_their_parameters(
        cases in 5usize..20, alpha in 1e-7..1e-4, beta in 1e-13..1e-9, weights in prop::collection::vec(0.1..10.0, 60),
    ) {
        let mut rows = samples(cases, alpha, beta, |_| 0.0);
        for (row, weight) in rows.iter_mut().zip(weights) { row.weight = weight; }
        let found = fit(&rows, &quick()).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-7 * b;
        prop_assert!(near(found.alpha, alpha) && near(found.beta, beta), "{found:?}");
        let [low, high] = found.alpha_interval.unwrap();
        prop_assert!(near(low, alpha) && near(high, alpha));
        prop_assert!(found.after.mape < 1e-9 && found.before.mape > found.after.mape);
        prop_assert_eq!((found.rows, found.cases), (3 * cases, cases));
    }

    #[test]
    fn the_order_of_rows_changes_no_bit(seed: u64, noise in prop::collection::vec(-0.5..0.5, 12)) {
        let rows = samples(12, 3e-6, 2e-12, |case| noise[case]);
        let mut mixed = rows.clone();
        fastrand::Rng::with_seed(seed).shuffle(&mut mixed);
        prop_assert_eq!(fit(&rows, &quick()), fit(&mixed, &quick()));
    }

    #[test]
    fn no_numbers_make_it_panic(
        rows in prop::collection::vec((0usize..4, any::<[f64; 5]>()), 0..12), small in prop::collection::vec((0usize..9, 1e-300..1e300, 0.0..1e300, 0.0..9.0, 0.0..1e300), 0..30),
    ) {
        let wild = rows.into_iter().map(|(case, [seconds, base, steps, message, weight])| Sample { case, seconds, base, steps, message, weight });
        let _ = fit(&wild.collect::<Vec<_>>(), &quick());
        let small = small.into_iter().map(|(case, seconds, base, steps, message)| Sample { case, seconds, base, steps, message, weight: 1.0 });
        if let Ok(found) = fit(&small.collect::<Vec<_>>(), &quick()) {
            prop_assert!(found.alpha >= 0.0 && found.beta >= 0.0);
        }
    }
}

/// With cases that err independently, 90 % intervals should cover about 90 % of the time; small
/// samples cover a little less.
#[test]
fn intervals_cover_the_truth() {
    let (alpha, beta) = (5e-6, 3e-12);
    let mut covered = [0; 2];
    for seed in 0..200 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let noise: Vec<f64> = (0..30).map(|_| 0.2 * (rng.f64() - 0.5)).collect();
        let bootstrap = Bootstrap {
            seed,
            resamples: 200,
            confidence: 0.9,
        };
        let found = fit(&samples(30, alpha, beta, |case| noise[case]), &bootstrap).unwrap();
        let inside = |[low, high]: [f64; 2], truth| low <= truth && truth <= high;
        covered[0] += i32::from(inside(found.alpha_interval.unwrap(), alpha));
        covered[1] += i32::from(inside(found.beta_interval.unwrap(), beta));
    }
    assert!(
        covered.iter().all(|n| (160..=196).contains(n)),
        "{covered:?} of 200"
    );
}

#[test]
fn rows_faster_than_the_closed_form_give_zero() {
    let mut rows = samples(6, 0.0, 0.0, |_| 0.0);
    for row in &mut rows {
        row.base *= 1.5;
    }
    let found = fit(&rows, &quick()).unwrap();
    assert_eq!((found.alpha, found.beta), (0.0, 0.0));
    assert_eq!(found.before, found.after);
}

#[test]
fn other_rows_are_judged() {
    let rows = samples(12, 3e-6, 2e-12, |_| 0.0);
    let (train, test) = rows.split_at(18);
    let (before, after) = fit(train, &quick()).unwrap().judge(test).unwrap();
    assert!(after.mape < 1e-9 && before.mape > 1e-3);
    assert_eq!(fit(train, &quick()).unwrap().judge(&[]), None);
}

#[test]
fn refuses_what_cannot_say() {
    let rows = samples(6, 3e-6, 2e-12, |_| 0.0);
    let with = |change: &dyn Fn(&mut Sample)| {
        let mut rows = rows.clone();
        rows.iter_mut().for_each(change);
        fit(&rows, &quick()).unwrap_err().to_string()
    };
    let said = [
        fit(&[], &quick()).unwrap_err().to_string(),
        fit(&rows[..3], &quick()).unwrap_err().to_string(),
        with(&|row| row.steps = 0.0),
        with(&|row| row.message = 64.0 * MIB),
        with(&|row| row.message = 64e6 + 1e4 * row.message / MIB),
        with(&|row| row.seconds = f64::NAN),
        with(&|row| row.weight = 0.0),
        with(&|row| row.base = f64::INFINITY),
    ];
    insta::assert_snapshot!(said.join("\n"), @"
    no row has an overlap step (d = 1 throughout): add rows of the same operators with d = 2 or more
    1 case with 3 rows is too few for alpha and beta: give at least 3 operators of different size, better 10
    no row has an overlap step (d = 1 throughout): add rows of the same operators with d = 2 or more
    all messages are 64 MiB, so that alpha (per step) and beta (per byte) cannot be told apart: add operators with other sizes, best from a tenth to ten times this
    messages from 61.11 MiB to 61.16 MiB are too alike to tell alpha (per step) from beta (per byte): add operators with other sizes, best from a tenth to ten times these
    the time of a row is NaN: every number must be finite and above 0
    the weight of a row is 0: every number must be finite and above 0
    the prediction of a row is inf: every number must be finite and at least 0
    ");
}

#[test]
fn few_cases_have_no_interval() {
    let found = fit(&samples(4, 3e-6, 2e-12, |_| 0.0), &quick()).unwrap();
    assert_eq!((found.alpha_interval, found.beta_interval), (None, None));
}
