//! Why a schedule takes as long as it does: terms of the model switched off one after another.
//!
//! Each step removes one cause of time from the same schedule, so the differences telescope to the
//! makespan exactly:
//!
//! ```text
//! T₀  everything                       sync and launch    = T₀ − T₁
//! T₁  without sync and launch          contention         = T₁ − T₂
//! T₂  also without contention          wave quantisation  = T₂ − T₃
//! T₃  also without wave quantisation   fill and drain     = T₃ − max(Tc, Tm)
//! Tm  T₃ with instant compute          exposed communication = max(Tc, Tm) − Tc
//! Tc  T₃ with instant communication    idle               = Tc − W
//! W   compute of the busiest GPU       compute            = W
//! ```
//!
//! Fill and drain is what did not run side by side: the first chunk coming in, the last going
//! out; for a sequential schedule it is all of min(Tc, Tm). With `d` equal stages it is
//! min(Tc, Tm)/d, the C/d of the closed form. Exposed communication is what communication takes
//! beyond all compute even under perfect overlap.

use super::cost::run_start;
use super::{LaunchMode, Options, SimError, Submission, Terms, Tiling, simulate};
use crate::device::gemm::gemm;
use crate::operator::{Kind, Operator, Shape};
use crate::schedule::{Schedule, Work};
use crate::timeline::{Explanation, Term, Timeline};
use crate::topology::Topology;

/// A schedule performed, with what it would be without communication or compute.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    pub timeline: Timeline,
    /// The fastest unsplit GEMM of one rank, with its launch \[s\]; 0 for a bare collective.
    pub unsplit_gemm: f64,
    /// The same schedule with instant GEMMs \[s\].
    pub comm_only: f64,
    pub explanation: Explanation,
}

/// Simulates `schedule` and says why it takes as long as it does.
///
/// # Errors
/// [`SimError`] of [`simulate`].
pub fn evaluate(
    schedule: &Schedule,
    topology: &Topology,
    options: &Options,
) -> Result<Evaluation, SimError> {
    let timeline = simulate(schedule, topology, options)?;
    let explanation = explain(timeline.makespan, schedule, topology, options)?;
    let comm_only = with(schedule, topology, options, |terms| terms.compute = false)?;
    Ok(Evaluation {
        unsplit_gemm: unsplit_gemm(&schedule.operator, topology, &schedule.placement, options)?,
        comm_only,
        explanation,
        timeline,
    })
}

/// The makespan with some terms changed.
fn with(
    schedule: &Schedule,
    topology: &Topology,
    options: &Options,
    change: impl FnOnce(&mut Terms),
) -> Result<f64, SimError> {
    let mut options = Options {
        record: false,
        ..*options
    };
    change(&mut options.terms);
    Ok(simulate(schedule, topology, &options)?.makespan)
}

fn explain(
    makespan: f64,
    schedule: &Schedule,
    topology: &Topology,
    options: &Options,
) -> Result<Explanation, SimError> {
    let mut base = *options;
    base.terms.sync_and_launch = false;
    let no_sync = with(schedule, topology, &base, |_| ())?;
    base.terms.contention = false;
    let no_contention = with(schedule, topology, &base, |_| ())?;
    base.terms.wave_quantisation = false;
    let no_waves = with(schedule, topology, &base, |_| ())?;
    let communication = with(schedule, topology, &base, |terms| terms.compute = false)?;
    base.terms.communication = false;
    let silent = simulate(schedule, topology, &base)?;
    let (compute, work) = (silent.makespan, busiest(schedule, topology, &silent));
    let overlapped = compute.max(communication);
    Ok(Explanation {
        makespan,
        terms: vec![
            (Term::Compute, work),
            (Term::Idle, compute - work),
            (Term::ExposedCommunication, overlapped - compute),
            (Term::FillAndDrain, no_waves - overlapped),
            (Term::WaveQuantisation, no_contention - no_waves),
            (Term::Contention, no_sync - no_contention),
            (Term::SyncAndLaunch, makespan - no_sync),
        ],
    })
}

/// Compute time of the busiest GPU: the time in which some compute task of it runs. A reduction
/// beside a GEMM counts once, so that no GPU is busier than the makespan.
fn busiest(schedule: &Schedule, topology: &Topology, timeline: &Timeline) -> f64 {
    let mut spans = vec![Vec::new(); topology.gpus.len()];
    for (task, span) in schedule.tasks.iter().zip(&timeline.spans) {
        if matches!(task.work, Work::Compute(_)) {
            let gpu = schedule.placement[task.rank.0 as usize];
            spans[gpu as usize].push((span.start, span.end));
        }
    }
    spans.into_iter().map(covered).fold(0.0, f64::max)
}

/// How much time the union of `spans` takes.
fn covered(mut spans: Vec<(f64, f64)>) -> f64 {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut total, mut until) = (0.0, f64::NEG_INFINITY);
    for (start, end) in spans {
        total += (end - start.max(until)).max(0.0);
        until = until.max(end);
    }
    total
}

/// Time of the fastest unsplit GEMM of one rank with its start \[s\]; 0 for a bare collective.
/// Ranks that share a GPU compute one after another.
///
/// # Errors
/// [`SimError::NoPeak`].
pub fn unsplit_gemm(
    operator: &Operator,
    topology: &Topology,
    placement: &[u32],
    options: &Options,
) -> Result<f64, SimError> {
    unsplit(operator, topology, placement, (options, None))
}

/// The same of the products that [`Options::tiling`] knows the tiles of: by Duet's own kernels \[s\].
///
/// # Errors
/// [`SimError::NoPeak`].
pub fn unsplit_own(
    operator: &Operator,
    topology: &Topology,
    placement: &[u32],
    options: &Options,
) -> Result<f64, SimError> {
    unsplit(operator, topology, placement, (options, options.tiling))
}

fn unsplit(
    operator: &Operator,
    topology: &Topology,
    placement: &[u32],
    (options, tiling): (&Options, Option<Tiling>),
) -> Result<f64, SimError> {
    let Shape::Gemm { m, n, k } = operator.shape else {
        return Ok(0.0);
    };
    let tp = u64::from(operator.tp.max(1));
    let (m, n, k) = match operator.kind {
        Kind::AgGemm => (m, n / tp, k),
        _ => (m, n, k / tp),
    };
    let mut slowest = 0f64;
    for (gpu, device) in (0..topology.gpus.len() as u32).map(|gpu| (gpu, topology.device(gpu))) {
        let ranks = placement.iter().filter(|&&g| g == gpu).count();
        if ranks == 0 {
            continue;
        }
        let whole =
            gemm(device, operator.dtype, m, n, k, device.sms).ok_or_else(|| SimError::NoPeak {
                device: device.name.clone(),
                dtype: operator.dtype,
            })?;
        let tiled =
            tiling.and_then(|tiling| tiling.alone(device, operator.dtype, ([m, n, k], device.sms)));
        let time = tiled.map_or(whole, |tiled| whole.tiled(tiled.time, tiled.wave));
        let c = &device.costs;
        let submit = match (options.submission, options.launch) {
            (Submission::Beforehand, _) => run_start(c, options),
            (Submission::Along, LaunchMode::Stream) => c.submit_kernel.get(),
            (Submission::Along, LaunchMode::Graph) => c.submit_graph.get(),
        };
        let start = submit + c.kernel_start.get();
        // Each rank has another B.
        slowest = slowest.max(start + ranks as f64 * (time.seconds + time.cold));
    }
    Ok(slowest)
}
