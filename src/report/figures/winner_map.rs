//! Who wins, over two axes: by the simulator, and by the selector.

use super::{Figure, Picture, axis_words, caption, machines, short};
use crate::experiment::analysis::selection::{Judged, LEVEL};
use crate::experiment::analysis::{Analysis, Case, Group, Run};
use crate::report::plot::{Category, CategoryMap, Cell, Look, MapPanel};

pub(super) const FIGURE: Figure = Figure {
    name: "winner-map",
    about: "the fastest strategy over two axes with its speed-up, by the simulator and by the selector",
    draw,
};

/// The strategy that a map shows for a case.
type Pick<'a> = dyn Fn(usize, &'a Case) -> Option<&'a Run> + 'a;

fn draw(analysis: &Analysis) -> Result<Vec<Picture>, String> {
    let axes = analysis.axes();
    let [x, y, ..] = axes.as_slice() else {
        return Err("it needs fused operators over two axes".to_owned());
    };
    let axes = (&**x, &**y);
    let values = |axis: &str| -> Vec<u64> {
        let mut all: Vec<u64> = analysis.main_cases().filter_map(|c| c.axis(axis)).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let spans = (values(x), values(y));
    if spans.0.len() < 2 || spans.1.len() < 2 {
        return Err("it needs two values or more of both axes".to_owned());
    }
    let truth = map(
        analysis,
        axes,
        &spans,
        &|_, case| Some(case.best()),
        "The fastest strategy",
        "By the simulator",
    );
    let mut pictures = vec![Picture {
        stem: "winner-map".to_owned(),
        svg: truth.draw(),
    }];
    if !analysis.judged.is_empty() {
        let chosen = map(
            analysis,
            axes,
            &spans,
            &|at, case| {
                let judged: Option<&Judged> = analysis.judged.iter().find(|j| j.case == at);
                judged.map(|j| &case.runs[j.pick])
            },
            "The strategy that the selector chooses",
            "Chosen by the closed forms",
        );
        pictures.push(Picture {
            stem: "winner-map-selector".to_owned(),
            svg: chosen.draw(),
        });
    }
    Ok(pictures)
}

fn map<'a>(
    analysis: &'a Analysis,
    (x, y): (&str, &str),
    (xs, ys): &(Vec<u64>, Vec<u64>),
    pick: &Pick<'a>,
    title: &str,
    by: &str,
) -> CategoryMap {
    let mut classes: Vec<&str> = Vec::new();
    for strategy in crate::strategy::registry() {
        let shown = analysis.main.iter().any(|&at| {
            let run = pick(at, &analysis.cases[at]);
            run.is_some_and(|run| run.class() == strategy.name())
        });
        if shown {
            classes.push(strategy.name());
        }
    }
    let cell = |group: &Group, x_value: u64, y_value: u64| {
        let at = analysis.main.iter().copied().find(|&at| {
            let case = &analysis.cases[at];
            Group::of(case) == *group
                && case.axis(x) == Some(x_value)
                && case.axis(y) == Some(y_value)
        })?;
        let case = &analysis.cases[at];
        let run = pick(at, case)?;
        let category = classes.iter().position(|class| *class == run.class())?;
        let text = match (case.sequential(), run.pieces.filter(|d| *d > 1)) {
            (Some(sequential), Some(d)) => format!("{:.1} d{d}", sequential / run.seconds),
            (Some(sequential), None) => format!("{:.1}", sequential / run.seconds),
            _ => String::new(),
        };
        let level = case.level(LEVEL);
        let shared = level.len() > 1 && level.contains(&run.class());
        let text = if shared { format!("{text} ≈") } else { text };
        Some(Cell { category, text })
    };
    let panel = |group: Group| MapPanel {
        title: group.title(),
        cells: ys
            .iter()
            .map(|&y_value| {
                xs.iter()
                    .map(|&value| cell(&group, value, y_value))
                    .collect()
            })
            .collect(),
    };
    let groups = analysis.groups();
    CategoryMap {
        caption: caption(analysis, title, format!("{by}; {}", machines(analysis))),
        texts:
            "in each cell its speed-up over sequential in the simulator, and d of a decomposition \
                (≈: another strategy is level within 1 %)"
                .to_owned(),
        x_label: axis_words(x).1,
        y_label: axis_words(y).1,
        x: xs.iter().map(|value| short(*value)).collect(),
        y: ys.iter().map(|value| short(*value)).collect(),
        categories: classes
            .iter()
            .map(|class| Category {
                name: (*class).to_owned(),
                look: Look::of(class),
            })
            .collect(),
        columns: groups.len().min(2),
        panels: groups.into_iter().map(panel).collect(),
    }
}
