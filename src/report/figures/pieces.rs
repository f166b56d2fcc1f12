//! The best d against a value set on the machine, e.g. the cost of a library call.

use super::sweep::{axis, numbers, per_grid};
use super::{Figure, Picture, caption};
use crate::experiment::analysis::sweep::Sweep;
use crate::experiment::analysis::{Analysis, operator_title};
use crate::report::plot::{Axis, Lines, Look, Panel, Quantity, Series};

pub(super) const FIGURE: Figure = Figure {
    name: "pieces",
    about: "the best d against a value set on the machine, one picture per grid that sets one",
    draw,
};

fn draw(analysis: &Analysis) -> Result<Vec<Picture>, String> {
    per_grid(
        analysis,
        picture,
        "it needs a grid with `set:` of one path and two values or more, and decompositions",
    )
}

fn picture(analysis: &Analysis, grid: &str, sweeps: &[&Sweep]) -> Option<Picture> {
    let path = &sweeps.first()?.path;
    let (_, unit) = numbers(sweeps[0])?;
    let mut kinds: Vec<_> = sweeps.iter().map(|sweep| sweep.group.kind).collect();
    kinds.sort();
    kinds.dedup();
    let panel = |kind: &crate::operator::Kind| {
        let here = sweeps.iter().filter(|sweep| sweep.group.kind == *kind);
        let series = here.enumerate().filter_map(|(i, sweep)| {
            let (steps, other) = numbers(sweep)?;
            let points: Vec<(f64, f64)> = steps
                .iter()
                .filter_map(|(x, step)| Some((*x, step.pieces?)))
                .collect();
            let shown = other == unit && points.len() > 1;
            let name = format!("TP {}", sweep.group.tp);
            shown.then(|| Series::new(&name, Look::nth(i), points))
        });
        Panel {
            title: operator_title(*kind).to_owned(),
            series: series.collect(),
            marks: Vec::new(),
        }
    };
    let panels: Vec<Panel> = kinds.iter().map(panel).collect();
    if panels.iter().all(|panel| panel.series.is_empty()) {
        return None;
    }
    let (label, quantity) = axis(path, unit);
    // Panels stand side by side: room for the labels at their ends.
    let xs = panels
        .iter()
        .flat_map(|panel| &panel.series)
        .flat_map(|series| &series.points);
    let ends = xs.fold((f64::MAX, 0.0_f64), |(low, high), (x, _)| {
        (low.min(*x), high.max(*x))
    });
    let room = [ends.0 / 1.3, ends.1 * 1.3];
    let lines = Lines {
        caption: caption(
            analysis,
            format!("The best number of pieces against {path}"),
            format!(
                "Geometric mean of the fastest d (1 is sequential) over the cases of grid {grid}"
            ),
        ),
        x: Axis::log2(&label, quantity).spanning(&room),
        y: Axis::log2("best d", Quantity::Number).spanning(&[1.0]),
        columns: panels.len().min(2),
        panels,
        own_y: false,
        rules: Vec::new(),
    };
    Some(Picture {
        stem: format!("pieces-{grid}"),
        svg: lines.draw(),
    })
}
