//! `duet gpu run`: one operator by some strategies: checked, then timed in turns.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;

use super::lowering::LoweringArgs;
use super::predict::{possible, predict, write_tiles, write_trace, written};
use super::run_output::{References, Variant, csv, table, value};
use super::settings::{UseArgs, read_list, read_warm};
use crate::cli::args::OperatorArgs;
use crate::cli::error::Failure;
use crate::cli::output::{Format, OutputArgs};
use crate::cli::progress::Progress;
use crate::cli::simulate::{placed, schedule_file};
use crate::gpu::GpuError;
use crate::gpu::campaign::{
    Case, Prepared, Trial, lower_for, machine_topology, prepare, products_name, rehearse,
};
use crate::gpu::compare::{Checker, Verdict, fill, fill_all};
use crate::gpu::exec::{Faults, Machine, Run};
use crate::gpu::plan::{Options, Plan, Products};
use crate::gpu::timing::{Columns, Row, Sample, Timer, copy_plan, gemm_plan, gemm_plan_by, header};
use crate::strategy;
use crate::topology;

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

/// Compares every variant's results.
fn check(
    args: &RunArgs,
    machine: &Machine<'_>,
    variants: &mut [Variant<'_>],
    step: impl Fn(String),
) -> Result<(), Failure> {
    if args.no_check {
        return Ok(());
    }
    let trial = Trial {
        replays: args.replays,
        faults: args.gpus.faults(),
        shake: true,
        repeats: 0,
    };
    for variant in variants {
        step(format!("checking `{}`", variant.columns.variant));
        let verdict = rehearse(machine, &variant.prepared, args.seed, &trial)?;
        right(variant, &verdict)?;
        variant.columns.error = Some(verdict.relative);
        variant.verdict = Some(verdict);
    }
    Ok(())
}

/// Times all variants in turns.
fn measure<'m>(
    args: &RunArgs,
    machine: &'m Machine<'m>,
    variants: &mut [Variant<'m>],
    step: impl Fn(String),
) -> Result<References, Failure> {
    let mut references = References::default();
    if args.rounds == 0 {
        return Ok(references);
    }
    let Some(first) = variants.first() else {
        return Ok(references);
    };
    let schedule = Rc::clone(&first.prepared.schedule);
    let reference = |plan: Option<Plan>| -> Result<Option<Timer<'m>>, Failure> {
        let Some(plan) = plan else { return Ok(None) };
        let run = Run::new(machine, &schedule, &Rc::new(plan), Faults::default())?;
        for parity in 0..2 {
            fill_all(&run, parity, args.seed)?;
        }
        Ok(Some(Timer::new(run, false)?))
    };
    let gemm = reference(gemm_plan(&schedule))?;
    let own = match args.lowering.products().any(|p| p == Products::Own) {
        true => reference(gemm_plan_by(&schedule, Products::Own))?,
        false => None,
    };
    let needs_peers = machine.devices().len() > 1 && !machine.all_peers();
    let copy = match needs_peers {
        true => None,
        false => reference(copy_plan(&schedule))?,
    };
    for variant in variants.iter_mut() {
        step(format!("preparing `{}`", variant.columns.variant));
        let Prepared { schedule, plan } = &variant.prepared;
        let run = Run::new(machine, schedule, plan, args.gpus.faults())?;
        for parity in 0..2 {
            fill(&run, parity, args.seed)?;
        }
        variant.timer = Some(Timer::new(run, args.graph_ends)?);
    }
    let mut rows = match &args.rows {
        None => None,
        Some(path) => {
            let mut file = File::create(path).map_err(|error| written(path, &error))?;
            file.write_all(header().as_bytes())
                .map_err(|error| written(path, &error))?;
            Some((file, path))
        }
    };
    let progress = Progress::new(args.rounds as usize * variants.len(), "timing");
    // The first round warms up and is not kept.
    for round in 0..=args.rounds {
        let once = |timer: &Option<Timer<'m>>| -> Result<Option<f64>, Failure> {
            let Some(timer) = timer else { return Ok(None) };
            step("a reference".to_owned());
            Ok(Some(timer.once(args.repeats)?.makespan))
        };
        let (product, plain, own) = (once(&gemm)?, once(&copy)?, once(&own)?);
        if round > 0 {
            references.gemm.extend(product);
            references.copy.extend(plain);
            references.own.extend(own);
        }
        // Each round begins with another variant.
        let count = variants.len();
        for i in 0..count {
            let variant = &mut variants[(round as usize + i) % count];
            let Some(timer) = &variant.timer else {
                continue;
            };
            step(format!("timing `{}`", variant.columns.variant));
            let sample = timer.once(args.repeats)?;
            if round == 0 {
                continue;
            }
            let pci = &machine.devices()[0].gpu.attributes().pci;
            let state = machine.session().nvml().map(|nvml| nvml.state(pci));
            if let Some((file, path)) = &mut rows {
                let row = Row {
                    columns: &variant.columns,
                    round,
                    repeats: args.repeats,
                    sample: &sample,
                    reference_gemm: product,
                    reference_copy: plain,
                    state: state.unwrap_or_default(),
                };
                file.write_all(row.line().as_bytes())
                    .and_then(|()| file.flush())
                    .map_err(|error| written(path, &error))?;
            }
            keep(variant, &sample, product);
            progress.step();
        }
    }
    if !args.no_check {
        step("checking what was timed".to_owned());
        variants
            .iter()
            .try_for_each(|variant| checked(args, variant))?;
    }
    Ok(references)
}

/// Compares the results of a run as it was timed, without delays; not where the memory for
/// references is missing.
fn checked(args: &RunArgs, variant: &Variant<'_>) -> Result<(), Failure> {
    let Some(timer) = &variant.timer else {
        return Ok(());
    };
    let run = timer.run();
    let checker = match Checker::new(run) {
        Err(GpuError::Memory { .. }) => return Ok(()),
        checker => checker?,
    };
    let (parity, seed) = (run.next_parity(), args.seed.wrapping_add(1));
    fill(run, parity, seed)?;
    timer.once(1)?;
    let verdict = checker.check(run, parity, seed)?;
    right(variant, &verdict)
}

/// A wrong result as a failure.
fn right(variant: &Variant<'_>, verdict: &Verdict) -> Result<(), Failure> {
    match &verdict.wrong {
        None => Ok(()),
        Some(wrong) => Err(Failure::Validation(format!(
            "error: `{}` computes a wrong result: {wrong}\n  help: `duet gpu check` tests the machine; a schedule from a file may lack a dependency",
            variant.columns.variant
        ))),
    }
}

fn keep(variant: &mut Variant<'_>, sample: &Sample, product: Option<f64>) {
    variant.times.push(sample.makespan);
    variant.skews.extend(sample.skew());
    variant.gated &= sample.gated;
    let product = product.filter(|&time| time > 0.0);
    variant
        .ratios
        .extend(product.map(|time| sample.makespan / time));
}
