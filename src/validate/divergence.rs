//! Error by term: where a measured timeline leaves the simulated one.
//!
//! A task's *duration* is its end less its start; its *wait* is its start less the end of the last of
//! its predecessors, which are its dependencies and the task before it in its lane. Both are measured,
//! and both are simulated; a task diverges where one of them differs by more than [`TOLERANCE`] of the
//! makespan and 2 us.
//!
//! Along the measured critical path (from the task that ended last, back through the predecessor that
//! each started after) durations and waits add up to the makespan. With the simulated ones of the same
//! tasks, waits taken after the same predecessors,
//!
//! ```text
//! measured end − simulated end of the last task = Σ over the path (Δ duration + Δ wait)
//! ```
//!
//! exactly; what the simulated makespan has beyond that task's end is the rest.

use std::collections::BTreeMap;

use super::key::Case;
use super::simulated::Simulated;
use super::tasks::Task;
use crate::schedule::{Schedule, TaskId};
use crate::timeline::{Bound, Cause, Span, Timeline};

/// Share of the makespan that a difference must exceed.
pub const TOLERANCE: f64 = 0.02;
/// And what it must exceed in any case \[s\]: tracing costs about a microsecond a step.
const LEAST: f64 = 2e-6;

/// Which part of a task differs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Duration,
    Wait,
}

impl Part {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Duration => "duration",
            Self::Wait => "wait",
        }
    }
}

/// The task that diverges first.
#[derive(Clone, Debug, PartialEq)]
pub struct First {
    pub task: u32,
    pub rank: u16,
    pub kind: String,
    pub part: Part,
    /// Of the part \[s\].
    pub measured: f64,
    pub simulated: f64,
}

/// One case.
#[derive(Clone, Debug, PartialEq)]
pub struct Divergence {
    pub case: String,
    /// Makespan of the traced run and of the simulation \[s\].
    pub measured: f64,
    pub simulated: f64,
    /// `None`: no task diverges.
    pub first: Option<First>,
    /// Along the measured critical path, by kind of task and part: measured less simulated \[s\].
    pub terms: BTreeMap<(String, Part), f64>,
    /// What of the difference of makespans lies off that path \[s\].
    pub rest: f64,
}

/// Compares a traced run with the simulated timeline of the same schedule.
///
/// # Errors
/// Why the two cannot be compared, in words.
pub fn divergence(
    case: &Case,
    tasks: &[&Task],
    schedule: &Schedule,
    simulated: &Timeline,
) -> Result<Divergence, String> {
    let measured = timeline(tasks, schedule)?;
    let kinds: Vec<&str> = {
        let mut kinds = vec![""; schedule.tasks.len()];
        tasks
            .iter()
            .for_each(|task| kinds[task.task as usize] = &task.kind);
        kinds
    };
    let predecessors = predecessors(schedule);
    let (before, after) = (&measured.spans, &simulated.spans);
    if after.len() != before.len() {
        return Err("the simulated timeline is of another schedule".to_owned());
    }
    let end = |spans: &[Span], task: Option<TaskId>| task.map_or(0.0, |t| spans[t.index()].end);
    let last_of = |spans: &[Span], task: usize| -> Option<TaskId> {
        let all = predecessors[task].iter().copied();
        all.reduce(|a, b| {
            if spans[b.index()].end > spans[a.index()].end {
                b
            } else {
                a
            }
        })
    };
    let limit = (TOLERANCE * measured.makespan).max(LEAST);
    let mut order: Vec<usize> = (0..before.len()).collect();
    order.sort_by(|a, b| before[*a].start.total_cmp(&before[*b].start).then(a.cmp(b)));
    let first = order.iter().find_map(|&task| {
        let wait = |spans: &[Span]| spans[task].start - end(spans, last_of(spans, task));
        let duration = |spans: &[Span]| spans[task].end - spans[task].start;
        let parts = [
            (Part::Wait, wait(before), wait(after)),
            (Part::Duration, duration(before), duration(after)),
        ];
        let (part, measured, simulated) = (parts.into_iter())
            .find(|(_, measured, simulated)| (measured - simulated).abs() > limit)?;
        Some(First {
            task: task as u32,
            rank: schedule.tasks[task].rank.0,
            kind: kinds[task].to_owned(),
            part,
            measured,
            simulated,
        })
    });
    let mut terms: BTreeMap<(String, Part), f64> = BTreeMap::new();
    let ends = before.iter().enumerate();
    let last = ends
        .max_by(|a, b| a.1.end.total_cmp(&b.1.end))
        .map(|(task, _)| task);
    let mut at = last;
    // Every step goes to a task that ended before, as far as the clock can tell; the count ends it.
    for _ in 0..before.len() {
        let Some(task) = at else { break };
        let cause = last_of(before, task);
        let wait = |spans: &[Span]| spans[task].start - end(spans, cause);
        let duration = |spans: &[Span]| spans[task].end - spans[task].start;
        let kind = kinds[task].to_owned();
        *terms.entry((kind.clone(), Part::Wait)).or_default() += wait(before) - wait(after);
        *terms.entry((kind, Part::Duration)).or_default() += duration(before) - duration(after);
        at = cause.map(TaskId::index);
    }
    let explained: f64 = terms.values().sum();
    Ok(Divergence {
        case: case.to_string(),
        measured: measured.makespan,
        simulated: simulated.makespan,
        first,
        rest: measured.makespan - simulated.makespan - explained,
        terms,
    })
}

