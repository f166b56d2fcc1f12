//! `duet compare`: rank all strategies and say why.

use clap::Args;

use super::args::{MachinesArgs, OperatorArgs, RunArgs};
use super::error::Failure;
use super::evaluate::{self, Judge};
use super::output::{Format, OutputArgs};
use super::progress::Progress;
use crate::report::{csv, json, table};

#[derive(Args, Debug)]
pub struct CompareArgs {
    #[command(flatten)]
    machine: MachinesArgs,
    #[command(flatten)]
    operator: OperatorArgs,
    /// Only this strategy (repeatable): a name, or a name with parameters as in `interdecom:d=4`;
    /// `sequential` is always among them
    #[arg(long, value_name = "STRATEGY", help_heading = "Run")]
    strategy: Vec<String>,
    #[command(flatten)]
    run: RunArgs,
    /// Say why for every strategy, not only the best
    #[arg(long, help_heading = "Output")]
    explain: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    let machines = args
        .machine
        .load()?
        .into_iter()
        .map(|topology| {
            let operator = args.operator.resolve(&topology)?;
            let choices = evaluate::choices(&args.strategy, &operator)?;
            Ok((topology, operator, choices))
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    let progress = Progress::new(
        machines.iter().map(|(.., choices)| choices.len()).sum(),
        "simulating",
    );
    let comparisons = machines
        .iter()
        .map(|(topology, operator, choices)| {
            Judge::new(topology, *operator, &args.run).compare(choices, &progress)
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
