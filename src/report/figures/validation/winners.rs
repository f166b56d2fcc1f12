//! Who wins over the rows and the weight's shape, as measured and as simulated.

use super::{Figure, caption, class};
use crate::experiment::analysis::operator_title;
use crate::operator::Kind;
use crate::report::figures::{Picture, short};
use crate::report::plot::{Category, CategoryMap, Cell, Look, MapPanel};
use crate::validate::analysis::errors::path_kind;
use crate::validate::analysis::{Point, Validation};
use crate::validate::key::Group;

pub(super) const FIGURE: Figure = Figure {
    name: "winner-map-measured",
    about: "the fastest strategy over the rows and the shape of the weight, as measured and as simulated",
    draw,
};

/// The time that a map goes by.
type Time = fn(&Point) -> Option<f64>;

/// What one map is of: operator, path and launch mode.
type Panel = (Kind, &'static str, &'static str);

fn panel(group: &Group) -> Panel {
    (
        group.operator.kind,
        path_kind(&group.path),
        group.launch.name(),
    )
}

fn draw(found: &Validation) -> Result<Vec<Picture>, String> {
    let mut rows: Vec<u64> = Vec::new();
    let mut shapes: Vec<(u64, u64)> = Vec::new();
    for point in &found.points {
        let Some((m, n, k)) = point.group.operator.mnk() else {
            continue;
        };
        rows.push(m);
        shapes.push((n, k));
    }
    rows.sort_unstable();
    rows.dedup();
    shapes.sort_by_key(|(n, k)| (n * k, *n));
    shapes.dedup();
    if rows.len() < 2 || shapes.len() < 2 {
        return Err("it needs two numbers of rows and two shapes of the weight".to_owned());
    }
    let measured: Time = |point| Some(point.measured);
    let simulated: Time = |point| point.simulated;
    let maps = [
        (
            "winner-map-measured",
            "The fastest strategy on real GPUs",
            measured,
        ),
        (
            "winner-map-simulated",
            "The fastest strategy by the simulator",
            simulated,
        ),
    ];
    let pictures = maps.map(|(stem, title, time)| Picture {
        stem: stem.to_owned(),
        svg: map(found, &rows, &shapes, title, time).draw(),
    });
    Ok(pictures.into())
}

fn map(
    found: &Validation,
    rows: &[u64],
    shapes: &[(u64, u64)],
    title: &str,
    time: Time,
) -> CategoryMap {
    let mut panels: Vec<Panel> = Vec::new();
    for point in &found.points {
        let panel = panel(&point.group);
        if !panels.contains(&panel) {
            panels.push(panel);
        }
    }
    panels.sort_by_key(|(kind, path, launch)| (*path != "p2p", *path, *launch, *kind));
    let classes: Vec<&str> = crate::strategy::registry()
        .iter()
        .map(|strategy| strategy.name())
        .filter(|name| {
            found
                .points
                .iter()
                .any(|point| class(&point.strategy) == *name)
        })
        .collect();
    let cell = |panel_of: &Panel, m: u64, (n, k): (u64, u64)| {
        let here = found.points.iter().filter(|point| {
            panel(&point.group) == *panel_of && point.group.operator.mnk() == Some((m, n, k))
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
    };
    CategoryMap {
        caption: caption(found, title, "By operator, path and launch mode"),
        texts: "in each cell its measured speed-up over the copy engine and then the same GEMM"
            .to_owned(),
        x_label: "m (rows)".to_owned(),
        y_label: "n × k of the weight".to_owned(),
        x: rows.iter().map(|m| short(*m)).collect(),
        y: shapes.iter().map(|(n, k)| format!("{n} × {k}")).collect(),
        categories: classes
            .iter()
            .map(|name| Category {
                name: (*name).to_owned(),
                look: Look::of(name),
            })
            .collect(),
        columns: panels.len().min(2),
        panels: panels
            .iter()
            .map(|of| MapPanel {
                title: format!("{}, {}, {}", operator_title(of.0), of.1, of.2),
                cells: shapes
                    .iter()
                    .map(|shape| rows.iter().map(|m| cell(of, *m, *shape)).collect())
                    .collect(),
            })
            .collect(),
    }
}
