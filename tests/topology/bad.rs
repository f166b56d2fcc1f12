//! Broken files in `tests/bad/topology/`, each with the whole text that Duet prints about it in a
//! file `.expected` beside it. `BLESS=1` writes them afresh.

use std::fs;
use std::path::Path;

use duet::input::decode;
use duet::topology::parse;

use crate::resolve;

#[test]
fn every_broken_file_is_explained() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad/topology");
    let mut files: Vec<_> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "yaml"))
        .collect();
    files.sort();
    assert!(files.len() >= 40, "only {} broken files", files.len());
    let mut wrong = Vec::new();
    for path in files {
        let bytes = fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let said = match decode(name, &bytes) {
            Err(error) => error,
            Ok(text) => match parse(text, name, &[], &resolve) {
                Err(error) => error.to_string(),
                Ok(_) => panic!("{name} is accepted"),
            },
        };
        let said = said + "\n";
        // Every mistake has a place and a caret.
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
