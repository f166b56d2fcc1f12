//! Performing groups on real GPUs.
//!
//! ```text
//! all variants   build, lower, take memory, first calls
//! each computing two runs with fresh results compared: one with random delays where the launch mode
//!                allows it, one as it is timed
//! rounds 0 … R   each variant once, in turn, another one first in each round; round 0 is not kept
//! each strategy  one traced run (stream launches of at most `tasks::MOST` tasks)
//! ```
//!
//! The GPUs stay open from group to group, with their libraries and kernels; memory is given back
//! after each.

use std::cell::RefCell;
use std::time::Duration;

use super::entry::Entry;
use super::variant::{Variant, variants};
use super::{Halt, Measured, Performer};
use crate::experiment::{Experiment, Measure};
use crate::gpu::GpuError;
use crate::gpu::compare::{Checker, Verdict, fill, fill_all};
use crate::gpu::exec::{Extras, Faults, Machine, Run, Start};
use crate::gpu::plan::Mode;
use crate::gpu::timing::{Timer, trace};
use crate::validate::cases::Planned;
use crate::validate::table::Conditions;
use crate::validate::tasks;

/// Is told what happens.
pub trait Watch {
    /// Something begins that ends within `limit`, or hangs.
    fn step(&self, what: String, limit: Duration);
    /// A sample was taken.
    fn sample(&self);
}

/// GPUs that perform groups of an experiment.
pub struct Executor<'m> {
    machine: &'m Machine<'m>,
    experiment: &'m Experiment,
    measure: Measure,
    /// Of all rows: where and when.
    conditions: Conditions,
    /// What is to go wrong.
    faults: Faults,
    /// Of the GPU that has fewest.
    sms: u32,
    watch: &'m dyn Watch,
}

/// What a run takes beside its limit.
const ASIDE: Duration = Duration::from_secs(60);

/// After these nothing else is asked of the GPUs.
const fn is_fatal(error: &GpuError) -> bool {
    matches!(
        error,
        GpuError::Hang { .. }
            | GpuError::Timeout { .. }
            | GpuError::Cuda { .. }
            | GpuError::Unusable { .. }
    )
}

impl<'m> Executor<'m> {
    /// Makes the GPUs ready; `conditions` are those of all rows, without the state of the GPU.
    ///
    /// # Errors
    /// As [`Machine::heaters`].
    pub fn new(
        machine: &'m Machine<'m>,
        experiment: &'m Experiment,
        conditions: Conditions,
        faults: Faults,
        watch: &'m dyn Watch,
    ) -> Result<Self, GpuError> {
        machine.heaters()?;
        let sms = machine.devices().iter().map(|d| d.gpu.attributes().sms);
        Ok(Self {
            sms: sms.min().unwrap_or(1),
            measure: experiment.measure,
            machine,
            experiment,
            conditions,
            faults,
            watch,
        })
    }

