//! A small experiment whose measured times are its predicted ones with known distortions, so that
//! every figure is known beforehand.
//!
//! `BLESS=1 cargo test --test validate synthetic` writes `tests/data/validate/` anew, from its
//! `predicted.csv`, which `duet validate tests/data/validate/experiment.yaml -t h200-pair-calibrated
//! --predict` wrote.

use std::fs;

use duet::gpu::plan::Library;
use duet::gpu::timing::Summary;
use duet::validate::key::{Reference, Subject};
use duet::validate::prediction::{Prediction, Predictions};
use duet::validate::table::{self, Conditions, Row, median};
use serde_json::Value;

use crate::{data, duet};

/// Measured over predicted − 1, by the name of the strategy; references are as predicted.
const DISTORTIONS: [(&str, f64); 4] = [
    ("sequential", 0.04),
    ("interdecom:d=2,comm=direct", -0.03),
    ("interdecom:d=4,comm=direct", 0.01),
    ("fusion-ring:chunks=1", 0.06),
];
/// How much slower the second table is.
const SECOND: f64 = 0.01;
const ROUNDS: u32 = 60;
/// The row that is excluded.
const EXCLUDED: &str = "gemm-rs/8192x8192x8192/bf16/2on2/p2p/stream/sequential";

fn distortion(prediction: &Prediction) -> f64 {
    let found = DISTORTIONS
        .iter()
        .find(|(name, _)| Some(*name) == prediction.case.strategy());
    found.map_or(0.0, |(_, distortion)| *distortion)
}

fn predicted() -> Predictions {
    Predictions::read(&data("predicted.csv")).unwrap()
}

/// Rounds drift up and down by 0.2 % together, so that differences within rounds do not.
pub(crate) fn row(prediction: &Prediction, seconds: f64, machine: &str) -> Row {
    let drift = |round: u32| 1.0 + 0.002 * (f64::from(round % 3) - 1.0);
    // As the file holds them, so that their median is that of the file.
    let hundredth = |seconds: f64| (seconds * 1e8).round() / 1e8;
    let samples: Vec<f64> = (0..ROUNDS).map(|r| hundredth(seconds * drift(r))).collect();
    let case = prediction.case.clone();
    Row {
        library: match case.subject {
            Subject::Reference(Reference::SequentialCopies) => Library::Copies,
            _ => Library::Nccl,
        },
        rounds: ROUNDS,
        repeats: 1,
        gated: true,
        makespan: median(&samples),
        p10: Summary::of(&samples).map(|summary| summary.p10),
        p90: Summary::of(&samples).map(|summary| summary.p90),
        samples,
        skew: None,
        checked: true,
        error: Some(0.003),
        excluded: (case.to_string() == EXCLUDED).then(|| "results are wrong".to_owned()),
        conditions: Conditions {
            machine: machine.to_owned(),
            date: "2026-11-30".to_owned(),
            ..Conditions::default()
        },
        case,
    }
}

fn measured(factor: f64, machine: &str) -> String {
    let predictions = predicted();
    let simulated = predictions
        .rows
        .iter()
        .filter(|row| row.simulated.is_some());
    let lines: String = simulated
        .map(|prediction| {
            let seconds = prediction.simulated.unwrap() * (1.0 + distortion(prediction));
            row(prediction, seconds * factor, machine).line()
        })
        .collect();
    table::header() + &lines
}

#[test]
fn the_files_are_the_generators() {
    for (name, text) in [
        ("measured.csv", measured(1.0, "a")),
        ("second.csv", measured(1.0 + SECOND, "b")),
    ] {
        if std::env::var_os("BLESS").is_some() {
            fs::write(data(name), &text).unwrap();
        }
        let found = fs::read_to_string(data(name)).unwrap();
        assert!(found == text, "{name} is not what BLESS=1 writes");
    }
}

const ARGS: [&str; 8] = [
    "validate",
    "tests/data/validate/experiment.yaml",
    "--measured",
    "tests/data/validate/measured.csv",
    "--measured",
    "tests/data/validate/second.csv",
    "--predicted",
    "tests/data/validate/predicted.csv",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&ARGS[..], more].concat()
}

