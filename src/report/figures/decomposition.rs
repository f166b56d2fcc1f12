//! T(d) of a few telling cases: simulated points, the paper's curve, and d*.

use super::{Figure, Picture, caption, one};
use crate::experiment::analysis::decomposition::Workload;
use crate::experiment::analysis::{Analysis, Group};
use crate::report::plot::{Axis, Colour, Lines, Look, Mark, Marker, Panel, Quantity, Series};

pub(super) const FIGURE: Figure = Figure {
    name: "decomposition",
    about: "T(d) of a few cases: simulated points, the paper's curve with overhead, d* marked",
    draw,
};

/// Panels.
const SHOWN: usize = 4;
/// Points of a curve.
const POINTS: i32 = 64;

fn draw(analysis: &Analysis) -> Result<Vec<Picture>, String> {
    let shown = telling(analysis);
    if shown.is_empty() {
        return Err("it needs fused operators under three values of d or more".to_owned());
    }
    let panels = shown.iter().map(|workload| panel(analysis, workload));
    let lines = Lines {
        caption: caption(
            analysis,
            "How many pieces? Time against d",
            "T(d) = A·d + B + C/d with A fitted on other cases; d = 1 is sequential",
        ),
        x: Axis::log2("pieces d", Quantity::Number),
        y: Axis::from_zero("time", Quantity::Seconds),
        panels: panels.collect(),
        columns: shown.len().min(2),
        own_y: true,
        rules: Vec::new(),
    };
    Ok(one("decomposition", lines.draw()))
}

/// Unseen cases whose best d is the smallest, the largest and in between, one per group in turn; of
/// equal ones that in which a wrong d costs most.
fn telling(analysis: &Analysis) -> Vec<&Workload> {
    let unseen = |workload: &&Workload| {
        let place = analysis.main.iter().position(|&at| at == workload.case);
        place.is_none_or(|at| !analysis.train[at]) && workload.times.len() > 2
    };
    let all: Vec<&Workload> = analysis.workloads.iter().filter(unseen).collect();
    let mut best: Vec<u32> = all.iter().map(|workload| workload.best).collect();
    best.sort_unstable();
    best.dedup();
    let groups = analysis.groups();
    let worst = |workload: &Workload| {
        let penalties = workload
            .times
            .iter()
            .filter_map(|(d, _)| workload.penalty(*d));
        penalties.fold(0.0, f64::max)
    };
    let count = SHOWN.min(best.len());
    let mut shown = Vec::new();
    for i in 0..count {
        let d = best[i * (best.len() - 1) / (count - 1).max(1)];
        let group = &groups[i % groups.len()];
        let of_d = || all.iter().copied().filter(|w| w.best == d);
        let here = of_d().filter(|w| Group::of(&analysis.cases[w.case]) == *group);
        let most = |a: &&Workload, b: &&Workload| worst(a).total_cmp(&worst(b));
        shown.extend(here.max_by(most).or_else(|| of_d().max_by(most)));
    }
    shown
}

fn panel(analysis: &Analysis, workload: &Workload) -> Panel {
    let case = &analysis.cases[workload.case];
    let mut axes: Vec<String> = case
        .axes
        .iter()
        .map(|(name, v)| format!("{name} {v}"))
        .collect();
    axes.insert(0, Group::of(case).title());
    let points = |times: &[(u32, f64)]| -> Vec<(f64, f64)> {
        times
            .iter()
            .map(|(d, time)| (f64::from(*d), *time))
            .collect()
    };
    let mut series = Vec::new();
    let mut marks = Vec::new();
    let last = workload.times.last().map_or(1.0, |(d, _)| f64::from(*d));
    if let Some(form) = &workload.form {
        let curve = |a: f64, b: f64| {
            let at = |i| last.powf(f64::from(i) / f64::from(POINTS));
            let points = (0..=POINTS).map(at).map(|d| (d, a * d + b + form.c / d));
            points.collect::<Vec<_>>()
        };
        // Without overhead A = 0, and B = max(Tc, Tm) is B + A.
        let mut free = Series::new(
            "without overhead",
            Look::nth(5),
            curve(0.0, form.b + form.a),
        );
        let mut full = Series::new(
            "with overhead",
            Look::of("interdecom"),
            curve(form.a, form.b),
        );
        (free.markers, full.markers) = (false, false);
        series.extend([free, full]);
        if (1.0..=last).contains(&form.optimum) {
            marks.push(Mark {
                x: form.optimum,
                y: form.a * form.optimum + form.b + form.c / form.optimum,
                label: format!("d* = {:.1}", form.optimum),
                marker: Marker::Star,
                colour: Colour::VERMILLION,
            });
        }
    }
    series.push(Series::new(
        "simulated",
        Look::nth(0),
        points(&workload.times),
    ));
    Panel {
        title: axes.join(", "),
        series,
        marks,
    }
}
