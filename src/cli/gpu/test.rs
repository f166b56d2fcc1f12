//! `duet gpu test`: random cases against reference products.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use super::lowering::{GemmArg, LibraryArg};
use super::settings::{UseArgs, read_list};
use crate::cli::error::Failure;
use crate::cli::output::{Format, OutputArgs};
use crate::cli::progress::Progress;
use crate::gpu::GpuError;
use crate::gpu::campaign::{
    Case, Outcome, Space, Trial, draw, machine_topology, mode_name, perform,
};
use crate::gpu::plan::{Library, Path};
use crate::report::grid::{Grid, Paint, clean, paint};
use crate::units::count;

/// Limits of a case beyond that of a run: building, lowering, references on the host.
const ASIDE: u32 = 60;

#[derive(Args, Debug)]
pub struct TestArgs {
    /// Cases that can be performed; up to half as many more are drawn that cannot
    #[arg(long, value_name = "N", default_value = "500", value_parser = clap::value_parser!(u32).range(1..))]
    cases: u32,
    /// The same seed draws the same cases
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Numbers of ranks to draw from; they share the GPUs
    #[arg(long, value_name = "LIST", default_value = "2,4,8", value_parser = read_list)]
    ranks: std::vec::Vec<u32>,
    /// Runs of each case, each with fresh inputs and delays
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..))]
    replays: u32,
    /// Then perform each case N times more, on one of two sets of inputs, and compare all bits with
    /// those of the first run on the same inputs
    #[arg(long, value_name = "N", default_value = "0")]
    repeat: u32,
    /// Who multiplies matrices
    #[arg(long, value_enum, default_value = "library", value_name = "WHOSE")]
    gemm: GemmArg,
    /// Who performs the collectives of cases that leave them to a library
    #[arg(long, value_enum, default_value = "nccl", value_name = "WHO")]
    library: LibraryArg,
    /// Only cases whose command, as it is printed for failures, contains this; several: any of them
    #[arg(long, value_name = "PART", allow_hyphen_values = true)]
    only: Vec<String>,
    /// Begin with the N-th case
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    from: u32,
    /// Begin no case after so many seconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    #[command(flatten)]
    gpus: UseArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// What came of the cases of one strategy, path and launch mode.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    passed: u32,
    failed: u32,
    skipped: u32,
    /// Greatest error as a share of its bound.
    nearest: f64,
}

/// What came of all.
#[derive(Default)]
struct Report {
    groups: BTreeMap<(String, &'static str, &'static str), Tally>,
    failures: Vec<(String, String)>,
    skips: BTreeMap<String, u32>,
    spots: u64,
    /// Why it ended early.
    stopped: Option<GpuError>,
    /// Number of the case that was too late.
    late: Option<usize>,
}

pub fn run(args: &TestArgs) -> Result<(), Failure> {
    if let Some(ranks) = args.ranks.iter().find(|&&ranks| !(2..=64).contains(&ranks)) {
        return Err(Failure::Usage(format!(
            "error: {} cannot be tested\n  help: give numbers from 2 to 64, e.g. `--ranks 2,4,8`",
            count(u64::from(*ranks), "rank")
        )));
    }
    let (session, watchdog) = args.gpus.open()?;
    let numbers: Vec<u32> = session.gpus().iter().map(|gpu| gpu.ordinal()).collect();
    let machine = args.gpus.machine(&session, &numbers, Duration::ZERO)?;
    let sms = session.gpus().iter().map(|gpu| gpu.attributes().sms);
    let sms = sms.min().unwrap_or(1);
    let space = Space {
        gpus: numbers.len() as u32,
        ranks: args.ranks.clone(),
        peers: machine.all_peers(),
        products: args.gemm.into(),
    };
    let mut cases = drawn(&space, args);
    for case in &mut cases {
        if case.library != Library::Copies {
            case.library = args.library.into();
        }
    }
    let most = args.ranks.iter().copied().max().unwrap_or(2);
    let topology = machine_topology(space.gpus, most, sms);
    let trial = Trial {
        replays: args.replays,
        faults: args.gpus.faults(),
        shake: true,
        repeats: args.repeat,
    };
    let (begun, time) = (Instant::now(), args.seconds.map(Duration::from_secs));
    let progress = Progress::new(args.cases as usize, "testing");
    let mut report = Report::default();
    let limit = args.gpus.limit()
        * (args
            .replays
            .saturating_add(args.repeat / 100)
            .saturating_add(2))
        + std::time::Duration::from_secs(u64::from(ASIDE));
    for (at, case) in cases.iter().enumerate().skip(args.from as usize - 1) {
        if time.is_some_and(|time| begun.elapsed() > time) {
            report.late = Some(at + 1);
            break;
        }
        watchdog.step(case.command(), limit);
        match perform(&machine, &topology, sms, case, &trial) {
            Ok(Outcome::Skipped(reason)) => {
                report.take(case, Outcome::Skipped(reason));
                continue;
            }
            Ok(outcome) => report.take(case, outcome),
            Err(error) => {
                report.take(case, Outcome::Failed(error.to_string()));
                report.stopped = Some(error);
                break;
            }
        }
        progress.step();
        let total = report.total();
        if total.passed + total.failed >= args.cases {
            break;
        }
    }
    drop(progress);
    args.gpus.keep_pins(&machine)?;
    match args.output.format {
        Format::Table => args.output.draw(&report.table(args))?,
        Format::Json => args.output.json(&report.json(args))?,
        Format::Csv => args.output.write(report.csv().as_bytes())?,
    }
    report.verdict()
}

