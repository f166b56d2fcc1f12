//! A run with an event before and after every step, as a [`Timeline`].

use super::Timer;
use crate::gpu::GpuError;
use crate::gpu::exec::{Extras, Start};
use crate::gpu::plan::What;
use crate::gpu::raw::Event;
use crate::schedule::TaskId;
use crate::timeline::{Bound, Cause, Span, Timeline};

/// Performs the run once more, with two events around each step, and returns when each task began
/// and ended, from the common start. The events cost about a microsecond a step, so the makespan
/// is not the one to quote; in graph mode the steps are issued one by one.
///
/// A task that became several steps lasts from the first to the last of them. `bound` is not
/// known. `cause` is the dependency that ended last.
///
/// # Errors
/// As [`Timer::once`].
pub fn trace(timer: &Timer<'_>) -> Result<Timeline, GpuError> {
    let run = timer.run();
    let plan = run.plan();
    let events = plan
        .steps
        .iter()
        .map(|step| {
            let gpu = &run
                .device(plan.streams[step.stream.index()].gpu.index())
                .gpu;
            Ok((Event::new(gpu, true)?, Event::new(gpu, true)?))
        })
        .collect::<Result<Vec<_>, GpuError>>()?;
    let extras = Extras {
        trace: Some(&events),
        ..Extras::default()
    };
    // The host's queue would fill: three entries a step.
    let gated = run.depth() * 3 <= super::GATED;
    timer.behind_gate(gated, || run.enqueue(Start::Each(timer.starts()), &extras))?;
    let mut times: Vec<Option<(f64, f64)>> = vec![None; run.schedule().tasks.len()];
    for (step, (before, after)) in plan.steps.iter().zip(&events) {
        if matches!(
            step.what,
            What::Record(_) | What::Await(_) | What::WriteFlag(_) | What::AwaitFlag(_)
        ) {
            continue;
        }
        let origin = &timer.starts()[plan.streams[step.stream.index()].gpu.index()];
        let (start, end) = (origin.seconds_to(before)?, origin.seconds_to(after)?);
        let time = times[step.task.index()].get_or_insert((start, end));
        *time = (time.0.min(start), time.1.max(end));
    }
    Ok(timeline(run.schedule(), &times))
}

/// From start and end of every task.
fn timeline(schedule: &crate::schedule::Schedule, times: &[Option<(f64, f64)>]) -> Timeline {
    let spans: Vec<Span> = times
        .iter()
        .enumerate()
        .map(|(t, time)| {
            let (start, end) = time.unwrap_or_default();
            let ends = schedule.deps(TaskId(t as u32)).iter().filter_map(|dep| {
                let (_, end) = times[dep.task.index()]?;
                Some((end, dep.task))
            });
            let last = ends.max_by(|a, b| a.0.total_cmp(&b.0));
            Span {
                ready: last.map_or(0.0, |(end, _)| end.min(start)),
                start,
                end,
                cause: last.map_or(Cause::Start, |(_, task)| Cause::Task(task)),
                bound: Bound::Nothing,
            }
        })
        .collect();
    Timeline {
        makespan: spans.iter().map(|span| span.end).fold(0.0, f64::max),
        spans,
        ..Timeline::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_the_dependency_that_ended_last() {
        let text = include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/examples/two-gpu.json"
        ));
        let schedule = crate::schedule::json::read(text, "two-gpu.json").unwrap();
        let times: Vec<_> = (0..schedule.tasks.len())
            .map(|t| Some((t as f64, t as f64 + 0.5)))
            .collect();
        let timeline = timeline(&schedule, &times);
        assert_eq!(timeline.spans.len(), schedule.tasks.len());
        assert_eq!(timeline.makespan, schedule.tasks.len() as f64 - 0.5);
        for (t, span) in timeline.spans.iter().enumerate() {
            let deps = schedule.deps(TaskId(t as u32));
            match deps.iter().map(|dep| dep.task).max() {
                None => assert_eq!(span.cause, Cause::Start),
                Some(last) => {
                    assert_eq!(span.cause, Cause::Task(last));
                    assert_eq!(span.ready, (f64::from(last.0) + 0.5).min(span.start));
                }
            }
        }
    }
}
