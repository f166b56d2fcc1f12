//! Shards and their merging.

use std::fs;
use std::path::{Path, PathBuf};

use duet::experiment::merge::{self, MergeError};
use duet::experiment::run::{self, RunError};
use duet::experiment::{self};

use crate::{Nobody, options, perform, small, whole};

/// Performs one shard of `text` into `out`.
fn shard(text: &str, which: &str, out: &Path) {
    let experiment = experiment::parse(text, "small.yaml", &[]).unwrap();
    let mut options = options(out);
    options.shard = Some(which.parse().unwrap());
    run::run(&experiment, &options, &Nobody).unwrap();
}

/// All shards of the small experiment.
fn all(of: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for index in 1..=of {
        shard(crate::SMALL, &format!("{index}/{of}"), folder.path());
    }
    folder
}

fn said(paths: &[PathBuf]) -> String {
    merge::merge(paths, None).unwrap_err().to_string()
}

#[test]
fn any_sharding_merges_to_the_same_bytes() {
    // 12 cases: also shards of one case, and empty ones.
    for of in [1, 3, 5, 14] {
        let folder = all(of);
        let merged = merge::merge(&[folder.path().to_owned()], None).unwrap();
        assert_eq!((merged.shards, merged.cases), (of, 12));
        assert!(fs::read(&merged.path).unwrap() == whole(), "{of} shards");
        // The merged table is the whole run's, so nothing is performed again.
        let finished = perform(&options(folder.path())).unwrap();
        assert_eq!(finished.kept, small().cases.len() as u64);
    }
}

#[test]
fn shards_may_lie_anywhere() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    shard(crate::SMALL, "1/2", one.path());
    shard(crate::SMALL, "2/2", two.path());
    let out = one.path().join("new");
    let files = [
        two.path().join("results.shard-2-of-2.csv"),
        one.path().to_owned(),
    ];
    let merged = merge::merge(&files, Some(&out)).unwrap();
    assert_eq!(merged.path, out.join("results.csv"));
    assert!(fs::read(&merged.path).unwrap() == whole());
}

#[test]
fn what_is_missing_is_named() {
    let folder = all(4);
    let path = |index: u32| {
        folder
            .path()
            .join(format!("results.shard-{index}-of-4.csv"))
    };
    let folders = [folder.path().to_owned()];
    fs::remove_file(path(2)).unwrap();
    let file = std::path::absolute("small.yaml").unwrap();
    assert_eq!(
        said(&folders),
        format!(
            "shard 2 of 4 is missing: run `duet run {} --out {} --shard 2/4`, and so on, then merge again",
            file.display(),
            folder.path().display()
        )
    );
    fs::rename(
        path(3),
        folder.path().join("results.shard-3-of-4.csv.partial"),
    )
    .unwrap();
    assert!(said(&folders).starts_with("shards 2 and 3 of 4 are missing: run"));
    assert!(said(&[path(3)]).contains("its run was stopped"));
    assert!(said(&[path(2)]).contains("there is no such file"));
    let nothing = tempfile::tempdir().unwrap();
    assert!(said(&[nothing.path().to_owned()]).starts_with("no shards in `"));
    assert!(!folder.path().join("results.csv").exists());
}

#[test]
fn what_does_not_belong_is_named() {
    let folder = all(2);
    let folders = [folder.path().to_owned()];
    let first = folder.path().join("results.shard-1-of-2.csv");
    let twice = said(&[folders[0].clone(), first.clone()]);
    assert!(twice.starts_with("shard 1/2 is there twice"), "{twice}");
    shard(crate::SMALL, "3/3", folder.path());
    let words = said(&folders);
    assert!(
        words.contains("one is of 2 shards, the other of 3"),
        "{words}"
    );
    let other = tempfile::tempdir().unwrap();
    shard(&crate::SMALL.replace("512", "768"), "2/2", other.path());
    let words = said(&[first, other.path().to_owned()]);
    assert!(
        words.contains("`small` or a topology was changed"),
        "{words}"
    );
}

#[test]
fn a_damaged_shard_is_named() {
    let folder = all(2);
    let second = folder.path().join("results.shard-2-of-2.csv");
    let text = fs::read_to_string(&second).unwrap();
    let cut = text.len() - 10;
    for damaged in [
        &text[..cut],
        &text.replace(",4,", ",5,"),
        &(text.clone() + "x\n"),
        "x\n",
    ] {
        fs::write(&second, damaged).unwrap();
        let error = merge::merge(&[folder.path().to_owned()], None).unwrap_err();
        let words = error.to_string();
        assert!(matches!(error, MergeError::Damaged { .. }), "{words}");
        assert!(
            words.contains("-2-of-2.csv`:") && words.contains("--shard 2/2 --fresh"),
            "{words}"
        );
    }
    assert!(!folder.path().join("results.csv").exists());
}

#[test]
fn a_folder_with_another_table_is_not_overwritten() {
    let folder = all(2);
    let changed = crate::SMALL.replace("512", "768");
    let changed = experiment::parse(&changed, "small.yaml", &[]).unwrap();
    run::run(&changed, &options(folder.path()), &Nobody).unwrap();
    let before = fs::read(folder.path().join("results.csv")).unwrap();
    let error = merge::merge(&[folder.path().to_owned()], None).unwrap_err();
    assert!(
        matches!(error, MergeError::Run(RunError::Changed { .. })),
        "{error}"
    );
    assert_eq!(fs::read(folder.path().join("results.csv")).unwrap(), before);
}

#[test]
fn a_stamp_with_absurd_numbers_is_an_answer() {
    for (key, words) in [("rows", "rows"), ("cases", "case 13 should stand here")] {
        let folder = all(2);
        for index in 1..=2 {
            let path = folder
                .path()
                .join(format!("results.shard-{index}-of-2.run.json"));
            let text = std::fs::read_to_string(&path).unwrap();
            let mut stamp: serde_json::Value = serde_json::from_str(&text).unwrap();
            stamp[key] = u64::MAX.into();
            std::fs::write(&path, stamp.to_string()).unwrap();
        }
        let text = said(&[folder.path().to_owned()]);
        assert!(text.contains(words), "{text}");
    }
}
