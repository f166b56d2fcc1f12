//! A folder of broken files, each with the whole text that Duet prints about it in a file
//! `.expected` beside it. `BLESS=1` writes them afresh.

use std::fs;
use std::path::Path;

/// Checks every file of `folder` (below `tests/bad/`) that ends in `ext`. `say` gives what is
/// printed about a file's bytes under its name; `None`: it was accepted.
pub fn every_file_is_explained(
    folder: &str,
    ext: &str,
    say: impl Fn(&str, &[u8]) -> Option<String>,
) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/bad")
        .join(folder);
    let mut files: Vec<_> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == ext))
        .collect();
    files.sort();
    assert!(files.len() >= 40, "only {} broken files", files.len());
    let mut wrong = Vec::new();
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some(said) = say(name, &fs::read(&path).unwrap()) else {
            panic!("{name} is accepted");
        };
        let said = said + "\n";
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
