//! The command line as a user sees it: every command, its exit codes and its messages.

#[path = "cli/errors.rs"]
mod errors;
#[path = "cli/fit.rs"]
mod fit;
#[path = "cli/gpu.rs"]
mod gpu;
#[path = "cli/gpu_run.rs"]
mod gpu_run;
#[path = "cli/lists.rs"]
mod lists;
#[path = "cli/output.rs"]
mod output;
#[path = "cli/plan.rs"]
mod plan;
#[path = "cli/refit.rs"]
mod refit;
#[path = "cli/results.rs"]
mod results;
#[path = "cli/tune.rs"]
mod tune;
#[path = "cli/validate.rs"]
mod validate;

use assert_cmd::Command;
use serde_json::Value;

/// A machine whose numbers no one changes.
const PAIR: &str = "tests/data/pair.yaml";

/// `duet` with these arguments, separated by spaces, without a terminal.
fn duet(args: &str) -> Command {
    let mut command = Command::cargo_bin("duet").expect("built");
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR")
        .args(args.split_whitespace());
    command
}

/// Standard output of a success that said nothing on standard error.
fn stdout(args: &str) -> String {
    let assert = duet(args).assert().success().stderr("");
    String::from_utf8(assert.get_output().stdout.clone()).expect("UTF-8")
}

/// JSON of a success.
fn json(args: &str) -> Value {
    serde_json::from_str(&stdout(&format!("{args} --format json"))).expect("JSON")
}

/// Exit code and standard error of a failure that printed nothing else.
fn failure(args: &str) -> (i32, String) {
    let assert = duet(args).assert().failure().stdout("");
    let output = assert.get_output();
    let text = String::from_utf8(output.stderr.clone()).expect("UTF-8");
    (output.status.code().expect("an exit code"), text)
}
