//! `duet compare`: rank all strategies and say why.

use clap::Args;

use super::apart::Files;
use super::args::{Launch, MachinesArgs, OperatorArgs, PathArgs, RunArgs};
use super::error::Failure;
use super::evaluate::{self, Judge};
use super::output::{Format, OutputArgs};
use super::predict::{ModelArgs, include, select};
use super::progress::Progress;
use crate::operator::Operator;
use crate::predict::{Machine, Parameters, Selection, Terms};
use crate::report::{Selected, csv, json, table};
use crate::topology::Topology;

#[derive(Args, Debug)]
pub struct CompareArgs {
    #[command(flatten)]
    machine: MachinesArgs,
    #[command(flatten)]
    path: PathArgs,
    #[command(flatten)]
    operator: OperatorArgs,
    /// Only this strategy (repeatable): a name, or a name with parameters as in `interdecom:d=4`;
    /// `sequential` is always among them
    #[arg(long, value_name = "STRATEGY", help_heading = "Run")]
    strategy: Vec<String>,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    run: RunArgs,
    /// Say why for every strategy, not only the best
    #[arg(long, help_heading = "Output")]
    explain: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    Files::default()
        .writes("--out", args.output.out.as_ref())
        .reads(&args.machine.topology)
        .reads(&args.model.params)
        .apart()?;
    let parameters = args.model.load()?;
    let machines = args
        .machine
        .load()?
        .into_iter()
        .map(|topology| {
            let topology = args.path.on(&topology);
            let operator = args.operator.resolve(&topology)?;
            let mut choices = evaluate::choices(&args.strategy, &operator)?;
            // Closed forms choose among all strategies; who names some wants those compared.
            let selection = match args.strategy.as_slice() {
                [] => select_on(&topology, &operator, args.run.launch, &parameters),
                _ => None,
            };
            if let Some(selection) = selection {
                include(selection.pick, &mut choices)?;
            }
            Ok((topology, operator, choices, selection))
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    let progress = Progress::new(
        machines.iter().map(|(.., choices, _)| choices.len()).sum(),
        "simulating",
    );
    let comparisons = machines
        .iter()
        .map(|(topology, operator, choices, selection)| {
            let judge = Judge::new(topology, *operator, &args.run);
            let mut comparison = judge.compare(choices, &progress)?;
            comparison.selected = selection.map(|selection| Selected {
                strategy: selection.pick.to_string(),
                predicted: selection.seconds,
                runner_up: selection.runner_up.map(|(pick, _)| pick.to_string()),
                margin: selection.runner_up.map(|_| selection.margin),
            });
            Ok(comparison)
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    drop(progress);
    match args.output.format {
        Format::Table => {
            let look = args.output.look();
            args.output
                .draw(&table::compare(&comparisons, args.explain, &look))
        }
        Format::Json => args.output.write(json::compare(&comparisons)?.as_bytes()),
        Format::Csv => args.output.write(csv::compare(&comparisons).as_bytes()),
    }
}

/// What the closed forms choose with rank r on GPU r.
fn select_on(
    topology: &Topology,
    operator: &Operator,
    launch: Launch,
    parameters: &Parameters,
) -> Option<Selection> {
    if !operator.kind.is_fused() {
        return None;
    }
    let placement: Vec<u32> = (0..operator.tp).collect();
    let machine = Machine::new(topology, &placement);
    let terms = Terms::default().launched_as_graph(launch == Launch::Graph);
    select(&machine, operator, &terms, parameters)
}
