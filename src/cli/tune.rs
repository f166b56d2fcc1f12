//! `duet tune`: the fastest setting for shapes, by simulation and measurement.

mod cores;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::apart::Files;
use super::args::DEFAULT_TOPOLOGY;
use super::error::Failure;
use super::gpu::{UseArgs, Watchdog};
use super::output::{Format, OutputArgs};
use super::products;
use super::progress::Progress;
use super::validate::machine_name;
use crate::experiment::Experiment;
use crate::gpu::Session;
use crate::gpu::cache;
use crate::gpu::env::Machine as Host;
use crate::gpu::exec::Machine;
use crate::gpu::heat::WARM;
use crate::gpu::tiles::{Family, Tile};
use crate::input::Fingerprint;
use crate::report;
use crate::topology::{self, Topology};
use crate::tune::{
    How, Ranked, Setting, Store, StoreError, Tried, Tuned, measure, patient, rank, settings,
    shortlist,
};
use crate::validate::cases::{CasesError, Selection, groups};
use crate::validate::key::Group;
use cores::{Cores, tiles_of};

/// What a group takes on the GPUs at most, beside its samples.
const ASIDE: Duration = Duration::from_secs(600);

#[derive(Args, Debug)]
#[command(override_usage = "duet tune [OPTIONS] <EXPERIMENT | --shape SHAPE>")]
pub struct TuneArgs {
    /// Tune every shape of this experiment
    #[arg(
        value_name = "EXPERIMENT",
        required_unless_present = "shape",
        conflicts_with = "shape"
    )]
    experiment: Option<PathBuf>,
    /// A shape, e.g. `ag-gemm/2048x16384x8192/bf16/2on2/p2p/stream`: operator, m x n x k, element type,
    /// ranks and GPUs, path and launch mode; repeat it for several
    #[arg(long, value_name = "SHAPE", value_parser = read_shape)]
    shape: Vec<Group>,
    /// Only shapes whose name contains this; several: any of them
    #[arg(long, value_name = "PART")]
    only: Vec<String>,
    /// What is simulated: a built-in topology or a YAML file [default: the experiment's, else
    /// h200-nvswitch-8]
    #[arg(short, long, value_name = "NAME|FILE")]
    topology: Option<String>,
    /// Show the simulator's order and measure nothing
    #[arg(long)]
    dry_run: bool,
    /// Whose tiles are simulated in a dry run [default: sm90 where the GPU is a Hopper by its name]
    #[arg(long, value_enum, value_name = "CORES")]
    cores: Option<Cores>,
    /// How many settings of a shape are measured, or shown
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..=100))]
    best: u32,
    /// Samples of each
    #[arg(long, value_name = "N", default_value = "12", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// The seed of the inputs
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Where results are kept; shapes that it has of this machine are not measured again [default:
    /// tuned.jsonl in Duet's cache]
    #[arg(long, value_name = "FILE")]
    cache: Option<PathBuf>,
    /// Forget what is kept
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    gpus: UseArgs,
    #[command(flatten)]
    output: OutputArgs,
}

fn read_shape(text: &str) -> Result<Group, String> {
    text.parse()
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::input(&error)
    }
}

/// A shape with the machine that it is simulated on.
struct Wanted {
    group: Group,
    topology: Topology,
}

pub fn run(args: &TuneArgs) -> Result<(), Failure> {
    Files::default()
        .writes("--out", args.output.out.as_ref())
        .writes("--cache", args.cache.as_ref())
        .writes("--pins", args.gpus.pins.as_ref())
        .reads(&args.experiment)
        .reads(&args.topology)
        .apart()?;
    let wanted = wanted(args)?;
    for wanted in &wanted {
        patient(&wanted.group).map_err(|words| Failure::input(&words))?;
    }
    match args.dry_run {
        true => dry(args, &wanted),
        false => tune(args, &wanted),
    }
}

fn wanted(args: &TuneArgs) -> Result<Vec<Wanted>, Failure> {
    let load = |name: &str| topology::load(name, &[]).map_err(|error| Failure::input(&error));
    let stated = args.topology.as_deref().map(load).transpose()?;
    let mut all = Vec::new();
    if let Some(file) = &args.experiment {
        let experiment: Experiment = products::read(file)?;
        let groups = groups(&experiment)?;
        let selection = Selection {
            only: args.only.clone(),
            shard: None,
        };
        for index in selection.of(&groups)? {
            let planned = &groups[index];
            let own = &experiment.machines[planned.machine as usize].topology;
            all.push(Wanted {
                group: planned.group.clone(),
                topology: stated.clone().unwrap_or_else(|| (**own).clone()),
            });
        }
        return Ok(all);
    }
    let topology = match stated {
        Some(topology) => topology,
        None => load(DEFAULT_TOPOLOGY)?,
    };
    let fits = |group: &Group| {
        let name = group.to_string();
        args.only.is_empty() || args.only.iter().any(|part| name.contains(part))
    };
    for group in args.shape.iter().filter(|group| fits(group)) {
        if group
            .placement
            .iter()
            .any(|&gpu| gpu as usize >= topology.gpus.len())
        {
            return Err(Failure::Input(format!(
                "error: `{group}` needs more GPUs than the {} of `{}`\n  help: choose another machine with `--topology`, or place ranks on fewer GPUs, e.g. `4on2`",
                topology.gpus.len(),
                topology.name
            )));
        }
        all.push(Wanted {
            group: group.clone(),
            topology: topology.clone(),
        });
    }
    if let (true, Some(first)) = (all.is_empty(), args.shape.first()) {
        return Err(CasesError::nothing(&args.only, first).into());
    }
    Ok(all)
}

