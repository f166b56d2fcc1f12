//! The same for programs; `docs/output.md` documents it.

use serde_json::{Value, json};

use crate::validate::analysis::Validation;
use crate::validate::analysis::choices::Summary;
use crate::validate::analysis::errors::Errors;
use crate::validate::analysis::speed::Gain;

/// Everything found; times in seconds, shares of one.
pub fn json(found: &Validation) -> Value {
    let facts = &found.facts;
    let reasons = |rows: &[crate::validate::analysis::Excluded]| -> Vec<Value> {
        let rows = rows.iter();
        rows.map(|row| json!({ "case": row.case, "reason": row.reason }))
            .collect()
    };
    json!({
        "schema": "duet-validation-1",
        "experiment": found.experiment,
        "machines": facts.machines,
        "dates": facts.dates,
        "rows": facts.rows,
        "groups": facts.groups,
        "cases": facts.cases,
        "virtual_groups": facts.virtual_groups,
        "virtual_cases": facts.virtual_cases,
        "rounds": facts.rounds,
        "topology": found.topology,
        "model": found.model,
        "absolute": list(&found.absolute, errors),
        "relative": list(&found.relative, errors),
        "datasheet": list(&found.spec, errors),
        "choices": list(&found.choices, choices),
        "speedups": list(&found.speed.gains, gain),
        "speedups_by_strategy": list(&found.speed.strategies, gain),
        "hybrid": list(&found.speed.hybrids, |hybrid| json!({
            "group": hybrid.group,
            "hybrid_s": hybrid.hybrid,
            "p2p_s": hybrid.p2p,
            "host_s": hybrid.host,
            "measured": hybrid.measured,
            "predicted": hybrid.predicted,
        })),
        "peers": list(&found.peers, |peer| json!({
            "operator": peer.operator.name(),
            "over": peer.over,
            "m_from_1024": peer.many,
            "shapes": peer.shapes,
            "faster": peer.faster,
            "speedup": peer.speedup,
        })),
        "overlap": list(&found.overlap, |overlap| json!({
            "strategy": overlap.strategy,
            "cases": overlap.cases,
            "ect_s": overlap.ect,
            "claimed": overlap.claimed,
            "efficiency": overlap.efficiency,
            "predicted_efficiency": overlap.predicted,
            "mean_difference": overlap.error,
            "over_unsplit_gemm": overlap.ratio,
            "predicted_over_unsplit_gemm": overlap.predicted_ratio,
        })),
        "kernel_overlap": list(&found.kernels.strategies, |kernel| json!({
            "strategy": kernel.strategy,
            "cases": kernel.cases,
            "asked": kernel.asked,
            "claimed": kernel.claimed,
            "efficiency": kernel.efficiency,
            "predicted_efficiency": kernel.predicted,
            "mean_difference": kernel.error,
        })),
        "kernel_shapes": list(&found.kernels.fastest, |one| json!({
            "group": one.group,
            "library_gemm_s": one.library,
            "own_gemm_s": one.own,
            "sequential_s": one.sequential,
            "fastest": one.strategy,
            "fastest_s": one.seconds,
            "kernel_efficiency": one.kernel.map(|kernel| kernel.median),
            "kernel_efficiency_interval": one.kernel.map(|kernel| kernel.interval),
            "predicted_kernel_efficiency": one.predicted,
            "ect_efficiency": one.ect.map(|ect| ect.median),
            "over_best_unsplit_gemm": one.ratio,
        })),
        "residuals": list(&found.residuals, |found| json!({
            "with": found.with,
            "cases": found.cases,
            "error": found.signed,
            "size": found.size,
        })),
        "intervals": list(&found.coverage, |coverage| json!({
            "name": coverage.name,
            "cases": coverage.cases,
            "inside": coverage.inside,
            "half_width": coverage.half_width,
            "widen": coverage.widen,
        })),
        "closed_forms": {
            "fitted_groups": found.forms.fitted_groups,
            "judged_groups": found.forms.judged_groups,
            "errors": list(&found.forms.errors, |errors| json!({
                "form": errors.form,
                "overhead": errors.overhead,
                "family": errors.family.name(),
                "groups": errors.groups,
                "rows": errors.rows,
                "mae_s": errors.mae,
                "mae_interval_s": errors.mae_interval,
                "mape": errors.mape,
                "wmape": errors.wmape,
            })),
        },
        "repeatability": list(&found.repeat, |repeat| json!({
            "name": repeat.name,
            "cases": repeat.cases,
            "median": repeat.median,
            "mean": repeat.mean,
            "worst": repeat.worst,
            "weighted": repeat.weighted,
            "worst_at": repeat.worst_at,
        })),
        "terms": {
            "cases": found.terms.cases,
            "agree": found.terms.agree,
            "off_path": found.terms.rest,
            "off_path_size": found.terms.rest_size,
            "rows": list(&found.terms.rows, |row| json!({
                "kind": row.kind,
                "part": row.part.name(),
                "mean": row.mean,
                "size": row.size,
                "first": row.first,
            })),
        },
        "today": found.today.as_ref().map(|today| json!({
            "topology": today.topology,
            "model": today.model,
            "absolute": list(&today.errors, errors),
            "choices": today.choices.as_ref().map(choices),
        })),
        "excluded": reasons(&found.excluded),
        "not_predicted": reasons(&found.unpredicted),
    })
}

fn list<T>(all: &[T], one: impl Fn(&T) -> Value) -> Vec<Value> {
    all.iter().map(one).collect()
}

fn errors(errors: &Errors) -> Value {
    json!({
        "of": errors.dimension.name(),
        "name": errors.name,
        "groups": errors.groups,
        "cases": errors.cases,
        "mae": errors.mae,
        "mape": errors.mape,
        "mape_interval": errors.mape_interval,
        "wmape": errors.wmape,
        "bias": errors.bias,
        "worst": errors.worst,
        "worst_at": errors.worst_at,
    })
}

fn choices(summary: &Summary) -> Value {
    json!({
        "by": summary.by,
        "groups": summary.groups,
        "right": summary.right,
        "strict": summary.strict,
        "mean_regret": summary.mean_regret,
        "largest_regret": summary.most_regret,
        "worst": list(&summary.worst, |choice| json!({
            "group": choice.group,
            "chosen": choice.chosen,
            "fastest": choice.best,
            "regret": choice.decision.regret(),
            "right": choice.right(),
        })),
    })
}

fn gain(gain: &Gain) -> Value {
    json!({
        "operator": gain.operator.name(),
        "of": gain.of,
        "over": gain.over,
        "groups": gain.groups,
        "faster": gain.faster,
        "measured": gain.measured,
        "predicted": gain.predicted,
    })
}