fn json() -> Value {
    serde_json::from_str(&duet(&with(&["--format", "json"]), 0)).unwrap()
}

/// The entry of a list with these values.
fn find<'v>(list: &'v Value, wanted: &[(&str, &str)]) -> &'v Value {
    let all = list.as_array().unwrap();
    let fits = |entry: &&Value| wanted.iter().all(|(key, value)| entry[*key] == **value);
    all.iter()
        .find(fits)
        .unwrap_or_else(|| panic!("no {wanted:?} in {list:#}"))
}

/// Times are rounded to 0.01 us of 40 us and more.
fn near(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap();
    assert!((found - expected).abs() < 5e-4, "{found} is not {expected}");
}

#[test]
fn errors_are_the_distortions() {
    let found = json();
    // |p − t|/t of t = p·(1 + δ) is |δ|/(1 + δ), and (p − t)/t is −δ/(1 + δ).
    let relative = |delta: f64| delta / (1.0 + delta);
    let rows = predicted().rows;
    let judged: Vec<f64> = rows
        .iter()
        .filter(|row| row.case.strategy().is_some() && !row.case.group.is_virtual())
        .filter(|row| row.simulated.is_some() && row.case.to_string() != EXCLUDED)
        .map(distortion)
        .collect();
    let count = judged.len() as f64;
    let all = find(&found["absolute"], &[("of", "all")]);
    assert_eq!(all["cases"], judged.len());
    near(
        &all["mape"],
        judged.iter().map(|d| relative(*d).abs()).sum::<f64>() / count,
    );
    near(
        &all["bias"],
        -judged.iter().map(|d| relative(*d)).sum::<f64>() / count,
    );
    near(&all["worst"], relative(0.06));
    for (name, delta) in [("sequential", 0.04), ("fusion-ring:chunks=1", 0.06)] {
        let errors = find(&found["absolute"], &[("of", "strategy"), ("name", name)]);
        near(&errors["mape"], relative(delta));
        near(&errors["wmape"], relative(delta));
    }
    // The unsplit GEMM is as predicted, so that ratios err as times do.
    near(
        &find(&found["relative"], &[("of", "all")])["mape"],
        all["mape"].as_f64().unwrap(),
    );
    for reference in [
        "reference:gemm",
        "reference:copy",
        "reference:sequential-copies",
    ] {
        let errors = find(
            &found["absolute"],
            &[("of", "reference"), ("name", reference)],
        );
        near(&errors["mape"], 0.0);
    }
    assert_eq!(found["virtual_groups"], 2);
    let shared = find(&found["absolute"], &[("of", "shared GPUs")]);
    near(
        &shared["mape"],
        (relative(0.04) + relative(-0.03).abs()) / 2.0,
    );
    assert_eq!(found["excluded"][0]["case"], EXCLUDED);
    assert_eq!(found["excluded"][0]["reason"], "results are wrong");
}

#[test]
fn choices_lose_what_the_distortions_make_them_lose() {
    // The best of each group by predicted and by distorted times, without the program.
    let rows = predicted().rows;
    let groups = rows.chunk_by(|a, b| a.case.group == b.case.group);
    let (mut regrets, mut strict) = (Vec::new(), 0);
    for group in groups.filter(|group| !group[0].case.group.is_virtual()) {
        let times: Vec<(f64, f64)> = group
            .iter()
            .filter(|row| row.case.strategy().is_some() && row.case.to_string() != EXCLUDED)
            .filter_map(|row| Some((row.simulated?, row.simulated? * (1.0 + distortion(row)))))
            .collect();
        let chosen = times.iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        let best = times
            .iter()
            .map(|(_, measured)| *measured)
            .fold(f64::INFINITY, f64::min);
        regrets.push(chosen.1 / best - 1.0);
        strict += usize::from(chosen.1 == best);
    }
    let found = json();
    let simulator = find(&found["choices"], &[("by", "simulator")]);
    assert_eq!(
        (&simulator["groups"], &simulator["strict"]),
        (&regrets.len().into(), &strict.into())
    );
    let right = regrets.iter().filter(|regret| **regret <= 0.01).count();
    assert_eq!(simulator["right"], right);
    near(
        &simulator["mean_regret"],
        regrets.iter().sum::<f64>() / regrets.len() as f64,
    );
    near(
        &simulator["largest_regret"],
        regrets.iter().copied().fold(0.0, f64::max),
    );
}

