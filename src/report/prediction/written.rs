//! Predictions for programs: JSON and CSV.

use serde::Serialize;

use super::{Predictions, Row};
use crate::report::csv;
use crate::report::json::{OperatorJson, pretty};

#[derive(Serialize)]
struct PredictionsJson<'a> {
    schema: &'static str,
    topology: &'a str,
    operator: OperatorJson,
    terms: &'a str,
    fitted_overheads: usize,
    chosen: &'a str,
    chosen_by: &'static str,
    runner_up: Option<&'a str>,
    margin: Option<f64>,
    results: Vec<RowJson<'a>>,
    skipped: Vec<SkippedJson<'a>>,
    expected_error: ErrorJson<'a>,
}

#[derive(Serialize)]
struct RowJson<'a> {
    strategy: &'a str,
    predicted_s: f64,
    speedup_vs_sequential: Option<f64>,
    steps: f64,
    message_bytes: f64,
    overhead_s: f64,
    ruled_by: Option<&'static str>,
    stages: Vec<StageJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decomposition: Option<DecompositionJson>,
}

#[derive(Serialize)]
struct StageJson {
    resource: &'static str,
    before_s: f64,
    count: f64,
    each_s: f64,
    after_s: f64,
    total_s: f64,
}

#[derive(Serialize)]
struct DecompositionJson {
    a_s: f64,
    b_s: f64,
    c_s: f64,
    optimum: Option<f64>,
    pieces: Option<u32>,
}

#[derive(Serialize)]
struct SkippedJson<'a> {
    strategy: &'a str,
    reason: &'a str,
}

#[derive(Serialize)]
struct ErrorJson<'a> {
    relative: Option<f64>,
    basis: &'a str,
}

impl<'a> RowJson<'a> {
    fn new(row: &'a Row) -> Self {
        let p = &row.prediction;
        Self {
            strategy: &row.strategy,
            predicted_s: p.seconds,
            speedup_vs_sequential: row.speedup,
            steps: p.steps,
            message_bytes: p.message,
            overhead_s: p.overhead,
            ruled_by: p.stages.get(p.binding).map(|stage| stage.resource),
            stages: (p.stages.iter())
                .map(|stage| StageJson {
                    resource: stage.resource,
                    before_s: stage.before,
                    count: stage.count,
                    each_s: stage.each,
                    after_s: stage.after,
                    total_s: stage.seconds(),
                })
                .collect(),
            decomposition: p.decomposition.map(|form| DecompositionJson {
                a_s: form.a,
                b_s: form.b,
                c_s: form.c,
                optimum: form.optimum.is_finite().then_some(form.optimum),
                pieces: p.pieces,
            }),
        }
    }
}

/// The JSON of `docs/output.md`.
///
/// # Errors
/// As [`serde_json::to_string`].
pub fn json(predictions: &Predictions) -> Result<String, serde_json::Error> {
    pretty(&PredictionsJson {
        schema: "duet-predict-1",
        topology: &predictions.topology,
        operator: (&predictions.operator).into(),
        terms: &predictions.terms,
        fitted_overheads: predictions.fitted,
        chosen: &predictions.chosen.strategy,
        chosen_by: predictions.chosen.by,
        runner_up: predictions.chosen.runner_up.as_deref(),
        margin: predictions.chosen.margin,
        results: predictions.rows.iter().map(RowJson::new).collect(),
        skipped: (predictions.skipped.iter())
            .map(|skipped| SkippedJson {
                strategy: &skipped.strategy,
                reason: &skipped.reason,
            })
            .collect(),
        expected_error: ErrorJson {
            relative: predictions.expected_error.relative,
            basis: &predictions.expected_error.basis,
        },
    })
}

/// A line per strategy, then those skipped.
pub fn csv(predictions: &Predictions) -> String {
    let header = [
        "topology",
        "operator",
        "m",
        "n",
        "k",
        "bytes",
        "tp",
        "dtype",
        "place",
        "strategy",
        "predicted_s",
        "speedup_vs_sequential",
        "steps",
        "message_bytes",
        "overhead_s",
        "ruled_by",
        "a_s",
        "b_s",
        "c_s",
        "optimum",
        "pieces",
        "skipped",
    ];
    let operator = &predictions.operator;
    let begin = |place: String, strategy: &str| {
        let [m, n, k, bytes] = csv::shape(operator);
        vec![
            predictions.topology.clone(),
            operator.kind.to_string(),
            m,
            n,
            k,
            bytes,
            operator.tp.to_string(),
            operator.dtype.name().to_owned(),
            place,
            strategy.to_owned(),
        ]
    };
    let mut rows = Vec::new();
    for (place, row) in predictions.rows.iter().enumerate() {
        let p = &row.prediction;
        let mut cells = begin((place + 1).to_string(), &row.strategy);
        let form = p.decomposition.as_ref();
        let ruling = p.stages.get(p.binding).map_or("", |stage| stage.resource);
        cells.extend([
            csv::number(p.seconds),
            csv::number(row.speedup),
            csv::number(p.steps),
            csv::number(p.message),
            csv::number(p.overhead),
            ruling.to_owned(),
            csv::number(form.map(|form| form.a)),
            csv::number(form.map(|form| form.b)),
            csv::number(form.map(|form| form.c)),
            csv::number(form.map(|form| form.optimum)),
            p.pieces
                .map_or_else(String::new, |pieces| pieces.to_string()),
            String::new(),
        ]);
        rows.push(cells);
    }
    for skipped in &predictions.skipped {
        let mut cells = begin(String::new(), &skipped.strategy);
        cells.resize(header.len() - 1, String::new());
        cells.push(skipped.reason.clone());
        rows.push(cells);
    }
    csv::records(&header, rows.into_iter())
}
