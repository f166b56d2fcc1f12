//! The broken files of `tests/bad/schedule/`, see [`crate::corpus`].

use std::fs;
use std::path::Path;

use duet::schedule::json;
use duet::schedule::verify::{Limits, verify};

use crate::corpus::every_file_is_explained;

#[test]
fn every_broken_file_is_explained() {
    every_file_is_explained("schedule", "json", |name, bytes| {
        let text = std::str::from_utf8(bytes).unwrap();
        json::read(text, name).err().map(|error| error.to_string())
    });
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
