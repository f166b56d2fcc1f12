//! Predicting an experiment's cases, and judging measured times by what was predicted.

mod shown;
mod tables;

use std::path::{Path, PathBuf};

use clap::Args;

use super::trace;
use crate::cli::apart::Files;
use crate::cli::error::Failure;
use crate::cli::output::{Format, OutputArgs, folder_of, tell, write_file};
use crate::cli::predict::ModelArgs;
use crate::cli::products;
use crate::cli::progress::Progress;
use crate::device::DType;
use crate::experiment::Experiment;
use crate::input::closest;
use crate::report::figures::validation as figures;
use crate::report::validation::KEYS;
use crate::topology::{self, Topology};
use crate::validate::analysis::{Input, analyse};
use crate::validate::cases::{Selection, groups};
use crate::validate::key::Case;
use crate::validate::peers;
use crate::validate::prediction::{Model, Predictions, Sigmas, predict};
use shown::{show, write_report};
use tables::{divergences, foretells, is_of, read, read_tasks, says};

/// What is done without a GPU.
#[derive(Args, Clone, Debug)]
pub struct JudgeArgs {
    /// Write what the model says of every case, before it is measured (needs no GPU)
    #[arg(long, help_heading = "Predicting")]
    predict: bool,
    /// The machine that predicts: a calibrated topology
    #[arg(short, long, value_name = "TOPOLOGY", help_heading = "Predicting")]
    topology: Option<String>,
    /// The machine by its data sheet
    #[arg(
        long,
        value_name = "TOPOLOGY",
        default_value = "h200-pair-datasheet",
        help_heading = "Predicting"
    )]
    datasheet: String,
    #[command(flatten)]
    model: ModelArgs,
    /// Judge this table of measured times instead of measuring; twice: the second shows how
    /// repeatable the first is (needs no GPU)
    #[arg(long, value_name = "FILE", help_heading = "Judging")]
    measured: Vec<PathBuf>,
    /// By predictions written before, as `--predict` writes them
    #[arg(long, value_name = "FILE", help_heading = "Judging")]
    predicted: Option<PathBuf>,
    /// Measured tasks: say which task diverges first and what kind of task errs [default: the file
    /// beside the first table, if it is there and a topology is given]
    #[arg(long, value_name = "FILE", help_heading = "Judging")]
    tasks: Option<PathBuf>,
    /// Other programs' times, as `benches/peers/torch/overlap.py` writes them
    #[arg(long, value_name = "FILE", help_heading = "Judging")]
    peers: Option<PathBuf>,
    /// Only these sections of the report (repeatable)
    #[arg(long, value_name = "NAME", help_heading = "Judging")]
    section: Vec<String>,
    /// Write the whole report as Markdown
    #[arg(long, value_name = "FILE", help_heading = "Judging")]
    report: Option<PathBuf>,
    /// Draw the figures into this folder
    #[arg(long, value_name = "DIR", help_heading = "Judging")]
    plots: Option<PathBuf>,
    /// Figures as bitmaps too
    #[arg(long, help_heading = "Judging")]
    png: bool,
    /// The case whose measured and simulated timelines `--trace` writes
    #[arg(long, value_name = "KEY", requires = "trace", help_heading = "Judging")]
    case: Option<Case>,
    /// Where they go: one file for ui.perfetto.dev
    #[arg(long, value_name = "FILE", requires = "case", help_heading = "Judging")]
    trace: Option<PathBuf>,
}

impl JudgeArgs {
    /// Whether nothing is to be measured.
    pub fn is_wanted(&self) -> bool {
        self.predict || !self.measured.is_empty() || self.trace.is_some()
    }

    /// What is written and read beside what `files` has.
    pub fn files<'a>(&'a self, files: Files<'a>) -> Files<'a> {
        files
            .writes("--report", self.report.as_ref())
            .writes("--trace", self.trace.as_ref())
            .reads(&self.measured)
            .reads(&self.predicted)
            .reads(&self.tasks)
            .reads(&self.peers)
            .reads(&self.topology)
            .reads([&self.datasheet])
            .reads(&self.model.params)
    }

    /// The arguments that the report depends on, as they are typed.
    fn command(&self, experiment: &Path) -> String {
        let shown = |path: &PathBuf| path.display().to_string();
        let mut words = vec![experiment.display().to_string()];
        let mut option = |name: &str, value: Option<String>| {
            words.extend(value.map(|value| format!("{name} {value}")));
        };
        for path in &self.measured {
            option("--measured", Some(shown(path)));
        }
        option("--predicted", self.predicted.as_ref().map(shown));
        option("--topology", self.topology.clone());
        if self.topology.is_some() {
            option("--datasheet", Some(self.datasheet.clone()));
            option("--params", self.model.params.as_ref().map(shown));
        }
        option("--tasks", self.tasks.as_ref().map(shown));
        option("--peers", self.peers.as_ref().map(shown));
        option("--plots", self.plots.as_ref().map(shown));
        option("--report", self.report.as_ref().map(shown));
        words.join(" ")
    }
}

