//! What README shows is what the program prints, and it names every strategy.
//!
//! A block between `<!-- printed by: COMMAND -->` and `<!-- end -->` holds the command's standard
//! output. `UPDATE_README=1 cargo test --test readme` writes the blocks anew.

use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;

const OPEN: &str = "<!-- printed by: ";
const CLOSE: &str = "<!-- end -->";

fn readme() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("README.md")
}

/// The standard output of `duet …`, 100 columns wide and without colour.
fn printed(command: &str) -> String {
    let mut words = command.split_whitespace();
    assert_eq!(words.next(), Some("duet"), "`{command}`");
    let output = Command::cargo_bin("duet")
        .expect("the binary is built")
        .args(words)
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("it starts");
    assert!(
        output.status.success(),
        "`{command}`: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The text with every block's content replaced, and the number of blocks.
fn regenerate(text: &str) -> (String, usize) {
    let (mut out, mut rest, mut blocks) = (String::new(), text, 0);
    while let Some(at) = rest.find(OPEN) {
        let command = &rest[at + OPEN.len()..];
        let command = &command[..command.find(" -->").expect("the opening line is closed")];
        let end = at + rest[at..].find(CLOSE).expect("the block is closed");
        out.push_str(&rest[..at]);
        let lines: String = printed(command)
            .lines()
            .map(|line| format!("{}\n", line.trim_end()))
            .collect();
        out += &format!("{OPEN}{command} -->\n```text\n{}\n```\n", lines.trim_end());
        rest = &rest[end..];
        blocks += 1;
    }
    (out + rest, blocks)
}

#[test]
fn blocks_are_what_the_program_prints() {
    let text = fs::read_to_string(readme()).expect("README.md exists");
    let (fresh, blocks) = regenerate(&text);
    assert!(blocks > 0, "README shows no output at all");
    if std::env::var_os("UPDATE_README").is_some() {
        fs::write(readme(), fresh).expect("README.md is writable");
    } else {
        assert!(
            fresh == text,
            "README is not what the program prints; `UPDATE_README=1 cargo test --test readme` writes it anew:\n{fresh}"
        );
    }
}

#[test]
fn every_strategy_has_a_row() {
    let text = fs::read_to_string(readme()).expect("README.md exists");
    let rows: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();
    for strategy in duet::strategy::registry() {
        let name = strategy.name();
        let row = |row: &&str| row.split(':').next() == Some(name);
        assert!(rows.iter().any(row), "README has no row `{name}`");
    }
}

#[test]
fn the_example_topology_is_valid() {
    let text = fs::read_to_string(readme()).expect("README.md exists");
    let (_, after) = text.split_once("```yaml\n").expect("README has a topology");
    let (yaml, _) = after.split_once("```").expect("which ends");
    let file = tempfile::Builder::new()
        .suffix(".yaml")
        .tempfile()
        .expect("a temporary file");
    fs::write(file.path(), yaml).expect("writable");
    Command::cargo_bin("duet")
        .expect("the binary is built")
        .args(["topology", "check"])
        .arg(file.path())
        .assert()
        .success();
}
