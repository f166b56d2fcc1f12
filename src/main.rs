//! The `duet` binary; everything is in [`duet::cli`].

fn main() -> std::process::ExitCode {
    duet::cli::main()
}
