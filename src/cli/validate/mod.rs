//! `duet validate`: an experiment on the real GPUs of this machine.

mod dry;
mod judge;
mod measure;
mod trace;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::apart::Files;
use super::error::Failure;
use super::gpu::UseArgs;
use super::output::{OutputArgs, tell};
use super::products;
use crate::experiment::run::Shard;
use crate::experiment::{Experiment, Measure};
use crate::validate::cases::{CasesError, Planned, Selection, groups};
use crate::validate::measure::{Estimate, StoreError, estimate};
pub use measure::machine_name;

#[derive(Args, Debug)]
pub struct ValidateArgs {
    /// The experiment's YAML file
    #[arg(value_name = "EXPERIMENT")]
    experiment: PathBuf,
    /// Say what would be measured, what memory and time it takes, and measure nothing
    #[arg(long, help_heading = "Measuring")]
    dry_run: bool,
    /// The table of measured times; one that was stopped goes on [default:
    /// measured/DATE-MACHINE.csv in the experiment's folder]
    #[arg(long, value_name = "FILE", help_heading = "Measuring")]
    rows: Option<PathBuf>,
    /// What to call this machine [default: number and name of its GPUs, and a part of their id's
    /// hash]
    #[arg(long, value_name = "NAME", value_parser = plain, help_heading = "Measuring")]
    machine: Option<String>,
    /// Begin no group that would end later
    #[arg(long, value_name = "SECONDS", value_parser = super::gpu::read_seconds, help_heading = "Measuring")]
    seconds: Option<Duration>,
    /// Only groups whose name contains this, e.g. `gemm-rs/` or `/host:`; several: any of them
    #[arg(long, value_name = "PART", help_heading = "Measuring")]
    only: Vec<String>,
    /// Only every N-th group from the I-th on
    #[arg(long, value_name = "I/N", help_heading = "Measuring")]
    shard: Option<Shard>,
    /// Rounds instead of the experiment's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "Measuring")]
    rounds: Option<u32>,
    /// Forget what the table holds
    #[arg(long, help_heading = "Measuring")]
    fresh: bool,
    #[command(flatten)]
    judge: judge::JudgeArgs,
    #[command(flatten)]
    gpus: UseArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// A name that can stand in a file's name.
fn plain(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match (1..=64).contains(&text.len()) && text.chars().all(fits) && !text.starts_with('.') {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "`{text}` is no plain name; use up to 64 letters, digits, `-`, `_` and `.`"
        )),
    }
}

impl From<CasesError> for Failure {
    fn from(error: CasesError) -> Self {
        Self::input(&error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            // The machine ran out of something.
            StoreError::Write { .. } => Self::Internal(format!("error: {error}")),
            _ => Self::input(&error),
        }
    }
}

/// An experiment with what is wanted of it.
struct Wanted {
    experiment: Experiment,
    groups: Vec<Planned>,
    /// Indices of groups.
    chosen: Vec<usize>,
    /// Of the chosen groups, in their order.
    estimates: Vec<Estimate>,
}

pub fn run(args: &ValidateArgs) -> Result<(), Failure> {
    let files = Files::default()
        .writes("--out", args.output.out.as_ref())
        .writes("--rows", args.rows.as_ref())
        .writes("--pins", args.gpus.pins.as_ref())
        .reads([&args.experiment]);
    args.judge.files(files).apart()?;
    if args.judge.is_wanted() {
        return judge::run(
            &args.experiment,
            &args.judge,
            &args.selection(),
            &args.output,
        );
    }
    let wanted = Wanted::read(args)?;
    match args.dry_run {
        true => dry::run(args, &wanted),
        false => {
            wanted.fits()?;
            measure::run(args, &wanted)
        }
    }
}

impl ValidateArgs {
    fn selection(&self) -> Selection {
        Selection {
            only: self.only.clone(),
            shard: self.shard,
        }
    }
}

impl Wanted {
    fn read(args: &ValidateArgs) -> Result<Self, Failure> {
        let mut experiment = products::read(&args.experiment)?;
        experiment.measure = Measure {
            rounds: args.rounds.unwrap_or(experiment.measure.rounds),
            ..experiment.measure
        };
        let groups = groups(&experiment)?;
        let mut chosen = args.selection().of(&groups)?;
        if let Some(limit) = args.gpus.gpus {
            let before = chosen.len();
            chosen.retain(|&index| gpus_of(&groups[index]) <= limit);
            if chosen.len() < before {
                tell(&format!(
                    "note: {} of {before} groups need more than the GPUs of `--gpus {limit}` and are left out",
                    before - chosen.len()
                ));
            }
        }
        let estimates = estimates(&experiment, &groups, &chosen);
        Ok(Self {
            experiment,
            groups,
            chosen,
            estimates,
        })
    }

    /// Refuses groups that the GPUs of their topology have no memory for.
    fn fits(&self) -> Result<(), Failure> {
        let machine = |planned: &Planned| &self.experiment.machines[planned.machine as usize];
        let large: Vec<String> = (self.chosen.iter().zip(&self.estimates))
            .filter(|(index, estimate)| !estimate.fits(&machine(&self.groups[**index]).topology))
            .map(|(&index, estimate)| {
                let gib = estimate.memory as f64 / f64::from(1 << 30);
                format!(
                    "\n  {} needs {gib:.0} GiB of a GPU",
                    self.groups[index].group
                )
            })
            .collect();
        match large.is_empty() {
            true => Ok(()),
            false => Err(Failure::Input(format!(
                "error: {} of {} groups do not fit into the GPUs' memory{}\n  help: all strategies of a group hold their buffers at once: make the shapes smaller, or list fewer strategies",
                large.len(),
                self.chosen.len(),
                large.concat()
            ))),
        }
    }

    /// GPUs that the chosen groups need.
    fn gpus(&self) -> u32 {
        let gpus = self
            .chosen
            .iter()
            .map(|&index| gpus_of(&self.groups[index]));
        gpus.max().unwrap_or(1)
    }

    /// Seconds of all chosen groups.
    fn seconds(&self) -> f64 {
        self.estimates.iter().map(|estimate| estimate.seconds).sum()
    }
}

/// GPUs that a group needs.
fn gpus_of(planned: &Planned) -> u32 {
    let placement = &planned.group.placement;
    placement.iter().max().map_or(1, |gpu| gpu + 1)
}

fn estimates(experiment: &Experiment, groups: &[Planned], chosen: &[usize]) -> Vec<Estimate> {
    use rayon::prelude::*;
    let one = |&index: &usize| {
        let planned = &groups[index];
        let machine = &experiment.machines[planned.machine as usize];
        estimate(planned, &machine.topology, &experiment.measure)
    };
    chosen.par_iter().map(one).collect()
}

/// `6.5 minutes`, `40 seconds`.
fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 90.0 => format!("{seconds:.0} seconds"),
        seconds if seconds < 5400.0 => format!("{:.1} minutes", seconds / 60.0),
        seconds => format!("{:.1} hours", seconds / 3600.0),
    }
}
