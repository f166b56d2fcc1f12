//! `duet simulate`: one strategy in full.

use std::path::PathBuf;

use clap::Args;

use super::args::{MachineArgs, OperatorArgs, RunArgs};
use super::error::Failure;
use super::evaluate::{self, Judge};
use super::output::{Format, OutputArgs, write_file};
use crate::report::simulation::{self, Simulation};
use crate::report::trace;
use crate::schedule::Schedule;
use crate::strategy;
use crate::timeline::critical_path;
use crate::topology::Topology;

#[derive(Args, Debug)]
pub struct SimulateArgs {
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    operator: OperatorArgs,
    /// The strategy, e.g. `interdecom:d=4` [default: the fastest of `duet compare`]
    #[arg(long, value_name = "STRATEGY", help_heading = "Run")]
    strategy: Option<String>,
    #[command(flatten)]
    run: RunArgs,
    /// Write a trace for ui.perfetto.dev or chrome://tracing
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    trace: Option<PathBuf>,
    /// List every task (always in CSV)
    #[arg(long, help_heading = "Output")]
    tasks: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &SimulateArgs) -> Result<(), Failure> {
    let topology = args.machine.load_one()?;
    let (judge, schedule) = from_strategy(&topology, args)?;
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
            judge.build(&choice).map_err(|reason| {
                Failure::Input(format!("error: `{choice}` cannot be performed: {reason}"))
            })?
        }
        None => judge.fastest(&strategy::candidates(&operator))?.0,
    };
    Ok((judge, schedule))
}
