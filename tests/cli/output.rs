//! Where output goes and how it looks, whatever it says.

use std::io::Read;
use std::process::{Command, Stdio};

use super::{PAIR, duet, stdout};

#[test]
fn the_same_bytes_for_any_number_of_threads() {
    for command in [
        "compare --format json",
        "compare --op gemm-rs --explain",
        "compare -t a6000-pairs-8 -t h200-nvswitch-8 --op all-to-all --bytes 64MiB --format csv",
        "sensitivity --format json",
        "simulate --format json --tasks",
    ] {
        let one = stdout(&format!("{command} --threads 1"));
        for threads in [2, 8] {
            assert_eq!(
                stdout(&format!("{command} --threads {threads}")),
                one,
                "{command}"
            );
        }
    }
}

#[test]
fn no_colour_without_a_terminal_unless_asked_for() {
    let plain = stdout(&format!("compare -t {PAIR}"));
    assert!(!plain.contains('\u{1b}'));
    let coloured = stdout(&format!("compare -t {PAIR} --color always"));
    assert!(coloured.contains("\u{1b}[32mbest:\u{1b}[0m"));
    // The codes are all that differs.
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        stripped.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    assert_eq!(stripped + rest, plain);
}

#[test]
fn tables_fit_narrow_terminals() {
    for command in [
        "compare --explain".to_owned(),
        "compare --op all-gather --bytes 64MiB".to_owned(),
        "compare -t h200-nvswitch-8 -t a6000-pairs-8 -t b200-nvswitch-8".to_owned(),
        "topology show a6000-pairs-8".to_owned(),
        format!("simulate -t {PAIR}"),
        "sensitivity".to_owned(),
        "fit examples/times.csv --holdout 1/3".to_owned(),
        "fit examples/times.csv --terms compass".to_owned(),
        "strategies".to_owned(),
        "gpus".to_owned(),
        "topology list".to_owned(),
        "topology rings a6000-pairs-8".to_owned(),
        "topology bound a6000-pairs-8".to_owned(),
    ] {
        for width in ["80", "100"] {
            let assert = duet(&command).env("COLUMNS", width).assert().success();
            let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(
                widest <= width.parse().unwrap(),
                "{command} at {width}:\n{text}"
            );
        }
    }
}

#[test]
fn a_file_gets_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["table", "json", "csv"] {
        let path = folder.path().join(format);
        let command = format!("compare -t {PAIR} --format {format}");
        assert_eq!(stdout(&format!("{command} -o {}", path.display())), "");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), stdout(&command));
    }
    // No temporary file is left behind.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

/// What cannot be said is no reason to panic, least of all between measurements.
#[cfg(target_os = "linux")]
#[test]
fn a_failure_that_cannot_be_said_keeps_its_exit_code() {
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let status = Command::new(assert_cmd::cargo::cargo_bin("duet"))
        .args(["compare", "-t", "no-such-machine"])
        .stderr(full)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("duet"))
        .args(["completions", "zsh"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut text = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
    assert_eq!(text, "");
}
