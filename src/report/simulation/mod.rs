//! What `duet simulate` prints: one timeline in full.

mod table;
#[cfg(test)]
mod tests;

pub use table::table;

use serde::Serialize;

use super::json::{OperatorJson, OutcomeJson};
use super::{ExpectedError, Outcome, csv, json, names};
use crate::schedule::{Schedule, TaskId};
use crate::timeline::Timeline;
use crate::topology::{LinkId, Topology};

/// One schedule performed once.
#[derive(Debug)]
pub struct Simulation<'a> {
    pub topology: &'a Topology,
    pub schedule: &'a Schedule,
    pub timeline: &'a Timeline,
    pub outcome: &'a Outcome,
    pub expected_error: &'a ExpectedError,
    /// `stream` or `graph`.
    pub launch: &'a str,
    /// Fastest unsplit GEMM of one rank \[s\].
    pub unsplit_gemm: f64,
    /// No strategy can be faster \[s\].
    pub lower_bound: Option<f64>,
    /// From the first task to the last.
    pub critical_path: Vec<TaskId>,
}

impl Simulation<'_> {
    fn spans(&self) -> impl Iterator<Item = (TaskId, &crate::timeline::Span)> {
        let ids = (0..).map(TaskId);
        ids.zip(&self.timeline.spans)
    }

    /// Links that moved bytes, busiest first.
    fn links(&self) -> Vec<LinkJson> {
        let mut links: Vec<LinkJson> = (0..)
            .map(LinkId::new)
            .zip(&self.timeline.links)
            .filter(|(_, used)| used.bytes > 0.0)
            .map(|(id, used)| LinkJson {
                name: names::link(self.topology, id),
                bytes: used.bytes,
                busy_fraction: share(used.busy, self.timeline.makespan),
            })
            .collect();
        links.sort_by(|a, b| b.busy_fraction.total_cmp(&a.busy_fraction));
        links
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[derive(Serialize)]
struct LinkJson {
    name: String,
    bytes: f64,
    busy_fraction: f64,
}

#[derive(Serialize)]
struct CriticalJson {
    task: u32,
    what: String,
    start_s: f64,
    end_s: f64,
    bound_by: String,
}

#[derive(Serialize)]
struct TaskJson {
    task: u32,
    rank: u16,
    lane: String,
    what: String,
    ready_s: f64,
    start_s: f64,
    end_s: f64,
    bound_by: String,
}

#[derive(Serialize)]
struct SimulationJson<'a> {
    schema: &'static str,
    topology: &'a str,
    operator: OperatorJson,
    launch: &'a str,
    #[serde(flatten)]
    outcome: OutcomeJson<'a>,
    unsplit_gemm_s: f64,
    lower_bound_s: Option<f64>,
    links: Vec<LinkJson>,
    critical_path: Vec<CriticalJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<Vec<TaskJson>>,
}

fn task_rows(simulation: &Simulation<'_>) -> Vec<TaskJson> {
    let (topology, schedule) = (simulation.topology, simulation.schedule);
    simulation
        .spans()
        .map(|(id, span)| TaskJson {
            task: id.0,
            rank: schedule.task(id).rank.0,
            lane: names::lane(schedule, schedule.task(id).lane),
            what: names::label(topology, schedule, id),
            ready_s: span.ready,
            start_s: span.start,
            end_s: span.end,
            bound_by: names::bound(topology, span.bound),
        })
        .collect()
}

/// `duet simulate --format json`; `tasks` adds every task's times as `timeline`.
///
/// # Errors
/// As [`serde_json::to_string`].
pub fn json(simulation: &Simulation<'_>, tasks: bool) -> Result<String, serde_json::Error> {
    let (topology, schedule) = (simulation.topology, simulation.schedule);
    let critical_path = simulation
        .critical_path
        .iter()
        .map(|&task| {
            let span = &simulation.timeline.spans[task.index()];
            CriticalJson {
                task: task.0,
                what: names::label(topology, schedule, task),
                start_s: span.start,
                end_s: span.end,
                bound_by: names::bound(topology, span.bound),
            }
        })
        .collect();
    json::pretty(&SimulationJson {
        schema: "duet-simulate-1",
        topology: &topology.name,
        operator: (&schedule.operator).into(),
        launch: simulation.launch,
        outcome: OutcomeJson::new(simulation.outcome, simulation.expected_error),
        unsplit_gemm_s: simulation.unsplit_gemm,
        lower_bound_s: simulation.lower_bound,
        links: simulation.links(),
        critical_path,
        timeline: tasks.then(|| task_rows(simulation)),
    })
}

/// `duet simulate --format csv`: one line per task.
pub fn csv(simulation: &Simulation<'_>) -> String {
    let header = [
        "task", "rank", "lane", "what", "ready_s", "start_s", "end_s", "bound_by",
    ];
    let rows = task_rows(simulation).into_iter().map(|task| {
        [
            task.task.to_string(),
            task.rank.to_string(),
            task.lane,
            task.what,
            csv::number(task.ready_s),
            csv::number(task.start_s),
            csv::number(task.end_s),
            task.bound_by,
        ]
    });
    csv::write(header, rows)
}
