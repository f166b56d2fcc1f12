//! Tables about d.

use super::tables::Table;
use crate::experiment::analysis::decomposition::{FIXED, Penalty};
use crate::experiment::analysis::{Analysis, Group};
use crate::experiment::percent;

pub(super) fn penalties(analysis: &Analysis) -> String {
    let Some(all) = analysis.penalty(None) else {
        return String::new();
    };
    let mut table = Table::new(&[
        "workloads",
        "d = 4 best>",
        "d = 4 costs, mean>",
        "most>",
        "wrong d costs, mean>",
        "most>",
        "worst d, mean>",
        "d* best>",
        "extended d best>",
    ]);
    for group in analysis.groups() {
        if let Some(penalty) = analysis.penalty(Some(&group)) {
            table.row(row(&group.title(), &penalty));
        }
    }
    table.row(row("all", &all));
    let best: Vec<String> = all
        .best
        .iter()
        .map(|(d, count)| format!("d = {d} in {count}"))
        .collect();
    let worst = &analysis.workloads[all.wrong_most_at];
    format!(
        "## What a wrong d costs, in the simulator\n\nT(w, d) is the simulated time of workload w \
         in d pieces; d = 1 is sequential. With d° the fastest of\nall simulated d, penalty(w, d) \
         = T(w, d)/T(w, d°) − 1. \"Wrong d, mean\" averages it over all workloads and\nall their \
         d ≠ d°, \"worst d, mean\" the largest of each workload over workloads.\n\n{}The fastest: \
         {}. Among d ≥ 2 alone, d = {FIXED} is the fastest in {} and a wrong d costs {} on\n\
         average, {} at most. The largest penalty of all: {}.\n\n",
        table.draw(),
        best.join(", "),
        all.fixed_optimal_divided,
        percent(all.divided_mean),
        percent(all.divided_most),
        analysis.cases[worst.case].title()
    )
}

fn row(title: &str, penalty: &Penalty) -> [String; 9] {
    let of = |count: usize| {
        let share = count as f64 / penalty.workloads as f64;
        format!("{count} ({:.0} %)", 100.0 * share)
    };
    [
        format!("{title}: {}", penalty.workloads),
        of(penalty.fixed_optimal),
        percent(penalty.fixed_mean),
        percent(penalty.fixed_most),
        percent(penalty.wrong_mean),
        percent(penalty.wrong_most),
        percent(penalty.worst_mean),
        of(penalty.predicted_optimal),
        of(penalty.extended_optimal),
    ]
}

pub(super) fn gains(analysis: &Analysis) -> String {
    let Some(axis) = analysis.axes().into_iter().next() else {
        return String::new();
    };
    let gains = analysis.gains(&axis);
    let groups: Vec<Group> = analysis.groups();
    let mut values: Vec<u64> = gains.iter().map(|gain| gain.at).collect();
    values.sort_unstable();
    values.dedup();
    if values.is_empty() {
        return String::new();
    }
    let mut columns = vec![axis.to_string()];
    columns.extend(groups.iter().map(|group| format!("{}>", group.title())));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new(&columns);
    for value in values {
        let cell = |group: &Group| {
            let gain = gains.iter().find(|g| g.group == *group && g.at == value);
            gain.map_or_else(String::new, |gain| {
                let show = |x: Option<f64>| x.map_or_else(String::new, |x| format!("{x:.3}"));
                let (paper, extended) = (show(gain.predicted), show(gain.extended));
                format!("{paper} / {extended} / {:.3}", gain.best)
            })
        };
        let cells = groups.iter().map(cell);
        table.row([value.to_string()].into_iter().chain(cells));
    }
    format!(
        "## What a predicted d gains over d = {FIXED}, in the simulator\n\nGeometric means of \
         T({FIXED})/T(d) over the cases of equal {axis}: with the d that the paper's form with \
         overhead\npredicts / with the extended form's / with the fastest.\n\n{}",
        table.draw()
    )
}
