//! `duet sensitivity`: what each capacity of the machine is worth.
//!
//! Every capacity is grown by a small step and by a factor of two, by way of the same overrides
//! that `--set` takes, so that each row can be tried by hand. The schedule is the one of the
//! machine as it is; the last columns choose the strategy again for the grown machine.

use clap::Args;
use rayon::prelude::*;

use super::apart::Files;
use super::args::{MachineArgs, OperatorArgs, PathArgs, RunArgs};
use super::error::Failure;
use super::evaluate::{self, Judge};
use super::output::{Format, OutputArgs};
use super::progress::Progress;
use crate::operator::Operator;
use crate::report::sensitivity::{self as report, Gain, Sensitivity};
use crate::strategy;
use crate::topology::{self, Topology};

/// Shared capacities are listed one by one up to this many, else together.
const MOST_SHARED: usize = 8;

#[derive(Args, Debug)]
pub struct SensitivityArgs {
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    path: PathArgs,
    #[command(flatten)]
    operator: OperatorArgs,
    /// The strategy to watch, e.g. `interdecom:d=4` [default: the fastest]
    #[arg(long, value_name = "STRATEGY", help_heading = "Run")]
    strategy: Option<String>,
    /// Relative growth of the small step
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, value_parser = step, help_heading = "Run")]
    step: f64,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    output: OutputArgs,
}

fn step(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        // Below that, differences of makespans are rounding.
        Ok(step) if (1e-6..=1.0).contains(&step) => Ok(step),
        _ => Err("write a share from 1e-6 to 1, e.g. 0.01".to_owned()),
    }
}

pub fn run(args: &SensitivityArgs) -> Result<(), Failure> {
    Files::default()
        .writes("--out", args.output.out.as_ref())
        .reads([&args.machine.topology])
        .apart()?;
    let topology = args.path.on(&args.machine.load()?);
    let operator = args.operator.resolve(&topology)?;
    let judge = Judge::new(&topology, operator, &args.run);
    let candidates = strategy::candidates(&operator);
    let (schedule, makespan) = match &args.strategy {
        Some(text) => {
            let choice = evaluate::choice(text)?;
            judge.fastest(std::slice::from_ref(&choice))?
        }
        None => judge.fastest(&candidates)?,
    };
    let fastest = match &args.strategy {
        Some(_) => judge.fastest(&candidates)?.1.min(makespan),
        None => makespan,
    };
    let capacities = capacities(&topology, &operator);
    let progress = Progress::new(capacities.len(), "growing capacities");
    let grow = |capacity: &Capacity, factor: f64| {
        let mut sets = args.machine.set.clone();
        sets.extend(capacity.sets(factor));
        // A limit that the machine does not have (an ideal GPU's) cannot grow.
        let grown = topology::load(&args.machine.topology, &sets).ok()?;
        Some(args.path.on(&grown))
    };
    let gain = |capacity: &Capacity| {
        let stepped = grow(capacity, 1.0 + args.step)?;
        let doubled = grow(capacity, 2.0)?;
        let (small, large) = (judge.on(&stepped), judge.on(&doubled));
        let step = small.makespan(&schedule).ok()?;
        let (best, best_makespan) = large.fastest(&candidates).ok()?;
        progress.step();
        Some(Gain {
            capacity: capacity.name.clone(),
            sets: capacity.sets(2.0),
            step,
            // No negative zero.
            elasticity: (step / makespan).ln() / args.step.ln_1p() + 0.0,
            doubled: large.makespan(&schedule).ok()?,
            best_doubled: (best.strategy, best_makespan),
        })
    };
    let mut gains: Vec<Gain> = capacities.par_iter().filter_map(gain).collect();
    drop(progress);
    gains.sort_by(|a, b| {
        a.doubled
            .total_cmp(&b.doubled)
            .then(a.step.total_cmp(&b.step))
    });
    let sensitivity = Sensitivity {
        topology: topology.name.clone(),
        operator,
        launch: judge.launch().to_owned(),
        strategy: schedule.strategy.clone(),
        makespan,
        fastest,
        step: args.step,
        gains,
    };
    match args.output.format {
        Format::Table => {
            let look = args.output.look();
            args.output.draw(&report::table(&sensitivity, &look))
        }
        Format::Json => args.output.write(report::json(&sensitivity)?.as_bytes()),
        Format::Csv => args.output.write(report::csv(&sensitivity).as_bytes()),
    }
}

/// Something that can be bought more of.
#[derive(Clone, Debug)]
struct Capacity {
    name: String,
    /// Override paths that grow with it.
    grow: Vec<String>,
    /// Override paths that shrink with it (times).
    shrink: Vec<String>,
}

impl Capacity {
    fn sets(&self, factor: f64) -> Vec<String> {
        let grow = self.grow.iter().map(|path| format!("{path}={factor}x"));
        let shrink = self.shrink.iter();
        let shrink = shrink.map(|path| format!("{path}={}x", 1.0 / factor));
        grow.chain(shrink).collect()
    }
}

fn capacities(topology: &Topology, operator: &Operator) -> Vec<Capacity> {
    let capacity = |name: &str, grow: &[&str], shrink: &[&str]| Capacity {
        name: name.to_owned(),
        grow: grow.iter().map(|&path| path.to_owned()).collect(),
        shrink: shrink.iter().map(|&path| path.to_owned()).collect(),
    };
    let mut all = Vec::new();
    for kind in &topology.kinds {
        let path = |field| format!("links.{kind}.{field}");
        all.push(capacity(
            &format!("{kind} bandwidth"),
            &[&path("bandwidth")],
            &[],
        ));
        all.push(capacity(
            &format!("{kind} latency"),
            &[],
            &[&path("latency")],
        ));
    }
    let mut shared: Vec<&str> = topology
        .shared
        .iter()
        .filter(|shared| !shared.half_duplex)
        .map(|shared| shared.name.as_str())
        .collect();
    shared.dedup();
    if shared.len() > MOST_SHARED {
        all.push(capacity("shared capacities", &["shared.*.bandwidth"], &[]));
    } else {
        for name in shared {
            let path = format!("shared.{name}.bandwidth");
            all.push(capacity(&format!("shared {name}"), &[&path], &[]));
        }
    }
    if operator.kind.is_fused() {
        let peak = format!("gpu.peak.{}", operator.dtype.name());
        all.push(capacity("GPU arithmetic", &[&peak], &[]));
    }
    all.extend([
        capacity(
            "GPU memory bandwidth",
            &["gpu.hbm", "gpu.local_copy", "gpu.elementwise"],
            &[],
        ),
        capacity("copy-engine rate", &["gpu.peer_copy"], &[]),
        capacity(
            "copy engines",
            &["gpu.engines.peer", "gpu.engines.h2d", "gpu.engines.d2h"],
            &[],
        ),
        capacity("SM copy rate", &["gpu.sm_copy"], &[]),
        capacity(
            "library latency",
            &[],
            &["gpu.library.base", "gpu.library.step"],
        ),
        capacity("launch and sync costs", &[], &COSTS.map(|cost| cost)),
    ]);
    all
}

/// Fixed costs of launching and handing over.
const COSTS: [&str; 12] = [
    "gpu.costs.submit_kernel",
    "gpu.costs.submit_copy",
    "gpu.costs.submit_sync",
    "gpu.costs.submit_graph",
    "gpu.costs.kernel_start",
    "gpu.costs.copy_start",
    "gpu.costs.sm_copy_start",
    "gpu.costs.lane",
    "gpu.costs.event",
    "gpu.costs.event_peer",
    "gpu.costs.stream_flag",
    "gpu.costs.kernel_flag",
];
