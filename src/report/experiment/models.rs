//! Tables about the closed forms and the choices.

use super::tables::Table;
use crate::experiment::analysis::models::Errors;
use crate::experiment::analysis::selection::Choices;
use crate::experiment::analysis::{Analysis, Family};
use crate::experiment::{milliseconds, percent};

pub(super) fn errors(analysis: &Analysis) -> String {
    let mut table = Table::new(&[
        "closed form",
        "strategies",
        "rows>",
        "MAE>",
        "95 %>",
        "MAPE>",
        "95 %>",
        "worst>",
    ]);
    for errors in analysis.errors.iter().filter(|errors| !errors.train) {
        table.row(row(errors));
    }
    if table.is_empty() {
        return String::new();
    }
    format!(
        "## Closed forms against the simulator\n\nOn the cases that were not fitted on. MAE is \
         the mean absolute error, MAPE the mean absolute relative\nerror, 95 % a bootstrap \
         interval over cases, worst the largest relative error. Fusions with other than \
         their default parameters have a row of their own.\nThe extended form has its constants from where the simulator has \
         them, the GPU profile and the topology: a\nsmall error there says that the closed form \
         repeats the simulator, not that either is right.\nThe compass form gives a step of a \
         fusion Tm/(n − 1); compass-paper is the same with Tm/n, as the paper prints it.\n\n{}",
        table.draw()
    )
}

fn row(errors: &Errors) -> [String; 8] {
    let interval = |interval: Option<[f64; 2]>, show: fn(f64) -> String| {
        interval.map_or_else(String::new, |[low, high]| {
            format!("{} to {}", show(low), show(high))
        })
    };
    [
        errors.model.to_owned(),
        match errors.usual {
            true => errors.family.name().to_owned(),
            false => format!("{}, other parameters", errors.family.name()),
        },
        errors.rows.to_string(),
        milliseconds(errors.mae),
        interval(errors.mae_interval, milliseconds),
        percent(errors.mape),
        interval(errors.mape_interval, percent),
        percent(errors.worst),
    ]
}

pub(super) fn overheads(analysis: &Analysis) -> String {
    let mut table = Table::new(&[
        "closed form",
        "machine",
        "operator",
        "strategy",
        "alpha>",
        "95 %>",
        "beta>",
        "95 %>",
    ]);
    let micro = |seconds: f64| format!("{:.1} us", seconds * 1e6);
    let per_mb = |beta: f64| format!("{:.2} us/MB", beta * 1e12);
    let interval = |of: Option<[f64; 2]>, show: &dyn Fn(f64) -> String| {
        of.map_or_else(String::new, |[low, high]| {
            format!("{} to {}", show(low), show(high))
        })
    };
    let mut unfitted = String::new();
    for model in &analysis.models {
        for (key, overhead) in model.parameters.iter() {
            table.row([
                model.name.to_owned(),
                key.topology.clone(),
                key.operator.to_string(),
                key.strategy.clone(),
                micro(overhead.alpha),
                interval(overhead.alpha_interval, &micro),
                per_mb(overhead.beta),
                interval(overhead.beta_interval, &per_mb),
            ]);
        }
        for (key, error) in &model.unfitted {
            unfitted += &format!(
                "* {} of {}, {} on {}: {error}\n",
                model.name, key.strategy, key.operator, key.topology
            );
        }
    }
    if table.is_empty() && unfitted.is_empty() {
        return String::new();
    }
    if !unfitted.is_empty() {
        unfitted = format!("Left at zero, judged on the cases fitted on:\n\n{unfitted}\n");
    }
    format!(
        "## Fitted overheads\n\nPer step, alpha + beta · message; a step is one of d − 1 or of \
         n − 1.\n\n{}{unfitted}",
        table.draw()
    )
}

pub(super) fn selection(analysis: &Analysis) -> String {
    let mut table = Table::new(&[
        "cases",
        "right within 1 %>",
        "strictly fastest>",
        "family right>",
        "mean regret>",
        "95 %>",
        "largest regret>",
        "right of any setting>",
        "mean regret>",
        "largest>",
    ]);
    let scopes = [("not fitted on", true), ("all", false)];
    let found: Vec<(&str, Choices)> = scopes
        .into_iter()
        .filter_map(|(name, unseen)| Some((name, analysis.choices(unseen)?)))
        .collect();
    let Some((_, last)) = found.last() else {
        return String::new();
    };
    for (name, choices) in &found {
        let of = |count: usize| {
            let share = count as f64 / choices.cases as f64;
            format!("{count} ({})", percent(share))
        };
        let interval = choices
            .mean_interval
            .map_or_else(String::new, |[low, high]| {
                format!("{} to {}", percent(low), percent(high))
            });
        table.row([
            format!("{name}: {}", choices.cases),
            of(choices.right),
            of(choices.strict),
            of(choices.family),
            percent(choices.mean_regret),
            interval,
            percent(choices.most_regret),
            of(choices.any_right),
            percent(choices.any_mean),
            percent(choices.any_most),
        ]);
    }
    format!(
        "## Selection against the simulator\n\nThe selector chooses sequential, a \
         decomposition or a fusion, with its setting. Regret is\nT(chosen)/T(fastest of those) − 1; \
         \"family right\" asks for sequential, decomposition or fusion only. \"Any\nsetting\" judges \
         the same choices against everything simulated, also what the selector does not know.\n\n{}{}The largest regret of all: {}.\n\n{}",
        table.draw(),
        unsimulated(analysis),
        analysis.cases[last.most_at].title(),
        confusion(analysis)
    )
}

/// The choices that could not be judged.
fn unsimulated(analysis: &Analysis) -> String {
    let Some(first) = analysis.unsimulated.first() else {
        return String::new();
    };
    format!(
        "In {} further cases the choice is none of the strategies simulated, and is not judged: \
         the first is {} for\n{}.\n\n",
        analysis.unsimulated.len(),
        first.pick,
        analysis.cases[first.case].title()
    )
}

fn confusion(analysis: &Analysis) -> String {
    let matrix = analysis.confusion(true);
    let mut columns = vec!["fastest \\ chosen".to_owned()];
    columns.extend(matrix.classes.iter().map(|class| format!("{class}>")));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new(&columns);
    for (row, class) in matrix.classes.iter().enumerate() {
        let cells = matrix.counts[row]
            .iter()
            .zip(&matrix.level[row])
            .enumerate();
        let cells = cells.map(|(column, (count, level))| match (row == column, count) {
            (_, 0) => "·".to_owned(),
            (true, _) => count.to_string(),
            (false, _) => format!("{count} ({level} level)"),
        });
        table.row([(*class).to_owned()].into_iter().chain(cells));
    }
    format!(
        "Choices on unseen cases by strategy (parameters aside); \"level\" counts those within \
         1 % of the fastest. Of several that take as long, the one chosen counts as the fastest.\n\n{}",
        table.draw()
    )
}

/// Families in the order of tables.
pub(super) const FAMILIES: [Family; 2] = [Family::Decomposition, Family::Fusion];
