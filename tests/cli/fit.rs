//! `duet fit`: what it reads, writes and refuses.

use std::fs;

use duet::operator::Kind;
use duet::predict::Parameters;

use super::{failure, json, stdout};

const TIMES: &str = "examples/times.csv";

#[test]
fn every_fitted_group_is_reported() {
    let report = json(&format!("fit {TIMES} --terms none --resamples 100"));
    assert_eq!(report["schema"], "duet-fit-1");
    assert_eq!(
        (&report["rows"], &report["skipped"]),
        (&54.into(), &0.into())
    );
    assert_eq!(report["terms"], "none");
    let groups = report["groups"].as_array().unwrap();
    assert!(groups.len() >= 3);
    for group in groups {
        assert!(
            group["refused"].is_null() && group["held_out"].is_null(),
            "{group}"
        );
        let ends = group["alpha_interval_s"].as_array().unwrap();
        assert!(ends[0].as_f64() <= ends[1].as_f64());
        assert!(group["alpha_s"].as_f64().unwrap() >= 0.0);
    }
    let decomposed = groups
        .iter()
        .find(|group| group["strategy"] == "interdecom")
        .unwrap();
    assert_eq!(
        (&decomposed["fitted_rows"], &decomposed["fitted_cases"]),
        (&18.into(), &6.into())
    );
    let error = |when: &str| decomposed[when]["mae_s"].as_f64().unwrap();
    assert!(error("after") < 0.5 * error("before"), "{decomposed}");
    assert_eq!(report["passed"][0]["strategy"], "sequential");
}

#[test]
fn what_it_writes_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("params.yaml");
    let table = stdout(&format!(
        "fit {TIMES} --terms compass --out {}",
        path.display()
    ));
    assert!(
        table.contains("alpha [us]") && table.contains("ag-gemm tp=8 on a6000-pairs-8"),
        "{table}"
    );
    let text = fs::read_to_string(&path).unwrap();
    let read = Parameters::read(&text, "params.yaml").unwrap_or_else(|error| panic!("{error}"));
    let overhead = read
        .get("a6000-pairs-8", Kind::AgGemm, 8, "interdecom")
        .unwrap();
    assert!(overhead.alpha > 0.0 && overhead.alpha_interval.is_some());
    assert_eq!(overhead.source, "fitted, examples/times.csv, terms none");
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "only the file"
    );
}

#[test]
fn the_same_bytes_for_any_order_of_rows_and_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mixed.csv");
    let text = fs::read_to_string(TIMES).unwrap();
    let (header, rows) = text.split_once('\n').unwrap();
    let mut rows: Vec<&str> = rows.lines().filter(|row| *row != header).collect();
    fastrand::Rng::with_seed(9).shuffle(&mut rows);
    fs::write(&path, format!("{header}\n{}\n", rows.join("\n"))).unwrap();
    for options in [
        "--format json --holdout 1/3",
        "--format csv --terms compass",
    ] {
        let one = stdout(&format!("fit {TIMES} {options} --threads 1"));
        assert_eq!(stdout(&format!("fit {TIMES} {options} --threads 3")), one);
        let mixed = stdout(&format!("fit {} {options}", path.display()));
        assert!(
            mixed.replace(&path.display().to_string(), TIMES) == one,
            "{options}"
        );
    }
    let other = stdout(&format!(
        "fit {TIMES} --format csv --terms compass --seed 2"
    ));
    assert_ne!(
        other,
        stdout(&format!("fit {TIMES} --format csv --terms compass")),
        "the seed counts"
    );
}

#[test]
fn a_group_refused_sinks_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("times.csv");
    let mut text = fs::read_to_string(TIMES).unwrap();
    text +=
        "a6000-pairs-4,ag-gemm,8192,16384,4096,,4,bf16,stream,,interdecom:d=2,1e-2,,,,,,,,,,,,,\n";
    fs::write(&path, &text).unwrap();
    let report = json(&format!("fit {}", path.display()));
    let groups = report["groups"].as_array().unwrap();
    let refused: Vec<_> = groups
        .iter()
        .filter(|group| !group["refused"].is_null())
        .collect();
    assert_eq!(
        (refused.len(), refused[0]["topology"].as_str()),
        (1, Some("a6000-pairs-4"))
    );
    assert!(refused[0]["alpha_s"].is_null());
    let table = stdout(&format!("fit {}", path.display()));
    assert!(
        table.contains("not fitted: interdecom, ag-gemm tp=4 on a6000-pairs-4: 1 case"),
        "{table}"
    );
    let csv = stdout(&format!("fit {} --format csv", path.display()));
    assert_eq!(csv.lines().count(), 1 + groups.len());
}