impl Simulated {
    /// The traced run of the case, its tasks in any order, against the simulation.
    ///
    /// # Errors
    /// As [`divergence`].
    pub fn against(&self, case: &Case, tasks: &[Task]) -> Result<Divergence, String> {
        let tasks: Vec<&Task> = tasks.iter().collect();
        divergence(case, &tasks, &self.schedule, &self.timeline)
    }
}

/// The dependencies of each task and the task before it in its lane.
fn predecessors(schedule: &Schedule) -> Vec<Vec<TaskId>> {
    let mut lanes: BTreeMap<(u16, u16), TaskId> = BTreeMap::new();
    let of = |(at, task): (usize, &crate::schedule::Task)| {
        let id = TaskId(at as u32);
        let mut all: Vec<TaskId> = schedule.deps(id).iter().map(|dep| dep.task).collect();
        all.extend(lanes.insert((task.rank.0, task.lane.0), id));
        all
    };
    schedule.tasks.iter().enumerate().map(of).collect()
}

/// The measured tasks as a timeline of their schedule.
///
/// # Errors
/// Tasks that are not those of the schedule, in words.
pub fn timeline(tasks: &[&Task], schedule: &Schedule) -> Result<Timeline, String> {
    let count = schedule.tasks.len();
    let mut spans: Vec<Option<Span>> = vec![None; count];
    for task in tasks {
        let place = spans
            .get_mut(task.task as usize)
            .ok_or_else(|| format!("task {} of a schedule that has {count}", task.task))?;
        *place = Some(Span {
            ready: task.start,
            start: task.start,
            end: task.end,
            cause: Cause::Start,
            bound: Bound::Nothing,
        });
    }
    let spans: Vec<Span> = spans.into_iter().flatten().collect();
    if spans.len() != count {
        let measured = spans.len();
        return Err(format!(
            "{measured} measured tasks of a schedule that has {count}"
        ));
    }
    Ok(Timeline {
        makespan: spans.iter().map(|span| span.end).fold(0.0, f64::max),
        spans,
        ..Timeline::default()
    })
}

/// All cases together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    pub cases: usize,
    /// By kind and part: mean of the difference over the measured makespan, mean of its size, and in
    /// how many cases it diverges first.
    pub rows: Vec<TermRow>,
    /// The same of what lies off the measured critical path.
    pub rest: f64,
    pub rest_size: f64,
    /// Cases in which no task diverges.
    pub agree: usize,
}

/// One kind of task.
#[derive(Clone, Debug, PartialEq)]
pub struct TermRow {
    pub kind: String,
    pub part: Part,
    pub mean: f64,
    pub size: f64,
    pub first: usize,
}