#[test]
fn the_second_table_shows_how_repeatable_the_first_is() {
    let found = json();
    let all = find(&found["repeatability"], &[("name", "second table, all")]);
    near(&all["mean"], SECOND);
    near(&all["weighted"], SECOND);
    near(
        &find(&found["repeatability"], &[("name", "rounds, p10 to p90")])["median"],
        0.004,
    );
}

#[test]
fn the_report_of_the_command_line() {
    let text = duet(&with(&["--section", "errors", "--section", "choices"]), 0);
    insta::assert_snapshot!(text);
}

#[test]
fn wrong_arguments_are_named() {
    let error = duet(&with(&["--section", "erors"]), 2);
    assert!(
        error.starts_with(
            "error: `erors` is no section of a report\n  help: did you mean `errors`? Sections are "
        ),
        "{error}"
    );
    // One that there are no data for.
    let error = duet(&with(&["--section", "peers"]), 2);
    assert!(
        error.starts_with(
            "error: this report has no section `peers`: nothing that is judged is of it\n  help: its sections are overview, errors, "
        ),
        "{error}"
    );
    let error = duet(&with(&["--format", "csv"]), 2);
    assert!(
        error.starts_with("error: a validation has no CSV\n  help: "),
        "{error}"
    );
    // A result never takes the place of a table that it is from.
    for option in ["--out", "--report"] {
        assert_eq!(
            duet(&with(&[option, ARGS[3]]), 2),
            format!(
                "error: `{option}` would overwrite `{}`, which is read\n  help: name another file\n",
                ARGS[3]
            )
        );
    }
    let third = with(&["--measured", "tests/data/validate/second.csv"]);
    assert!(duet(&third, 2).contains("is a third table"));
    let missing = with(&["--report", "target/no-such-folder/report.md"]);
    assert_eq!(
        duet(&missing, 3),
        "error: cannot write `target/no-such-folder/report.md`: there is no folder `target/no-such-folder`\n  help: create it, or name a file in a folder that exists\n"
    );
    let none = ["validate", ARGS[1], "--measured", ARGS[3]];
    assert!(duet(&none, 2).contains("name a calibrated topology with `-t TOPOLOGY`"));
    let wrong = [
        "validate",
        ARGS[1],
        "--measured",
        ARGS[7],
        "--predicted",
        ARGS[7],
    ];
    let error = duet(&wrong, 3);
    assert!(error.starts_with("error: the columns"), "{error}");
    assert!(
        error.contains("tests/data/validate/predicted.csv:1:1"),
        "{error}"
    );
}

#[test]
fn predictions_that_were_cut_are_refused() {
    let whole = fs::read_to_string(data("predicted.csv")).unwrap();
    let rows = table::read(&data("measured.csv")).unwrap();
    let kept = 3;
    // The heading and the first rows; the measured table has every case of it.
    let cut: String = whole.split_inclusive('\n').take(1 + kept).collect();
    let file = std::env::temp_dir().join(format!("duet-cut-{}.csv", std::process::id()));
    fs::write(&file, cut).unwrap();
    let name = file.to_str().unwrap();
    let error = duet(
        &[
            "validate",
            ARGS[1],
            "--measured",
            ARGS[3],
            "--predicted",
            name,
        ],
        3,
    );
    fs::remove_file(&file).unwrap();
    let begin = format!(
        "error: `{name}` predicts {kept} of the {} measured cases; `",
        rows.len()
    );
    assert!(error.starts_with(&begin), "{error}");
    assert!(
        error.ends_with("\n  help: give all that `--predict` wrote of this experiment\n"),
        "{error}"
    );
}
