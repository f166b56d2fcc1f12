//! Bandwidth of bare collectives against message size.

use super::{Figure, Picture, caption, one};
use crate::experiment::analysis::{Analysis, Group, operator_title};
use crate::report::plot::{Axis, Lines, Panel, Quantity, Series};

pub(super) const FIGURE: Figure = Figure {
    name: "bandwidth",
    about: "algorithm bandwidth of bare collectives against message size, per strategy",
    draw,
};

fn draw(analysis: &Analysis) -> Result<Vec<Picture>, String> {
    let mut groups: Vec<&Group> = analysis.curves.iter().map(|curve| &curve.group).collect();
    groups.sort();
    groups.dedup();
    let drawable = analysis.curves.iter().any(|curve| curve.points.len() > 1);
    if !drawable {
        return Err(
            "it needs a bare collective at two sizes or more on a machine as its file says"
                .to_owned(),
        );
    }
    let panel = |group: &&Group| {
        let curves = analysis
            .curves
            .iter()
            .filter(|curve| curve.group == **group);
        Panel {
            title: format!(
                "{}, {} GPUs ({})",
                operator_title(group.kind),
                group.tp,
                group.topology
            ),
            series: curves
                .map(|c| Series::of(&c.strategy, c.points.clone()))
                .collect(),
            marks: Vec::new(),
        }
    };
    let lines = Lines {
        caption: caption(
            analysis,
            "Bandwidth against message size",
            "Bytes of the whole message over time (nccl-tests' algbw)",
        ),
        x: Axis::log("message size", Quantity::Bytes),
        y: Axis::from_zero("bandwidth", Quantity::Rate),
        panels: groups.iter().map(panel).collect(),
        columns: groups.len().min(2),
        own_y: false,
        rules: Vec::new(),
    };
    Ok(one("bandwidth", lines.draw()))
}
