//! `duet gpu`: the real GPUs of this machine, and what would be enqueued on them.

mod check;
mod enter;
mod info;
mod lowering;
mod plan;
mod plan_json;
mod plan_text;
mod predict;
mod products;
mod run;
mod run_output;
mod serve;
mod settings;
mod test;
mod watchdog;

use clap::{Args, Subcommand};

use super::error::Failure;

pub use enter::enter;
pub use settings::{UseArgs, read_seconds};
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
    Plan(Box<plan::PlanArgs>),
    /// Perform an operator by one or more strategies: check the results, then time them in turns
    Run(Box<run::RunArgs>),
    /// Perform random cases and compare their results with reference products
    Test(test::TestArgs),
    /// Measure once for each line of JSON on standard input, to take turns with other programs
    Serve(serve::ServeArgs),
}

pub fn run(args: &GpuArgs) -> Result<(), Failure> {
    match &args.command {
        Command::Info(args) => info::run(args),
        Command::Check(args) => check::run(args),
        Command::Plan(args) => plan::run(args),
        Command::Run(args) => run::run(args),
        Command::Test(args) => test::run(args),
        Command::Serve(args) => serve::run(args),
    }
}
