//! `duet run`: perform an experiment into a table, then draw what follows from it.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::apart::Files;
use super::error::Failure;
use super::output;
use super::products::{self, Products};
use super::progress::Progress;
use crate::experiment::Experiment;
use crate::experiment::results::{Results, Table};
use crate::experiment::run::{self, Observer, RunError, RunOptions, Shard};
use crate::report::experiment::brief;
use crate::report::figures::Figure;
use crate::units::count;

/// The form of the result table.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Text, one line per case and strategy.
    Csv,
    /// Typed columns.
    Parquet,
}

#[derive(Args, Debug)]
pub struct RunArgs {
    /// The experiment's YAML file
    #[arg(value_name = "EXPERIMENT")]
    experiment: PathBuf,
    /// The folder of the results; a run that was stopped there goes on [default: results/NAME]
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only every N-th case from the I-th on; `duet merge` joins the parts
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// The form of the result table
    #[arg(long, value_enum, default_value = "csv", value_name = "FORM")]
    results: Form,
    /// Forget earlier results in the folder
    #[arg(long)]
    fresh: bool,
    /// The folder of the figures [default: plots in the folder of the results]
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Where the report goes [default: report.md in the folder of the results]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Figures as bitmaps too
    #[arg(long)]
    png: bool,
    /// Check the experiment and say how much it is, without performing it
    #[arg(long)]
    dry_run: bool,
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            // The machine ran out of something.
            RunError::Write { .. } => Self::Internal(format!("error: {error}")),
            _ => Self::input(&error),
        }
    }
}

impl Observer for Progress {
    fn begin(&self, total: u64, done: u64) {
        self.of(total, done);
    }

    fn step(&self) {
        Self::step(self);
    }
}

pub fn run(args: &RunArgs) -> Result<(), Failure> {
    if args.shard.is_some() && args.results == Form::Parquet {
        return Err(Failure::Usage(
            "error: parts are written as CSV\n  help: join them with `duet merge`, then `duet run … --results parquet` converts the whole"
                .to_owned(),
        ));
    }
    Files::default()
        .writes("--report", args.report.as_ref())
        .reads([&args.experiment])
        .apart()?;
    let experiment = products::read(&args.experiment)?;
    if args.dry_run {
        return dry(&experiment, args.shard);
    }
    let figures = products::figures(&[], &experiment)?;
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from("results").join(&experiment.name));
    let options = RunOptions {
        out: out.clone(),
        shard: args.shard,
        fresh: args.fresh,
        table: match args.results {
            Form::Csv => Table::Csv,
            Form::Parquet => Table::Parquet,
        },
    };
    let progress = Progress::new(0, "simulating");
    let finished = run::run(&experiment, &options, &progress)?;
    drop(progress);
    let cases = finished.cases;
    let kept = match finished.kept {
        0 => String::new(),
        all if all == cases => {
            ", all from an earlier run (`--fresh` performs them anew)".to_owned()
        }
        kept => format!(", {kept} of them from an earlier run"),
    };
    let mut text = format!(
        "{}: {}{kept}\n",
        finished.path.display(),
        count(cases, "case")
    );
    // A part says nothing about the whole; `duet merge` and `duet plot` do.
    if args.shard.is_none() {
        text += &follow(args, &experiment, &finished.path, &out, &figures)?;
    }
    output::print(text.as_bytes())
}

/// Writes what follows from the table and says what was found.
fn follow(
    args: &RunArgs,
    experiment: &Experiment,
    table: &Path,
    out: &Path,
    figures: &[Figure],
) -> Result<String, Failure> {
    let results = Results::read(table).map_err(|error| Failure::input(&error))?;
    let products = Products::new(experiment, &results, figures)?;
    let plots = args.plots.clone().unwrap_or_else(|| out.join("plots"));
    let report = args.report.clone().unwrap_or_else(|| out.join("report.md"));
    let drawn = products.plots(&plots, args.png)?;
    products.texts(out, &report, &plots)?;
    let mut text = format!("{}: report\n", report.display());
    if !drawn.is_empty() {
        text += &format!(
            "{}: {}\n",
            plots.display(),
            count(drawn.len() as u64, "figure")
        );
    }
    Ok(text + &brief(&products.analysis, &products.drawn))
}

/// Says how much there is to do.
fn dry(experiment: &Experiment, shard: Option<Shard>) -> Result<(), Failure> {
    let (cases, rows) = run::size(experiment, shard);
    let seconds = run::estimate(experiment, shard).as_secs_f64();
    let time = match seconds {
        short if short < 1.0 => "less than a second".to_owned(),
        short if short < 1.5 => "about a second".to_owned(),
        seconds if seconds < 120.0 => format!("about {seconds:.0} seconds"),
        seconds if seconds < 7200.0 => format!("about {:.0} minutes", seconds / 60.0),
        seconds => format!("about {:.0} hours", seconds / 3600.0),
    };
    let text = format!(
        "{}: {} on {}, {}, {time} on {}\n",
        experiment.name,
        count(cases, "case"),
        count(experiment.machines.len() as u64, "machine"),
        count(rows, "schedule"),
        count(rayon::current_num_threads() as u64, "thread"),
    );
    output::print(text.as_bytes())
}
