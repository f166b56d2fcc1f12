//! What `duet fit` prints: overheads, how sure they are, and what they buy.

#[cfg(test)]
mod tests;

use serde::Serialize;

use super::grid::{Grid, Look, Paint, clean, paint, wrap};
use super::table::percent;
use super::{csv, json};
use crate::calibrate::fit::Errors;
use crate::calibrate::groups::{Group, Options};
use crate::calibrate::points::Passed;

/// All groups of one file.
#[derive(Copy, Clone, Debug)]
pub struct FitReport<'a> {
    /// The file of times.
    pub file: &'a str,
    /// Its rows with a time.
    pub rows: usize,
    /// Its rows without one.
    pub skipped: usize,
    /// Terms of the closed forms beneath the overhead.
    pub terms: &'a str,
    pub options: &'a Options,
    pub groups: &'a [Group],
    pub passed: &'a [Passed],
}

#[derive(Serialize)]
struct ReportJson<'a> {
    schema: &'static str,
    file: &'a str,
    rows: usize,
    skipped: usize,
    terms: &'a str,
    seed: u64,
    resamples: u32,
    confidence: f64,
    holdout: f64,
    groups: Vec<GroupJson<'a>>,
    passed: Vec<PassedJson<'a>>,
}

#[derive(Serialize)]
struct GroupJson<'a> {
    topology: &'a str,
    operator: &'static str,
    tp: u32,
    strategy: &'a str,
    rows: usize,
    fitted_rows: Option<usize>,
    fitted_cases: Option<usize>,
    alpha_s: Option<f64>,
    alpha_interval_s: Option<[f64; 2]>,
    beta_s_per_byte: Option<f64>,
    beta_interval_s_per_byte: Option<[f64; 2]>,
    before: Option<ErrorsJson>,
    after: Option<ErrorsJson>,
    held_out: Option<HeldOutJson>,
    refused: Option<String>,
}

#[derive(Serialize)]
struct HeldOutJson {
    rows: usize,
    before: ErrorsJson,
    after: ErrorsJson,
}

#[derive(Serialize)]
struct ErrorsJson {
    mae_s: f64,
    mape: f64,
}

#[derive(Serialize)]
struct PassedJson<'a> {
    strategy: &'a str,
    rows: usize,
    reason: &'a str,
}

impl<'a> From<&'a Passed> for PassedJson<'a> {
    fn from(passed: &'a Passed) -> Self {
        Self {
            strategy: &passed.strategy,
            rows: passed.rows,
            reason: &passed.reason,
        }
    }
}

impl From<Errors> for ErrorsJson {
    fn from(errors: Errors) -> Self {
        Self {
            mae_s: errors.mae,
            mape: errors.mape,
        }
    }
}

impl<'a> From<&'a Group> for GroupJson<'a> {
    fn from(group: &'a Group) -> Self {
        let fit = group.fit.as_ref().ok();
        Self {
            topology: &group.key.topology,
            operator: group.key.operator.name(),
            tp: group.key.tp,
            strategy: &group.key.strategy,
            rows: group.rows,
            fitted_rows: fit.map(|fit| fit.rows),
            fitted_cases: fit.map(|fit| fit.cases),
            alpha_s: fit.map(|fit| fit.alpha),
            alpha_interval_s: fit.and_then(|fit| fit.alpha_interval),
            beta_s_per_byte: fit.map(|fit| fit.beta),
            beta_interval_s_per_byte: fit.and_then(|fit| fit.beta_interval),
            before: fit.map(|fit| fit.before.into()),
            after: fit.map(|fit| fit.after.into()),
            held_out: group.held_out.map(|held| HeldOutJson {
                rows: held.rows,
                before: held.before.into(),
                after: held.after.into(),
            }),
            refused: group.fit.as_ref().err().map(ToString::to_string),
        }
    }
}

/// `duet fit --format json`.
///
/// # Errors
/// As [`serde_json::to_string`].
pub fn json(report: &FitReport<'_>) -> Result<String, serde_json::Error> {
    json::pretty(&ReportJson {
        schema: "duet-fit-1",
        file: report.file,
        rows: report.rows,
        skipped: report.skipped,
        terms: report.terms,
        seed: report.options.bootstrap.seed,
        resamples: report.options.bootstrap.resamples,
        confidence: report.options.bootstrap.confidence,
        holdout: report.options.holdout,
        groups: report.groups.iter().map(GroupJson::from).collect(),
        passed: report.passed.iter().map(PassedJson::from).collect(),
    })
}

