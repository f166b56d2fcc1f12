//! `duet gpu`: the real GPUs of this machine.

mod check;
mod enter;
mod info;
mod watchdog;

use clap::{Args, Subcommand};

use super::error::Failure;

pub use enter::enter;
pub use watchdog::Watchdog;

#[derive(Args, Debug)]
pub struct GpuArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show the libraries, GPUs and links of this machine, and what is missing
    Info(info::InfoArgs),
    /// Test every kernel and library call on every GPU against the host
    Check(check::CheckArgs),
}

pub fn run(args: &GpuArgs) -> Result<(), Failure> {
    match &args.command {
        Command::Info(args) => info::run(args),
        Command::Check(args) => check::run(args),
    }
}
