//! A schedule as real GPUs perform it: rewritten first so that every task is work of its own
//! ([`lowered`]), enqueued beforehand, the compute lanes of a GPU's ranks in one queue.

use super::{LaunchMode, Options, SimError, Streams, Submission, Tiling, simulate};
use crate::schedule::lowered;
use crate::schedule::verify::GpuSms;
use crate::schedule::{Schedule, TaskId};
use crate::timeline::{Bound, Cause, Span, Timeline};
use crate::topology::Topology;

/// How real GPUs are to perform a schedule.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    pub launch: LaunchMode,
    pub lowered: lowered::Options,
    /// Keep counters over time, for traces.
    pub record: bool,
    /// Tiles of fused kernels; without, these take the library's time.
    pub tiling: Option<Tiling>,
}

impl Executed {
    /// The options of its simulation.
    pub fn options(&self) -> Options {
        Options {
            launch: self.launch,
            submission: Submission::Beforehand,
            streams: Streams::PerGpu,
            record: self.record,
            tiling: self.tiling,
            ..Options::default()
        }
    }
}

/// The timeline of `schedule` as real GPUs perform it, task by task of the schedule itself.
///
/// # Errors
/// [`SimError`] of [`simulate`].
pub fn executed(
    schedule: &Schedule,
    topology: &Topology,
    how: &Executed,
) -> Result<Timeline, SimError> {
    let lowered = lowered::fitting(schedule, &how.lowered, &|gpu| sms(topology, gpu));
    let timeline = simulate(&lowered.schedule, topology, &how.options())?;
    Ok(of_original(timeline, &lowered.origin, schedule.tasks.len()))
}

/// SMs of a GPU, as the verifier asks for them.
pub fn sms(topology: &Topology, gpu: u32) -> GpuSms {
    let device = topology.device(gpu);
    GpuSms {
        total: device.sms,
        collective: device.library.sms,
    }
}

/// Spans by task of the original: from the first start to the last end of what it became.
fn of_original(timeline: Timeline, origin: &[TaskId], count: usize) -> Timeline {
    let nothing = Span {
        ready: 0.0,
        start: 0.0,
        end: 0.0,
        cause: Cause::Start,
        bound: Bound::Nothing,
    };
    let mut spans: Vec<Option<Span>> = vec![None; count];
    for (span, original) in timeline.spans.iter().zip(origin) {
        let cause = match span.cause {
            Cause::Task(task) => Cause::Task(origin[task.index()]),
            Cause::Resource(task) => Cause::Resource(origin[task.index()]),
            other => other,
        };
        let span = Span { cause, ..*span };
        let whole = &mut spans[original.index()];
        *whole = Some(match *whole {
            None => span,
            Some(known) => {
                let (first, last) = match (span.start < known.start, span.end > known.end) {
                    (true, true) => (span, span),
                    (true, false) => (span, known),
                    (false, true) => (known, span),
                    (false, false) => (known, known),
                };
                Span {
                    ready: first.ready,
                    start: first.start,
                    cause: first.cause,
                    end: last.end,
                    bound: last.bound,
                }
            }
        });
    }
    Timeline {
        spans: spans
            .into_iter()
            .map(|span| span.unwrap_or(nothing))
            .collect(),
        ..timeline
    }
}
