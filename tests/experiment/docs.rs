//! `docs/experiments.md` says what is so.

use std::fs;
use std::path::Path;

use duet::experiment;

fn text(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

#[test]
fn the_example_is_an_experiment() {
    let docs = text("docs/experiments.md");
    let example = docs.split("```yaml\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let read = experiment::parse(example, "mlp.yaml", &[]).unwrap();
    // 2 machines × 3 settings × 2 operators × 3 × 2 sizes, 3 paths × 2 cases, and 3 cases.
    assert_eq!(read.cases.len(), 72 + 6 + 3);
    // 2 under each of 3 settings, one with each of 3 paths, and one as it is.
    assert_eq!(read.machines.len(), 6 + 3 + 1);
    assert_eq!(read.axes, ["seq", "hidden", "size"]);
    assert_eq!(read.sets, ["links.pcie.bandwidth", "path", "gpus"]);
    assert_eq!(read.measure, experiment::Measure::default());
    let shared = &read.machines[read.cases[75].machine as usize];
    assert_eq!(shared.path.to_string(), "host:2MiB");
    assert_eq!(shared.placement(8), [0, 0, 1, 1, 2, 2, 3, 3]);
}

#[test]
fn every_column_is_documented() {
    let docs = text("docs/experiments.md");
    for column in experiment::results::header(&[], &[]) {
        assert!(docs.contains(&format!("`{column}`")), "{column}");
    }
}
