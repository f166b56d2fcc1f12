//! The watchdog.

use std::time::Duration;

use super::Run;
use crate::gpu::GpuError;
use crate::gpu::plan::{FlagId, Plan, What};
use crate::gpu::raw::patiently;
use crate::schedule::{Schedule, TaskId};

/// Added to the epoch of a run that is given up: later than all, in cyclic order.
const ABORT: u32 = 1 << 30;
/// How long what was opened may take to end, and reading the flags.
const GRACE: Duration = Duration::from_secs(5);

/// A wait that was not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    pub flag: FlagId,
    /// Who writes it and who waits.
    pub writer: TaskId,
    pub reader: TaskId,
    pub wanted: u32,
    pub found: u32,
}

/// The first wait in issue order whose flag is before `epoch`; `found` is by flag.
pub fn first_unmet(plan: &Plan, epoch: u32, found: &[u32]) -> Option<Awaited> {
    plan.steps.iter().find_map(|step| {
        let flags: Vec<FlagId> = match &step.what {
            What::AwaitFlag(flag) => vec![*flag],
            What::Gated { groups, .. } => groups.iter().flat_map(|g| &g.flags).copied().collect(),
            _ => return None,
        };
        flags.into_iter().find_map(|flag| {
            let value = *found.get(flag.index())?;
            (epoch.wrapping_sub(value).cast_signed() > 0).then(|| Awaited {
                flag,
                writer: plan.flags[flag.index()].task,
                reader: step.task,
                wanted: epoch,
                found: value,
            })
        })
    })
}

impl Awaited {
    /// What is said of it.
    pub fn describe(&self, plan: &Plan, schedule: &Schedule) -> String {
        let gpu = plan.gpus[plan.flags[self.flag.index()].gpu.index()];
        format!(
            "{} waits for flag {} on GPU {gpu} to become {}, and it is {}; {} writes it",
            schedule.describe(self.reader),
            self.flag.0,
            self.wanted,
            self.found,
            schedule.describe(self.writer),
        )
    }
}

