//! Reports of real measurements: each begins with the command that wrote it, which is run again.
//!
//! `UPDATE_PLOTS=1 cargo test --test validate committed` writes reports and figures anew.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{duet, root};

const WRITTEN_BY: &str = "<!-- written by: duet validate ";

/// Reports in the folders of experiments, and the arguments of the commands that wrote them.
fn reports() -> Vec<(PathBuf, Vec<String>)> {
    let folders = fs::read_dir(root().join("experiments")).unwrap();
    let files = folders
        .map(|folder| folder.unwrap().path())
        .filter(|path| path.is_dir())
        .flat_map(|folder| fs::read_dir(folder).unwrap())
        .map(|file| file.unwrap().path());
    let mut reports: Vec<(PathBuf, Vec<String>)> = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .filter_map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let command = text.lines().next()?.strip_prefix(WRITTEN_BY)?;
            let command = command.strip_suffix(" -->").expect("the mark is closed");
            let words = command.split(' ').map(str::to_owned);
            Some((path, words.collect()))
        })
        .collect();
    reports.sort();
    reports
}

/// The value after an option.
fn after<'a>(args: &'a [String], option: &str) -> Option<&'a str> {
    let at = args.iter().position(|word| word == option)?;
    args.get(at + 1).map(String::as_str)
}

#[test]
fn committed_reports_and_figures_are_what_the_program_writes() {
    for (path, args) in reports() {
        let report = after(&args, "--report").expect("it names itself");
        let plots = after(&args, "--plots");
        assert_eq!(root().join(report), path);
        if std::env::var_os("UPDATE_PLOTS").is_some() {
            let words: Vec<&str> = args.iter().map(String::as_str).collect();
            duet(&[&["validate"], words.as_slice()].concat(), 0);
            continue;
        }
        // The same files under another root.
        let folder = tempfile::tempdir().unwrap();
        let prefix = folder.path().display().to_string() + "/";
        let moved: Vec<String> = args
            .iter()
            .map(
                |word| match Some(word.as_str()) == Some(report) || Some(word.as_str()) == plots {
                    true => prefix.clone() + word,
                    false => word.clone(),
                },
            )
            .collect();
        fs::create_dir_all(folder.path().join(report).parent().unwrap()).unwrap();
        let words: Vec<&str> = moved.iter().map(String::as_str).collect();
        duet(&[&["validate"], words.as_slice()].concat(), 0);
        let written = fs::read_to_string(folder.path().join(report)).unwrap();
        let written = written.replace(&prefix, "");
        let committed = fs::read_to_string(&path).unwrap();
        assert!(
            written == committed,
            "{report} is no longer true; `UPDATE_PLOTS=1 cargo test --test validate committed` writes it anew"
        );
        if let Some(plots) = plots {
            same(&folder.path().join(plots), &root().join(plots));
        }
    }
}

/// Both folders hold the same drawings.
fn same(written: &Path, committed: &Path) {
    let names = |folder: &Path| {
        let files = fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name());
        let mut names: Vec<_> = files.collect();
        names.sort();
        names
    };
    assert_eq!(names(written), names(committed), "{}", committed.display());
    for name in names(written) {
        let read = |folder: &Path| fs::read(folder.join(&name)).unwrap();
        assert!(
            read(written) == read(committed),
            "{name:?} is no longer true"
        );
    }
}

#[test]
fn every_measured_table_is_read() {
    let pattern = root().join("experiments");
    let folders = fs::read_dir(pattern)
        .unwrap()
        .map(|folder| folder.unwrap().path());
    for folder in folders.filter(|folder| folder.join("predicted").is_dir()) {
        for file in fs::read_dir(folder.join("measured")).into_iter().flatten() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.ends_with("-tasks.csv") {
                duet::validate::tasks::read(&path).unwrap_or_else(|error| panic!("{error}"));
            } else if name.ends_with("-peers.csv") {
                duet::validate::peers::read(&path).unwrap_or_else(|error| panic!("{error}"));
            } else if name.ends_with(".csv") {
                duet::validate::table::read(&path).unwrap_or_else(|error| panic!("{error}"));
            }
        }
        for file in fs::read_dir(folder.join("predicted")).unwrap() {
            let path = file.unwrap().path();
            let read = duet::validate::prediction::Predictions::read(&path);
            read.unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
