//! The command line: the only room that prints or exits.
//!
//! One file per subcommand; each has an `Args` struct and a `run` function that returns a
//! `Failure` instead of exiting.

mod apart;
mod args;
mod calibrate;
mod compare;
mod completions;
mod error;
mod evaluate;
mod fit;
mod gpu;
mod gpus;
mod merge;
mod output;
mod plot;
mod predict;
mod products;
mod progress;
mod run;
mod sensitivity;
mod simulate;
mod strategies;
mod topology;
mod tune;
mod validate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use error::Failure;

/// More threads than this, and than there are cores, would spend minutes looking for work.
const USEFUL_THREADS: usize = 128;

/// Which way of overlapping communication with computation is fastest on this machine, by how
/// much, and why.
#[derive(Parser, Debug)]
#[command(name = "duet", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Worker threads [default: one per core]; results do not depend on it
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Rank all strategies for an operator on one or more machines, and say why
    Compare(compare::CompareArgs),
    /// Perform one strategy or schedule file and show where its time goes
    Simulate(simulate::SimulateArgs),
    /// Draw the figures of results that exist, or list the figures
    Plot(plot::PlotArgs),
    /// Say what the closed forms say, and which strategy they choose
    Predict(predict::PredictArgs),
    /// Say which link or engine to upgrade first
    Sensitivity(sensitivity::SensitivityArgs),
    /// Perform a grid of cases from a file into a table, resumably and in parts
    Run(run::RunArgs),
    /// Join the tables of an experiment's shards
    Merge(merge::MergeArgs),
    /// Perform an experiment's cases on this machine's GPUs, resumably, into a table of times
    Validate(Box<validate::ValidateArgs>),
    /// Find the fastest setting of shapes: simulate all, measure the best few
    Tune(Box<tune::TuneArgs>),
    /// Fit the overheads of overlapping to measured times
    Fit(fit::FitArgs),
    /// List, show, draw and check machines
    Topology(topology::TopologyArgs),
    /// List the strategies and what they do
    Strategies(strategies::StrategiesArgs),
    /// Measure this machine's GPUs and links and write them as a topology
    Calibrate(calibrate::CalibrateArgs),
    /// Show and test the real GPUs of this machine
    Gpu(gpu::GpuArgs),
    /// List the GPU profiles
    Gpus(gpus::GpusArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
}

/// Parses the arguments, runs the command and returns the exit code (0 ok, 1 internal, 2 usage,
/// 3 bad input, 4 no usable GPU, 5 validation outside tolerance).
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout with code 0; a closed pipe is nobody's error.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::Closed) {
                output::tell(&failure.to_string());
            }
            failure.code()
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    if let Some(threads) = cli.threads {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        rayon::ThreadPoolBuilder::new()
            .num_threads(usize::from(threads).min(cores.max(USEFUL_THREADS)))
            .build_global()
            .map_err(|error| {
                Failure::Internal(format!("error: cannot start {threads} threads: {error}"))
            })?;
    }
    match cli.command {
        Command::Compare(args) => compare::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Plot(args) => plot::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::Sensitivity(args) => sensitivity::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Fit(args) => fit::run(&args),
        Command::Topology(args) => topology::run(&args),
        Command::Strategies(args) => strategies::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Gpu(args) => gpu::run(&args),
        Command::Gpus(args) => gpus::run(&args),
        Command::Completions(args) => completions::run(&args),
    }
}