/// A shape before anything is measured, with the short list of its ranking.
fn ranked(
    args: &TuneArgs,
    wanted: &Wanted,
    machine: &str,
    settings: &[Setting],
    step: &(dyn Fn() + Sync),
) -> (Tuned, Vec<Ranked>) {
    let ranking = rank(&wanted.group, &wanted.topology, settings, step);
    let mut reasons: BTreeMap<String, u32> = BTreeMap::new();
    for (_, reason) in &ranking.skipped {
        *reasons.entry(reason.clone()).or_default() += 1;
    }
    let mut hash = Fingerprint::default();
    // Hashing cannot fail.
    let _ = write!(hash, "{} {:?}", env!("CARGO_PKG_VERSION"), wanted.topology);
    let tuned = Tuned {
        group: wanted.group.to_string(),
        machine: machine.to_owned(),
        rounds: args.rounds,
        model: hash.to_string(),
        searched: settings.len() as u32,
        skipped: reasons.into_iter().collect(),
        tried: Vec::new(),
    };
    (tuned, shortlist(&ranking, args.best as usize))
}

/// The simulator's order alone.
fn dry(args: &TuneArgs, wanted: &[Wanted]) -> Result<(), Failure> {
    let listed = |wanted: &Wanted| {
        let tiles = tiles_of(&wanted.topology, args.cores);
        settings(&wanted.group, &tiles)
    };
    let lists: Vec<Vec<Setting>> = wanted.iter().map(listed).collect();
    let total = lists.iter().map(Vec::len).sum();
    let progress = Progress::new(total, "simulating");
    let mut all = Vec::with_capacity(wanted.len());
    for (wanted, settings) in wanted.iter().zip(&lists) {
        let machine = &wanted.topology.name;
        let (tuned, list) = ranked(args, wanted, machine, settings, &|| progress.step());
        let tried = list.iter().map(|ranked| Tried {
            setting: ranked.setting.to_string(),
            predicted: ranked.predicted,
            measured: None,
            p10: None,
            p90: None,
            reason: None,
        });
        all.push(Tuned {
            rounds: 0,
            tried: tried.collect(),
            ..tuned
        });
    }
    drop(progress);
    match all.first() {
        Some(first) if all.iter().all(|tuned| tuned.tried.is_empty()) => Err(none(first)),
        _ => show(args, &all),
    }
}

/// Nothing of any shape can be simulated, for these reasons of the first.
fn none(first: &Tuned) -> Failure {
    let reasons = first.skipped.iter();
    let reasons: String = reasons
        .map(|(reason, count)| format!("\n  {count} × {reason}"))
        .collect();
    Failure::Input(format!(
        "error: no setting of `{}` can be simulated on `{}`{reasons}\n  help: choose another element type, path or number of ranks, or another machine with `--topology`",
        first.group, first.machine
    ))
}

fn tune(args: &TuneArgs, wanted: &[Wanted]) -> Result<(), Failure> {
    let path = args
        .cache
        .clone()
        .unwrap_or_else(|| cache::folder(&Host::this()).join("tuned.jsonl"));
    let mut store = Store::open(&path, args.fresh)?;
    let mut using = args.gpus.clone();
    let highest = wanted.iter().flat_map(|w| w.group.placement.iter()).max();
    let gpus = *using.gpus.get_or_insert(highest.map_or(1, |gpu| gpu + 1));
    let (session, watchdog): (Session, Watchdog) = using.open()?;
    let name = machine_name(&session);
    let numbers: Vec<u32> = (0..gpus).collect();
    let machine: Machine<'_> = using.machine(&session, &numbers, WARM)?;
    machine.heaters()?;
    let first = machine.devices()[0].gpu.attributes();
    let family = match first.major {
        9 => Family::Sm90,
        _ => Family::Sm80,
    };
    let tiles = Tile::of(family, first.shared);
    let sms = machine.devices().iter().map(|d| d.gpu.attributes().sms);
    let how = How {
        rounds: args.rounds,
        seed: args.seed,
        sms: sms.min().unwrap_or(1),
    };
    let progress = Progress::new(wanted.len(), "tuning");
    let mut all = Vec::with_capacity(wanted.len());
    for wanted in wanted {
        let settings = settings(&wanted.group, &tiles);
        let (tuned, list) = ranked(args, wanted, &name, &settings, &|| ());
        let tuned = match store.get(&tuned, list.len()) {
            Some(known) => known.clone(),
            None => {
                let step = |what: String| watchdog.step(what, using.limit() * 4 + ASIDE);
                let tried = measure(&machine, &wanted.group, &wanted.topology, &list, how, &step)?;
                let tuned = Tuned { tried, ..tuned };
                store.keep(tuned.clone())?;
                tuned
            }
        };
        all.push(tuned);
        progress.step();
    }
    drop(progress);
    using.keep_pins(&machine)?;
    show(args, &all)
}

fn show(args: &TuneArgs, all: &[Tuned]) -> Result<(), Failure> {
    match args.output.format {
        Format::Json => args.output.json(&json!({
            "schema": "duet-tune-list-1",
            "dry_run": args.dry_run,
            "groups": all.iter().map(Tuned::json).collect::<Vec<_>>(),
        })),
        Format::Csv => args.output.write(report::tune::csv(all).as_bytes()),
        Format::Table => args
            .output
            .draw(&report::tune::table(all, &args.output.look())),
    }
}
