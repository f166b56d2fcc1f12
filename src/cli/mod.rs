//! The command line: the only room that prints or exits.

/// Parses the arguments, runs the command and returns the exit code (0 ok, 1 internal, 2 usage,
/// 3 bad input, 4 no usable GPU, 5 validation outside tolerance).
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
