//! `summary.json`: the figures by name for programs; documented in `docs/output.md`.

use serde_json::{Map, Value, json};

use crate::experiment::Quantity;
use crate::experiment::analysis::Analysis;
use crate::experiment::published::Beside;
use crate::report::figures::Drawn;

/// The summary.
pub fn summary(analysis: &Analysis, drawn: &Drawn) -> Value {
    let figures: Map<String, Value> = analysis
        .named
        .iter()
        .map(|(name, value)| (name.clone(), quantity(*value)))
        .collect();
    let claims: Vec<Value> = analysis
        .claims
        .iter()
        .map(|claim| {
            json!({
                "name": claim.name,
                "claim": claim.claim,
                "rule": claim.rule,
                "verdict": claim.verdict.name(),
                "numbers": claim.numbers,
            })
        })
        .collect();
    let published = analysis
        .published
        .iter()
        .flat_map(|published| &published.figures);
    let published: Vec<Value> = published
        .map(|printed| {
            let ours = match &printed.beside {
                Beside::Ours(name) => json!(name),
                Beside::None(_) => Value::Null,
            };
            json!({
                "name": printed.name,
                "value": quantity(printed.value),
                "up_to": printed.most,
                "ours": ours,
                "source": printed.source,
            })
        })
        .collect();
    let fitted = analysis.train.iter().filter(|train| **train).count();
    let pictures: Vec<String> = drawn
        .pictures
        .iter()
        .map(|picture| format!("{}.svg", picture.stem))
        .collect();
    let left_out: Map<String, Value> = drawn
        .left_out
        .iter()
        .map(|(name, reason)| ((*name).to_owned(), json!(reason)))
        .collect();
    json!({
        "schema": "duet-summary-1",
        "experiment": analysis.name,
        "against": "simulator",
        "cases": analysis.cases.len(),
        "judged_cases": analysis.main.len(),
        "fitted_cases": fitted,
        "seed": analysis.options.seed,
        "unsimulated_choices": analysis.unsimulated.len(),
        "figures": figures,
        "claims": claims,
        "published": published,
        "plots": pictures,
        "plots_left_out": left_out,
    })
}

/// `{ "unit": "s", "value": 0.00096 }`; a count has `of`, a range `to`.
fn quantity(quantity: Quantity) -> Value {
    let unit = quantity.unit();
    match quantity {
        Quantity::Count(n, of) => json!({ "unit": unit, "value": n, "of": of }),
        Quantity::Range(low, high) => json!({ "unit": unit, "value": low, "to": high }),
        other => json!({ "unit": unit, "value": other.number() }),
    }
}