/// Half as many cases again as are asked for, of those that are wanted.
fn drawn(space: &Space, args: &TestArgs) -> Vec<Case> {
    /// Of so many drawn one is wanted at the least.
    const RARE: u32 = 64;
    let most = args.cases.saturating_add(args.cases / 2);
    if args.only.is_empty() {
        return draw(space, args.seed, most);
    }
    let mut cases = draw(space, args.seed, most.saturating_mul(RARE).min(100_000));
    cases.retain(|case| {
        let command = case.command();
        args.only.iter().any(|part| command.contains(part))
    });
    cases.truncate(most as usize);
    cases
}

const fn path_kind(path: &Path) -> &'static str {
    match path {
        Path::P2p => "p2p",
        Path::Host { .. } => "host",
        Path::Hybrid { .. } => "hybrid",
    }
}

impl Report {
    fn take(&mut self, case: &Case, outcome: Outcome) {
        let name = case.strategy.split(':').next().unwrap_or_default();
        let key = (name.to_owned(), path_kind(&case.path), mode_name(case.mode));
        let tally = self.groups.entry(key).or_default();
        match outcome {
            Outcome::Passed(verdict) => {
                tally.passed += 1;
                self.spots += u64::from(verdict.spots);
                if verdict.bound > 0.0 {
                    tally.nearest = tally.nearest.max(verdict.relative / verdict.bound);
                }
            }
            Outcome::Failed(error) => {
                tally.failed += 1;
                self.failures.push((case.command(), error));
            }
            Outcome::Skipped(reason) => {
                tally.skipped += 1;
                *self.skips.entry(reason).or_default() += 1;
            }
        }
    }

    fn total(&self) -> Tally {
        let mut total = Tally::default();
        for tally in self.groups.values() {
            total.passed += tally.passed;
            total.failed += tally.failed;
            total.skipped += tally.skipped;
            total.nearest = total.nearest.max(tally.nearest);
        }
        total
    }

    fn table(&self, args: &TestArgs) -> String {
        let mut grid = Grid::default()
            .left("strategy", 0)
            .left("path", 0)
            .left("launch", 0)
            .right("passed", 0)
            .right("failed", 0)
            .right("skipped", 0)
            .right("error of bound", 1);
        let count = |n: u32, color| match n {
            0 => "·".to_owned(),
            _ => paint(&n.to_string(), color),
        };
        for ((strategy, path, launch), tally) in &self.groups {
            grid.row(vec![
                strategy.clone(),
                (*path).to_owned(),
                (*launch).to_owned(),
                count(tally.passed, Paint::Good),
                count(tally.failed, Paint::Bad),
                count(tally.skipped, Paint::Dim),
                format!("{:.0} %", 100.0 * tally.nearest),
            ]);
        }
        let total = self.total();
        let mut text = grid.draw(&args.output.look());
        text.push_str(&format!(
            "\n{} passed, {} failed, {} skipped; {} elements compared with float64 on the host; seed {}\n",
            total.passed, total.failed, total.skipped, self.spots, args.seed
        ));
        if let Some(late) = self.late {
            text.push_str(&format!("the time ended before case {late}\n"));
        }
        for (command, error) in &self.failures {
            text.push_str(&format!(
                "\n{} {command}\n  {}\n",
                paint("failed:", Paint::Bad),
                clean(&error.replace('\n', "; "))
            ));
        }
        if !self.skips.is_empty() {
            text.push_str("\nskipped because\n");
            for (reason, count) in &self.skips {
                text.push_str(&format!("  {count} × {}\n", clean(reason)));
            }
        }
        text
    }

    fn json(&self, args: &TestArgs) -> Value {
        let total = self.total();
        let groups = self.groups.iter().map(|((strategy, path, launch), t)| {
            json!({
                "strategy": strategy,
                "path": path,
                "launch": launch,
                "passed": t.passed,
                "failed": t.failed,
                "skipped": t.skipped,
                "error_over_bound": t.nearest,
            })
        });
        let failures = self.failures.iter();
        let skips = self.skips.iter();
        json!({
            "schema": "duet-gpu-test-1",
            "seed": args.seed,
            "cases": args.cases,
            "replays": args.replays,
            "repeats": args.repeat,
            "passed": total.passed,
            "failed": total.failed,
            "skipped": total.skipped,
            "error_over_bound": total.nearest,
            "host_elements": self.spots,
            "groups": groups.collect::<Vec<_>>(),
            "failures": failures.map(|(command, error)| json!({ "command": command, "error": error })).collect::<Vec<_>>(),
            "skips": skips.map(|(reason, count)| json!({ "reason": reason, "count": count })).collect::<Vec<_>>(),
            "late": self.late,
            "stopped_because": self.stopped.as_ref().map(ToString::to_string),
        })
    }

    fn csv(&self) -> String {
        let mut text = "strategy,path,launch,passed,failed,skipped,error_over_bound\n".to_owned();
        for ((strategy, path, launch), t) in &self.groups {
            text.push_str(&format!(
                "{strategy},{path},{launch},{},{},{},{}\n",
                t.passed, t.failed, t.skipped, t.nearest
            ));
        }
        text
    }

    fn verdict(self) -> Result<(), Failure> {
        if let Some(error) = self.stopped {
            return Err(Failure::from(error));
        }
        match (self.failures.len(), self.total().passed) {
            (0, 0) => Err(Failure::Validation(
                "error: no case could be performed\n  help: the reasons are listed above"
                    .to_owned(),
            )),
            (0, _) => Ok(()),
            (failed, _) => Err(Failure::Validation(format!(
                "error: {failed} cases failed\n  help: repeat one by the command that is printed with it"
            ))),
        }
    }
}
