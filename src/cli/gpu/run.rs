//! `duet gpu run`: one operator by some strategies: checked, then timed in turns.

mod turns;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::lowering::LoweringArgs;
use super::predict::{possible, predict, write_tiles, write_trace};
use super::run_output::{Variant, csv, table, value};
use super::settings::{UseArgs, read_list, read_warm};
use crate::cli::args::OperatorArgs;
use crate::cli::error::Failure;
use crate::cli::output::{Format, OutputArgs};
use crate::cli::simulate::{placed, schedule_file};
use crate::gpu::campaign::{Case, lower_for, machine_topology, prepare, products_name};
use crate::gpu::exec::Machine;
use crate::gpu::plan::Options;
use crate::gpu::timing::Columns;
use crate::strategy;
use crate::topology;
use turns::{check, measure};

/// What building, lowering and reading may take beside the runs themselves.
const ASIDE: Duration = Duration::from_secs(60);

#[derive(Args, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    operator: OperatorArgs,
    /// The strategy, e.g. `interdecom:d=4`; several take turns
    #[arg(
        long,
        value_name = "STRATEGY",
        help_heading = "Performing",
        required_unless_present = "schedule"
    )]
    strategy: Vec<String>,
    /// Perform the schedule in this JSON file; it brings its own operator and placement
    #[arg(long, value_name = "FILE", help_heading = "Performing", conflicts_with_all = ["strategy", "op", "m", "n", "k", "bytes", "model", "layer", "seq", "batch", "tp", "dtype", "placement"])]
    schedule: Option<PathBuf>,
    /// The GPU of each rank, e.g. `0,0,1,1` [default: spread over the GPUs in blocks]
    #[arg(long, value_name = "LIST", help_heading = "Performing", value_parser = read_list)]
    placement: Option<std::vec::Vec<u32>>,
    /// Let strategies look at this topology [default: links between all pairs beside a PCIe hub]
    #[arg(short, long, value_name = "NAME|FILE", help_heading = "Performing")]
    topology: Option<String>,
    /// Set the simulator's times on that topology, with the same placement, beside the measured ones
    #[arg(long, requires = "topology", help_heading = "Performing")]
    predict: bool,
    #[command(flatten)]
    lowering: LoweringArgs,
    /// Do not compare results
    #[arg(long, help_heading = "Performing")]
    no_check: bool,
    /// Of the inputs and delays
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        help_heading = "Performing"
    )]
    seed: u64,
    /// Runs with fresh inputs and random delays that are compared
    #[arg(long, value_name = "N", default_value = "3", help_heading = "Performing", value_parser = clap::value_parser!(u32).range(1..))]
    replays: u32,
    /// Rounds of timing; 0: none
    #[arg(long, value_name = "N", default_value = "20", help_heading = "Timing")]
    rounds: u32,
    /// Time so many runs in a row as one, instead of each alone
    #[arg(long, value_name = "N", default_value = "1", help_heading = "Timing", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: u32,
    /// Let every GPU rest, then multiply for so long before each measurement, which brings it to
    /// the same clock every time; 0: neither
    #[arg(long, value_name = "TIME", default_value = "0.4ms", help_heading = "Timing", value_parser = read_warm)]
    warm: Duration,
    /// Let graphs record when each rank ends (a node more in each stream); streams always do
    #[arg(long, help_heading = "Timing")]
    graph_ends: bool,
    /// Write every measurement as a line of CSV as it is made
    #[arg(long, value_name = "FILE", help_heading = "Timing")]
    rows: Option<PathBuf>,
    /// Write a trace of the first strategy for ui.perfetto.dev, beside the simulated one with
    /// `--predict`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    trace: Option<PathBuf>,
    /// Write when the tiles of Duet's own products of the first strategy began, waited, were
    /// multiplied and stored, as CSV
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    tile_trace: Option<PathBuf>,
    #[command(flatten)]
    gpus: UseArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &RunArgs) -> Result<(), Failure> {
    for text in &args.strategy {
        strategy::parse(text).map_err(|error| Failure::Usage(format!("error: {error}")))?;
    }
    let given = args.schedule.as_deref().map(schedule_file).transpose()?;
    let ranks = match &given {
        Some(schedule) => schedule.operator.tp,
        None => args.operator.tp.unwrap_or(2),
    };
    // Shapes are refused before any GPU is asked for.
    let operator = match &given {
        Some(schedule) => schedule.operator,
        None => {
            let mut asked = args.operator.clone();
            asked.tp = Some(ranks);
            asked.resolve(&machine_topology(1, ranks, 1))?
        }
    };
    possible(operator.dtype, operator.kind.is_fused())?;
    let (session, watchdog) = args.gpus.open()?;
    let count = session.gpus().len() as u32;
    let placement = match (&given, &args.placement) {
        (Some(schedule), _) => schedule.placement.clone(),
        (None, Some(placement)) => placement.clone(),
        (None, None) => {
            let on = count.min(ranks);
            (0..ranks).map(|r| r * on / ranks).collect()
        }
    };
    if placement.len() != ranks as usize {
        return Err(Failure::Usage(format!(
            "error: `--placement` names {} GPUs for {ranks} ranks\n  help: give one for each rank",
            placement.len()
        )));
    }
    let mut numbers = placement.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let machine = args.gpus.machine(&session, &numbers, args.warm)?;
    let sms = machine.devices().iter().map(|d| d.gpu.attributes().sms);
    let sms = sms.min().unwrap_or(1);
    let topology = match &args.topology {
        Some(name) => topology::load(name, &[]).map_err(|error| Failure::input(&error))?,
        None => machine_topology(count, ranks, sms),
    };
    placed(&topology, &placement)?;
    let names: Vec<String> = match &given {
        Some(schedule) => vec![schedule.strategy.clone()],
        None => args.strategy.clone(),
    };
    let both = args.lowering.products().count() > 1;
    let mut variants = Vec::new();
    let cases = args.lowering.products().flat_map(|products| {
        let options = Options {
            products,
            ..args.lowering.options()
        };
        names.iter().map(move |name| (name, options))
    });
    for (name, options) in cases {
        let case = Case {
            operator,
            placement: placement.clone(),
            strategy: name.clone(),
            path: options.path,
            mode: options.mode,
            library: options.library,
            products: options.products,
            flags: options.flags,
            seed: args.seed,
        };
        let prepared = match &given {
            Some(schedule) => lower_for(schedule.clone(), sms, &options),
            None => prepare(&case, &topology, sms, &options),
        };
        let words = |reason: String| {
            Failure::Input(format!("error: `{name}` cannot be performed: {reason}"))
        };
        let prepared = prepared
            .map_err(|error| words(error.to_string()))?
            .map_err(words)?;
        args.gpus.possible(name, &prepared.plan, ranks as usize)?;
        variants.push(Variant {
            columns: columns(&machine, case, both),
            prepared,
            predicted: None,
            verdict: None,
            timer: None,
            times: Vec::new(),
            skews: Vec::new(),
            gated: true,
            ratios: Vec::new(),
        });
    }
    for variant in variants.iter_mut().filter(|_| args.predict) {
        variant.predicted = predict(&topology, &args.lowering, variant)?;
        variant.columns.predicted = variant.predicted.as_ref().map(|t| t.makespan);
    }
    let limit = args.gpus.limit() * (args.replays + 2) + ASIDE;
    check(args, &machine, &mut variants, |name| {
        watchdog.step(name, limit);
    })?;
    let references = measure(args, &machine, &mut variants, |name| {
        watchdog.step(name, limit);
    })?;
    args.gpus.keep_pins(&machine)?;
    if let (Some(path), Some(first)) = (&args.trace, variants.first()) {
        watchdog.step("writing the trace".to_owned(), limit);
        write_trace(args.seed, &machine, &topology, first, path)?;
    }
    if let (Some(path), Some(first)) = (&args.tile_trace, variants.first()) {
        watchdog.step("tracing tiles".to_owned(), limit);
        write_tiles(args.seed, &machine, first, path)?;
    }
    match args.output.format {
        Format::Table => args
            .output
            .draw(&table(&args.output.look(), &variants, &references)),
        Format::Json => {
            let how = (args.rounds, args.repeats);
            args.output.json(&value(how, &variants, &references))
        }
        Format::Csv => args.output.write(csv(&variants).as_bytes()),
    }
}

fn columns(machine: &Machine<'_>, case: Case, both: bool) -> Columns {
    let session = machine.session();
    let nvml = session.nvml();
    Columns {
        variant: match both {
            true => format!("{}, {}", case.strategy, products_name(case.products)),
            false => case.strategy.clone(),
        },
        case,
        predicted: None,
        error: None,
        gpu: machine.devices()[0].gpu.attributes().name.clone(),
        driver: nvml.and_then(|nvml| nvml.driver()).unwrap_or_default(),
        cuda: session.driver().version(),
    }
}
