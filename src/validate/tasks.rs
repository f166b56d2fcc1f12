//! The table of measured tasks: when each task of one traced run began and ended.
//!
//! Times are in microseconds from the common start, 0.01 us in the file and seconds here. A traced
//! run has an event before and after every step, which costs about a microsecond a step, so its
//! makespan is not the one to quote.

use std::path::Path;

use super::cells::{Format, Line, TableError, line};
use super::key::Case;
use crate::input::Diagnostics;
use crate::schedule::{Compute, Schedule, TaskId, Work};
use crate::timeline::Timeline;

/// Schedules of more tasks are not traced.
pub const MOST: usize = 200;

const COLUMNS: [&str; 7] = ["case", "task", "rank", "lane", "kind", "start_us", "end_us"];

const FORMAT: Format = Format {
    what: "a table of measured tasks",
    columns: &COLUMNS,
    optional: &[],
    remedy: "`duet validate` writes such tables beside that of measured times: remove the row",
};

/// One task of one case; times in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub case: Case,
    /// Its number in the schedule.
    pub task: u32,
    pub rank: u16,
    pub lane: u16,
    /// `gemm`, `copy`, `reduce`, `pointwise` or `collective`.
    pub kind: String,
    pub start: f64,
    pub end: f64,
}

/// The first line, its end included.
pub fn header() -> String {
    line(COLUMNS)
}

/// The tasks of a case's traced run.
pub fn of(case: &Case, schedule: &Schedule, timeline: &Timeline) -> Vec<Task> {
    let spans = timeline.spans.iter().zip(0..);
    let one = |(span, number): (&crate::timeline::Span, u32)| {
        let task = schedule.task(TaskId(number));
        Task {
            case: case.clone(),
            task: number,
            rank: task.rank.0,
            lane: task.lane.0,
            kind: kind(schedule, &task.work).to_owned(),
            start: span.start,
            end: span.end,
        }
    };
    spans.map(one).collect()
}

fn kind(schedule: &Schedule, work: &Work) -> &'static str {
    match work {
        Work::Transfer { .. } => "copy",
        Work::Collective(_) => "collective",
        Work::Compute(id) => match schedule.computes[id.index()] {
            Compute::Gemm { .. } => "gemm",
            Compute::Reduce { .. } => "reduce",
            Compute::Pointwise { .. } => "pointwise",
        },
    }
}

impl Task {
    /// As it is written, the line's end included.
    pub fn line(&self) -> String {
        // A task may begin at the common start itself.
        let micros = |seconds: f64| format!("{:.2}", seconds * 1e6);
        let cells = [
            self.case.to_string(),
            self.task.to_string(),
            self.rank.to_string(),
            self.lane.to_string(),
            self.kind.clone(),
            micros(self.start),
            micros(self.end),
        ];
        line(cells.iter().map(String::as_str))
    }

    fn read(line: &Line<'_, '_>, found: &mut Diagnostics) -> Option<Self> {
        let time = |name: &'static str, found: &mut Diagnostics| {
            let time: Option<f64> = line.parse(name, "a time in microseconds", found);
            time.filter(|time| time.is_finite()).map(|time| time * 1e-6)
        };
        Some(Self {
            case: line.explained("case", found)?,
            task: line.parse("task", "the number of a task", found)?,
            rank: line.parse("rank", "the number of a rank", found)?,
            lane: line.parse("lane", "the number of a lane", found)?,
            kind: line.text("kind").to_owned(),
            start: time("start_us", found)?,
            end: time("end_us", found)?,
        })
    }
}

/// Reads a file.
///
/// # Errors
/// [`TableError`] with everything that is wrong, up to ten mistakes.
pub fn read(path: &Path) -> Result<Vec<Task>, TableError> {
    let mut tasks = Vec::new();
    FORMAT.read(path, |line, found| tasks.extend(Task::read(line, found)))?;
    Ok(tasks)
}

/// Reads a text; `file` is its name in messages.
///
/// # Errors
/// [`TableError::Invalid`] with everything that is wrong, up to ten mistakes.
pub fn parse(file: &str, text: &str) -> Result<Vec<Task>, TableError> {
    let mut tasks = Vec::new();
    FORMAT.parse(file, text, |line, found| {
        tasks.extend(Task::read(line, found));
    })?;
    Ok(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{Bound, Cause, Span};

    #[test]
    fn tasks_are_read_as_written() {
        let case: Case = "ag-gemm/256x256x256/bf16/2on2/p2p/stream/sequential"
            .parse()
            .unwrap();
        let choice = crate::strategy::parse("sequential").unwrap();
        let topology = crate::topology::load("h200-pair", &[]).unwrap();
        let placement = &case.group.placement;
        let schedule = choice
            .build(&case.group.operator, &topology, placement)
            .unwrap();
        let span = |task: usize| Span {
            ready: 0.0,
            start: task as f64 * 1e-6,
            end: (task as f64 + 0.5) * 1e-6,
            cause: Cause::Start,
            bound: Bound::Nothing,
        };
        let timeline = Timeline {
            spans: (0..schedule.tasks.len()).map(span).collect(),
            ..Timeline::default()
        };
        let tasks = of(&case, &schedule, &timeline);
        assert_eq!(tasks.len(), schedule.tasks.len());
        assert!(tasks.iter().any(|task| task.kind == "gemm"));
        let lines: String = tasks.iter().map(Task::line).collect();
        let read = parse("t.csv", &(header() + &lines)).unwrap();
        let again: String = read.iter().map(Task::line).collect();
        assert_eq!(again, lines);
        let broken = (header() + &lines).replace(",gemm,", ",gemm,x");
        let error = parse("t.csv", &broken).unwrap_err().to_string();
        assert!(error.contains("is not a time in microseconds"), "{error}");
    }
}
