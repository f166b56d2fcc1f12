//! `duet fit`: overheads from measured times.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;

use super::apart::Files;
use super::args::Launch;
use super::error::Failure;
use super::output::{ColorChoice, Format, OutputArgs, write_file};
use crate::calibrate::bootstrap::Bootstrap;
use crate::calibrate::groups::{Options, fit_groups, parameters};
use crate::calibrate::points::points;
use crate::calibrate::table;
use crate::predict::Terms;
use crate::report::fit::{self as report, FitReport};
use crate::topology;

#[derive(Args, Debug)]
pub struct FitArgs {
    /// Times as CSV: what `duet run` or `duet compare --format csv` wrote, or measurements typed in
    #[arg(value_name = "MEASURED.csv")]
    file: PathBuf,
    /// A topology file whose `name:` the rows give (repeatable); built-in names need none
    #[arg(short, long, value_name = "FILE", help_heading = "Machine")]
    topology: Vec<String>,
    /// Only rows launched so
    #[arg(long, value_enum, value_name = "MODE", help_heading = "Fit")]
    launch: Option<Launch>,
    /// Terms of the closed forms beneath the overhead: `all`, `none`, `compass` or a list
    #[arg(long, value_name = "TERMS", default_value = "all", value_parser = Terms::parse, help_heading = "Fit")]
    terms: Terms,
    /// Judge by this share of the cases instead of fitting them, e.g. `1/3`
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share, help_heading = "Fit")]
    holdout: f64,
    /// Seed of the resamples and of the cases held out
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Fit")]
    seed: u64,
    /// Resamples for the intervals; 0 for none
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(..=1_000_000), help_heading = "Fit")]
    resamples: u32,
    /// Share of resamples inside an interval
    #[arg(long, value_name = "SHARE", default_value = "0.95", value_parser = confidence, help_heading = "Fit")]
    confidence: f64,
    /// Write the overheads to FILE, e.g. params.yaml
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,
    /// How to write the report
    #[arg(
        long,
        value_enum,
        default_value = "table",
        value_name = "FORMAT",
        help_heading = "Output"
    )]
    format: Format,
    /// When to use colour
    #[arg(
        long,
        value_enum,
        default_value = "auto",
        value_name = "WHEN",
        help_heading = "Output"
    )]
    color: ColorChoice,
}

/// A number from 0 to below 1, also written as `1/3` or `33%`.
fn share(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let value = match (text.split_once('/'), text.strip_suffix('%')) {
        (Some((part, whole)), _) => number(part)
            .zip(number(whole))
            .map(|(part, whole)| part / whole),
        (None, Some(percent)) => number(percent).map(|percent| percent / 100.0),
        (None, None) => number(text),
    };
    let value = value.filter(|value| (0.0..1.0).contains(value));
    value.ok_or_else(|| "write a share from 0 to below 1, e.g. 1/3 or 0.2".to_owned())
}

fn confidence(text: &str) -> Result<f64, String> {
    let value = share(text).ok().filter(|value| *value > 0.0);
    value.ok_or_else(|| "write a share between 0 and 1, e.g. 0.95".to_owned())
}

pub fn run(args: &FitArgs) -> Result<(), Failure> {
    Files::default()
        .writes("--out", args.out.as_ref())
        .reads([&args.file])
        .reads(&args.topology)
        .apart()?;
    let wrong = |error| Failure::input(&error);
    let mut table = table::read(&args.file).map_err(wrong)?;
    if let Some(launch) = args.launch {
        let wanted = match launch {
            Launch::Stream => "stream",
            Launch::Graph => "graph",
        };
        table
            .rows
            .retain(|row| row.launch.as_deref().is_none_or(|launch| launch == wanted));
    }
    let files = named(&args.topology)?;
    let find = |name: &str, sets: &[String]| {
        topology::load(files.get(name).map_or(name, String::as_str), sets)
    };
    let points = points(&table, &args.terms, find).map_err(wrong)?;
    let options = Options {
        bootstrap: Bootstrap {
            seed: args.seed,
            resamples: args.resamples,
            confidence: args.confidence,
        },
        holdout: args.holdout,
    };
    let groups = fit_groups(&points.points, &options);
    let file = args.file.display().to_string();
    let terms = args.terms.without_overhead().to_string();
    let report = FitReport {
        file: &file,
        rows: table.rows.len(),
        skipped: table.skipped,
        terms: &terms,
        options: &options,
        groups: &groups,
        passed: &points.passed,
    };
    if groups.iter().all(|group| group.fit.is_err()) {
        return Err(nothing(&report));
    }
    if let Some(path) = &args.out {
        let source = format!("{file}, terms {terms}");
        write_file(path, parameters(&groups, &source).write().as_bytes())?;
    }
    let output = OutputArgs {
        format: args.format,
        out: None,
        color: args.color,
    };
    match args.format {
        Format::Table => output.draw(&report::table(&report, &output.look())),
        Format::Json => output.write(report::json(&report)?.as_bytes()),
        Format::Csv => output.write(report::csv(&report).as_bytes()),
    }
}

/// Topology files by the names that they give themselves.
fn named(files: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut named = BTreeMap::new();
    for file in files {
        let topology = topology::load(file, &[]).map_err(|error| Failure::input(&error))?;
        if let Some(other) = named.insert(topology.name.clone(), file.clone()) {
            return Err(Failure::Usage(format!(
                "error: `{other}` and `{file}` are both named `{}`\n  help: give one of them, or change a `name:`",
                topology.name
            )));
        }
    }
    Ok(named)
}

/// Why not one group could be fitted.
fn nothing(report: &FitReport<'_>) -> Failure {
    let mut text = format!("error: nothing can be fitted from `{}`", report.file);
    for group in report.groups {
        if let Err(reason) = &group.fit {
            let key = &group.key;
            text += &format!(
                "\n  {} {} tp={} {}: {reason}",
                key.topology, key.operator, key.tp, key.strategy
            );
        }
    }
    for passed in report.passed {
        let s = if passed.rows == 1 { "" } else { "s" };
        text += &format!(
            "\n  {} ({} row{s}): {}",
            passed.strategy, passed.rows, passed.reason
        );
    }
    text += match report.groups.is_empty() {
        true => {
            "\n  help: add times of strategies that overlap in steps, e.g. `interdecom:d=4` or `fusion-ring`"
        }
        false => {
            "\n  help: add times, for each strategy, of at least 3 operators of different size, better 10, launched in one way"
        }
    };
    Failure::Input(text)
}
