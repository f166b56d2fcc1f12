//! Who wins over the rows and the weight's shape, as measured and as simulated.

use super::{Figure, caption, class};
use crate::experiment::analysis::operator_title;
use crate::operator::Kind;
use crate::report::figures::{Picture, short};
use crate::report::plot::{Category, CategoryMap, Cell, Look, MapPanel};
use crate::validate::analysis::errors::path_kind;
use crate::validate::analysis::{Point, Validation};

pub(super) const FIGURE: Figure = Figure {
    name: "winner-map-measured",
    about: "the fastest strategy over the rows and the shape of the weight, as measured and as simulated, one picture per path and launch mode",
    draw,
};

/// The time that a map goes by.
type Time = fn(&Point) -> Option<f64>;

/// A row of a map: operator, n and k.
type Weight = (Kind, u64, u64);

/// Path and launch mode: what one picture is of.
fn way(point: &Point) -> (&'static str, &'static str) {
    (path_kind(&point.group.path), point.group.launch.name())
}

fn draw(found: &Validation) -> Result<Vec<Picture>, String> {
    let mut ways: Vec<(&str, &str)> = found.points.iter().map(way).collect();
    ways.sort_by_key(|(path, launch)| (*path != "p2p", *path, *launch != "stream"));
    ways.dedup();
    let pictures: Vec<Picture> = ways
        .into_iter()
        .filter_map(|of| picture(found, of))
        .collect();
    match pictures.is_empty() {
        true => Err("it needs two numbers of rows and two shapes of the weight".to_owned()),
        false => Ok(pictures),
    }
}

/// The picture of one path and launch mode; `None` with less than two of both axes.
fn picture(found: &Validation, of: (&str, &str)) -> Option<Picture> {
    let points: Vec<&Point> = found
        .points
        .iter()
        .filter(|point| way(point) == of)
        .collect();
    let mut rows: Vec<u64> = Vec::new();
    let mut weights: Vec<Weight> = Vec::new();
    for point in &points {
        let (m, n, k) = point.group.operator.mnk()?;
        rows.push(m);
        weights.push((point.group.operator.kind, n, k));
    }
    rows.sort_unstable();
    rows.dedup();
    // From the top: operators in their order, the largest weight first.
    weights.sort_by_key(|(kind, n, k)| (std::cmp::Reverse(*kind), n * k, *n));
    weights.dedup();
    if rows.len() < 2 || weights.len() < 2 {
        return None;
    }
    let classes: Vec<&str> = crate::strategy::registry()
        .iter()
        .map(|strategy| strategy.name())
        .filter(|name| points.iter().any(|point| class(&point.strategy) == *name))
        .collect();
    let panel = |title: &str, time: Time| MapPanel {
        title: title.to_owned(),
        cells: weights
            .iter()
            .map(|weight| {
                let cell = |m: &u64| cell(&points, &classes, *m, *weight, time);
                rows.iter().map(cell).collect()
            })
            .collect(),
    };
    let map = CategoryMap {
        caption: caption(
            found,
            "The fastest strategy, on real GPUs and by the simulator",
            format!("Path {}, {} launches", of.0, of.1),
        ),
        texts: "in each cell its measured speed-up over the copy engine and then the same GEMM"
            .to_owned(),
        x_label: "m (rows)".to_owned(),
        y_label: "n × k of the weight".to_owned(),
        x: rows.iter().map(|m| short(*m)).collect(),
        y: weights
            .iter()
            .map(|(kind, n, k)| format!("{} {n} × {k}", operator_title(*kind)))
            .collect(),
        categories: classes
            .iter()
            .map(|name| Category {
                name: (*name).to_owned(),
                look: Look::of(name),
            })
            .collect(),
        columns: 2,
        panels: vec![
            panel("measured", |point| Some(point.measured)),
            panel("simulated", |point| point.simulated),
        ],
    };
    Some(Picture {
        stem: format!("winner-map-{}-{}", of.0, of.1),
        svg: map.draw(),
    })
}

/// The fastest of one group by `time`.
fn cell(points: &[&Point], classes: &[&str], m: u64, weight: Weight, time: Time) -> Option<Cell> {
    let (kind, n, k) = weight;
    let here = points.iter().filter(|point| {
        let operator = &point.group.operator;
        operator.kind == kind && operator.mnk() == Some((m, n, k))
    });
    let timed = here.filter_map(|point| Some((point, time(point)?)));
    let (best, _) = timed.reduce(|best, next| if next.1 < best.1 { next } else { best })?;
    let category = classes
        .iter()
        .position(|name| *name == class(&best.strategy))?;
    let text = match best.sequential {
        Some(sequential) => format!("{:.2}", sequential / best.measured),
        None => String::new(),
    };
    Some(Cell { category, text })
}
