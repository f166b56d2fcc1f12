//! Choices, correlations, intervals, closed forms and repeatability.

use super::Section;
use crate::experiment::percent;
use crate::report::table::time;
use crate::validate::analysis::Validation;

/// Coefficients from here on are marked.
const NOTABLE: f64 = 0.4;

pub(super) fn choices(found: &Validation) -> Section {
    let mut section = Section::new(
        "choices",
        "Choices",
        "A group is an operator with its shape, ranks, path and launch mode. Regret is T(chosen)/T(fastest) − 1, both measured. A choice is right where the regret is at most 1 %, or where the 95 % bootstrap interval of the paired difference over rounds includes zero; strictly right where nothing is faster.",
        &[
            "chosen by",
            "groups>",
            "right>",
            "top-1>",
            "strict>",
            "mean regret>",
            "largest>",
        ],
    );
    for summary in &found.choices {
        let share = summary.right as f64 / summary.groups.max(1) as f64;
        section.row([
            summary.by.clone(),
            summary.groups.to_string(),
            summary.right.to_string(),
            percent(share),
            summary.strict.to_string(),
            percent(summary.mean_regret),
            percent(summary.most_regret),
        ]);
    }
    for choice in found
        .choices
        .first()
        .iter()
        .flat_map(|summary| &summary.worst)
    {
        section.note(format!(
            "{}: chose {}, the fastest is {}, regret {}{}",
            choice.group,
            choice.chosen,
            choice.best,
            percent(choice.decision.regret()),
            if choice.right() {
                ", counted as right"
            } else {
                ""
            }
        ));
    }
    section
}

pub(super) fn residuals(found: &Validation) -> Section {
    let mut section = Section::new(
        "residuals",
        "What the errors go with",
        "Spearman's rank correlation over the headline's cases, of the relative error (p − t)/t and of its size. A coefficient of 0.4 or more (*) names a mechanism to look at.",
        &["with", "cases>", "error>", "size of it>"],
    );
    let marked = |value: f64| match value.abs() >= NOTABLE {
        true => format!("{value:+.2} *"),
        false => format!("{value:+.2}  "),
    };
    for correlation in &found.residuals {
        section.row([
            correlation.with.to_owned(),
            correlation.cases.to_string(),
            marked(correlation.signed),
            marked(correlation.size),
        ]);
    }
    section
}

pub(super) fn coverage(found: &Validation) -> Section {
    let mut section = Section::new(
        "intervals",
        "Prediction intervals",
        "How many measured times lie in the predicted interval, which should be 95 of 100. `half width` is the mean of half an interval over the predicted time, `to widen` the factor that would make 95 of 100 lie inside. Intervals hold how sure the calibration's numbers are and how machines of a kind differ, not what the mechanism leaves out.",
        &[
            "cases",
            "n>",
            "inside>",
            "coverage>",
            "half width>",
            "to widen>",
        ],
    );
    for coverage in &found.coverage {
        section.row([
            coverage.name.clone(),
            coverage.cases.to_string(),
            coverage.inside.to_string(),
            percent(coverage.inside as f64 / coverage.cases.max(1) as f64),
            percent(coverage.half_width),
            format!("{:.2}x", coverage.widen),
        ]);
    }
    section
}

pub(super) fn forms(found: &Validation) -> Section {
    let forms = &found.forms;
    let definition = format!(
        "Overheads (steps)·(α + β·message) fitted for each operator, path, launch mode and strategy on {} groups, errors on the {} others; rows with an overlap step only. `compass` cuts the unsplit times into shares, `extended` knows the pieces' own GEMM times, stages, contention and launches.",
        forms.fitted_groups, forms.judged_groups
    );
    let mut section = Section::new(
        "closed-forms",
        "Closed forms",
        definition,
        &[
            "form", "overhead", "of", "rows>", "MAE>", "95 %", "MAPE>", "wMAPE>",
        ],
    );
    for errors in &forms.errors {
        let interval = errors.mae_interval;
        section.row([
            errors.form.to_owned(),
            if errors.overhead { "fitted" } else { "none" }.to_owned(),
            errors.family.name().to_owned(),
            errors.rows.to_string(),
            time(errors.mae),
            interval.map_or_else(String::new, |[low, high]| {
                format!("{} to {}", time(low), time(high))
            }),
            percent(errors.mape),
            percent(errors.wmape),
        ]);
    }
    let unfitted = forms.fitted.iter().filter_map(|fitted| {
        let reason = fitted.fit.as_ref().err()?;
        Some(format!(
            "not fitted, {} of {}: {reason}",
            fitted.form, fitted.name
        ))
    });
    let mut unfitted: Vec<String> = unfitted.collect();
    let more = unfitted.len().saturating_sub(3);
    unfitted.truncate(3);
    unfitted.into_iter().for_each(|note| section.note(note));
    if more > 0 {
        section.note(format!("and {more} more not fitted"));
    }
    section
}

pub(super) fn repeat(found: &Validation) -> Section {
    let mut section = Section::new(
        "repeatability",
        "Repeatability of the measurement",
        "Within the rounds of one table (p90 − p10)/median; between two tables |b/a − 1| of the medians of the same case, and Σ|b − a|/Σa. No model can be judged finer than that.",
        &[
            "between",
            "cases>",
            "median>",
            "mean>",
            "weighted>",
            "largest>",
            "where",
        ],
    );
    for repeat in &found.repeat {
        section.row([
            repeat.name.clone(),
            repeat.cases.to_string(),
            percent(repeat.median),
            percent(repeat.mean),
            repeat.weighted.map_or_else(String::new, percent),
            percent(repeat.worst),
            repeat.worst_at.clone(),
        ]);
    }
    section
}
