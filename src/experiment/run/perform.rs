//! Performing cases in parallel and writing them in order.
//!
//! The unit of work is one strategy of one case, taken in the order of the grid by whoever is
//! free; the last to finish a case writes its rows, and every case after it that was waiting.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::{Layout, Observer};
use crate::experiment::judge::{Trial, VERIFY_UP_TO, Verification};
use crate::experiment::results::{self, Outcome};
use crate::experiment::{Case, Experiment};
use crate::sim::Options;
use crate::strategy::{Choice, Site};

/// The machines with ranks on them, by machine and tp; each finds its rings once.
struct Sites<'e>(FxHashMap<(u32, u32), Site<'e>>);

impl<'e> Sites<'e> {
    fn of(experiment: &'e Experiment, cases: &[u32]) -> Self {
        let mut sites = FxHashMap::default();
        for &case in cases {
            let case = &experiment.cases[case as usize];
            let tp = case.operator.tp;
            sites.entry((case.machine, tp)).or_insert_with(|| {
                let machine = &experiment.machines[case.machine as usize];
                Site::new(&machine.topology, machine.placement(tp))
            });
        }
        Self(sites)
    }

    fn trial<'s>(&'s self, case: &Case) -> Trial<'s, 'e> {
        Trial {
            site: &self.0[&(case.machine, case.operator.tp)],
            operator: case.operator,
            options: Options {
                launch: case.launch,
                ..Options::default()
            },
            verify_up_to: VERIFY_UP_TO,
        }
    }
}

/// One strategy of one case.
fn outcome(trial: &Trial<'_, '_>, choice: &Choice) -> Outcome {
    let perform = || {
        let schedule = trial.build(choice)?;
        let verified = trial.verify(&schedule)? == Verification::Verified;
        let makespan = trial.makespan(&schedule)?;
        Ok(Outcome::Performed { makespan, verified })
    };
    perform().unwrap_or_else(|reason: String| Outcome::Skipped(reason.into()))
}

/// Cases begun, cases done but waiting for one before them, and where they go.
struct Progress<W> {
    /// By position among the cases: how many strategies are missing, and the outcomes.
    begun: BTreeMap<usize, (usize, Vec<Option<Outcome>>)>,
    /// By position: rows as text.
    waiting: BTreeMap<usize, Vec<u8>>,
    /// The position that is written next.
    next: usize,
    out: W,
    failed: Option<io::Error>,
}

impl<W: Write> Progress<W> {
    /// Keeps an outcome; all of them once the case is complete.
    fn put(
        &mut self,
        at: usize,
        strategy: usize,
        of: usize,
        outcome: Outcome,
    ) -> Option<Vec<Outcome>> {
        let (missing, outcomes) = self.begun.entry(at).or_insert_with(|| (of, vec![None; of]));
        outcomes[strategy] = Some(outcome);
        *missing -= 1;
        if *missing > 0 {
            return None;
        }
        let (_, outcomes) = self.begun.remove(&at)?;
        Some(outcomes.into_iter().flatten().collect())
    }

    /// Writes the rows of a case, or keeps them until the cases before are written.
    fn write(&mut self, at: usize, rows: Vec<u8>) {
        self.waiting.insert(at, rows);
        let mut batch = Vec::new();
        while let Some(rows) = self.waiting.remove(&self.next) {
            batch.extend(rows);
            self.next += 1;
        }
        if batch.is_empty() || self.failed.is_some() {
            return;
        }
        self.failed = self.out.write_all(&batch).err();
    }
}

/// Performs `cases` and appends their rows to `out`, in order.
///
/// # Errors
/// The first failure to write; rows before it are written.
pub(super) fn perform<W: Write + Send>(
    experiment: &Experiment,
    cases: &[u32],
    out: W,
    observer: &dyn Observer,
) -> io::Result<()> {
    let sites = Sites::of(experiment, cases);
    let layout = Layout::of(experiment);
    // Where each case's strategies begin among all units of work.
    let mut begins = Vec::with_capacity(cases.len() + 1);
    begins.push(0);
    for &case in cases {
        let before = begins.last().copied().unwrap_or(0);
        begins.push(before + experiment.cases[case as usize].strategies.len());
    }
    let total = begins.last().copied().unwrap_or(0);
    let progress = Mutex::new(Progress {
        begun: BTreeMap::new(),
        waiting: BTreeMap::new(),
        next: 0,
        out,
        failed: None,
    });
    let (taken, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let unit = |unit: usize| {
        let at = begins.partition_point(|&begin| begin <= unit) - 1;
        let index = cases[at];
        let case = &experiment.cases[index as usize];
        let trial = sites.trial(case);
        let strategy = unit - begins[at];
        let outcome = outcome(&trial, &case.strategies[strategy]);
        observer.step();
        let complete = lock(&progress).put(at, strategy, case.strategies.len(), outcome);
        let Some(outcomes) = complete else { return };
        let facts = (trial.unsplit_gemm(), trial.lower_bound());
        let mut rows = Vec::new();
        for (choice, outcome) in case.strategies.iter().zip(outcomes) {
            let row = layout.row(experiment, index, &choice.to_string(), outcome, facts);
            rows.extend(results::line(&results::record(&row)));
        }
        let mut progress = lock(&progress);
        progress.write(at, rows);
        if progress.failed.is_some() {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            match taken.fetch_add(1, Ordering::Relaxed) {
                next if next < total => unit(next),
                _ => break,
            }
        }
    };
    rayon::scope(|scope| {
        for _ in 0..rayon::current_num_threads() {
            scope.spawn(|_| work());
        }
    });
    let progress = progress
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    progress.failed.map_or(Ok(()), Err)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Schedules performed for an estimate.
const SAMPLE: usize = 48;

/// The time of all schedules of `cases` on this machine, from an even sample of them.
pub(super) fn estimate(experiment: &Experiment, cases: &[u32]) -> Duration {
    let sites = Sites::of(experiment, cases);
    let rows: usize = cases
        .iter()
        .map(|&case| experiment.cases[case as usize].strategies.len())
        .sum();
    let sampled = SAMPLE.min(cases.len());
    let threads = rayon::current_num_threads().max(1);
    let spent: Vec<f64> = (0..sampled)
        .into_par_iter()
        .map(|nth| {
            let case = &experiment.cases[cases[nth * cases.len() / sampled] as usize];
            let trial = sites.trial(case);
            // Another strategy each time, so that all have their say.
            let choice = &case.strategies[nth % case.strategies.len()];
            let begin = Instant::now();
            outcome(&trial, choice);
            begin.elapsed().as_secs_f64()
        })
        .collect();
    let mean = spent.iter().sum::<f64>() / spent.len().max(1) as f64;
    Duration::try_from_secs_f64(mean * rows as f64 / threads as f64).unwrap_or(Duration::MAX)
}
