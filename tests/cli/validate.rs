//! `validate` as far as no GPU is needed: what would be measured, and what is refused.

use std::collections::BTreeMap;
use std::fs;

use duet::report::validation::KEYS;
use serde_json::Value;

use super::{duet, failure, json, stdout};

const MAIN: &str = "experiments/h200-pair/experiment.yaml";
const PILOT: &str = "experiments/h200-pair/pilot.yaml";

fn groups(file: &str) -> Vec<Value> {
    let value = json(&format!("validate {file} --dry-run"));
    value.as_array().expect("a list").clone()
}

/// Ranks and GPUs in a group's name.
fn ranks(group: &Value) -> (u32, u32) {
    let name = group["group"].as_str().unwrap();
    let part = name.split('/').nth(3).unwrap();
    let (tp, gpus) = part.split_once("on").unwrap();
    (tp.parse().unwrap(), gpus.parse().unwrap())
}

#[test]
fn the_committed_grid_is_as_large_as_it_claims_and_ends_in_time() {
    let groups = groups(MAIN);
    let own = groups.iter().filter(|g| ranks(g) == (2, 2));
    assert!(own.clone().count() >= 60);
    // Three of the cases are references.
    assert!(own.clone().all(|g| g["cases"].as_u64().unwrap() >= 5 + 3));
    let shared = groups.iter().filter(|g| ranks(g).0 > ranks(g).1);
    assert!(shared.count() >= 30);
    let mut kinds: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for group in own {
        let name: Vec<&str> = group["group"].as_str().unwrap().split('/').collect();
        *kinds
            .entry((name[0], name[4].split(':').next().unwrap()))
            .or_default() += 1;
    }
    for op in ["ag-gemm", "gemm-rs"] {
        for path in ["p2p", "host", "hybrid"] {
            assert!(kinds[&(op, path)] >= 3, "{kinds:?}");
        }
    }
    assert!(kinds[&("gemm-ar", "p2p")] >= 3);
    assert!(
        groups
            .iter()
            .all(|g| g["skipped"].as_array().unwrap().is_empty())
    );
    let seconds: f64 = groups.iter().map(|g| g["seconds"].as_f64().unwrap()).sum();
    assert!(seconds < 540.0, "{seconds}");
}

#[test]
fn the_pilot_shares_no_shape_with_the_grid() {
    let shape = |group: &Value| {
        let name = group["group"].as_str().unwrap().to_owned();
        name.split('/')
            .take(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (main, pilot) = (groups(MAIN), groups(PILOT));
    assert_eq!(pilot.len(), 15);
    let known: Vec<_> = main.iter().map(shape).collect();
    assert!(pilot.iter().all(|group| !known.contains(&shape(group))));
}

#[test]
fn a_dry_run_says_what_it_takes() {
    let text = stdout(&format!("validate {PILOT} --dry-run"));
    assert!(text.starts_with("grid "), "{text}");
    assert!(
        text.contains("40 rounds, each measurement after a rest and 0.4 ms of heating: about "),
        "{text}"
    );
    assert!(text.contains("on 2 GPUs\nmost memory: "), "{text}");
    let some = json(&format!(
        "validate {PILOT} --dry-run --only gemm-rs/ --shard 1/2 --rounds 80"
    ));
    let all = json(&format!("validate {PILOT} --dry-run --only gemm-rs/"));
    let (some, all) = (some.as_array().unwrap(), all.as_array().unwrap());
    assert!(some.len() < all.len());
    for group in some {
        let same = all
            .iter()
            .find(|other| other["group"] == group["group"])
            .unwrap();
        assert!(group["seconds"].as_f64() > same["seconds"].as_f64());
    }
    let lines = stdout(&format!("validate {PILOT} --dry-run --format csv"));
    assert_eq!(lines.lines().count(), 16);
}

/// With a limit the dry run says how the groups fall into commands: each of them ends in time,
/// and together they are all groups.
#[test]
fn a_dry_run_with_a_limit_divides_into_commands() {
    let text = stdout(&format!("validate {PILOT} --dry-run --seconds 30"));
    let (_, commands) = text.split_once("the same command, given ").unwrap();
    let rows: Vec<Vec<&str>> = (commands.lines())
        .filter(|line| line.contains(" of ") && line.starts_with(|c: char| c.is_ascii_digit()))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert!(rows.len() > 1, "{text}");
    let number = |row: &[&str], at: usize| row[at].parse::<f64>().unwrap();
    let groups: f64 = rows.iter().map(|row| number(row, 3)).sum();
    assert_eq!(groups, 15.0, "{text}");
    for row in &rows {
        assert!(number(row, row.len() - 2) <= 30.0, "{row:?}");
    }
    let (code, text) = failure(&format!("validate {PILOT} --dry-run --seconds 1"));
    assert_eq!(code, 3);
    assert!(text.contains("take longer than `--seconds 1`"), "{text}");
    assert!(text.contains("help: give more seconds"), "{text}");
}

#[test]
fn what_cannot_be_measured_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.yaml");
    let write = |operator: &str| {
        let text = format!(
            "name: x\ngrids:\n  - name: g\n    topologies: h200-pair\n    operators: [{operator}]\n    strategies: [{}]\n",
            if operator.contains("bytes") {
                "library"
            } else {
                "sequential"
            }
        );
        fs::write(&file, text).unwrap();
        format!("validate {} --dry-run", file.display())
    };
    let (code, text) = failure(&write("{ op: all-gather, bytes: 1 MiB }"));
    assert_eq!(code, 3);
    assert!(
        text.contains("error: the grid `g` has `all-gather"),
        "{text}"
    );
    assert!(
        text.contains("help: only operators with a GEMM are validated"),
        "{text}"
    );
    let args = write("{ op: ag-gemm, m: 131072, n: 131072, k: 131072 }");
    let output = duet(&args).assert().code(3).get_output().clone();
    // The table is printed all the same.
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .starts_with("grid ")
    );
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("error: 1 of 1 groups do not fit into the GPUs' memory"),
        "{text}"
    );
    assert!(
        text.contains("GiB of a GPU\n  help: all strategies of a group hold"),
        "{text}"
    );
    let (code, text) = failure(&format!("validate {PILOT} --dry-run --only nvlink"));
    assert_eq!(code, 3);
    assert!(
        text.starts_with("error: no group's name contains `nvlink`"),
        "{text}"
    );
    for (wrong, said) in [
        ("--machine a/b", "`a/b` is no plain name"),
        ("--shard 3/2", "`3/2` is no shard"),
        ("--rounds 0", "0 is not in 1..=10000"),
        ("--seconds 0", "`0` is no time"),
    ] {
        let (code, text) = failure(&format!("validate {PILOT} {wrong}"));
        assert_eq!(code, 2, "{text}");
        assert!(text.contains(said), "{text}");
    }
    let (code, text) = failure("validate no/such.yaml");
    assert_eq!(code, 3);
    assert!(
        text.contains("cannot read the experiment `no/such.yaml`"),
        "{text}"
    );
}

