//! `duet predict`: the closed forms of one operator on one machine, and what they choose.

use std::path::PathBuf;

use clap::Args;

use super::apart::Files;
use super::args::{Launch, MachineArgs, OperatorArgs, PathArgs};
use super::error::Failure;
use super::evaluate;
use super::output::{Format, OutputArgs};
use crate::operator::Operator;
use crate::predict::{Machine, NAMES, Parameters, Pick, Selection, Selector, Terms};
use crate::report::Skipped;
use crate::report::prediction::{self, Chosen, Predictions, Row};
use crate::strategy::Choice;
use crate::topology::Topology;

/// What closed forms know.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// Fitted overheads, as `duet fit` writes them
    #[arg(long, value_name = "FILE")]
    pub params: Option<PathBuf>,
}

impl ModelArgs {
    /// The fitted overheads; none without a file.
    ///
    /// # Errors
    /// [`Failure::Input`] with the whole diagnostic.
    pub fn load(&self) -> Result<Parameters, Failure> {
        match &self.params {
            Some(path) => Parameters::load(path).map_err(|error| Failure::input(&error)),
            None => Ok(Parameters::default()),
        }
    }
}

#[derive(Args, Debug)]
pub struct PredictArgs {
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    path: PathArgs,
    #[command(flatten)]
    operator: OperatorArgs,
    /// Only this strategy (repeatable), as in `duet compare`
    #[arg(long, value_name = "STRATEGY", help_heading = "Run")]
    strategy: Vec<String>,
    #[command(flatten)]
    model: ModelArgs,
    /// How the host submits work
    #[arg(
        long,
        value_enum,
        default_value = "stream",
        value_name = "MODE",
        help_heading = "Run"
    )]
    launch: Launch,
    /// Terms that count, separated by commas: gemm-curve, stages, contention, launch, overhead,
    /// compass-paper, graph-launch (as `--launch graph`); or all, none, compass
    #[arg(
        long,
        value_name = "TERMS",
        default_value = "all",
        help_heading = "Model"
    )]
    terms: String,
    #[command(flatten)]
    output: OutputArgs,
}

/// The closed forms' choice for `operator`; `None` for a bare collective, and where no strategy
/// has a closed form.
pub fn select(
    machine: &Machine,
    operator: &Operator,
    terms: &Terms,
    parameters: &Parameters,
) -> Option<Selection> {
    let (m, n, k) = operator.mnk()?;
    let selector = Selector::new(machine, operator.kind, operator.dtype, terms, parameters);
    let chosen = selector.choose(m, n, k);
    chosen.seconds.is_finite().then_some(chosen)
}

/// A pick as a choice among `choices`, added where it is missing.
///
/// # Errors
/// [`Failure::Internal`] never in practice: picks are written as strategies are.
pub fn include(pick: Pick, choices: &mut Vec<Choice>) -> Result<(), Failure> {
    let choice = evaluate::choice(&pick.to_string())?;
    if !choices.contains(&choice) {
        let same = |known: &&Choice| known.strategy().name() == choice.strategy().name();
        let place = choices
            .iter()
            .rposition(|known| same(&known))
            .map_or(0, |place| place + 1);
        choices.insert(place, choice);
    }
    Ok(())
}

pub fn run(args: &PredictArgs) -> Result<(), Failure> {
    Files::default()
        .writes("--out", args.output.out.as_ref())
        .reads([&args.machine.topology])
        .reads(&args.model.params)
        .apart()?;
    let terms = Terms::parse(&args.terms).map_err(|error| {
        let known = NAMES.join(", ");
        Failure::Usage(format!(
            "error: {error}\n  help: the terms are {known}; or all, none, compass"
        ))
    })?;
    let terms = terms.launched_as_graph(terms.graph_launch || args.launch == Launch::Graph);
    let parameters = args.model.load()?;
    let topology = args.path.on(&args.machine.load()?);
    let operator = args.operator.resolve(&topology)?;
    let predictions = predict(&topology, operator, &args.strategy, &terms, &parameters)?;
    match args.output.format {
        Format::Table => {
            let look = args.output.look();
            args.output.draw(&prediction::table(&predictions, &look))
        }
        Format::Json => args
            .output
            .write(prediction::json(&predictions)?.as_bytes()),
        Format::Csv => args.output.write(prediction::csv(&predictions).as_bytes()),
    }
}

fn predict(
    topology: &Topology,
    operator: Operator,
    filters: &[String],
    terms: &Terms,
    parameters: &Parameters,
) -> Result<Predictions, Failure> {
    let placement: Vec<u32> = (0..operator.tp).collect();
    let machine = Machine::new(topology, &placement);
    let mut choices = evaluate::choices(filters, &operator)?;
    let selection = match filters {
        [] => select(&machine, &operator, terms, parameters),
        _ => None,
    };
    if let Some(selection) = selection {
        include(selection.pick, &mut choices)?;
    }
    let (mut rows, mut skipped) = (Vec::new(), Vec::new());
    for choice in &choices {
        let strategy = choice.to_string();
        match machine.predict(&operator, choice, terms, parameters) {
            Ok(prediction) => rows.push(Row {
                strategy,
                prediction,
                speedup: None,
            }),
            Err(skip) => skipped.push(Skipped {
                strategy,
                reason: skip.reason,
            }),
        }
    }
    if rows.is_empty() {
        let reasons: Vec<String> = (skipped.iter())
            .map(|skipped| format!("\n  {}: {}", skipped.strategy, skipped.reason))
            .collect();
        return Err(Failure::Input(format!(
            "error: no closed form for {operator} on {}{}\n  help: change what these reasons name, or let `duet compare` simulate it",
            topology.name,
            reasons.concat()
        )));
    }
    let baseline = ["sequential", "library"].iter().find_map(|name| {
        let row = rows.iter().find(|row| row.strategy == *name)?;
        Some(row.prediction.seconds)
    });
    for row in &mut rows {
        let seconds = row.prediction.seconds;
        row.speedup = baseline
            .filter(|_| seconds > 0.0)
            .map(|baseline| baseline / seconds);
    }
    rows.sort_by(|a: &Row, b| a.prediction.seconds.total_cmp(&b.prediction.seconds));
    let chosen = match selection {
        Some(selection) => Chosen {
            strategy: selection.pick.to_string(),
            by: "selector",
            runner_up: selection.runner_up.map(|(pick, _)| pick.to_string()),
            margin: selection.runner_up.map(|_| selection.margin),
        },
        None => least(&rows),
    };
    let fitted = parameters.iter().filter(|(key, _)| {
        key.topology == topology.name && key.operator == operator.kind && key.tp == operator.tp
    });
    Ok(Predictions {
        topology: topology.name.clone(),
        operator,
        terms: terms.to_string(),
        fitted: if terms.overhead { fitted.count() } else { 0 },
        rows,
        skipped,
        chosen,
        expected_error: evaluate::expected_error(topology, &placement),
    })
}

/// The first of the rows, fastest first.
fn least(rows: &[Row]) -> Chosen {
    let name = |place: usize| rows.get(place).map(|row| row.strategy.clone());
    Chosen {
        strategy: name(0).unwrap_or_default(),
        by: "closed-forms",
        runner_up: name(1),
        margin: match rows {
            [best, second, ..] if best.prediction.seconds > 0.0 => {
                Some(second.prediction.seconds / best.prediction.seconds - 1.0)
            }
            _ => None,
        },
    }
}
