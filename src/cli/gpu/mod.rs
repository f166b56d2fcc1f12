//! `duet gpu`: the real GPUs of this machine, and what would be enqueued on them.

mod check;
mod enter;
mod info;
mod plan;
mod plan_json;
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
    /// Print what would be enqueued for a strategy or schedule file; needs no GPU
    Plan(plan::PlanArgs),
}

pub fn run(args: &GpuArgs) -> Result<(), Failure> {
    match &args.command {
        Command::Info(args) => info::run(args),
        Command::Check(args) => check::run(args),
        Command::Plan(args) => plan::run(args),
    }
}
