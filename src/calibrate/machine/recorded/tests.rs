use super::*;
use crate::{device, topology};

const FURTHER: Further<'_> = Further {
    told: include_str!("../../../../experiments/calibration/measured/2026-11-30-h200-choices.csv"),
    others: &[
        include_str!("../../../../experiments/calibration/measured/2026-11-30-h200-pair-fifth.csv"),
        include_str!("../../../../experiments/calibration/measured/2026-11-30-h200-pair-sixth.csv"),
        include_str!(
            "../../../../experiments/calibration/measured/2026-11-30-h200-pair-seventh.csv"
        ),
        include_str!("../../../../experiments/calibration/measured/2026-11-30-h200-fewer.csv"),
    ],
};
const NONE: Further<'_> = Further {
    told: "",
    others: &[],
};
const SAMPLES: &str =
    include_str!("../../../../experiments/calibration/measured/2026-11-30-h200-pair-fourth.csv");
const TEXT: &str = include_str!("../../../../topologies/h200-pair-calibrated.yaml");

#[test]
fn the_shipped_calibration_is_what_its_samples_say() {
    let shipped = topology::load("h200-pair-calibrated", &[]).unwrap();
    let again = refit(TEXT, shipped.device(0), SAMPLES, FURTHER).unwrap();
    if std::env::var_os("UPDATE_CALIBRATION").is_some() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/topologies/h200-pair-calibrated.yaml"
        );
        std::fs::write(file, &again).unwrap();
        return;
    }
    assert!(again == TEXT, "fit it anew: `UPDATE_CALIBRATION=1`");
}

#[test]
fn gemms_on_all_sms_are_none_on_fewer() {
    let raw = "gemm,k64n64 gpu0 alone,128,us,2.0 2.1\ngemm,k64n64s108 gpu0 alone,256,us,3.0\n";
    let rows = |sms| {
        let beside = Beside {
            sms,
            ..Beside::default()
        };
        let all = on_fewer(raw, &beside).unwrap();
        all.iter().map(|product| product.m).collect::<Vec<_>>()
    };
    // Of a calibration that lists no choices there, and of two that do.
    assert_eq!(rows(0), Vec::<u64>::new());
    assert_eq!((rows(108), rows(116)), (vec![256], vec![]));
}

#[test]
fn what_cannot_be_read_is_said() {
    let shipped = topology::load("h200-pair-calibrated", &[]).unwrap();
    for (line, words) in [
        (
            "gemm,k64n64 gpu0,128,us,1.0 x",
            "2:29: `x` is no time in microseconds",
        ),
        ("gemm,k64n64 gpu0,128,us,NaN", "2:25: `NaN` is no time"),
        ("gemm,k64n64 gpu0,128,us,inf", "`inf` is no time"),
        ("gemm,k64n64 gpu0,128,us,-5", "`-5` is no time"),
        ("gemm,k64n64 gpu0,128,us,0", "`0` is no time"),
        ("gemm,k64n64 gpu0,128,us,1e300", "`1e300` is no time"),
        (
            "gemm,k64n64 gpu0,128,ms,1",
            "2:22: `ms` is no unit of times",
        ),
        ("gemm,k64n64 gpu0,12.5,us,1", "`12.5` is no number of rows"),
        (
            "gemm,k64n64 gpu0,128",
            "2:1: `gemm,k64n64 gpu0,128` is no whole line",
        ),
    ] {
        let bad = format!("section,case,x,unit,samples\n{line}\n");
        let error = refit(TEXT, shipped.device(0), &bad, NONE)
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{line}: {error}");
        assert!(error.contains("unchanged"), "{error}");
    }
    let most = &SAMPLES[..SAMPLES.len() * 9 / 10];
    let whole_lines = &most[..most.rfind('\n').unwrap()];
    let few = refit(TEXT, shipped.device(0), whole_lines, NONE).unwrap_err();
    assert!(
        few.to_string().contains("and the calibration has 13"),
        "{few}"
    );
    let none = refit(TEXT, shipped.device(0), "", NONE).unwrap_err();
    assert_eq!(none, RefitError::Empty);
    let ideal = device::ideal();
    assert_eq!(
        refit("", &ideal, "", NONE).unwrap_err(),
        RefitError::Unlisted
    );
}