impl Run<'_> {
    /// Polls until everything enqueued so far has ended.
    ///
    /// # Errors
    /// [`GpuError::Hang`] when the limit passes; the machine is not used any more after that. And
    /// errors of the work itself.
    pub fn finish(&self) -> Result<(), GpuError> {
        self.machine.usable()?;
        let limit = self.machine.settings().limit;
        if patiently(limit, || self.done.passed())? {
            for lane in &self.lanes {
                lane.clear();
            }
            return Ok(());
        }
        Err(self.hang())
    }

    /// Ends a run that does not end: says what it waits for, opens every flag, gives it a last
    /// chance, and gives the machine up.
    pub(super) fn hang(&self) -> GpuError {
        let limit = self.machine.settings().limit;
        let report = self.report();
        let opened = self.open_all();
        // A part of a run may not have been enqueued, so it is no matter of the event of its end.
        let ended = opened.and_then(|()| patiently(GRACE, || self.idle()));
        if !matches!(ended, Ok(true)) {
            self.machine.lose();
        }
        let what = format!("`{}`", self.schedule.strategy);
        self.machine.give_up(&format!("{what} hung ({report})"));
        GpuError::Hang {
            what,
            limit,
            report,
        }
    }

    /// Whether all streams of the run are idle.
    fn idle(&self) -> Result<bool, GpuError> {
        for lane in &self.lanes {
            if !lane.stream.is_idle()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn report(&self) -> String {
        let epoch = self.epoch.get();
        let waits = match self.flag_values() {
            Ok(found) => first_unmet(&self.plan, epoch, &found)
                .map(|awaited| awaited.describe(&self.plan, &self.schedule)),
            Err(error) => Some(format!("the flags cannot be read ({error})")),
        };
        waits.unwrap_or_else(|| {
            let busy: Vec<String> = (self.lanes.iter().enumerate())
                .filter(|(_, lane)| matches!(lane.stream.is_idle(), Ok(false)))
                .map(|(s, _)| {
                    let of = |step: &&crate::gpu::plan::Step| step.stream.index() == s;
                    let last = self.plan.steps.iter().rev().find(of);
                    let task = last.map_or_else(String::new, |step| {
                        format!(", which ends with {}", self.schedule.describe(step.task))
                    });
                    let stream = &self.plan.streams[s];
                    let gpu = self.plan.gpus[stream.gpu.index()];
                    format!("stream `{}` of GPU {gpu}{task}", stream.name)
                })
                .collect();
            match busy.is_empty() {
                true => "every flag was written and every stream is idle".to_owned(),
                false => format!("no flag is missing; still busy: {}", busy.join("; ")),
            }
        })
    }

    /// By flag: its value now.
    fn flag_values(&self) -> Result<Vec<u32>, GpuError> {
        let mut values = vec![0; self.plan.flags.len()];
        for gpu in 0..self.plan.gpus.len() {
            let (Some(words), Some(copy)) = (self.words(gpu), &self.mirrors[gpu]) else {
                continue;
            };
            let device = self.device(gpu);
            device.control.copy(words, copy.region())?;
            device.control.finish(GRACE, "reading the flags")?;
            for (f, value) in values.iter_mut().enumerate() {
                if self.plan.flags[f].gpu.index() == gpu {
                    *value = copy.load(self.word(FlagId(f as u32)))?;
                }
            }
        }
        Ok(values)
    }

    /// Lets every wait pass.
    fn open_all(&self) -> Result<(), GpuError> {
        let epoch = self.epoch.get().wrapping_add(ABORT);
        for (f, flag) in self.plan.flags.iter().enumerate() {
            let word = self.flag(FlagId(f as u32))?;
            self.device(flag.gpu.index())
                .control
                .write_value(word, epoch)?;
        }
        Ok(())
    }
}

impl Drop for Run<'_> {
    /// Memory must not be freed under work that an error left behind: what is freed belongs to one
    /// GPU, and the driver waits for that one only, without a limit.
    fn drop(&mut self) {
        let limit = self.machine.settings().limit + GRACE;
        if self.machine.any_lost() || !matches!(patiently(limit, || self.idle()), Ok(true)) {
            self.machine.lose();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::plan::{Options, lower};

    fn pair() -> (Schedule, Plan) {
        let text = include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/examples/two-gpu.json"
        ));
        let schedule = crate::schedule::json::read(text, "two-gpu.json").unwrap();
        let plan = lower(&schedule, &Options::default(), None).unwrap();
        (schedule, plan)
    }

    #[test]
    fn the_first_wait_that_is_not_met_is_named() {
        let (schedule, plan) = pair();
        assert_eq!(plan.flags.len(), 2);
        assert_eq!(first_unmet(&plan, 7, &[7, 8]), None);
        let second = first_unmet(&plan, 7, &[7, 6]).unwrap();
        assert_eq!(
            (second.flag, second.wanted, second.found),
            (FlagId(1), 7, 6)
        );
        let first = first_unmet(&plan, 7, &[6, 6]).unwrap();
        assert_eq!(first.flag, FlagId(0));
        let text = first.describe(&plan, &schedule);
        assert_eq!(
            text,
            "task 3 (rank 0, lane compute, gemm) waits for flag 0 on GPU 0 to become 7, \
             and it is 6; task 1 (rank 1, lane copy, transfer) writes it"
        );
    }

    #[test]
    fn epochs_go_round_and_an_abort_opens_every_wait() {
        let (_, plan) = pair();
        let last = u32::MAX;
        assert!(first_unmet(&plan, last.wrapping_add(1), &[last, last]).is_some());
        for epoch in [1, last, ABORT] {
            let open = epoch.wrapping_add(ABORT);
            assert_eq!(first_unmet(&plan, epoch, &[open, open]), None);
        }
    }
}
