//! Performing a shortlist in turns.

use super::{Ranked, Tried};
use crate::gpu::GpuError;
use crate::gpu::campaign::{Prepared, Trial, lower_for, rehearse};
use crate::gpu::compare::fill;
use crate::gpu::exec::{Faults, Machine, Run};
use crate::gpu::timing::{Summary, Timer};
use crate::strategy::Site;
use crate::topology::Topology;
use crate::topology::paths::with_path;
use crate::validate::key::Group;

/// How a shortlist is measured.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct How {
    /// Samples of each setting.
    pub rounds: u32,
    /// Of the inputs.
    pub seed: u64,
    /// SMs of the GPU that has fewest.
    pub sms: u32,
}

/// Performs settings once with a comparison of the results, then in `rounds` rounds, each once in turn,
/// another one first each time; `step` is told what begins. What cannot be performed says why.
///
/// # Errors
/// [`GpuError`] after which nothing more can be asked of the GPUs.
pub fn measure(
    machine: &Machine<'_>,
    group: &Group,
    topology: &Topology,
    settings: &[Ranked],
    how: How,
    step: &dyn Fn(String),
) -> Result<Vec<Tried>, GpuError> {
    let topology = with_path(topology, group.choice());
    let site = Site::new(&topology, group.placement.to_vec());
    let mut timers = Vec::with_capacity(settings.len());
    for ranked in settings {
        step(format!("preparing `{}` of {group}", ranked.setting));
        let timer = match prepare(machine, group, &site, ranked, how) {
            Ok(timer) => timer,
            Err(
                error @ (GpuError::Hang { .. }
                | GpuError::Timeout { .. }
                | GpuError::Cuda { .. }
                | GpuError::Unusable { .. }),
            ) => return Err(error),
            Err(error) => Err(error.to_string().replace('\n', " ")),
        };
        timers.push(timer);
    }
    step(format!("timing {group}"));
    let mut samples = vec![Vec::new(); settings.len()];
    let count = settings.len().max(1);
    // The first round warms up.
    for round in 0..=how.rounds as usize {
        for turn in 0..settings.len() {
            let at = (round + turn) % count;
            if let Ok(timer) = &timers[at] {
                let sample = timer.once(1)?;
                samples[at].extend((round > 0).then_some(sample.makespan));
            }
        }
    }
    let tried = settings.iter().zip(timers).zip(samples);
    Ok(tried
        .map(|((ranked, timer), samples)| {
            let summary = Summary::of(&samples);
            Tried {
                setting: ranked.setting.to_string(),
                predicted: ranked.predicted,
                measured: summary.map(|summary| summary.median),
                p10: summary.map(|summary| summary.p10),
                p90: summary.map(|summary| summary.p90),
                reason: timer.err(),
            }
        })
        .collect())
}

/// A setting checked and ready, or why it cannot be performed.
fn prepare<'m>(
    machine: &'m Machine<'m>,
    group: &Group,
    site: &Site<'_>,
    ranked: &Ranked,
    how: How,
) -> Result<Result<Timer<'m>, String>, GpuError> {
    let setting = &ranked.setting;
    let schedule = match setting.strategy.build_at(&group.operator, site) {
        Ok(schedule) => schedule,
        Err(skip) => return Ok(Err(skip.reason)),
    };
    let prepared: Prepared = match lower_for(schedule, how.sms, &setting.options(group))? {
        Ok(prepared) => prepared,
        Err(reason) => return Ok(Err(reason)),
    };
    let trial = Trial {
        replays: 1,
        faults: Faults::default(),
        shake: false,
        repeats: 0,
    };
    let verdict = rehearse(machine, &prepared, how.seed, &trial)?;
    if let Some(wrong) = verdict.wrong {
        return Ok(Err(format!("wrong result: {wrong}")));
    }
    let run = Run::new(
        machine,
        &prepared.schedule,
        &prepared.plan,
        Faults::default(),
    )?;
    for parity in 0..2 {
        fill(&run, parity, how.seed)?;
    }
    Timer::new(run, false).map(Ok)
}
