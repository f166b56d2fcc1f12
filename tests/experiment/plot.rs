//! `duet plot` as a user sees it.

use std::fs;
use std::path::Path;

use assert_cmd::Command;

fn duet(folder: &Path, args: &[&str], code: i32) -> String {
    let mut command = Command::cargo_bin("duet").expect("built");
    let assert = command.current_dir(folder).args(args).assert().code(code);
    let output = assert.get_output();
    let text = if code == 0 {
        &output.stdout
    } else {
        &output.stderr
    };
    String::from_utf8(text.clone()).unwrap()
}

/// A folder with results of the small experiment.
fn performed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("small.yaml"), crate::SMALL).unwrap();
    duet(folder.path(), &["run", "small.yaml"], 0);
    folder
}

#[test]
fn a_run_writes_a_report_a_summary_and_the_figures_that_fit() {
    let folder = performed();
    let results = folder.path().join("results/small");
    let report = fs::read_to_string(results.join("report.md")).unwrap();
    assert!(report.starts_with("# small\n"), "{report}");
    assert!(
        report.contains("![strategies-seq](plots/strategies-seq.svg)"),
        "{report}"
    );
    // One hidden size only: no map over two axes.
    assert!(report.contains("* `winner-map`: it needs two values or more of both axes"));
    let summary = fs::read_to_string(results.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["schema"], "duet-summary-1");
    assert_eq!(summary["against"], "simulator");
    for plot in summary["plots"].as_array().unwrap() {
        let svg = fs::read_to_string(results.join("plots").join(plot.as_str().unwrap())).unwrap();
        let faults = duet::report::plot::inspect::faults(&svg);
        assert_eq!(faults, Vec::<String>::new(), "{plot}");
    }
}

#[test]
fn results_are_drawn_again_alone_and_as_bitmaps() {
    let folder = performed();
    let path = folder.path();
    // The stamp names the experiment; the table or its folder will do.
    for results in ["results/small", "results/small/results.csv"] {
        let args = [
            "plot",
            results,
            "--figure",
            "strategies",
            "--figure",
            "strategies",
            "--png",
            "--out",
            "drawn",
        ];
        let text = duet(path, &args, 0);
        assert_eq!(text, "drawn/strategies-seq.svg\ndrawn/strategies-seq.png\n");
    }
    assert!(
        fs::read(path.join("drawn/strategies-seq.png"))
            .unwrap()
            .starts_with(b"\x89PNG")
    );
    let first = fs::read(path.join("results/small/plots/strategies-seq.svg")).unwrap();
    assert!(first == fs::read(path.join("drawn/strategies-seq.svg")).unwrap());
    let text = duet(path, &["plot", "results/small", "--format", "json"], 0);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["schema"], "duet-plot-1");
    assert!(value["written"].as_array().unwrap().len() > 2);
    let left_out = value["left_out"].as_array().unwrap();
    assert!(
        left_out.iter().any(|entry| entry["figure"] == "winner-map"),
        "{text}"
    );
}

#[test]
fn mistakes_are_told() {
    let folder = performed();
    let path = folder.path();
    let text = duet(path, &["plot", "results/small", "--figure", "strategys"], 2);
    assert!(text.contains("did you mean `strategies`?"), "{text}");
    let text = duet(path, &["plot", "nowhere"], 3);
    assert!(
        text.contains("cannot read the results `nowhere`: there is no such file or folder"),
        "{text}"
    );
    let table = fs::read_to_string(path.join("results/small/results.csv")).unwrap();
    fs::write(path.join("bare.csv"), &table).unwrap();
    let text = duet(path, &["plot", "bare.csv"], 3);
    assert!(text.contains("--experiment FILE"), "{text}");
    for (name, from, to, words) in [
        (
            "other.yaml",
            "name: small",
            "name: other",
            "they are of `small`, not of `other`",
        ),
        (
            "changed.yaml",
            "[32, 512, 1024]",
            "[32, 512]",
            "its machines, cases or strategies have changed since",
        ),
    ] {
        fs::write(path.join(name), crate::SMALL.replacen(from, to, 1)).unwrap();
        let text = duet(path, &["plot", "results/small", "--experiment", name], 3);
        assert!(
            text.contains(&format!(
                "{words}\n  help: name the experiment that they are of"
            )),
            "{text}"
        );
    }
    let edited = table.replacen("fusion-ring", "fusion-rink", 1);
    fs::write(path.join("bare.csv"), edited).unwrap();
    let text = duet(path, &["plot", "bare.csv", "--experiment", "small.yaml"], 3);
    assert!(
        text.contains(" --> bare.csv:") && text.contains("did you mean `fusion-ring`?"),
        "{text}"
    );
    fs::create_dir(path.join("stopped")).unwrap();
    fs::write(path.join("stopped/results.csv.partial"), &table).unwrap();
    let text = duet(path, &["plot", "stopped"], 3);
    assert!(text.contains("is not finished"), "{text}");
    fs::write(path.join("file"), "").unwrap();
    let text = duet(path, &["plot", "results/small", "--out", "file/plots"], 3);
    assert!(
        text.contains("cannot make the folder `file/plots`"),
        "{text}"
    );
    fs::write(
        path.join("published.yaml"),
        "paper: p\nmachine: m\nfigurs: []\n",
    )
    .unwrap();
    let text = duet(path, &["plot", "results/small"], 3);
    assert!(text.contains("published.yaml:3:1"), "{text}");
    let listed = duet(path, &["plot", "--list", "--format", "csv"], 0);
    assert_eq!(
        listed.lines().count(),
        1 + duet::report::figures::registry().len()
    );
}

#[test]
fn a_table_without_rows_is_refused() {
    let folder = performed();
    let table = folder.path().join("results/small/results.csv");
    let text = fs::read_to_string(&table).unwrap();
    fs::write(&table, text.lines().next().unwrap().to_owned() + "\n").unwrap();
    let error = duet(folder.path(), &["plot", "results/small"], 3);
    assert_eq!(
        error,
        "error: `results/small/results.csv` has a header and no results\n  help: perform its experiment with `duet run`\n"
    );
}
