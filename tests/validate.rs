//! Measured times judged by predictions: the figures of a small table are those put in, pictures can
//! be read, and what is committed of real measurements is what the program writes.

#[path = "validate/committed.rs"]
mod committed;
#[path = "validate/figures.rs"]
mod figures;
#[path = "validate/kernels.rs"]
mod kernels;
#[path = "validate/synthetic.rs"]
mod synthetic;

use std::path::{Path, PathBuf};

use assert_cmd::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn data(name: &str) -> PathBuf {
    root().join("tests/data/validate").join(name)
}

/// Standard output, or standard error where the exit code is not 0; 160 columns, run at the root.
fn duet(args: &[&str], code: i32) -> String {
    let mut command = Command::cargo_bin("duet").expect("built");
    command.current_dir(root()).env("COLUMNS", "160");
    let assert = command.env("NO_COLOR", "1").args(args).assert().code(code);
    let output = assert.get_output();
    let text = match code {
        0 => &output.stdout,
        _ => &output.stderr,
    };
    String::from_utf8(text.clone()).unwrap()
}
