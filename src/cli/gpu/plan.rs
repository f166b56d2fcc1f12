//! `duet gpu plan`: the lowering of a schedule, for people who want to see what is enqueued.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{plan_json, products};
use crate::cli::args::{Launch, MachineArgs, OperatorArgs};
use crate::cli::error::Failure;
use crate::cli::evaluate;
use crate::cli::output::{Format, OutputArgs};
use crate::cli::simulate;
use crate::gpu::plan::{
    self, Area, Flags, Library, Mode, Options, Path, Plan, Products, Rows, Waits, What,
};
use crate::gpu::tiles::{Family, Tile};
use crate::report::grid::{Grid, Paint, clean, paint};
use crate::report::list::List;
use crate::schedule::Schedule;
use crate::schedule::verify::GpuSms;
use crate::topology::Topology;
use crate::units::Bytes;

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

/// The way between two GPUs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum PathArg {
    /// From memory to memory.
    P2p,
    /// Through pinned memory of the host.
    Host,
    /// Both at once.
    Hybrid,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum LibraryArg {
    /// NCCL where each rank has a GPU of its own.
    Nccl,
    /// The same, with the buffers registered beforehand.
    NcclRegistered,
    /// The same, with the buffers as windows of one another; NCCL 2.27 or newer.
    NcclWindow,
    /// Copies and additions.
    Copies,
}

impl From<LibraryArg> for Library {
    fn from(library: LibraryArg) -> Self {
        match library {
            LibraryArg::Nccl => Self::Nccl,
            LibraryArg::NcclRegistered => Self::NcclRegistered,
            LibraryArg::NcclWindow => Self::NcclWindow,
            LibraryArg::Copies => Self::Copies,
        }
    }
}

/// Who multiplies matrices.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum GemmArg {
    /// cuBLASLt.
    Library,
    /// Duet's own kernels where they can (bf16 and fp16, rows at multiples of 16 bytes).
    Duet,
}

impl From<GemmArg> for Products {
    fn from(arg: GemmArg) -> Self {
        match arg {
            GemmArg::Library => Self::Library,
            GemmArg::Duet => Self::Own,
        }
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum WaitsArg {
    /// Inside the kernel.
    Inside,
    /// In streams.
    Stream,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum FlagsArg {
    /// Words in the waiting GPU's memory.
    Value,
    /// Words, and events that say the same.
    ValueAndEvent,
    /// Events.
    Event,
}

/// Reads the name of a tile.
fn read_tile(text: &str) -> Result<Tile, String> {
    Tile::named(text).ok_or_else(|| {
        let all = [Family::Sm90, Family::Sm80].map(|family| Tile::of(family, u32::MAX));
        let names: Vec<String> = all.concat().iter().map(|tile| tile.name()).collect();
        format!("there is no tile `{text}`; there are {}", names.join(", "))
    })
}

/// How a schedule is lowered.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Lowering")]
pub struct LoweringArgs {
    /// The way of transfers between GPUs
    #[arg(long, value_enum, value_name = "PATH", default_value = "p2p")]
    path: PathArg,
    /// Bytes that go through the host at a time
    #[arg(long, value_name = "SIZE", default_value = "2MiB")]
    chunk: Bytes,
    /// Part of every transfer's rows that goes through the host on the hybrid path
    #[arg(long, value_name = "SHARE", default_value = "0.1")]
    host_share: f64,
    /// How the host submits work
    #[arg(long, value_enum, default_value = "stream", value_name = "MODE")]
    launch: Launch,
    /// Who performs collectives
    #[arg(long, value_enum, default_value = "nccl", value_name = "LIBRARY")]
    library: LibraryArg,
    /// Who multiplies matrices; `gpu run` takes several, e.g. `library,duet`, and performs every
    /// strategy by each
    #[arg(
        long,
        value_enum,
        default_value = "library",
        value_name = "WHOSE",
        value_delimiter = ','
    )]
    gemm: Vec<GemmArg>,
    /// The tile of Duet's own products, e.g. `sm90-128x256x4-2x1` [default: the one that suits each]
    #[arg(long, value_name = "TILE", value_parser = read_tile)]
    tile: Option<Tile>,
    /// What stands for a schedule's flags in streams
    #[arg(long, value_enum, default_value = "value", value_name = "KIND")]
    flags: FlagsArg,
    /// Where tile groups of Duet's own products wait: inside one kernel, or each in its stream
    #[arg(long, value_enum, default_value = "inside", value_name = "WHERE")]
    waits: WaitsArg,
    /// Thread blocks of copies within one GPU
    #[arg(long, default_value = "16", value_name = "N")]
    local_blocks: u16,
    /// Lower without verifying
    #[arg(long)]
    no_verify: bool,
}

impl LoweringArgs {
    /// How the host submits work.
    pub const fn launch(&self) -> Launch {
        self.launch
    }

