//! What `duet gpu run` prints.

use serde_json::{Value, json};

use crate::gpu::campaign::{Prepared, mode_name, path_name};
use crate::gpu::compare::Verdict;
use crate::gpu::timing::{Columns, Summary, Timer};
use crate::report::grid::{Grid, Look, Paint, clean, paint};
use crate::timeline::Timeline;

/// One strategy with what was found about it.
pub struct Variant<'m> {
    pub columns: Columns,
    pub prepared: Prepared,
    /// The simulator's view.
    pub predicted: Option<Timeline>,
    pub verdict: Option<Verdict>,
    pub timer: Option<Timer<'m>>,
    pub times: Vec<f64>,
    pub skews: Vec<f64>,
    pub gated: bool,
    /// By round: over the same round's product.
    pub ratios: Vec<f64>,
}

/// Times of the references, by round.
#[derive(Default)]
pub struct References {
    pub gemm: Vec<f64>,
    pub copy: Vec<f64>,
    /// The unsplit products by Duet's own kernels, where these are used.
    pub own: Vec<f64>,
}

fn microseconds(seconds: f64) -> String {
    format!("{:.1} µs", seconds * 1e6)
}

/// For people.
pub fn table(look: &Look, variants: &[Variant<'_>], references: &References) -> String {
    let mut grid = Grid::default()
        .left("strategy", 0)
        .left("path", 2)
        .left("launch", 2)
        .right("error", 1)
        .right("bound", 3)
        .right("median", 0)
        .right("p10", 2)
        .right("p90", 2)
        .right("× GEMM", 0)
        .right("skew", 3);
    let predicted = variants.iter().any(|v| v.predicted.is_some());
    if predicted {
        grid = grid.right("predicted", 1).right("off", 1);
    }
    let dash = || "–".to_owned();
    for variant in variants {
        let times = Summary::of(&variant.times);
        let show =
            |f: fn(&Summary) -> f64| times.as_ref().map_or_else(dash, |s| microseconds(f(s)));
        let verdict = variant.verdict.as_ref();
        let case = &variant.columns.case;
        let mut cells = vec![
            paint(&clean(&variant.columns.variant), Paint::Bold),
            path_name(&case.path),
            mode_name(case.mode).to_owned(),
            verdict.map_or_else(dash, |v| format!("{:.1e}", v.relative)),
            verdict.map_or_else(dash, |v| format!("{:.1e}", v.bound)),
            show(|s| s.median),
            show(|s| s.p10),
            show(|s| s.p90),
            Summary::of(&variant.ratios).map_or_else(dash, |s| format!("{:.3}", s.median)),
            Summary::of(&variant.skews).map_or_else(dash, |s| microseconds(s.median)),
        ];
        if predicted {
            let time = variant.columns.predicted;
            let off = time.zip(times).map(|(time, s)| time / s.median - 1.0);
            cells.push(time.map_or_else(dash, microseconds));
            cells.push(off.map_or_else(dash, |off| format!("{:+.1} %", 100.0 * off)));
        }
        grid.row(cells);
    }
    let mut text = grid.draw(look);
    let parts = [
        ("unsplit GEMM", &references.gemm),
        ("unsplit GEMM by Duet", &references.own),
        ("plain copy", &references.copy),
    ];
    for (name, times) in parts {
        if let Some(s) = Summary::of(times) {
            text.push_str(&format!(
                "{name}: {} ({} to {})\n",
                microseconds(s.median),
                microseconds(s.p10),
                microseconds(s.p90)
            ));
        }
    }
    if variants.iter().any(|variant| !variant.gated) {
        text.push_str("note: some runs have too many steps for a gate, so their times include the host's submission\n");
    }
    if variants
        .iter()
        .any(|variant| !variant.prepared.plan.verified)
    {
        text.push_str("note: not verified\n");
    }
    text
}

fn summary(values: &[f64]) -> Value {
    Summary::of(values).map_or(
        Value::Null,
        |s| json!({ "median": s.median, "p10": s.p10, "p90": s.p90, "count": s.count }),
    )
}

/// For programs; `rounds` of `repeats` runs each.
pub fn value(
    (rounds, repeats): (u32, u32),
    variants: &[Variant<'_>],
    references: &References,
) -> Value {
    let results = variants.iter().map(|variant| {
        let verdict = variant.verdict.as_ref();
        let plan = &variant.prepared.plan;
        json!({
            "strategy": variant.columns.variant,
            "command": variant.columns.case.command(),
            "path": path_name(&variant.columns.case.path),
            "launch": mode_name(variant.columns.case.mode),
            "placement": variant.columns.case.placement,
            "tasks": variant.prepared.schedule.tasks.len(),
            "steps": plan.steps.len(),
            "streams": plan.streams.len(),
            "verified": plan.verified,
            "relative_error": verdict.map(|v| v.relative),
            "error_bound": verdict.map(|v| v.bound),
            "host_elements": verdict.map(|v| v.spots),
            "makespan_s": summary(&variant.times),
            "over_gemm": summary(&variant.ratios),
            "skew_s": summary(&variant.skews),
            "predicted_s": variant.columns.predicted,
            "gated": variant.gated,
        })
    });
    json!({
        "schema": "duet-gpu-run-1",
        "operator": variants.first().map(|v| v.columns.case.operator.to_string()),
        "repeats": repeats,
        "rounds": rounds,
        "reference_gemm_s": summary(&references.gemm),
        "reference_copy_s": summary(&references.copy),
        "reference_own_gemm_s": summary(&references.own),
        "results": results.collect::<Vec<_>>(),
    })
}

/// One line per strategy.
pub fn csv(variants: &[Variant<'_>]) -> String {
    let mut text =
        "strategy,median_s,p10_s,p90_s,over_gemm,predicted_s,relative_error,error_bound\n"
            .to_owned();
    for variant in variants {
        let cell = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let times = Summary::of(&variant.times);
        let verdict = variant.verdict.as_ref();
        text.push_str(&format!(
            "\"{}\",{},{},{},{},{},{},{}\n",
            variant.columns.variant,
            cell(times.map(|s| s.median)),
            cell(times.map(|s| s.p10)),
            cell(times.map(|s| s.p90)),
            cell(Summary::of(&variant.ratios).map(|s| s.median)),
            cell(variant.columns.predicted),
            cell(verdict.map(|v| v.relative)),
            cell(verdict.map(|v| v.bound)),
        ));
    }
    text
}
