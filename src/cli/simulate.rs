//! `duet simulate`: one strategy or schedule file, in full.

use std::path::{Path, PathBuf};

use clap::Args;

use super::apart::Files;
use super::args::{MachineArgs, OperatorArgs, PathArgs, RunArgs};
use super::error::Failure;
use super::evaluate::{self, Judge};
use super::output::{Format, OutputArgs, read_text, write_file};
use crate::report::simulation::{self, Simulation};
use crate::report::trace;
use crate::schedule::{self, Schedule};
use crate::strategy;
use crate::timeline::critical_path;
use crate::topology::Topology;

/// Largest schedule file [bytes].
const LARGEST: u64 = 1 << 30;

#[derive(Args, Debug)]
pub struct SimulateArgs {
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    path: PathArgs,
    #[command(flatten)]
    operator: OperatorArgs,
    /// The strategy, e.g. `interdecom:d=4` [default: the fastest of `duet compare`]
    #[arg(long, value_name = "STRATEGY", help_heading = "Run")]
    strategy: Option<String>,
    /// Perform the schedule in this JSON file instead; it brings its own operator and placement
    #[arg(long, value_name = "FILE", help_heading = "Run", conflicts_with_all = ["strategy", "op", "m", "n", "k", "bytes", "model", "layer", "seq", "batch", "tp", "dtype"])]
    schedule: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
    /// Write a trace for ui.perfetto.dev or chrome://tracing
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    trace: Option<PathBuf>,
    /// Write the schedule as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    save_schedule: Option<PathBuf>,
    /// List every task (always in CSV)
    #[arg(long, help_heading = "Output")]
    tasks: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &SimulateArgs) -> Result<(), Failure> {
    Files::default()
        .writes("--out", args.output.out.as_ref())
        .writes("--trace", args.trace.as_ref())
        .writes("--save-schedule", args.save_schedule.as_ref())
        .reads([&args.machine.topology])
        .reads(&args.schedule)
        .apart()?;
    let topology = args.path.on(&args.machine.load()?);
    let (judge, schedule) = match &args.schedule {
        Some(path) => from_file(path, &topology, args)?,
        None => from_strategy(&topology, args)?,
    };
    let words = |reason: String| {
        Failure::Input(format!(
            "error: `{}` cannot be performed: {reason}",
            schedule.strategy
        ))
    };
    let (timeline, numbers) = judge
        .perform(&schedule, args.trace.is_some())
        .map_err(words)?;
    let outcome = judge.outcome(schedule.strategy.clone(), numbers, judge.baseline());
    if let Some(path) = &args.save_schedule {
        write_file(path, schedule::json::write(&schedule).as_bytes())?;
    }
    if let Some(path) = &args.trace {
        let mut bytes = Vec::new();
        trace::write(&mut bytes, &topology, &schedule, &timeline).map_err(|error| {
            Failure::Internal(format!("error: cannot write the trace: {error}"))
        })?;
        write_file(path, &bytes)?;
    }
    let run = Simulation {
        topology: &topology,
        schedule: &schedule,
        timeline: &timeline,
        outcome: &outcome,
        expected_error: &judge.expected_error(),
        launch: judge.launch(),
        unsplit_gemm: judge.unsplit_gemm(),
        lower_bound: judge.lower_bound(),
        critical_path: critical_path(&timeline),
    };
    match args.output.format {
        Format::Table => {
            let look = args.output.look();
            args.output
                .draw(&simulation::table(&run, args.tasks, &look))
        }
        Format::Json => {
            let json = simulation::json(&run, args.tasks)?;
            args.output.write(json.as_bytes())
        }
        Format::Csv => args.output.write(simulation::csv(&run).as_bytes()),
    }
}

fn from_strategy<'t>(
    topology: &'t Topology,
    args: &SimulateArgs,
) -> Result<(Judge<'t>, Schedule), Failure> {
    let operator = args.operator.resolve(topology)?;
    let judge = Judge::new(topology, operator, &args.run);
    let schedule = match &args.strategy {
        Some(text) => {
            let choice = evaluate::choice(text)?;
            judge
                .build(&choice)
                .map_err(|reason| Failure::cannot_perform(&choice.to_string(), &reason))?
        }
        None => judge.fastest(&strategy::candidates(&operator))?.0,
    };
    Ok((judge, schedule))
}

fn from_file<'t>(
    path: &Path,
    topology: &'t Topology,
    args: &SimulateArgs,
) -> Result<(Judge<'t>, Schedule), Failure> {
    let schedule = read_schedule(path, topology)?;
    let placement = schedule.placement.clone();
    let judge = Judge::placed(topology, schedule.operator, placement, &args.run);
    Ok((judge, schedule))
}

/// A schedule from a file, for the GPUs of `topology`.
///
/// # Errors
/// [`Failure::Input`] with the place and what to do.
pub fn read_schedule(path: &Path, topology: &Topology) -> Result<Schedule, Failure> {
    let schedule = schedule_file(path)?;
    placed(topology, &schedule.placement)?;
    Ok(schedule)
}

/// That `topology` has the GPUs of `placement`.
///
/// # Errors
/// [`Failure::Input`] if not.
pub fn placed(topology: &Topology, placement: &[u32]) -> Result<(), Failure> {
    let gpus = topology.gpus.len();
    match placement.iter().find(|gpu| **gpu as usize >= gpus) {
        None => Ok(()),
        Some(gpu) => Err(Failure::Input(format!(
            "error: a rank is placed on GPU {gpu}, but {} has {gpus} GPUs\n  help: give a larger topology with `-t`, or change the placement",
            topology.name
        ))),
    }
}

/// A schedule from a file, for any GPUs.
///
/// # Errors
/// [`Failure::Input`] with the place and what to do.
pub fn schedule_file(path: &Path) -> Result<Schedule, Failure> {
    let text = read_text(path, LARGEST)?;
    schedule::json::read(&text, &path.display().to_string()).map_err(|error| Failure::input(&error))
}