    /// Who multiplies matrices.
    pub fn products(&self) -> impl Iterator<Item = Products> + '_ {
        self.gemm.iter().map(|&whose| whose.into())
    }

    /// The options, with the first of those who multiply.
    pub fn options(&self) -> Options {
        let chunk = self.chunk.get();
        Options {
            path: match self.path {
                PathArg::P2p => Path::P2p,
                PathArg::Host => Path::Host { chunk },
                PathArg::Hybrid => Path::Hybrid {
                    host_share: self.host_share,
                    chunk,
                },
            },
            mode: match self.launch {
                Launch::Stream => Mode::Stream,
                Launch::Graph => Mode::Graph,
            },
            library: self.library.into(),
            products: self.products().next().unwrap_or_default(),
            tile: self.tile,
            flags: match self.flags {
                FlagsArg::Value => Flags::Value,
                FlagsArg::ValueAndEvent => Flags::ValueAndEvent,
                FlagsArg::Event => Flags::Event,
            },
            waits: match self.waits {
                WaitsArg::Inside => Waits::Inside,
                WaitsArg::Stream => Waits::Stream,
            },
            local_blocks: self.local_blocks,
            verify: !self.no_verify,
        }
    }
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
                summary(&schedule, &plan),
                streams(&plan).draw(&look),
                memory(&plan).draw(&look),
            );
            if !launches.is_empty() {
                text.push('\n');
                text.push_str(&products::table(&launches).draw(&look));
            }
            if args.steps {
                text.push('\n');
                text.push_str(&steps(&plan).draw(&look));
            }
            args.output.draw(&text)
        }
        Format::Json => {
            let mut value = plan_json::json(&schedule, &plan);
            value["products"] = products::json(&launches);
            args.output.json(&value)
        }
        Format::Csv => args.output.write(records(&plan).csv().as_bytes()),
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
    choice.build(&ranks, topology, &placement).map_err(|skip| {
        Failure::Input(format!(
            "error: `{choice}` cannot be performed: {}",
            skip.reason
        ))
    })
}

fn summary(schedule: &Schedule, plan: &Plan) -> String {
    let numbers: Vec<String> = plan.gpus.iter().map(u32::to_string).collect();
    let mut parts = vec![format!(
        "{} on GPU {}: {} tasks, {} steps",
        schedule.operator,
        numbers.join(", "),
        schedule.tasks.len(),
        plan.steps.len()
    )];
    parts.push(kinds(plan.steps.iter().map(|step| &step.what)));
    parts.push(format!(
        "{} of {} streams forked, {} joined",
        plan.fork.streams.len(),
        plan.streams.len() - 1,
        plan.join.len()
    ));
    if plan.shared {
        parts.push("lanes share streams, as each GPU serves only so many".to_owned());
    }
    if !plan.verified {
        parts.push("not verified".to_owned());
    }
    parts.join("; ")
}

/// How many steps of each kind: `4 gemm, 2 copy`.
fn kinds<'a>(steps: impl Iterator<Item = &'a What>) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for what in steps {
        *kinds.entry(plan_json::kind(what)).or_default() += 1;
    }
    let kinds: Vec<String> = kinds
        .iter()
        .map(|(kind, n)| format!("{n} {kind}"))
        .collect();
    kinds.join(", ")
}

fn streams(plan: &Plan) -> Grid {
    let mut grid = Grid::default()
        .right("GPU", 0)
        .left("stream", 0)
        .right("steps", 0)
        .right("waits", 1)
        .text("does");
    for (i, stream) in plan.streams.iter().enumerate() {
        let own: Vec<&What> = plan
            .steps
            .iter()
            .filter(|step| step.stream.index() == i)
            .map(|step| &step.what)
            .collect();
        let waits = own
            .iter()
            .filter(|w| matches!(w, What::Await(_) | What::AwaitFlag(_)))
            .count();
        grid.row(vec![
            plan.gpus[stream.gpu.index()].to_string(),
            clean(&stream.name),
            own.len().to_string(),
            waits.to_string(),
            kinds(own.into_iter()),
        ]);
    }
    grid
}

fn memory(plan: &Plan) -> Grid {
    let mut grid = Grid::default()
        .right("GPU", 0)
        .right("arena, each half", 0)
        .right("flags", 0)
        .right("staging, leaving", 0);
    for (g, arena) in plan.arenas.iter().enumerate() {
        let flags = plan.flags.iter().filter(|f| f.gpu.index() == g).count();
        let staging = plan.staging.iter().filter(|s| s.from.index() == g);
        let staging: u64 = staging.map(|s| u64::from(s.slots) * s.bytes).sum();
        grid.row(vec![
            plan.gpus[g].to_string(),
            Bytes::new(arena.half).to_string(),
            flags.to_string(),
            Bytes::new(staging).to_string(),
        ]);
    }
    grid
}

