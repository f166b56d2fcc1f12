//! The tables of `duet simulate`.

use super::{LinkJson, Simulation, share, task_rows};
use crate::report::grid::{Grid, Look, Paint, bar, clean, paint, wrap};
use crate::report::table::{percent, time};
use crate::report::{Outcome, Verification, names};
use crate::units::{Bytes, BytesPerSecond};

/// Rows of the lists that a terminal shows.
pub(super) const MOST_ROWS: usize = 12;

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
    let mut grid = Grid::default().left("quantity", 0).text("value");
    let mut fact = |name: &str, value: String| grid.row(vec![name.to_owned(), value]);
    fact("makespan", paint(&time(outcome.makespan), Paint::Bold));
    if let Some(speedup) = outcome.speedup {
        fact("speed-up over sequential", format!("{speedup:.3}x"));
    }
    if let Some(bound) = simulation.lower_bound {
        fact("lower bound", time(bound));
    }
    if let Some((algbw, busbw)) = outcome.bandwidth {
        fact("algbw", BytesPerSecond::of(algbw).to_string());
        fact("busbw", BytesPerSecond::of(busbw).to_string());
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
    for (term, seconds) in outcome.terms.iter().filter(|(_, seconds)| *seconds != 0.0) {
        let part = share(*seconds, outcome.makespan);
        grid.row(vec![
            term.name().to_owned(),
            time(*seconds),
            percent(part),
            paint(&bar(part, 20), Paint::Accent),
        ]);
    }
    grid
}

/// A long path is shown by its two ends.
pub(super) fn critical(simulation: &Simulation<'_>) -> Grid {
    let mut grid = Grid::default()
        .left("critical path", 0)
        .right("rank", 3)
        .right("start", 1)
        .right("end", 0)
        .left("bound by", 2);
    let path = &simulation.critical_path;
    let hidden = path.len().saturating_sub(MOST_ROWS);
    for (place, &task) in path.iter().enumerate() {
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
        let span = &simulation.timeline.spans[task.index()];
        grid.row(vec![
            names::label(simulation.topology, simulation.schedule, task),
            simulation.schedule.task(task).rank.0.to_string(),
            time(span.start),
            time(span.end),
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
            Bytes::new(link.bytes.round() as u64).to_string(),
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
