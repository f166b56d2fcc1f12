//! What a predicted d gains over d = 4, and what the best d would.

use super::{Figure, Picture, axis_words, caption, machines, one};
use crate::experiment::analysis::Analysis;
use crate::report::plot::{Axis, Lines, Look, Panel, Quantity, Series};

pub(super) const FIGURE: Figure = Figure {
    name: "d-star",
    about: "speed-up of the predicted d and of the best d over d = 4, against the first axis",
    draw,
};

fn draw(analysis: &Analysis) -> Result<Vec<Picture>, String> {
    let axis = analysis.axes().into_iter().next();
    let gains = axis
        .as_ref()
        .map(|axis| analysis.gains(axis))
        .unwrap_or_default();
    let (Some(axis), false) = (axis, gains.is_empty()) else {
        return Err("it needs fused operators under d = 4 and other d, over an axis".to_owned());
    };
    let groups = analysis.groups();
    let panels = groups.iter().map(|group| {
        let here: Vec<_> = gains.iter().filter(|gain| gain.group == *group).collect();
        let best = here.iter().map(|gain| (gain.at as f64, gain.best));
        let predicted = here
            .iter()
            .filter_map(|gain| Some((gain.at as f64, gain.predicted?)));
        let extended = here
            .iter()
            .filter_map(|gain| Some((gain.at as f64, gain.extended?)));
        // Under the others, whose markers then stay visible where lines coincide.
        let mut best = Series::new("best d", Look::nth(0), best.collect());
        best.markers = false;
        Panel {
            title: group.title(),
            series: vec![
                best,
                Series::new("d* of the paper's form", Look::nth(1), predicted.collect()),
                Series::new("d of the extended form", Look::nth(2), extended.collect()),
            ],
            marks: Vec::new(),
        }
    });
    let (words, title) = axis_words(&axis);
    let lines = Lines {
        caption: caption(
            analysis,
            "Speed-up of choosing d over a fixed d = 4",
            format!(
                "Geometric mean of T(4)/T(d) over all cases with the same {words}; d = 1 is \
                 sequential; {}",
                machines(analysis)
            ),
        ),
        x: Axis::log2(&title, Quantity::Number),
        y: Axis::linear("speed-up over d = 4", Quantity::Factor).spanning(&[1.0]),
        panels: panels.collect(),
        columns: groups.len().min(2),
        own_y: false,
        rules: vec![(1.0, "d = 4".to_owned())],
    };
    Ok(one("d-star", lines.draw()))
}
