//! What `duet simulate` prints: one timeline in full.

use serde::Serialize;

use super::grid::{Grid, Look, Paint, bar, clean, paint, wrap};
use super::json::{OperatorJson, OutcomeJson};
use super::table::{percent, time};
use super::{ExpectedError, Outcome, Verification, csv, json, names};
use crate::schedule::{Schedule, TaskId};
use crate::timeline::Timeline;
use crate::topology::{LinkId, Topology};

/// Rows of the lists that a terminal shows.
const MOST_ROWS: usize = 12;

/// One stretch of the critical path.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Critical {
    pub task: TaskId,
    pub start: f64,
    pub end: f64,
}

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
    /// Fastest unsplit GEMM of one rank [s].
    pub unsplit_gemm: f64,
    /// No strategy can be faster [s].
    pub lower_bound: Option<f64>,
    /// From the first task to the last.
    pub critical_path: Vec<Critical>,
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
        .map(|step| CriticalJson {
            task: step.task.0,
            what: names::label(topology, schedule, step.task),
            start_s: step.start,
            end_s: step.end,
            bound_by: names::bound(topology, simulation.timeline.spans[step.task.index()].bound),
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

/// `duet simulate` for people; `tasks` lists every task.
pub fn table(simulation: &Simulation<'_>, tasks: bool, look: &Look) -> String {
    let mut out = String::new();
    let outcome = simulation.outcome;
    let title = format!(
        "{} of {} on {}",
        paint(&clean(&outcome.strategy), Paint::Bold),
        simulation.schedule.operator,
        clean(&simulation.topology.name),
    );
    out.push_str(&wrap(&title, 0, 2, look.width));
    out.push('\n');
    out.push_str(&facts(simulation).draw(look));
    if !outcome.terms.is_empty() {
        out.push('\n');
        out.push_str(&terms(outcome).draw(look));
    }
    if !simulation.critical_path.is_empty() {
        out.push('\n');
        out.push_str(&critical(simulation).draw(look));
    }
    let links = simulation.links();
    if !links.is_empty() {
        out.push('\n');
        out.push_str(&link_grid(&links).draw(look));
    }
    if tasks {
        out.push('\n');
        out.push_str(&task_grid(simulation).draw(look));
    }
    out.push('\n');
    let why = format!("{} {}", paint("why:", Paint::Bold), clean(&outcome.why));
    out.push_str(&wrap(&why, 0, 2, look.width));
    out
}

fn facts(simulation: &Simulation<'_>) -> Grid {
    let outcome = simulation.outcome;
    let mut grid = Grid::default().left("quantity", 0).left("value", 0);
    let mut fact = |name: &str, value: String| grid.row(vec![name.to_owned(), value]);
    fact("makespan", paint(&time(outcome.makespan), Paint::Bold));
    if let Some(speedup) = outcome.speedup {
        fact("speed-up over sequential", format!("{speedup:.3}x"));
    }
    if let Some(bound) = simulation.lower_bound {
        fact("lower bound", time(bound));
    }
    if simulation.unsplit_gemm > 0.0 {
        fact("unsplit GEMM", time(simulation.unsplit_gemm));
        fact("with communication free", time(outcome.gemm_only));
        fact("with computation free", time(outcome.comm_only));
        fact("effective communication (ECT)", time(outcome.ect));
    }
    if let Some(overlap) = outcome.overlap_efficiency {
        fact("overlap efficiency", percent(overlap));
    }
    fact("bottleneck", clean(&outcome.bottleneck));
    fact("tasks", outcome.tasks.to_string());
    fact(
        "verified",
        match &outcome.verification {
            Verification::Verified => "yes".to_owned(),
            Verification::NotVerified(reason) => {
                paint(&format!("not verified: {}", clean(reason)), Paint::Bad)
            }
        },
    );
    let error = simulation.expected_error;
    fact(
        "expected error",
        match error.relative {
            Some(relative) => format!("± {} ({})", percent(relative), clean(&error.basis)),
            None => clean(&error.basis),
        },
    );
    grid
}

fn terms(outcome: &Outcome) -> Grid {
    let mut grid = Grid::default()
        .left("where the time goes", 0)
        .right("time", 0)
        .right("share", 0)
        .left("", 1);
    for (term, seconds) in &outcome.terms {
        let part = share(*seconds, outcome.makespan);
        grid.row(vec![
            clean(term),
            time(*seconds),
            percent(part),
            paint(&bar(part, 20), Paint::Accent),
        ]);
    }
    grid
}

/// A long path is shown by its two ends.
fn critical(simulation: &Simulation<'_>) -> Grid {
    let mut grid = Grid::default()
        .left("critical path", 0)
        .right("rank", 3)
        .right("start", 1)
        .right("end", 0)
        .left("bound by", 2);
    let path = &simulation.critical_path;
    let hidden = path.len().saturating_sub(MOST_ROWS);
    for (place, step) in path.iter().enumerate() {
        if hidden > 0 && place == MOST_ROWS / 2 {
            let text = paint(&format!("… {hidden} more …"), Paint::Dim);
            grid.row(vec![
                text,
                String::new(),
                String::new(),
                String::new(),
                String::new(),
            ]);
        }
        if hidden > 0 && (MOST_ROWS / 2..MOST_ROWS / 2 + hidden).contains(&place) {
            continue;
        }
        let span = &simulation.timeline.spans[step.task.index()];
        grid.row(vec![
            names::label(simulation.topology, simulation.schedule, step.task),
            simulation.schedule.task(step.task).rank.0.to_string(),
            time(step.start),
            time(step.end),
            names::bound(simulation.topology, span.bound),
        ]);
    }
    grid
}

fn link_grid(links: &[LinkJson]) -> Grid {
    let title = match links.len() {
        n if n > MOST_ROWS => format!("busiest {MOST_ROWS} of {n} links"),
        _ => "link".to_owned(),
    };
    let mut grid = Grid::default()
        .left(title, 0)
        .right("bytes", 0)
        .right("busy", 0)
        .left("", 1);
    for link in links.iter().take(MOST_ROWS) {
        grid.row(vec![
            link.name.clone(),
            crate::units::Bytes::new(link.bytes.round() as u64).to_string(),
            percent(link.busy_fraction),
            paint(&bar(link.busy_fraction, 20), Paint::Accent),
        ]);
    }
    grid
}

fn task_grid(simulation: &Simulation<'_>) -> Grid {
    let mut grid = Grid::default()
        .right("task", 0)
        .right("rank", 0)
        .left("lane", 0)
        .left("what", 0)
        .right("ready", 2)
        .right("start", 0)
        .right("end", 0)
        .left("bound by", 1);
    for task in task_rows(simulation) {
        grid.row(vec![
            task.task.to_string(),
            task.rank.to_string(),
            task.lane,
            task.what,
            time(task.ready_s),
            time(task.start_s),
            time(task.end_s),
            task.bound_by,
        ]);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;
    use crate::report::grid::finish;

    fn with<T>(show: impl FnOnce(&Simulation<'_>) -> T) -> T {
        let (topology, schedule, timeline) =
            (fixture::pair(), fixture::schedule(), fixture::timeline());
        let comparison = fixture::comparison("pair");
        let critical = |task: u32| {
            let span = timeline.spans[task as usize];
            Critical {
                task: TaskId(task),
                start: span.start,
                end: span.end,
            }
        };
        show(&Simulation {
            topology: &topology,
            schedule: &schedule,
            timeline: &timeline,
            outcome: &fixture::outcome("toy", timeline.makespan, 14e-6),
            expected_error: &comparison.expected_error,
            launch: "graph",
            unsplit_gemm: 2.5e-6,
            lower_bound: None,
            critical_path: vec![critical(1), critical(2)],
        })
    }

    #[test]
    fn shows_where_the_time_goes() {
        let look = Look {
            width: 80,
            color: false,
        };
        let text = with(|simulation| table(simulation, true, &look));
        insta::assert_snapshot!(finish(&text, false));
    }

    #[test]
    fn json_has_the_documented_fields() {
        let text = with(|simulation| json(simulation, true)).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        for field in [
            "strategy",
            "topology",
            "operator",
            "makespan_s",
            "gemm_only_s",
            "comm_only_s",
            "ect_s",
            "overlap_efficiency",
            "bottleneck",
            "expected_error",
        ] {
            assert!(!json[field].is_null(), "{field}");
        }
        assert_eq!(json["tasks"], 4);
        assert_eq!(json["links"][0]["name"], "gpu0->gpu1");
        // 6.24288 of 12 microseconds.
        assert_eq!(json["links"][0]["busy_fraction"], 6.242_88 / 12.0);
        assert_eq!(json["critical_path"][1]["task"], 2);
        assert_eq!(json["critical_path"][1]["bound_by"], "compute");
        assert_eq!(json["timeline"].as_array().unwrap().len(), 4);
        let short = with(json_value);
        assert!(short.get("timeline").is_none());
    }

    fn json_value(simulation: &Simulation<'_>) -> serde_json::Value {
        serde_json::from_str(&json(simulation, false).unwrap()).unwrap()
    }

    #[test]
    fn csv_has_a_line_per_task() {
        insta::assert_snapshot!(with(csv));
    }

    #[test]
    fn a_long_critical_path_is_shown_by_its_ends() {
        let look = Look {
            width: 80,
            color: false,
        };
        let text = with(|simulation| {
            let long = Simulation {
                critical_path: simulation.critical_path.repeat(10),
                ..*simulation
            };
            critical(&long).draw(&look)
        });
        assert_eq!(text.lines().count(), 2 + MOST_ROWS + 1);
        assert!(text.contains("… 8 more …"));
    }
}
