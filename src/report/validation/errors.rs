//! Tables of errors.

use super::Section;
use crate::experiment::percent;
use crate::report::table::time;
use crate::validate::analysis::Validation;
use crate::validate::analysis::errors::{Dimension, Errors};

const COLUMNS: &[&str] = &[
    "cases", "", "n>", "MAPE>", "95 %", "wMAPE>", "MAE>", "bias>", "worst>", "where",
];
const RATIOS: &[&str] = &[
    "cases", "", "n>", "MAPE>", "95 %", "bias>", "worst>", "where",
];

const FIGURES: &str = "MAPE is the mean of |p − t|/t over cases with its 95 % bootstrap interval over groups, wMAPE Σ|p − t|/Σt, MAE the mean of |p − t|, bias the mean of (p − t)/t, worst the largest |p − t|/t; t is the median over rounds.";

pub(super) fn absolute(found: &Validation) -> Section {
    let definition = format!(
        "Simulated against measured times, absolute: nothing measured of a case enters its prediction. A case is an operator with its shape, ranks, path, launch mode and strategy. Bare GEMMs, bare copies, the sequential reference and ranks that share GPUs are not in `all`; their rows are the last. {FIGURES}"
    );
    let mut section = Section::new("errors", "Errors of the simulator", definition, COLUMNS);
    for errors in &found.absolute {
        section.row(cells(errors));
    }
    section
}

pub(super) fn spec(found: &Validation) -> Section {
    let definition = format!(
        "The same cases simulated on the data sheet's machine, without any calibration. {FIGURES}"
    );
    let mut section = Section::new(
        "datasheet",
        "From the data sheet alone",
        definition,
        COLUMNS,
    );
    for errors in found.spec.iter().filter(|errors| main(errors)) {
        section.row(cells(errors));
    }
    section
}

pub(super) fn relative(found: &Validation) -> Section {
    let mut section = Section::new(
        "relative",
        "Relative errors of the simulator",
        "Of T/T(unsplit GEMM): predicted over predicted against measured over measured, the median of ratios within rounds. What the GEMM's clock does cancels. Figures as above.",
        RATIOS,
    );
    for errors in found.relative.iter().filter(|errors| main(errors)) {
        let mut cells = cells(errors);
        cells.drain(5..7);
        section.row(cells);
    }
    section
}

pub(super) fn today(found: &Validation) -> Section {
    let Some(today) = &found.today else {
        return Section::default();
    };
    let definition = format!(
        "The tables above judge predictions written before the measurement. The same by today's model of `{}`, content {}, which may have seen the measurement.",
        today.topology, today.model
    );
    let mut section = Section::new("today", "By today's model", definition, COLUMNS);
    for errors in today.errors.iter().filter(|errors| main(errors)) {
        section.row(cells(errors));
    }
    if let Some(choices) = &today.choices {
        section.note(format!(
            "Choices: {} of {} right, strictly {}; mean regret {}, largest {}.",
            choices.right,
            choices.groups,
            choices.strict,
            percent(choices.mean_regret),
            percent(choices.most_regret)
        ));
    }
    section
}

/// Whether a table that is not the first has the row.
fn main(errors: &Errors) -> bool {
    matches!(
        errors.dimension,
        Dimension::All | Dimension::Length | Dimension::Strategy | Dimension::Path
    )
}

fn cells(errors: &Errors) -> Vec<String> {
    let dimension = match errors.dimension {
        Dimension::All => String::new(),
        other => other.name().to_owned(),
    };
    let interval = errors.mape_interval;
    vec![
        dimension,
        errors.name.clone(),
        errors.cases.to_string(),
        percent(errors.mape),
        interval.map_or_else(String::new, |[low, high]| {
            format!("{:.2} to {:.2} %", 100.0 * low, 100.0 * high)
        }),
        percent(errors.wmape),
        time(errors.mae),
        format!("{:+.2} %", 100.0 * errors.bias),
        percent(errors.worst),
        errors.worst_at.clone(),
    ]
}
