//! Tables of bandwidths and of changed machines.

use super::tables::Table;
use crate::experiment::analysis::bandwidth::Curve;
use crate::experiment::analysis::{Analysis, Group, operator_title};
use crate::experiment::milliseconds;
use crate::units::Bytes;

/// Sizes shown of each curve.
const SHOWN: usize = 5;

pub(super) fn bandwidth(analysis: &Analysis) -> String {
    let mut groups: Vec<&Group> = analysis.curves.iter().map(|curve| &curve.group).collect();
    groups.sort();
    groups.dedup();
    if groups.is_empty() {
        return String::new();
    }
    let mut text = "## Bandwidth of collectives, in the simulator\n\nSize over time (algbw) \
                    \\[GB/s\\].\n\n"
        .to_owned();
    for group in groups {
        let curves: Vec<&Curve> = analysis
            .curves
            .iter()
            .filter(|c| c.group == *group)
            .collect();
        let mut columns = vec![format!(
            "{} on {}",
            operator_title(group.kind),
            group.topology
        )];
        columns.extend(curves.iter().map(|curve| format!("{}>", curve.strategy)));
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        let mut table = Table::new(&columns);
        let sizes: Vec<f64> = curves[0].points.iter().map(|(bytes, _)| *bytes).collect();
        let shown = SHOWN.min(sizes.len());
        let mut before = None;
        for i in 0..shown {
            let at = i * (sizes.len() - 1) / (shown - 1).max(1);
            if before.replace(at) == Some(at) {
                continue;
            }
            let cell = |curve: &&Curve| {
                let point = curve.points.iter().find(|(bytes, _)| *bytes == sizes[at]);
                point.map_or_else(String::new, |(_, rate)| format!("{:.2}", rate / 1e9))
            };
            let cells = curves.iter().map(cell);
            let size = Bytes::new(sizes[at] as u64).to_string();
            table.row([size].into_iter().chain(cells));
        }
        text += &table.draw();
    }
    text
}

pub(super) fn sweeps(analysis: &Analysis) -> String {
    if analysis.sweeps.is_empty() {
        return String::new();
    }
    let mut text = "## Changed machines, in the simulator\n\nGeometric means over the cases of a \
                    grid; the best d is a geometric mean too (d = 1: sequential).\n\n"
        .to_owned();
    for sweep in &analysis.sweeps {
        let mut table = Table::new(&["value", "fastest>", "over sequential>", "best d>", "won by"]);
        for step in &sweep.steps {
            let winners = step.winners.iter();
            let winners: Vec<String> = winners
                .map(|(family, n)| format!("{} {n}", family.name()))
                .collect();
            let show = |x: Option<f64>, unit: &str| {
                x.map_or_else(String::new, |x| format!("{x:.2}{unit}"))
            };
            table.row([
                step.value.clone(),
                milliseconds(step.best),
                show(step.speedup, "x"),
                show(step.pieces, ""),
                winners.join(", "),
            ]);
        }
        text += &format!(
            "`{}`, {} on {} (grid {}, {} cases each)\n\n{}",
            sweep.path,
            sweep.group.title(),
            sweep.group.topology,
            sweep.grid,
            sweep.steps.first().map_or(0, |step| step.cases),
            table.draw()
        );
    }
    text
}