pub fn run(
    file: &Path,
    args: &JudgeArgs,
    selection: &Selection,
    output: &OutputArgs,
) -> Result<(), Failure> {
    known(&args.section)?;
    let experiment = products::read(file)?;
    if args.predict {
        let predictions = predictions(&experiment, args, selection)?;
        return output.write(predictions.write().as_bytes());
    }
    if *selection != Selection::default() {
        return Err(Failure::Usage(
            "error: a table is judged whole\n  help: `--only` and `--shard` choose what is measured or predicted: leave them out"
                .to_owned(),
        ));
    }
    if let (Some(case), Some(path)) = (&args.case, &args.trace) {
        let tasks = read_tasks(args)?;
        let bytes = trace::trace(case, &tasks, &needed(args)?)?;
        write_file(path, &bytes)?;
        if args.measured.is_empty() {
            return Ok(());
        }
    }
    judge(&experiment, args, output)
}

/// Refuses what names no section of any report.
fn known(sections: &[String]) -> Result<(), Failure> {
    let Some(wrong) = sections.iter().find(|name| !KEYS.contains(&name.as_str())) else {
        return Ok(());
    };
    let near = match closest(wrong, KEYS) {
        Some(near) => format!("did you mean `{near}`? Sections"),
        None => "sections".to_owned(),
    };
    Err(Failure::Usage(format!(
        "error: `{wrong}` is no section of a report\n  help: {near} are {}",
        KEYS.join(", ")
    )))
}

/// The topology that predicts.
fn needed(args: &JudgeArgs) -> Result<Topology, Failure> {
    let Some(name) = &args.topology else {
        return Err(Failure::Usage(
            "error: nothing says which machine predicts\n  help: name a calibrated topology with `-t TOPOLOGY`"
                .to_owned(),
        ));
    };
    topology::load(name, &[]).map_err(|error| Failure::input(&error))
}

/// What the model says of every case of the experiment.
fn predictions(
    experiment: &Experiment,
    args: &JudgeArgs,
    selection: &Selection,
) -> Result<Predictions, Failure> {
    let topology = needed(args)?;
    let datasheet = topology::load(&args.datasheet, &[]).map_err(|error| Failure::input(&error))?;
    let parameters = args.model.load()?;
    let name = args.topology.as_deref().unwrap_or_default();
    let text = topology::text(name).map_err(|error| Failure::input(&error))?;
    let groups = groups(experiment)?;
    let chosen = selection.of(&groups)?;
    let cases: Vec<Case> = (chosen.iter())
        .flat_map(|&index| groups[index].cases())
        .collect();
    let dtype = cases
        .first()
        .map_or(DType::Bf16, |case| case.group.operator.dtype);
    let model = Model {
        topology: &topology,
        sigmas: Sigmas::of(&text, topology.device(0), dtype),
        spec: Some(&datasheet),
        parameters: &parameters,
    };
    let progress = Progress::new(cases.len(), "predicting");
    Ok(predict(&cases, &model, &|| progress.step()))
}

fn judge(experiment: &Experiment, args: &JudgeArgs, output: &OutputArgs) -> Result<(), Failure> {
    let [first, rest @ ..] = args.measured.as_slice() else {
        return Err(Failure::Usage(
            "error: nothing to judge\n  help: give a table of measured times with `--measured FILE`"
                .to_owned(),
        ));
    };
    if let [_, third, ..] = rest {
        return Err(Failure::Usage(format!(
            "error: `{}` is a third table\n  help: `--measured` takes the table to judge, and one more to see how repeatable it is",
            third.display()
        )));
    }
    if output.format == Format::Csv {
        return Err(Failure::Usage(
            "error: a validation has no CSV\n  help: the tables of measured and predicted times are CSV; use `--format json` for what follows from them"
                .to_owned(),
        ));
    }
    if let Some(report) = &args.report {
        folder_of(report)?;
    }
    let measured = read(first)?;
    is_of(experiment, &measured, first)?;
    let second = rest.first().map(|path| read(path)).transpose()?;
    let blind = args
        .predicted
        .as_ref()
        .map(|path| Predictions::read(path).map_err(|error| Failure::input(&error)));
    let blind = blind.transpose()?;
    if let (Some(blind), Some(path)) = (&blind, &args.predicted) {
        foretells(blind, &measured, path)?;
    }
    let today = match (&args.topology, &blind) {
        (None, Some(_)) => None,
        _ => Some(predictions(experiment, args, &Selection::default())?),
    };
    let (predictions, today) = match (blind, today) {
        // The same numbers twice would say nothing.
        (Some(blind), Some(today)) if says(&today, &blind) => (blind, None),
        (Some(blind), today) => (blind, today),
        (None, Some(today)) => (today, None),
        (None, None) => (Predictions::default(), None),
    };
    let divergences = divergences(args, &measured)?;
    let peers = args.peers.as_deref().map(peers::read);
    let peers = peers
        .transpose()
        .map_err(|error| Failure::input(&error))?
        .unwrap_or_default();
    let found = analyse(&Input {
        experiment: &experiment.name,
        measured: &measured,
        second: second.as_deref(),
        predictions: &predictions,
        today: today.as_ref(),
        divergences: &divergences,
        peers: &peers,
        options: experiment.analysis.unwrap_or_default(),
    });
    let drawn = figures::draw(&found);
    if let Some(folder) = &args.plots {
        let written = products::write_pictures(&drawn, folder, args.png)?;
        if let (true, Some((name, reason))) = (written.is_empty(), drawn.left_out.first()) {
            tell(&format!("note: no figure is drawn; {name}: {reason}"));
        }
    }
    if let Some(path) = &args.report {
        write_report(&found, &drawn, path, &experiment.file, args)?;
    }
    show(&found, args, output)
}
