//! `duet gpu plan`: the lowering of a schedule, for people who want to see what is enqueued.

use std::path::PathBuf;

use clap::Args;

use super::lowering::LoweringArgs;
use super::{plan_json, plan_text, products};
use crate::cli::args::{MachineArgs, OperatorArgs};
use crate::cli::error::Failure;
use crate::cli::evaluate;
use crate::cli::output::{Format, OutputArgs};
use crate::cli::simulate;
use crate::gpu::plan;
use crate::report::grid::{Paint, clean, paint};
use crate::schedule::Schedule;
use crate::schedule::verify::GpuSms;
use crate::topology::Topology;

#[derive(Args, Debug)]
pub struct PlanArgs {
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    operator: OperatorArgs,
    /// The strategy, e.g. `interdecom:d=4,comm=direct`
    #[arg(
        long,
        value_name = "STRATEGY",
        help_heading = "Run",
        default_value = "sequential",
        conflicts_with = "schedule"
    )]
    strategy: String,
    /// Lower the schedule in this JSON file instead; it brings its own operator and placement
    #[arg(long, value_name = "FILE", help_heading = "Run", conflicts_with_all = ["op", "m", "n", "k", "bytes", "model", "layer", "seq", "batch", "tp", "dtype", "gpus"])]
    schedule: Option<PathBuf>,
    /// GPUs that share the ranks, in rank order [default: one for each rank]
    #[arg(long, value_name = "N", help_heading = "Run", value_parser = clap::value_parser!(u32).range(1..))]
    gpus: Option<u32>,
    #[command(flatten)]
    lowering: LoweringArgs,
    /// List every step in issue order (always in JSON and CSV)
    #[arg(long, help_heading = "Output")]
    steps: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &PlanArgs) -> Result<(), Failure> {
    let topology = args.machine.load()?;
    let schedule = schedule(args, &topology)?;
    let sms = |gpu: u32| {
        let device = topology.device(gpu);
        GpuSms {
            total: device.sms,
            collective: device.library.sms,
        }
    };
    let plan = plan::lower(&schedule, &args.lowering.options(), Some(&sms)).map_err(|error| {
        Failure::Input(format!(
            "error: `{}` cannot be performed: {error}",
            schedule.strategy
        ))
    })?;
    let launches = products::launches(&plan, &topology);
    match args.output.format {
        Format::Table => {
            let look = args.output.look();
            let mut text = format!(
                "{}\n{}\n\n{}\n{}",
                paint(&clean(&schedule.strategy), Paint::Bold),
                plan_text::summary(&schedule, &plan),
                plan_text::streams(&plan).draw(&look),
                plan_text::memory(&plan).draw(&look),
            );
            if !launches.is_empty() {
                text.push('\n');
                text.push_str(&products::table(&launches).draw(&look));
            }
            if args.steps {
                text.push('\n');
                text.push_str(&plan_text::steps(&plan).draw(&look));
            }
            args.output.draw(&text)
        }
        Format::Json => {
            let mut value = plan_json::json(&schedule, &plan);
            value["products"] = products::json(&launches);
            args.output.json(&value)
        }
        Format::Csv => args
            .output
            .write(plan_text::records(&plan).csv().as_bytes()),
    }
}

fn schedule(args: &PlanArgs, topology: &Topology) -> Result<Schedule, Failure> {
    if let Some(path) = &args.schedule {
        return simulate::read_schedule(path, topology);
    }
    let ranks = args
        .operator
        .resolve_virtual(topology, args.gpus.is_some())?;
    let gpus = args.gpus.unwrap_or(ranks.tp);
    let there = topology.gpus.len() as u32;
    if gpus > there.min(ranks.tp) {
        return Err(Failure::Input(format!(
            "error: {} ranks on {gpus} of {there} GPUs\n  help: give `--gpus` at most the number of ranks and of GPUs",
            ranks.tp
        )));
    }
    let share = |rank: u32| (u64::from(rank) * u64::from(gpus) / u64::from(ranks.tp)) as u32;
    let placement: Vec<u32> = (0..ranks.tp).map(share).collect();
    let choice = evaluate::choice(&args.strategy)?;
    choice
        .build(&ranks, topology, &placement)
        .map_err(|skip| Failure::cannot_perform(&choice.to_string(), &skip.reason))
}