    /// Takes what every variant needs and compares its results.
    fn prepare(&self, entries: &mut [Entry<'m>]) -> Result<(), GpuError> {
        let mut checker = None;
        for entry in entries {
            let name = entry.variant.case.to_string();
            self.step(format!("preparing `{name}`"));
            let prepared = match &entry.variant.prepared {
                Ok(prepared) => prepared,
                Err(reason) => {
                    entry.excluded = Some(reason.clone());
                    continue;
                }
            };
            let made = Run::new(
                self.machine,
                &prepared.schedule,
                &prepared.plan,
                self.faults.clone(),
            )
            .and_then(|run| Timer::new(run, false));
            let checked = made.and_then(|timer| {
                let verdict = self.check(&timer, &entry.variant, &mut checker)?;
                Ok((timer, verdict))
            });
            match checked {
                Ok((timer, verdict)) => {
                    let wrong = verdict.as_ref().and_then(|v| v.wrong.clone());
                    entry.excluded = wrong.map(|wrong| format!("wrong result: {wrong}"));
                    // Memory of what is not timed is given back at once.
                    entry.timer = entry.excluded.is_none().then_some(timer);
                    entry.verdict = verdict;
                }
                Err(error) if is_fatal(&error) => return Err(error),
                Err(error) => entry.excluded = Some(sentence(&error)),
            }
        }
        Ok(())
    }

    /// Compares the results of two runs, which fills both halves of the memory; `None` for what
    /// computes nothing, and where there is no memory for a reference. `kept`: of the variant
    /// before, used again where it can be.
    fn check(
        &self,
        timer: &Timer<'_>,
        variant: &Variant,
        kept: &mut Option<Checker>,
    ) -> Result<Option<Verdict>, GpuError> {
        let (run, seed) = (timer.run(), self.measure.seed);
        if !variant.computes() {
            (0..2).try_for_each(|parity| fill_all(run, parity, seed))?;
            return Ok(None);
        }
        // What does not serve is given back first.
        *kept = kept.take().filter(|checker| checker.serves(run));
        let checker = match kept.take().map_or_else(|| Checker::new(run), Ok) {
            Ok(checker) => kept.insert(checker),
            Err(GpuError::Memory { .. }) => {
                (0..2).try_for_each(|parity| fill(run, parity, seed))?;
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let random = RefCell::new(fastrand::Rng::with_seed(seed));
        let shaken = Extras {
            shake: Some(&random),
            ..Extras::default()
        };
        let mut all = Verdict::new();
        for replay in 0..2 {
            let (parity, seed) = (run.next_parity(), seed.wrapping_add(replay << 32));
            fill(run, parity, seed)?;
            // The delays of a graph would be part of it.
            if replay == 0 && run.plan().mode == Mode::Stream {
                run.enqueue(Start::Origin, &shaken)?;
                run.finish()?;
            } else {
                timer.once(1)?;
            }
            let verdict = checker.check(run, parity, seed)?;
            all.note(verdict.relative, verdict.bound);
            all.spots += verdict.spots;
            if let Some(wrong) = verdict.wrong {
                all.fault(|| wrong);
                break;
            }
        }
        Ok(Some(all))
    }

    /// The rounds.
    fn time(&self, entries: &mut [Entry<'m>]) -> Result<(), GpuError> {
        let pci = &self.machine.devices()[0].gpu.attributes().pci;
        let nvml = self.machine.session().nvml();
        let count = entries.len();
        for round in 0..=self.measure.rounds as usize {
            let mut first = true;
            for i in 0..count {
                let entry = &mut entries[(round + i) % count];
                let Some(timer) = &entry.timer else { continue };
                if first {
                    self.step(format!("timing `{}`", entry.variant.case.group));
                }
                let sample = match timer.once(1) {
                    Ok(sample) => sample,
                    Err(error) if is_fatal(&error) => return Err(error),
                    Err(error) => {
                        entry.excluded = Some(sentence(&error));
                        entry.timer = None;
                        continue;
                    }
                };
                // The first round warms up.
                if round > 0 {
                    entry.samples.push(sample);
                    self.watch.sample();
                    // Asking takes a while, so only the first of a round, another one each time.
                    entry
                        .states
                        .extend(nvml.filter(|_| first).map(|n| n.state(pci)));
                }
                first = false;
            }
        }
        Ok(())
    }

    /// One traced run of each strategy.
    fn trace(&self, entries: &[Entry<'m>]) -> Result<Vec<tasks::Task>, GpuError> {
        let mut all = Vec::new();
        for entry in entries {
            let Some(timer) = &entry.timer else { continue };
            let run = timer.run();
            let short = run.schedule().tasks.len() <= tasks::MOST;
            if !short || !entry.variant.computes() || run.plan().mode != Mode::Stream {
                continue;
            }
            self.step(format!("tracing `{}`", entry.variant.case));
            let timeline = trace(timer)?;
            all.extend(tasks::of(&entry.variant.case, run.schedule(), &timeline));
        }
        Ok(all)
    }

    fn step(&self, what: String) {
        self.watch
            .step(what, self.machine.settings().limit * 8 + ASIDE);
    }
}

impl Performer for Executor<'_> {
    fn perform(&mut self, planned: &Planned) -> Result<Measured, Box<Halt>> {
        let topology = &self.experiment.machines[planned.machine as usize].topology;
        self.step(format!("building the schedules of `{}`", planned.group));
        let mut entries: Vec<Entry<'_>> = variants(planned, topology, self.sms, true)
            .into_iter()
            .map(Entry::from)
            .collect();
        let tasks = self
            .prepare(&mut entries)
            .and_then(|()| self.time(&mut entries))
            .and_then(|()| self.trace(&entries));
        let rounds = self.measure.rounds as usize;
        let (tasks, error) = match tasks {
            Ok(tasks) => (tasks, None),
            Err(error) => {
                for entry in entries.iter_mut().filter(|e| e.samples.len() < rounds) {
                    let stopped = || format!("the group was stopped: {}", sentence(&error));
                    entry.excluded.get_or_insert_with(stopped);
                }
                (Vec::new(), Some(error))
            }
        };
        let conditions = Conditions {
            seed: self.measure.seed,
            ..self.conditions.clone()
        };
        let measured = Measured {
            rows: entries.iter().map(|e| e.row(&conditions)).collect(),
            tasks,
        };
        match error {
            None => Ok(measured),
            Some(error) => Err(Box::new(Halt { measured, error })),
        }
    }
}

/// An error without its remedy, on one line.
fn sentence(error: &GpuError) -> String {
    let text = error.to_string();
    let said = text.split("\n  help:").next().unwrap_or(&text);
    said.replace('\n', " ")
}
