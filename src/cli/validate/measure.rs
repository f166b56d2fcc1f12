//! Measuring on this machine's GPUs.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{ValidateArgs, Wanted, duration};
use crate::cli::calibrate::today;
use crate::cli::error::Failure;
use crate::cli::gpu::Watchdog;
use crate::cli::output::tell;
use crate::cli::progress::Progress;
use crate::gpu::Session;
use crate::gpu::info::uuid_hash;
use crate::validate::cases::Planned;
use crate::validate::measure::{
    Executor, Finished, Measured, Observer, Plan, Store, Watch, run as perform,
};
use crate::validate::table::{self, Conditions};

/// Shows what happens, and watches that it ends.
struct Watcher {
    watchdog: Watchdog,
    progress: Progress,
    begin: Instant,
}

impl Watch for Watcher {
    fn step(&self, what: String, limit: Duration) {
        self.watchdog.step(what, limit);
    }

    fn sample(&self) {
        self.progress.step();
    }
}

impl Observer for Watcher {
    fn begin(&self, planned: &Planned, seconds: f64) {
        // A terminal has a bar instead.
        if !std::io::stderr().is_terminal() {
            let now = self.begin.elapsed().as_secs_f64();
            tell(&format!(
                "{now:6.1} s  {} (about {seconds:.1} s)",
                planned.group
            ));
        }
    }

    fn end(&self, measured: &Measured) {
        let excluded = measured.rows.iter().filter(|row| row.excluded.is_some());
        if !std::io::stderr().is_terminal() {
            for row in excluded {
                let reason = row.excluded.as_deref().unwrap_or_default();
                tell(&format!(
                    "          excluded: {}: {reason}",
                    row.case.subject
                ));
            }
        }
    }
}

pub fn run(args: &ValidateArgs, wanted: &Wanted) -> Result<(), Failure> {
    let mut using = args.gpus.clone();
    let gpus = *using.gpus.get_or_insert(wanted.gpus());
    let (session, watchdog) = using.open()?;
    let conditions = conditions(args, &session);
    let path = path(args, &conditions);
    let Wanted {
        experiment, groups, ..
    } = wanted;
    // Before the GPUs are made ready, so that a table that cannot be used is refused at once.
    let mut store = Store::open(&path, groups, &experiment.measure, args.fresh)?;
    let numbers: Vec<u32> = (0..gpus).collect();
    let machine = using.machine(&session, &numbers, experiment.measure.warm)?;
    let mut seconds = vec![0.0; groups.len()];
    for (&index, estimate) in wanted.chosen.iter().zip(&wanted.estimates) {
        seconds[index] = estimate.seconds;
    }
    let rounds = experiment.measure.rounds as usize;
    let samples = wanted.estimates.iter().map(|e| e.performed * rounds).sum();
    let watcher = Watcher {
        watchdog,
        progress: Progress::new(samples, "measuring"),
        begin: Instant::now(),
    };
    let kept = wanted.chosen.iter().zip(&wanted.estimates);
    let kept = kept.filter(|(index, _)| store.has(&groups[**index]));
    let kept: usize = kept.map(|(_, estimate)| estimate.performed * rounds).sum();
    watcher.progress.of(samples as u64, kept as u64);
    let plan = Plan {
        chosen: wanted.chosen.clone(),
        seconds,
        budget: args.seconds,
        seed: experiment.measure.seed,
    };
    let mut executor = Executor::new(&machine, experiment, conditions, using.faults(), &watcher)?;
    let finished = perform(groups, &plan, &mut store, &mut executor, &watcher)?;
    using.keep_pins(&machine)?;
    args.output
        .write(summary(&path, wanted, &finished)?.as_bytes())?;
    match finished.halted {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// Where and when, of all rows.
fn conditions(args: &ValidateArgs, session: &Session) -> Conditions {
    let nvml = session.nvml();
    Conditions {
        machine: args
            .machine
            .clone()
            .unwrap_or_else(|| machine_name(session)),
        driver: nvml.and_then(|nvml| nvml.driver()).unwrap_or_default(),
        cuda: session.driver().version(),
        date: today(),
        ..Conditions::default()
    }
}

/// `2x-nvidia-h200-1a2b3c4d`: two machines of a kind have different names.
pub fn machine_name(session: &Session) -> String {
    let gpus = session.gpus();
    let Some(first) = gpus.first() else {
        return "no-gpu".to_owned();
    };
    let attributes = first.attributes();
    let plain = attributes.name.chars().map(|c| match c {
        c if c.is_ascii_alphanumeric() => c.to_ascii_lowercase(),
        _ => '-',
    });
    let hash = uuid_hash(&attributes.uuid);
    let hash: String = hash.chars().take(8).collect();
    format!("{}x-{}-{hash}", gpus.len(), plain.collect::<String>())
}

fn path(args: &ValidateArgs, conditions: &Conditions) -> PathBuf {
    args.rows.clone().unwrap_or_else(|| {
        let folder = args.experiment.parent().unwrap_or(Path::new(""));
        let name = format!("{}-{}.csv", conditions.date, conditions.machine);
        folder.join("measured").join(name)
    })
}

/// What is in the table now, and what is left.
fn summary(path: &Path, wanted: &Wanted, finished: &Finished) -> Result<String, Failure> {
    let rows = table::read(path).map_err(|error| Failure::input(&error))?;
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in rows.iter().filter_map(|row| row.excluded.as_deref()) {
        *reasons.entry(reason).or_default() += 1;
    }
    let mut text = format!(
        "{}: {} rows of {} groups; {} groups measured in {}, {} from earlier runs\n",
        path.display(),
        rows.len(),
        finished.kept + finished.measured,
        finished.measured,
        duration(finished.seconds),
        finished.kept,
    );
    for (reason, count) in reasons {
        text += &format!("excluded {count} ×: {reason}\n");
    }
    if !finished.left.is_empty() {
        let chosen = wanted.chosen.iter().zip(&wanted.estimates);
        let left = chosen.filter(|(index, _)| finished.left.contains(index));
        let seconds = left.map(|(_, estimate)| estimate.seconds).sum();
        text += &format!(
            "{} groups are left, about {}; the same command goes on with them\n",
            finished.left.len(),
            duration(seconds)
        );
    }
    Ok(text)
}