/// Sums up, the largest size first.
pub fn terms(all: &[Divergence]) -> Terms {
    let count = all.len().max(1) as f64;
    let mut rows: BTreeMap<(String, Part), TermRow> = BTreeMap::new();
    for found in all {
        for ((kind, part), seconds) in &found.terms {
            let share = seconds / found.measured / count;
            let row = rows
                .entry((kind.clone(), *part))
                .or_insert_with(|| TermRow {
                    kind: kind.clone(),
                    part: *part,
                    mean: 0.0,
                    size: 0.0,
                    first: 0,
                });
            row.mean += share;
            row.size += share.abs();
        }
    }
    for first in all.iter().filter_map(|found| found.first.as_ref()) {
        let row = rows
            .entry((first.kind.clone(), first.part))
            .or_insert_with(|| TermRow {
                kind: first.kind.clone(),
                part: first.part,
                mean: 0.0,
                size: 0.0,
                first: 0,
            });
        row.first += 1;
    }
    let mut rows: Vec<TermRow> = rows.into_values().collect();
    rows.sort_by(|a, b| b.size.total_cmp(&a.size));
    let rest = |of: fn(f64) -> f64| -> f64 {
        all.iter()
            .map(|found| of(found.rest / found.measured))
            .sum::<f64>()
            / count
    };
    Terms {
        cases: all.len(),
        rows,
        rest: rest(|share| share),
        rest_size: rest(f64::abs),
        agree: all.iter().filter(|found| found.first.is_none()).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{Options, simulate};
    use proptest::prelude::*;

    fn case() -> Case {
        let text = "ag-gemm/4096x8192x4096/bf16/2on2/p2p/stream/interdecom:d=4,comm=direct";
        text.parse().unwrap()
    }

    fn simulated() -> (Schedule, Timeline) {
        let case = case();
        let topology = crate::topology::load("h200-pair", &[]).unwrap();
        let choice = crate::strategy::parse(case.strategy().unwrap()).unwrap();
        let placement = &case.group.placement;
        let schedule = choice
            .build(&case.group.operator, &topology, placement)
            .unwrap();
        let timeline = simulate(&schedule, &topology, &Options::default()).unwrap();
        (schedule, timeline)
    }

    /// The simulated timeline as if it had been measured, tasks `stretched` taking so much longer.
    fn measured(schedule: &Schedule, timeline: &Timeline, stretched: &[(usize, f64)]) -> Vec<Task> {
        let predecessors = predecessors(schedule);
        let mut spans = timeline.spans.clone();
        // In the order of simulated starts every predecessor comes before.
        let mut order: Vec<usize> = (0..spans.len()).collect();
        order.sort_by(|a, b| {
            timeline.spans[*a]
                .start
                .total_cmp(&timeline.spans[*b].start)
                .then(a.cmp(b))
        });
        for task in order {
            let was = timeline.spans[task];
            let later = |t: &TaskId| spans[t.index()].end - timeline.spans[t.index()].end;
            let late = predecessors[task].iter().map(later).fold(0.0, f64::max);
            let extra = stretched
                .iter()
                .filter(|(at, _)| *at == task)
                .map(|(_, s)| s)
                .sum::<f64>();
            spans[task].start = was.start + late;
            spans[task].end = was.end + late + extra;
        }
        crate::validate::tasks::of(
            &case(),
            schedule,
            &Timeline {
                spans,
                ..Timeline::default()
            },
        )
    }

    #[test]
    fn the_same_timeline_diverges_nowhere() {
        let (schedule, timeline) = simulated();
        let tasks = measured(&schedule, &timeline, &[]);
        let tasks: Vec<&Task> = tasks.iter().collect();
        let found = divergence(&case(), &tasks, &schedule, &timeline).unwrap();
        assert_eq!(found.first, None);
        assert!(
            found.terms.values().all(|seconds| seconds.abs() < 1e-12) && found.rest.abs() < 1e-12
        );
        assert_eq!(terms(&[found]).agree, 1);
    }

    #[test]
    fn a_task_that_takes_longer_is_named() {
        let (schedule, timeline) = simulated();
        let gemm = (0..schedule.tasks.len())
            .find(|at| matches!(schedule.tasks[*at].work, crate::schedule::Work::Compute(_)));
        let gemm = gemm.unwrap();
        let tasks = measured(&schedule, &timeline, &[(gemm, 50e-6)]);
        let tasks: Vec<&Task> = tasks.iter().collect();
        let found = divergence(&case(), &tasks, &schedule, &timeline).unwrap();
        let first = found.first.unwrap();
        assert_eq!(
            (first.task, first.kind.as_str(), first.part),
            (gemm as u32, "gemm", Part::Duration)
        );
        assert!((first.measured - first.simulated - 50e-6).abs() < 1e-12);
        let duration = found.terms[&("gemm".to_owned(), Part::Duration)];
        assert!((duration - 50e-6).abs() < 1e-9, "{duration}");
        assert!((found.measured - found.simulated - 50e-6).abs() < 1e-9);
    }

    #[test]
    fn tables_of_other_schedules_are_refused() {
        let (schedule, timeline) = simulated();
        let mut tasks = measured(&schedule, &timeline, &[]);
        tasks[0].task = 99;
        let all: Vec<&Task> = tasks.iter().collect();
        let error = divergence(&case(), &all, &schedule, &timeline).unwrap_err();
        assert!(
            error.starts_with("task 99 of a schedule that has"),
            "{error}"
        );
        let error = divergence(&case(), &all[1..], &schedule, &timeline).unwrap_err();
        assert!(
            error.contains("measured tasks of a schedule that has"),
            "{error}"
        );
    }

    proptest! {
        /// Whatever takes longer, terms and rest add up to the difference of the makespans.
        #[test]
        fn terms_add_up(stretched in prop::collection::vec((0usize..8, 0.0..1e-4), 0..6)) {
            let (schedule, timeline) = simulated();
            let tasks = measured(&schedule, &timeline, &stretched);
            let tasks: Vec<&Task> = tasks.iter().collect();
            let found = divergence(&case(), &tasks, &schedule, &timeline).unwrap();
            let sum: f64 = found.terms.values().sum::<f64>() + found.rest;
            prop_assert!((sum - (found.measured - found.simulated)).abs() < 1e-12);
            // Only durations were changed; waits on the path stay what they were.
            let longer: f64 = stretched.iter().map(|(_, seconds)| seconds).sum();
            prop_assert!(found.measured - found.simulated <= longer + 1e-12);
        }
    }
}
