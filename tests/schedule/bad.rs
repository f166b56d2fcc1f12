//! Broken files in `tests/bad/schedule/`, each with the whole text that Duet prints about it in a
//! file `.expected` beside it. `BLESS=1` writes them afresh.

use std::fs;
use std::path::Path;

use duet::schedule::json;
use duet::schedule::verify::{Limits, verify};

#[test]
fn every_broken_file_is_explained() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad/schedule");
    let mut files: Vec<_> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "json"))
        .collect();
    files.sort();
    assert!(files.len() >= 40, "only {} broken files", files.len());
    let mut wrong = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Err(error) = json::read(&text, name) else {
            panic!("{name} is accepted");
        };
        let said = format!("{error}\n");
        // Every mistake has a place, a caret and a remedy.
        assert!(
            said.contains(&format!("--> {name}:")) && said.contains('^'),
            "{said}"
        );
        let expected = path.with_extension("expected");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&expected, &said).unwrap();
        }
        if fs::read_to_string(&expected).unwrap_or_default() != said {
            wrong.push(said);
        }
    }
    assert!(wrong.is_empty(), "not as expected:\n{}", wrong.join("\n"));
}

/// Files in `refused/` are read and refused by the verifier.
#[test]
fn every_refused_file_is_explained() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad/schedule/refused");
    let names = [
        "accumulate-in-one-kernel",
        "event-inside-a-kernel",
        "read-in-one-kernel",
    ];
    for name in names {
        let path = dir.join(name).with_extension("json");
        let text = fs::read_to_string(&path).unwrap();
        let schedule = json::read(&text, name).unwrap_or_else(|error| panic!("{error}"));
        let error = verify(&schedule, &Limits::default()).expect_err(name);
        let said = format!("{error}\n");
        let expected = path.with_extension("expected");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&expected, &said).unwrap();
        }
        assert_eq!(
            fs::read_to_string(&expected).unwrap_or_default(),
            said,
            "{name}"
        );
    }
}
