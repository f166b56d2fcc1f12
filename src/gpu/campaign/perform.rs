//! Performing a case.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::Case;
use super::repeat::alike;
use crate::device::{self, Device};
use crate::gpu::GpuError;
use crate::gpu::compare::{Checker, Verdict, fill};
use crate::gpu::exec::{Extras, Faults, Machine, Run, Start};
use crate::gpu::plan::{LowerError, Options, Plan, lower};
use crate::schedule::Schedule;
use crate::schedule::verify::{GpuSms, VerifyError};
use crate::strategy;
use crate::topology::Topology;
use crate::topology::build::Builder;

/// SMs that NCCL holds at most when it is left to choose.
const LIBRARY_SMS: u32 = 32;

/// What came of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Passed(Verdict),
    Failed(String),
    /// It cannot be performed, and why.
    Skipped(String),
}

/// A schedule and its plan.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub schedule: Rc<Schedule>,
    pub plan: Rc<Plan>,
}

/// How often, and with what wrong.
#[derive(Clone, Debug)]
pub struct Trial {
    pub replays: u32,
    pub faults: Faults,
    /// Random delays.
    pub shake: bool,
    /// How often a case is performed once more on one of two sets of inputs, to compare bits.
    pub repeats: u32,
}

/// A machine of `gpus` GPUs for strategies to look at: links between all pairs beside a PCIe hub,
/// so that there are two rings. `ranks` more than GPUs make no difference, since placement decides.
pub fn machine_topology(gpus: u32, ranks: u32, sms: u32) -> Topology {
    let device = Device {
        sms,
        ..device::ideal()
    };
    let mut b = Builder::with_device("this machine", Arc::new(device));
    let all = b.gpus(gpus.max(ranks).max(1) as usize);
    let hub = b.switch("pcie");
    for (i, &gpu) in all.iter().enumerate() {
        b.link(gpu, hub, "pcie", 50e9, 1e-6);
        for &other in &all[..i] {
            b.link(gpu, other, "nvlink", 380e9, 1e-6);
        }
    }
    b.build()
}

/// Builds and lowers a case.
///
/// # Errors
/// Why it cannot be performed (`Ok(Err(reason))` is a skip), or that it is wrong.
pub fn prepare(
    case: &Case,
    topology: &Topology,
    sms: u32,
    options: &Options,
) -> Result<Result<Prepared, String>, GpuError> {
    let choice =
        strategy::parse(&case.strategy).map_err(|error| GpuError::Argument(error.to_string()))?;
    let schedule = match choice.build(&case.operator, topology, &case.placement) {
        Ok(schedule) => schedule,
        Err(skip) => return Ok(Err(skip.reason)),
    };
    lower_for(schedule, sms, options)
}

/// Lowers a schedule for GPUs of `sms` SMs each; `Ok(Err(reason))` where it does not fit them.
///
/// # Errors
/// [`GpuError::Argument`] for a schedule or options that are wrong.
pub fn lower_for(
    schedule: Schedule,
    sms: u32,
    options: &Options,
) -> Result<Result<Prepared, String>, GpuError> {
    let sms = |_: u32| GpuSms {
        total: sms,
        collective: LIBRARY_SMS,
    };
    match lower(&schedule, options, Some(&sms)) {
        Ok(plan) => Ok(Ok(Prepared {
            schedule: Rc::new(schedule),
            plan: Rc::new(plan),
        })),
        Err(
            error @ (LowerError::TooManyStreams { .. }
            | LowerError::Epilogue { .. }
            | LowerError::Loader { .. }
            | LowerError::Lowered(VerifyError::CanDeadlock { .. })),
        ) => Ok(Err(error.to_string())),
        Err(error) => Err(GpuError::Argument(error.to_string())),
    }
}

/// Performs a prepared case `replays` times, each with fresh inputs, and compares the results; then
/// `repeats` times on two sets of inputs, and compares bits.
///
/// # Errors
/// [`GpuError`]; wrong results are in the verdict.
pub fn rehearse(
    machine: &Machine<'_>,
    prepared: &Prepared,
    seed: u64,
    trial: &Trial,
) -> Result<Verdict, GpuError> {
    let random = RefCell::new(fastrand::Rng::with_seed(seed));
    let extras = Extras {
        shake: trial.shake.then_some(&random),
        ..Extras::default()
    };
    let mut run = Run::new(
        machine,
        &prepared.schedule,
        &prepared.plan,
        trial.faults.clone(),
    )?;
    let checker = Checker::new(&run)?;
    run.capture(&extras)?;
    let mut all = Verdict::new();
    for replay in 0..trial.replays.max(1) {
        let seed = seed.wrapping_add(u64::from(replay) << 32);
        let parity = run.next_parity();
        fill(&run, parity, seed)?;
        run.enqueue(Start::Origin, &extras)?;
        run.finish()?;
        let verdict = checker.check(&run, parity, seed)?;
        all.note(verdict.relative, verdict.bound);
        all.spots += verdict.spots;
        if let Some(wrong) = verdict.wrong {
            all.fault(|| format!("run {}: {wrong}", replay + 1));
            break;
        }
    }
    if all.wrong.is_none()
        && let Some(other) = alike(&run, seed, trial.repeats, &extras)?
    {
        all.fault(|| other);
    }
    Ok(all)
}

/// Performs a case.
///
/// # Errors
/// [`GpuError::Hang`] and what else makes the machine unusable; everything else is an outcome.
pub fn perform(
    machine: &Machine<'_>,
    topology: &Topology,
    sms: u32,
    case: &Case,
    trial: &Trial,
) -> Result<Outcome, GpuError> {
    let prepared = match prepare(case, topology, sms, &case.options()) {
        Ok(Ok(prepared)) => prepared,
        Ok(Err(reason)) => return Ok(Outcome::Skipped(reason)),
        Err(error) => return Ok(Outcome::Failed(error.to_string())),
    };
    match rehearse(machine, &prepared, case.seed, trial) {
        Ok(verdict) => Ok(match &verdict.wrong {
            None => Outcome::Passed(verdict),
            Some(wrong) => Outcome::Failed(wrong.clone()),
        }),
        Err(error @ GpuError::Memory { .. }) => Ok(Outcome::Skipped(error.to_string())),
        Err(
            error @ (GpuError::Hang { .. }
            | GpuError::Timeout { .. }
            | GpuError::Cuda { .. }
            | GpuError::Unusable { .. }),
        ) => Err(error),
        Err(error) => Ok(Outcome::Failed(error.to_string())),
    }
}
