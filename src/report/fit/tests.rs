use super::*;
use crate::calibrate::fit::{Fit, FitError};
use crate::calibrate::groups::HeldOut;
use crate::operator::Kind;
use crate::predict::Key;

fn group(strategy: &str, fit: Result<Fit, FitError>) -> Group {
    let errors = |mae, mape| Errors { mae, mape };
    Group {
        key: Key {
            topology: "box".into(),
            operator: Kind::AgGemm,
            tp: 8,
            strategy: strategy.into(),
        },
        rows: 24,
        held_out: fit.is_ok().then(|| HeldOut {
            rows: 8,
            before: errors(2e-4, 0.25),
            after: errors(1e-5, 0.03),
        }),
        fit: fit.map_err(Into::into),
    }
}

fn show(holdout: f64) -> [String; 3] {
    let fit = Fit {
        alpha: 12.5e-6,
        beta: 0.0314e-12,
        alpha_interval: Some([9.25e-6, 15e-6]),
        beta_interval: Some([0.0, 0.04e-12]),
        rows: 16,
        cases: 8,
        before: Errors {
            mae: 1.5e-3,
            mape: 0.2,
        },
        after: Errors {
            mae: 0.25e-3,
            mape: 0.015,
        },
    };
    let sure = Fit {
        alpha_interval: None,
        beta_interval: None,
        alpha: 0.0,
        after: fit.before,
        ..fit.clone()
    };
    let groups = [
        group("fusion-ring", Ok(sure)),
        group("interdecom", Ok(fit)),
        group("interdecom:comm=direct", Err(FitError::NoSteps)),
    ];
    let passed = [Passed {
        strategy: "sequential".into(),
        reason: "has no overlap step that could cost anything".into(),
        rows: 1,
    }];
    let options = Options {
        holdout,
        ..Options::default()
    };
    let report = FitReport {
        file: "times.csv",
        rows: 73,
        skipped: 2,
        terms: "none",
        options: &options,
        groups: &groups,
        passed: &passed,
    };
    let look = Look {
        width: 100,
        color: false,
    };
    let table = crate::report::grid::finish(&table(&report, &look), false);
    [table, csv(&report), json(&report).unwrap()]
}

#[test]
fn overheads_and_what_they_buy() {
    let [table, csv, json] = show(0.0);
    insta::assert_snapshot!(format!("{table}\n{csv}\n{json}"));
    let [judged, ..] = show(0.25);
    assert!(
        judged.contains("25.0 → 3.00") && judged.contains("held out [%]"),
        "{judged}"
    );
}

#[test]
fn small_numbers_keep_digits() {
    for (value, text) in [
        (12.5, "12.50"),
        (0.0314, "0.031"),
        (0.000_421, "0.00042"),
        (0.000_001_9, "0.0000019"),
        (-0.000_421, "-0.00042"),
        (1.94e-8, "1.9e-8"),
        (0.0, "0"),
    ] {
        assert_eq!(super::digits(value, 4), text);
    }
}