/// A table is judged by the experiment that it is of, and as a whole.
#[test]
fn a_table_of_another_experiment_is_refused() {
    let table =
        "--measured tests/data/validate/measured.csv --predicted tests/data/validate/predicted.csv";
    let (code, text) = failure(&format!("validate {PILOT} {table}"));
    assert_eq!(code, 3);
    assert!(
        text.contains("is a case of the experiment `h200-pair-pilot`"),
        "{text}"
    );
    assert!(
        text.contains("help: name the experiment that was measured"),
        "{text}"
    );
    let own = "tests/data/validate/experiment.yaml";
    let (code, text) = failure(&format!("validate {own} {table} --only ag-gemm/"));
    assert_eq!(code, 2);
    assert!(text.contains("a table is judged whole"), "{text}");
}

#[test]
fn a_selection_holds_for_predictions_and_gpus_too() {
    let predict = format!("validate {PILOT} -t h200-pair-calibrated --predict");
    let lines = |text: &str| text.lines().count() - 1;
    let some = stdout(&format!("{predict} --only gemm-rs/ --shard 1/2"));
    assert!(some.lines().skip(1).all(|line| line.contains("gemm-rs/")));
    assert!((1..lines(&stdout(&predict))).contains(&lines(&some)));
    let none = stdout(&format!("validate {PILOT} --dry-run --shard 400/500"));
    assert_eq!(none, "nothing to measure: none of 15 groups is left\n");
    let mut one = duet(&format!("validate {PILOT} --dry-run --gpus 1"));
    one.assert()
        .success()
        .stdout("nothing to measure: none of 15 groups is left\n")
        .stderr("note: 15 of 15 groups need more than the GPUs of `--gpus 1` and are left out\n");
}

#[test]
fn a_table_without_rows_measures_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.csv");
    let whole =
        fs::read_to_string("experiments/h200-pair/measured/2026-11-30-2x-nvidia-h200-9064606f.csv")
            .unwrap();
    let header = whole.lines().next().unwrap();
    fs::write(&path, format!("{header}\n")).unwrap();
    let name = path.display();
    let found = failure(&format!(
        "validate {MAIN} --measured {name} --predicted experiments/h200-pair/predicted/2026-11-30.csv --section errors"
    ));
    let wanted = format!(
        "error: `{name}` measures nothing: it has a header and no rows\n  help: give a table that `duet validate EXPERIMENT --out FILE` wrote\n"
    );
    assert_eq!(found, (3, wanted));
}

/// Before any table is read; all that there are, which the manual lists too.
#[test]
fn a_section_that_is_none_is_refused_at_once() {
    let of = |name: &str| {
        failure(&format!(
            "validate {MAIN} --measured no/such.csv --section {name}"
        ))
    };
    let all = KEYS.join(", ");
    let wanted = |near: &str, name: &str| {
        format!("error: `{name}` is no section of a report\n  help: {near} are {all}\n")
    };
    assert_eq!(
        of("error"),
        (2, wanted("did you mean `errors`? Sections", "error"))
    );
    assert_eq!(of("nonsense"), (2, wanted("sections", "nonsense")));
    let manual = fs::read_to_string("docs/validate.md").unwrap();
    for key in KEYS {
        assert!(manual.contains(&format!("\n| `{key}` |")), "{key}");
    }
}
