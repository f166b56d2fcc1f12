//! Time of every strategy, relative to sequential, against each axis of the grid.

use super::{Figure, Picture, axis_words, caption, machines};
use crate::experiment::analysis::statistics::geomean;
use crate::experiment::analysis::{Analysis, Case, Group};
use crate::report::plot::{Axis, Lines, Panel, Quantity, Series};

pub(super) const FIGURE: Figure = Figure {
    name: "strategies",
    about: "time of every strategy relative to sequential against each axis, one picture per axis",
    draw,
};

fn draw(analysis: &Analysis) -> Result<Vec<Picture>, String> {
    let mut pictures = Vec::new();
    for axis in analysis.axes() {
        let mut values: Vec<u64> = analysis
            .main_cases()
            .filter_map(|c| c.axis(&axis))
            .collect();
        values.sort_unstable();
        values.dedup();
        if values.len() > 1 {
            pictures.push(picture(analysis, &axis, &values));
        }
    }
    match pictures.is_empty() {
        true => Err("it needs fused operators over an axis of two values or more".to_owned()),
        false => Ok(pictures),
    }
}

fn picture(analysis: &Analysis, axis: &str, values: &[u64]) -> Picture {
    let groups = analysis.groups();
    let panels = groups.iter().map(|group| Panel {
        title: group.title(),
        series: series(analysis, group, axis, values),
        marks: Vec::new(),
    });
    let (words, title) = axis_words(axis);
    let lines = Lines {
        caption: caption(
            analysis,
            "Time of each strategy, relative to sequential",
            format!(
                "Geometric mean over all cases with the same {words}; parameters at their best; {}",
                machines(analysis)
            ),
        ),
        x: Axis::log2(&title, Quantity::Number),
        y: Axis::from_zero("time / sequential", Quantity::Factor),
        panels: panels.collect(),
        columns: groups.len().min(2),
        own_y: false,
        rules: Vec::new(),
    };
    Picture {
        stem: format!("strategies-{axis}"),
        svg: lines.draw(),
    }
}

fn series(analysis: &Analysis, group: &Group, axis: &str, values: &[u64]) -> Vec<Series> {
    let here: Vec<&Case> = analysis
        .main_cases()
        .filter(|c| Group::of(c) == *group)
        .collect();
    let mut classes: Vec<&str> = Vec::new();
    for run in here.iter().flat_map(|case| &case.runs) {
        if !classes.contains(&run.class()) {
            classes.push(run.class());
        }
    }
    classes
        .into_iter()
        .map(|class| {
            let point = |value: &u64| {
                let cases = here.iter().filter(|case| case.axis(axis) == Some(*value));
                let ratio = |case: &&Case| Some(case.best_in(class)?.seconds / case.sequential()?);
                Some((*value as f64, geomean(cases.filter_map(ratio))?))
            };
            Series::of(class, values.iter().filter_map(point).collect())
        })
        .collect()
}
