//! Rooms import leftwards only, and only `cli` prints or exits.
//!
//! The test reads the sources: every `crate::<room>` outside comments and unit tests must name a
//! room further left in the line that `src/lib.rs` states.

use std::fs;
use std::path::{Path, PathBuf};

/// Left to right; a room may use those before it.
const ROOMS: [&str; 17] = [
    "units",
    "input",
    "device",
    "topology",
    "operator",
    "schedule",
    "strategy",
    "timeline",
    "sim",
    "predict",
    "gpu",
    "calibrate",
    "experiment",
    "validate",
    "tune",
    "report",
    "cli",
];

/// Pairs that the line would allow and the design does not: results are drawn without knowing who
/// performed, and closed forms are checked against the simulator without leaning on it.
const FORBIDDEN: [(&str, &str); 6] = [
    ("report", "sim"),
    ("predict", "sim"),
    ("calibrate", "sim"),
    ("gpu", "sim"),
    ("gpu", "predict"),
    ("report", "gpu"),
];

/// A source file of a room, comments and unit tests removed.
struct Source {
    room: String,
    path: PathBuf,
    code: String,
}

impl Source {
    fn find(&self, pattern: &str) -> Vec<String> {
        self.code
            .lines()
            .filter(|line| line.contains(pattern))
            .map(|line| format!("{}: `{}`", self.path.display(), line.trim()))
            .collect()
    }
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The text without `//` comments and without what `#[cfg(test)]` covers, blocks being closed by a
/// brace at the indentation of the attribute (rustfmt's layout).
fn strip(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" {
            let indent = &line[..line.len() - line.trim_start().len()];
            let close = format!("{indent}}}");
            if lines
                .next()
                .is_some_and(|item| item.trim_end().ends_with('{'))
            {
                lines.by_ref().find(|line| *line == close);
            }
            continue;
        }
        let comment = line.trim_start().starts_with("//");
        if !comment {
            code.push_str(line.split(" // ").next().unwrap_or_default());
            code.push('\n');
        }
    }
    code
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    for room in ROOMS {
        let mut folders = vec![src().join(room)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("each room is a folder") {
                let path = entry.expect("readable").path();
                if path.is_dir() {
                    // Unit tests of a module that are many files.
                    if !path.ends_with("tests") {
                        folders.push(path);
                    }
                } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs")
                {
                    found.push(Source {
                        room: room.to_owned(),
                        code: strip(&fs::read_to_string(&path).expect("UTF-8")),
                        path,
                    });
                }
            }
        }
    }
    found
}

/// The rooms that the code names as `crate::<room>` or inside `crate::{…}`.
fn uses(code: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let named = if rest.starts_with('{') {
            &rest[..rest.find(';').unwrap_or(rest.len())]
        } else {
            &rest[..rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len())]
        };
        let words: Vec<&str> = named
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .collect();
        found.extend(ROOMS.iter().filter(|room| words.contains(room)));
    }
    found
}

fn place(room: &str) -> usize {
    ROOMS.iter().position(|r| *r == room).expect("a known room")
}

#[test]
fn every_folder_is_a_room_and_the_line_is_stated() {
    let mut folders: Vec<String> = fs::read_dir(src())
        .expect("src exists")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    folders.sort();
    let mut rooms = ROOMS.map(str::to_owned).to_vec();
    rooms.sort();
    assert_eq!(folders, rooms);
    let line = ROOMS.join(" ► ");
    for file in ["src/lib.rs", "docs/architecture.md"] {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        assert!(text.contains(&line), "{file} does not state `{line}`");
    }
}

#[test]
fn rooms_import_leftwards() {
    let mut seen = 0;
    for source in sources() {
        for used in uses(&source.code) {
            seen += 1;
            assert!(
                place(used) <= place(&source.room),
                "{}: room `{}` may not use `{used}`, which stands right of it",
                source.path.display(),
                source.room
            );
            assert!(
                !FORBIDDEN.contains(&(source.room.as_str(), used)),
                "{}: room `{}` may not use `{used}`",
                source.path.display(),
                source.room
            );
        }
    }
    assert!(seen > 0, "no `use crate::` found at all");
}

#[test]
fn only_cli_prints_or_exits() {
    for source in sources().iter().filter(|s| s.room != "cli") {
        for word in [
            "print!(",
            "println!(",
            "dbg!(",
            "process::exit",
            "process::abort",
        ] {
            let found = source.find(word);
            assert!(found.is_empty(), "{word} outside `cli`: {found:#?}");
        }
    }
}

#[test]
fn the_simulator_has_no_files_no_clock_and_no_randomness() {
    for source in sources().iter().filter(|s| s.room == "sim") {
        for word in [
            "std::fs",
            "std::io",
            "std::env",
            "Instant",
            "SystemTime",
            "rand::",
        ] {
            let found = source.find(word);
            assert!(found.is_empty(), "{word} in `sim`: {found:#?}");
        }
    }
}

#[test]
fn only_gpu_knows_cuda_and_only_its_thin_wrappers_are_unsafe() {
    for source in sources() {
        for word in ["cudarc", "libloading"] {
            let found = source.find(word);
            assert!(source.room == "gpu" || found.is_empty(), "{found:#?}");
        }
        let thin = source.path.starts_with(src().join("gpu/raw"));
        let found = source.find("unsafe");
        assert!(thin || found.is_empty(), "unsafe outside raw: {found:#?}");
    }
}

#[test]
fn main_is_short() {
    let text = fs::read_to_string(src().join("main.rs")).expect("main.rs exists");
    assert!(text.lines().count() < 60);
}

#[test]
fn the_reader_sees_what_it_must_and_no_more() {
    let text = "//! [`crate::cli`]\nuse crate::units::Bytes; // crate::report\nuse crate::{device::Device, topology};\n#[cfg(test)]\nmod tests {\n    use crate::cli;\n}\nfn f() { crate::sim::run() }\n";
    assert_eq!(uses(&strip(text)), ["units", "device", "topology", "sim"]);
}
