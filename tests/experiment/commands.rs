//! `duet run` and `duet merge` as a user sees them.

use std::fs;
use std::path::Path;

use assert_cmd::Command;

fn duet(folder: &Path, args: &str) -> Command {
    let mut command = Command::cargo_bin("duet").expect("built");
    command.current_dir(folder).args(args.split_whitespace());
    command
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("small.yaml"), crate::SMALL).unwrap();
    folder
}

fn said(folder: &Path, args: &str, code: i32) -> String {
    let output = duet(folder, args).assert().code(code).get_output().clone();
    let text = if code == 0 {
        output.stdout
    } else {
        output.stderr
    };
    String::from_utf8(text).unwrap()
}

#[test]
fn a_run_names_its_table_and_says_what_it_took_over() {
    let folder = folder();
    let path = folder.path();
    let text = said(path, "run small.yaml", 0);
    assert!(
        text.starts_with("results/small/results.csv: 12 cases\n"),
        "{text}"
    );
    let text = said(path, "run small.yaml", 0);
    assert!(
        text.contains("12 cases, all from an earlier run (`--fresh`"),
        "{text}"
    );
    let text = said(path, "run small.yaml --results parquet --threads 1", 0);
    assert!(
        text.starts_with("results/small/results.parquet: 12 cases, all"),
        "{text}"
    );
}

#[test]
fn a_dry_run_counts_and_writes_nothing() {
    let folder = folder();
    let text = said(folder.path(), "run small.yaml --dry-run --threads 2", 0);
    assert!(
        text.starts_with("small: 12 cases on 3 machines, "),
        "{text}"
    );
    assert!(
        text.contains("schedules, ") && text.contains(" on 2 threads"),
        "{text}"
    );
    let text = said(folder.path(), "run small.yaml --dry-run --shard 1/4", 0);
    assert!(text.starts_with("small: 3 cases"), "{text}");
    assert!(!folder.path().join("results").exists());
}

#[test]
fn shards_are_performed_and_merged() {
    let folder = folder();
    let path = folder.path();
    for index in 1..=3 {
        said(
            path,
            &format!("run small.yaml --out o --shard {index}/3"),
            0,
        );
    }
    let text = said(path, "merge o", 0);
    assert!(
        text.starts_with("o/results.csv: 12 cases of 3 shards; `duet run small.yaml --out o`"),
        "{text}"
    );
    assert!(fs::read(path.join("o/results.csv")).unwrap() == crate::whole());
    fs::remove_file(path.join("o/results.shard-2-of-3.csv")).unwrap();
    assert_eq!(
        said(path, "merge o", 3),
        "error: shard 2 of 3 is missing\n  help: run `duet run small.yaml --out o --shard 2/3`, and so on, then merge again\n"
    );
}

#[test]
fn mistakes_have_their_codes_and_remedies() {
    let folder = folder();
    let path = folder.path();
    let broken = crate::SMALL.replace("fusion-ring", "fusion-rink");
    fs::write(path.join("broken.yaml"), broken).unwrap();
    let text = said(path, "run broken.yaml", 3);
    assert!(
        text.contains("--> broken.yaml:10:42") && text.contains("did you mean `fusion-ring`?"),
        "{text}"
    );
    let figures = crate::SMALL.to_owned() + "figures: [bandwith]\n";
    fs::write(path.join("broken.yaml"), figures).unwrap();
    let text = said(path, "run broken.yaml", 3);
    assert!(
        text.contains("--> broken.yaml:17:11") && text.contains("did you mean `bandwidth`?"),
        "{text}"
    );
    let text = said(path, "run nowhere.yaml", 3);
    assert!(
        text.starts_with("error: cannot read the experiment `nowhere.yaml`: there is no such file"),
        "{text}"
    );
    let text = said(path, "run small.yaml --shard 5/4", 2);
    assert!(text.contains("write I/N with I from 1 to N"), "{text}");
    let text = said(path, "run small.yaml --shard 1/4 --results parquet", 2);
    assert!(text.contains("help: join them with `duet merge`"), "{text}");
    let text = said(path, "run small.yaml --out small.yaml", 3);
    assert!(
        text.contains("cannot write in the folder `small.yaml`: it is a file\n  help:"),
        "{text}"
    );
    said(path, "run small.yaml --out o", 0);
    fs::write(path.join("small.yaml"), crate::SMALL.replace("512", "768")).unwrap();
    let text = said(path, "run small.yaml --out o", 3);
    assert!(
        text.starts_with("error: `o/results.csv` holds results of `small` as it was before"),
        "{text}"
    );
    assert!(!path.join("results").exists());
}