fn steps(plan: &Plan) -> Grid {
    let mut grid = Grid::default()
        .right("step", 0)
        .right("GPU", 0)
        .left("stream", 0)
        .right("task", 1)
        .text("what");
    for (i, step) in plan.steps.iter().enumerate() {
        let stream = &plan.streams[step.stream.index()];
        grid.row(vec![
            i.to_string(),
            plan.gpus[stream.gpu.index()].to_string(),
            clean(&stream.name),
            step.task.0.to_string(),
            words(plan, i),
        ]);
    }
    grid
}

fn records(plan: &Plan) -> List {
    let mut list = List::new(&["step", "gpu", "stream", "task", "kind", "what"]);
    for (i, step) in plan.steps.iter().enumerate() {
        let stream = &plan.streams[step.stream.index()];
        list.row(vec![
            i.into(),
            plan.gpus[stream.gpu.index()].into(),
            stream.name.clone().into(),
            step.task.0.into(),
            plan_json::kind(&step.what).into(),
            words(plan, i).into(),
        ]);
    }
    list
}

/// A step in words.
fn words(plan: &Plan, step: usize) -> String {
    let mut text = plain(plan, &plan.steps[step].what);
    if let Some(joined) = plan.joined.iter().find(|j| j.steps.contains(&step)) {
        let others = joined.steps.iter().filter(|&&other| other != step);
        let others: Vec<String> = others.map(usize::to_string).collect();
        text.push_str(&format!("; one launch with step {}", others.join(", ")));
    }
    text
}

fn plain(plan: &Plan, what: &What) -> String {
    let area = |a: &Area| {
        format!(
            "GPU {} +{:#x} ({} × {}, ld {})",
            plan.gpus[a.gpu.index()],
            a.at,
            a.rows,
            a.cols,
            a.ld
        )
    };
    let kind = plan_json::kind(what);
    match what {
        What::Copy { from, to } => format!("{kind} {} → {}", area(from), area(to)),
        What::CopyKernel {
            from,
            to,
            blocks,
            sets,
        } => {
            let then = sets.map_or_else(String::new, |flag| format!(", then flag {}", flag.0));
            format!(
                "{kind} ({blocks} blocks) {} → {}{then}",
                area(from),
                area(to)
            )
        }
        What::ToHost { from, to } => {
            format!(
                "{kind} {} → staging {} slot {}",
                area(from),
                to.staging.0,
                to.slot
            )
        }
        What::FromHost { from, to } => {
            format!(
                "{kind} staging {} slot {} → {}",
                from.staging.0,
                from.slot,
                area(to)
            )
        }
        What::Gemm {
            a,
            b,
            out,
            accumulate,
            ..
        } => {
            let sign = if *accumulate { "+=" } else { "=" };
            format!("{kind} {} {sign} {} · {}", area(out), area(a), area(b))
        }
        What::Gated {
            a,
            b,
            out,
            groups,
            accumulate,
            loads,
            ..
        } => {
            let sign = if *accumulate { "+=" } else { "=" };
            let group = |g: &Rows| {
                let end = g.rows.start + g.rows.len;
                let flags: Vec<String> = g.flags.iter().map(|f| f.0.to_string()).collect();
                let mut text = format!("rows {}-{end}", g.rows.start);
                if g.depth.len < a.cols {
                    let end = g.depth.start + g.depth.len;
                    text.push_str(&format!(" of k {}-{end}", g.depth.start));
                }
                if !flags.is_empty() {
                    text.push_str(&format!(" after flag {}", flags.join(", ")));
                }
                if let Some(to) = &g.to {
                    text.push_str(&format!(" to {}", area(to)));
                }
                if let Some(flag) = g.sets {
                    text.push_str(&format!(", then flag {}", flag.0));
                }
                text
            };
            let mut parts: Vec<String> = groups.iter().map(group).collect();
            parts.extend(loads.iter().map(|load| {
                let (from, to) = (area(&load.from), area(&load.to));
                format!("brings {to} from {from}, then flag {}", load.sets.0)
            }));
            format!(
                "{kind} {} {sign} {} · {}: {}",
                area(out),
                area(a),
                area(b),
                parts.join("; ")
            )
        }
        What::Add { inputs, out } | What::Pointwise { inputs, out, .. } => {
            let inputs: Vec<String> = inputs.iter().map(area).collect();
            format!("{kind} {} = {}", area(out), inputs.join(" + "))
        }
        What::Collective { call, member } => {
            let group = plan.collectives[call.index()].kind;
            format!("{kind} {} {group:?}, member {member}", call.0)
        }
        What::Record(event) | What::Await(event) => format!("{kind} {}", event.0),
        What::WriteFlag(flag) | What::AwaitFlag(flag) => format!("{kind} {}", flag.0),
    }
}
