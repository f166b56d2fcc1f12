//! `duet plot`: draw the figures of results that exist.

use std::path::{Path, PathBuf};

use clap::Args;

use super::error::Failure;
use super::output::{ColorChoice, Format, OutputArgs, print};
use super::products::{self, Products, figures};
use crate::experiment::Experiment;
use crate::experiment::results::Results;
use crate::experiment::run::Stamp;
use crate::report::figures::{Figure, registry};
use crate::report::grid::{Grid, Paint, paint};
use crate::report::list::List;

#[derive(Args, Debug)]
pub struct PlotArgs {
    /// The folder that `duet run` wrote, or the table in it
    #[arg(value_name = "RESULTS", required_unless_present = "list")]
    results: Option<PathBuf>,
    /// The experiment that the results are of [default: `experiment.yaml` beside them, else the file
    /// that their stamp names]
    #[arg(long, value_name = "FILE")]
    experiment: Option<PathBuf>,
    /// Only this figure (repeatable) [default: those that the experiment lists, else all]
    #[arg(long, value_name = "NAME")]
    figure: Vec<String>,
    /// List the figures that can be drawn
    #[arg(long)]
    list: bool,
    /// The folder of the figures [default: plots beside the table]
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Bitmaps too
    #[arg(long)]
    png: bool,
    /// How to say what was written
    #[arg(long, value_enum, default_value = "table", value_name = "FORMAT")]
    format: Format,
}

pub fn run(args: &PlotArgs) -> Result<(), Failure> {
    let Some(path) = args.results.as_ref().filter(|_| !args.list) else {
        return list(args.format);
    };
    let table = Results::find(path).map_err(|error| Failure::input(&error))?;
    let experiment = find(args, &table)?;
    let results = Results::read(&table).map_err(|error| Failure::input(&error))?;
    if results.rows.is_empty() {
        return Err(Failure::Input(format!(
            "error: `{}` has a header and no results\n  help: perform its experiment with `duet run`",
            table.display()
        )));
    }
    let products = Products::new(&experiment, &results, &figures(&args.figure, &experiment)?)?;
    let folder = args
        .out
        .clone()
        .unwrap_or_else(|| table.with_file_name("plots"));
    let written = products.plots(&folder, args.png)?;
    let left_out = &products.drawn.left_out;
    match args.format {
        Format::Table => {
            let mut text: String = written
                .iter()
                .map(|path| format!("{}\n", path.display()))
                .collect();
            for (name, reason) in left_out {
                text += &format!("{name} left out: {reason}\n");
            }
            print(text.as_bytes())
        }
        Format::Json => {
            let left_out: Vec<serde_json::Value> = left_out
                .iter()
                .map(|(name, reason)| serde_json::json!({ "figure": name, "reason": reason }))
                .collect();
            let written: Vec<String> = written
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            let value = serde_json::json!({
                "schema": "duet-plot-1",
                "written": written,
                "left_out": left_out,
            });
            print(format!("{value:#}\n").as_bytes())
        }
        Format::Csv => {
            let lines: String = written
                .iter()
                .map(|path| format!("{}\n", path.display()))
                .collect();
            print(format!("written\n{lines}").as_bytes())
        }
    }
}

/// The experiment that the table is of.
fn find(args: &PlotArgs, table: &Path) -> Result<Experiment, Failure> {
    let beside = table.with_file_name("experiment.yaml");
    let stamp = Stamp::beside(table);
    let file = match (&args.experiment, &stamp) {
        (Some(file), _) => file.clone(),
        (None, _) if beside.exists() => beside,
        (None, Some(stamp)) => {
            let file = stamp.experiment_file(table.parent().unwrap_or(Path::new("")));
            if !file.exists() {
                return Err(Failure::Input(format!(
                    "error: `{}` is of the experiment `{}`, which is not there\n  help: name it with \
                     `--experiment FILE`",
                    table.display(),
                    file.display()
                )));
            }
            file
        }
        (None, None) => {
            return Err(Failure::Input(format!(
                "error: which experiment is `{}` of? There is no `experiment.yaml` beside it\n  \
                 help: name it with `--experiment FILE`",
                table.display()
            )));
        }
    };
    let experiment = products::read(&file)?;
    match stamp.and_then(|stamp| stamp.foreign(&experiment)) {
        Some(words) => Err(Failure::Input(format!(
            "error: `{}` does not hold the results of `{}`: {words}\n  help: name the experiment that they \
             are of with `--experiment FILE`, or perform it anew with `duet run`",
            table.display(),
            file.display()
        ))),
        None => Ok(experiment),
    }
}

fn list(format: Format) -> Result<(), Failure> {
    let mut grid = Grid::default().left("figure", 0).text("what it shows");
    let mut list = List::new(&["figure", "about"]);
    for figure in registry() {
        let Figure { name, about, .. } = figure;
        grid.row(vec![paint(name, Paint::Bold), (*about).to_owned()]);
        list.row(vec![(*name).into(), (*about).into()]);
    }
    let output = OutputArgs {
        format,
        out: None,
        color: ColorChoice::Auto,
    };
    output.list(&list, &grid)
}