#[test]
fn files_of_topologies_are_found_by_their_name() {
    let folder = tempfile::tempdir().unwrap();
    let (times, machine) = (
        folder.path().join("times.csv"),
        folder.path().join("box.yaml"),
    );
    let text = fs::read_to_string(TIMES).unwrap();
    fs::write(&times, text.replace("a6000-pairs-8", "my-box")).unwrap();
    let yaml = fs::read_to_string("topologies/a6000-pairs-8.yaml").unwrap();
    fs::write(
        &machine,
        yaml.replace("name: a6000-pairs-8", "name: my-box"),
    )
    .unwrap();
    let (code, error) = failure(&format!("fit {}", times.display()));
    assert_eq!(code, 3);
    assert!(
        error.contains("times.csv:2:1") && error.contains("`my-box` is not a topology"),
        "{error}"
    );
    let report = json(&format!("fit {} -t {}", times.display(), machine.display()));
    assert_eq!(report["groups"][0]["topology"], "my-box");
    let (code, error) = failure(&format!(
        "fit {0} -t {1} -t {1}",
        times.display(),
        machine.display()
    ));
    assert_eq!(code, 2);
    assert!(error.contains("both named `my-box`"), "{error}");
}

#[test]
fn what_cannot_be_fitted_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let (times, params) = (
        folder.path().join("times.csv"),
        folder.path().join("params.yaml"),
    );
    let header = "topology,operator,m,n,k,tp,dtype,strategy,seconds";
    let fit = |rows: &[&str]| {
        fs::write(&times, format!("{header}\n{}\n", rows.join("\n"))).unwrap();
        let (code, error) = failure(&format!(
            "fit {} --out {}",
            times.display(),
            params.display()
        ));
        assert_eq!(code, 3, "{error}");
        assert!(!params.exists(), "nothing is written");
        error.replace(&times.display().to_string(), "times.csv")
    };
    let one = "a6000-pairs-8,ag-gemm,8192,16384,4096,8,bf16,interdecom:d=1,1e-2";
    assert!(fit(&[one]).contains("tp=8 interdecom: no row has an overlap step"));
    let (two, other) = (
        one.replace("d=1", "d=2"),
        one.replace("16384,4096", "8192,4096").replace("d=1", "d=4"),
    );
    let third = two.replace("16384,4096", "32768,4096");
    let error = fit(&[&two, &other, &third]);
    assert!(error.contains("all messages are 64 MiB, so that alpha (per step) and beta (per byte) cannot be told apart"), "{error}");
    let sequential = one.replace("interdecom:d=1", "sequential");
    let error = fit(&[&sequential]);
    assert!(
        error.contains("sequential (1 row)")
            && error.contains("help: add times of strategies that overlap"),
        "{error}"
    );
    let error = fit(&[&two.replace("1e-2", "12 ms")]);
    assert!(
        error.contains("--> times.csv:2:61") && error.contains("help: write 0.012"),
        "{error}"
    );
    let (code, error) = failure("fit no/such.csv");
    assert_eq!(code, 3);
    assert!(
        error.starts_with("error: cannot read `no/such.csv`"),
        "{error}"
    );
    let (code, error) = failure(&format!("fit {TIMES} --out no/such/params.yaml"));
    assert_eq!(code, 3);
    assert!(error.contains("help: name a file in a folder"), "{error}");
}

#[test]
fn wrong_options_exit_with_2() {
    for (options, word) in [
        ("", "<MEASURED.csv>"),
        ("x.csv --holdout 1", "write a share from 0 to below 1"),
        ("x.csv --holdout 1/0", "write a share"),
        ("x.csv --confidence 0", "write a share between 0 and 1"),
        ("x.csv --terms gem-curve", "did you mean `gemm-curve`?"),
        ("x.csv --resamples 9999999", "1000000"),
    ] {
        let (code, error) = failure(&format!("fit {options}"));
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn too_few_cases_are_refused_with_what_to_add() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("few.csv");
    let text = fs::read_to_string(TIMES).unwrap();
    let (header, rows) = text.split_once('\n').unwrap();
    let row = rows
        .lines()
        .find(|row| row.contains("interdecom"))
        .expect("a decomposition");
    fs::write(&path, format!("{header}\n{row}\n")).unwrap();
    let (code, text) = failure(&format!("fit {} --terms none", path.display()));
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("1 case with 1 row is too few"), "{text}");
    assert!(
        text.ends_with("\n  help: add times, for each strategy, of at least 3 operators of different size, better 10, launched in one way\n"),
        "{text}"
    );
}
