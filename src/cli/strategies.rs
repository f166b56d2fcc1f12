//! `duet strategies`: what there is to choose from.

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::error::Failure;
use super::output::OutputArgs;
use crate::operator::Kind;
use crate::report::grid::{Grid, Paint, paint};
use crate::report::list::List;
use crate::strategy;

#[derive(Args, Debug)]
pub struct StrategiesArgs {
    /// Only strategies that perform this operator
    #[arg(long, value_name = "OP", value_parser = PossibleValuesParser::new(Kind::ALL.map(Kind::name)))]
    op: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &StrategiesArgs) -> Result<(), Failure> {
    let mut list = List::new(&["strategy", "operators", "parameters", "summary"]);
    let mut grid = Grid::default().left("strategy", 0).text("what it does");
    for strategy in strategy::registry() {
        let kinds: Vec<&str> = Kind::ALL
            .into_iter()
            .filter(|kind| strategy.applies(*kind))
            .map(Kind::name)
            .collect();
        if args.op.as_deref().is_some_and(|op| !kinds.contains(&op)) {
            continue;
        }
        let params: Vec<String> = strategy
            .params()
            .iter()
            .map(|p| {
                format!(
                    "{}: {} ({}; default {})",
                    p.name, p.about, p.values, p.default
                )
            })
            .collect();
        let text = format!("{} For {}.", strategy.summary(), kinds.join(", "));
        grid.row(vec![paint(strategy.name(), Paint::Bold), text]);
        for param in &params {
            grid.row(vec![String::new(), format!("· {param}")]);
        }
        list.row(vec![
            strategy.name().into(),
            kinds.into(),
            params.into(),
            strategy.summary().into(),
        ]);
    }
    args.output.list(&list, &grid)
}