/// `duet fit --format csv`: a line per group.
pub fn csv(report: &FitReport<'_>) -> String {
    let header = [
        "topology",
        "operator",
        "tp",
        "strategy",
        "rows",
        "fitted_rows",
        "fitted_cases",
        "alpha_s",
        "alpha_low_s",
        "alpha_high_s",
        "beta_s_per_byte",
        "beta_low_s_per_byte",
        "beta_high_s_per_byte",
        "mae_before_s",
        "mae_after_s",
        "mape_before",
        "mape_after",
        "held_out_rows",
        "held_out_mae_before_s",
        "held_out_mae_after_s",
        "held_out_mape_before",
        "held_out_mape_after",
        "refused",
    ];
    let count = |count: Option<usize>| count.map_or(String::new(), |count| count.to_string());
    let end = |interval: Option<[f64; 2]>, end: usize| csv::number(interval.map(|ends| ends[end]));
    let rows = report.groups.iter().map(|group| {
        let fit = group.fit.as_ref().ok();
        let (alpha, beta) = (
            fit.and_then(|fit| fit.alpha_interval),
            fit.and_then(|fit| fit.beta_interval),
        );
        let errors = |pair: Option<(Errors, Errors)>| {
            let values = [
                pair.map(|(before, _)| before.mae),
                pair.map(|(_, after)| after.mae),
                pair.map(|(before, _)| before.mape),
                pair.map(|(_, after)| after.mape),
            ];
            values.map(csv::number)
        };
        let [mae_before, mae_after, mape_before, mape_after] =
            errors(fit.map(|fit| (fit.before, fit.after)));
        let held = group.held_out;
        let [held_a, held_b, held_c, held_d] = errors(held.map(|held| (held.before, held.after)));
        [
            group.key.topology.clone(),
            group.key.operator.to_string(),
            group.key.tp.to_string(),
            group.key.strategy.clone(),
            group.rows.to_string(),
            count(fit.map(|fit| fit.rows)),
            count(fit.map(|fit| fit.cases)),
            csv::number(fit.map(|fit| fit.alpha)),
            end(alpha, 0),
            end(alpha, 1),
            csv::number(fit.map(|fit| fit.beta)),
            end(beta, 0),
            end(beta, 1),
            mae_before,
            mae_after,
            mape_before,
            mape_after,
            count(held.map(|held| held.rows)),
            held_a,
            held_b,
            held_c,
            held_d,
            group
                .fit
                .as_ref()
                .err()
                .map_or(String::new(), ToString::to_string),
        ]
    });
    csv::write(header, rows)
}

/// `duet fit` for people.
pub fn table(report: &FitReport<'_>, look: &Look) -> String {
    let (fitted, refused): (Vec<&Group>, Vec<&Group>) =
        report.groups.iter().partition(|group| group.fit.is_ok());
    let mut out = wrap(&title(report), 0, 2, look.width);
    out.push('\n');
    let sure = percent(report.options.bootstrap.confidence);
    let mut grid = Grid::default()
        .left("strategy", 0)
        .right("rows", 4)
        .right("alpha [us]", 0)
        .left(&sure, 2)
        .right("beta [us/MB]", 0)
        .left(&sure, 2)
        .left("MAE [us]", 3);
    // Errors on cases that the fit has not seen matter more than those on cases that it has.
    let judged = report.options.holdout > 0.0;
    grid = match judged {
        true => grid.left("MAPE [%]", 3).left("held out [%]", 0),
        false => grid.left("MAPE [%]", 0),
    };
    let columns = if judged { 9 } else { 8 };
    let mut last = String::new();
    for group in fitted {
        let Ok(fit) = &group.fit else { continue };
        let place = place(group);
        if place != last {
            let mut cells = vec![paint(&place, Paint::Bold)];
            cells.resize(columns, String::new());
            grid.row(cells);
            last = place;
        }
        let mut cells = vec![
            format!("  {}", clean(&group.key.strategy)),
            fit.rows.to_string(),
            digits(fit.alpha * 1e6, 4),
            interval(fit.alpha_interval, 1e6),
            digits(fit.beta * 1e12, 4),
            interval(fit.beta_interval, 1e12),
            change(fit.before.mae, fit.after.mae, 1e6),
            change(fit.before.mape, fit.after.mape, 100.0),
        ];
        if judged {
            let held = group.held_out;
            cells.push(held.map_or_else(String::new, |held| {
                change(held.before.mape, held.after.mape, 100.0)
            }));
        }
        grid.row(cells);
    }
    out.push_str(&grid.draw(look));
    out.push('\n');
    for group in refused {
        let Err(reason) = &group.fit else { continue };
        let text = format!(
            "{} {}, {}: {reason}",
            paint("not fitted:", Paint::Bad),
            clean(&group.key.strategy),
            place(group),
        );
        out.push_str(&wrap(&text, 0, 2, look.width));
    }
    for passed in report.passed {
        let s = if passed.rows == 1 { "" } else { "s" };
        let text = format!(
            "passed over: {} row{s} of {}: {}",
            passed.rows,
            clean(&passed.strategy),
            clean(&passed.reason)
        );
        out.push_str(&wrap(&text, 0, 2, look.width));
    }
    out
}

fn title(report: &FitReport<'_>) -> String {
    let bootstrap = &report.options.bootstrap;
    let mut title = format!(
        "overhead of a step = alpha + beta x message, from {} rows of {} · {} intervals from {} resamples · terms beneath: {}",
        report.rows,
        clean(report.file),
        percent(bootstrap.confidence),
        bootstrap.resamples,
        report.terms,
    );
    if report.options.holdout > 0.0 {
        title += &format!(
            " · about {} of the cases held out",
            percent(report.options.holdout)
        );
    }
    title
}

/// What is computed where.
fn place(group: &Group) -> String {
    let key = &group.key;
    format!("{} tp={} on {}", key.operator, key.tp, clean(&key.topology))
}

/// The ends of an interval in a unit.
fn interval(ends: Option<[f64; 2]>, unit: f64) -> String {
    ends.map_or_else(String::new, |ends| {
        let [low, high] = ends.map(|end| digits(end * unit, 3));
        paint(&format!("{low} – {high}"), Paint::Dim)
    })
}

/// An error before and after the fit.
fn change(before: f64, after: f64, unit: f64) -> String {
    let after_text = format!("→ {}", digits(after * unit, 3));
    let paint = |text: &str| {
        paint(
            text,
            if after < before {
                Paint::Good
            } else {
                Paint::Dim
            },
        )
    };
    format!("{} {}", digits(before * unit, 3), paint(&after_text))
}

/// So many significant digits, none beyond a thousandth; two of what is smaller than that.
fn digits(value: f64, significant: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = match value.abs().log10().floor() as i32 {
        magnitude if magnitude >= -3 => (significant - 1 - magnitude).clamp(0, 3),
        magnitude if magnitude >= -6 => 1 - magnitude,
        _ => return format!("{value:.1e}"),
    };
    format!("{value:.*}", decimals as usize)
}
