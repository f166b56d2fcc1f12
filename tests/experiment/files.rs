//! Folders that cannot be written, folders in use, and disks that are full.

use std::fs;

use duet::experiment::run::RunError;

use crate::{options, perform, whole};

#[test]
fn a_path_that_is_no_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("taken");
    fs::write(&file, "").unwrap();
    for (path, what) in [
        (file.clone(), "it is a file"),
        (file.join("below"), "directory"),
    ] {
        let error = perform(&options(&path)).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, RunError::Folder { .. }), "{text}");
        assert!(
            text.contains(what) && text.contains("help: choose another"),
            "{text}"
        );
    }
    assert_eq!(fs::read(&file).unwrap(), b"");
}

#[test]
fn two_runs_at_once_are_refused_and_a_dead_one_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let lock = fs::File::create(folder.path().join(".results.lock")).unwrap();
    lock.try_lock().unwrap();
    let error = perform(&options(folder.path())).unwrap_err();
    assert!(matches!(error, RunError::Busy { .. }));
    assert!(error.to_string().contains("help: wait for it"));
    // The lock goes with the process that holds it; the file may stay.
    drop(lock);
    perform(&options(folder.path())).unwrap();
}

/// A limit on the size of files does what a full disk does.
#[cfg(unix)]
#[test]
fn a_full_disk_is_said_and_nothing_written_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.yaml");
    fs::write(&file, crate::SMALL).unwrap();
    let out = folder.path().join("out");
    let duet = assert_cmd::cargo::cargo_bin("duet");
    let run = |limit: &str| {
        let script = format!("trap '' XFSZ; {limit} exec \"$0\" run \"$1\" --out \"$2\"");
        std::process::Command::new("sh")
            .args(["-c", &script])
            .args([&duet, &file, &out])
            .output()
            .unwrap()
    };
    // 12 blocks of 512 bytes hold the stamp and some cases.
    let full = run("ulimit -f 12;");
    let text = String::from_utf8(full.stderr).unwrap();
    assert_eq!(full.status.code(), Some(1), "{text}");
    assert!(text.starts_with("error: cannot write `"), "{text}");
    assert!(
        text.contains("results.csv.partial") && text.contains("written so far are kept"),
        "{text}"
    );
    assert!(!out.join("results.csv").exists());
    let kept = fs::read(out.join("results.csv.partial")).unwrap();
    assert!(whole().starts_with(&kept) && kept.len() > 4000);
    let again = run("");
    let text = String::from_utf8(again.stdout).unwrap();
    assert!(text.contains("of them from an earlier run"), "{text}");
    assert_eq!(fs::read(out.join("results.csv")).unwrap(), whole());
    // The figures do not fit either; the table stays.
    fs::remove_dir_all(out.join("plots")).unwrap();
    let full = run("ulimit -f 12;");
    let text = String::from_utf8(full.stderr).unwrap();
    assert_eq!(full.status.code(), Some(1), "{text}");
    assert!(text.contains(".svg`: File too large"), "{text}");
    assert!(text.contains("help: make room"), "{text}");
    assert_eq!(fs::read(out.join("results.csv")).unwrap(), whole());
}
