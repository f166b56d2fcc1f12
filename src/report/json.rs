//! The stable JSON of `docs/output.md`: times in seconds, the unit in the key.

use serde::{Serialize, Serializer};

use super::{Comparison, Outcome, Verification};
use crate::operator::{Operator, Shape};
use crate::timeline::Term;

/// `operator` in every document.
#[derive(Serialize)]
pub(super) struct OperatorJson {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    m: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    k: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    tp: u32,
    dtype: &'static str,
}

impl From<&Operator> for OperatorJson {
    fn from(operator: &Operator) -> Self {
        let (m, n, k, bytes) = match operator.shape {
            Shape::Gemm { m, n, k } => (Some(m), Some(n), Some(k), None),
            Shape::Bytes(bytes) => (None, None, None, Some(bytes.get())),
        };
        Self {
            kind: operator.kind.name(),
            m,
            n,
            k,
            bytes,
            tp: operator.tp,
            dtype: operator.dtype.name(),
        }
    }
}

/// Terms by their keys, in the order in which they add up.
struct Terms<'a>(&'a [(Term, f64)]);

impl Serialize for Terms<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(term, seconds)| (term.key(), seconds)))
    }
}

/// One strategy's numbers, the same in `compare` and `simulate`.
#[derive(Serialize)]
pub(super) struct OutcomeJson<'a> {
    strategy: &'a str,
    makespan_s: f64,
    speedup_vs_sequential: Option<f64>,
    gemm_only_s: f64,
    comm_only_s: f64,
    exposed_comm_s: f64,
    ect_s: f64,
    overlap_efficiency: Option<f64>,
    algbw_bytes_per_s: Option<f64>,
    busbw_bytes_per_s: Option<f64>,
    tasks: usize,
    bottleneck: &'a str,
    verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_verified_because: Option<&'a str>,
    terms: Terms<'a>,
    why: &'a str,
    expected_error: ErrorJson<'a>,
}

#[derive(Serialize)]
struct ErrorJson<'a> {
    relative: Option<f64>,
    basis: &'a str,
}

impl<'a> OutcomeJson<'a> {
    pub(super) fn new(outcome: &'a Outcome, error: &'a super::ExpectedError) -> Self {
        let not_verified_because = match &outcome.verification {
            Verification::Verified => None,
            Verification::NotVerified(reason) => Some(reason.as_str()),
        };
        Self {
            strategy: &outcome.strategy,
            makespan_s: outcome.makespan,
            speedup_vs_sequential: outcome.speedup,
            gemm_only_s: outcome.gemm_only,
            comm_only_s: outcome.comm_only,
            exposed_comm_s: outcome.exposed,
            ect_s: outcome.ect,
            overlap_efficiency: outcome.overlap_efficiency,
            algbw_bytes_per_s: outcome.bandwidth.map(|(algbw, _)| algbw),
            busbw_bytes_per_s: outcome.bandwidth.map(|(_, busbw)| busbw),
            tasks: outcome.tasks,
            bottleneck: &outcome.bottleneck,
            verified: not_verified_because.is_none(),
            not_verified_because,
            terms: Terms(&outcome.terms),
            why: &outcome.why,
            expected_error: ErrorJson {
                relative: error.relative,
                basis: &error.basis,
            },
        }
    }
}

#[derive(Serialize)]
struct SkippedJson<'a> {
    strategy: &'a str,
    reason: &'a str,
}

#[derive(Serialize)]
struct ComparisonJson<'a> {
    schema: &'static str,
    topology: &'a str,
    operator: OperatorJson,
    launch: &'a str,
    chosen: Option<&'a str>,
    chosen_by: &'static str,
    margin: Option<f64>,
    runner_up: Option<&'a str>,
    chosen_predicted_s: Option<f64>,
    chosen_regret: Option<f64>,
    fastest: Option<&'a str>,
    fastest_margin: Option<f64>,
    unsplit_gemm_s: f64,
    lower_bound_s: Option<f64>,
    results: Vec<OutcomeJson<'a>>,
    skipped: Vec<SkippedJson<'a>>,
}

impl<'a> From<&'a Comparison> for ComparisonJson<'a> {
    fn from(comparison: &'a Comparison) -> Self {
        let result = |place: usize| comparison.results.get(place).map(|o| o.strategy.as_str());
        let selected = comparison.selected.as_ref();
        Self {
            schema: "duet-compare-1",
            topology: &comparison.topology,
            operator: (&comparison.operator).into(),
            launch: &comparison.launch,
            chosen: selected.map_or(result(0), |s| Some(&s.strategy)),
            chosen_by: match selected {
                Some(_) => "selector",
                None => "simulation",
            },
            margin: selected.map_or(comparison.margin(), |s| s.margin),
            runner_up: selected.map_or(result(1), |s| s.runner_up.as_deref()),
            chosen_predicted_s: selected.map(|s| s.predicted),
            chosen_regret: comparison.regret(),
            fastest: result(0),
            fastest_margin: comparison.margin(),
            unsplit_gemm_s: comparison.unsplit_gemm,
            lower_bound_s: comparison.lower_bound,
            results: comparison
                .results
                .iter()
                .map(|outcome| OutcomeJson::new(outcome, &comparison.expected_error))
                .collect(),
            skipped: comparison
                .skipped
                .iter()
                .map(|skipped| SkippedJson {
                    strategy: &skipped.strategy,
                    reason: &skipped.reason,
                })
                .collect(),
        }
    }
}

/// `value` as indented JSON with a newline at the end.
///
/// # Errors
/// [`serde_json::Error`] when a value has no JSON form (none of Duet's own).
pub(super) fn pretty(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(text)
}

/// `duet compare --format json`: one object for one topology, an array of them for several.
///
/// # Errors
/// As [`serde_json::to_string`].
pub fn compare(comparisons: &[Comparison]) -> Result<String, serde_json::Error> {
    let documents: Vec<ComparisonJson<'_>> = comparisons.iter().map(Into::into).collect();
    match documents.as_slice() {
        [one] => pretty(one),
        several => pretty(&several),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::report::fixture;

    #[test]
    fn one_topology_is_an_object_and_several_an_array() {
        let one: Value =
            serde_json::from_str(&compare(&[fixture::comparison("a")]).unwrap()).unwrap();
        assert_eq!(one["chosen"], "interdecom:d=4");
        assert_eq!(one["chosen_by"], "simulation");
        assert_eq!(one["lower_bound_s"], 90e-6);
        assert_eq!(one["results"][0]["makespan_s"], 110e-6);
        assert_eq!(
            one["results"][0]["expected_error"]["basis"],
            "not validated"
        );
        assert_eq!(one["results"][2]["verified"], false);
        assert_eq!(
            one["results"][2]["not_verified_because"],
            "over 100,000 tasks"
        );
        assert_eq!(one["skipped"][1]["strategy"], "direct");
        assert_eq!(one["operator"]["k"], 256);
        assert!(one["operator"].get("bytes").is_none());
        // 150 / 110 − 1.
        assert!((one["margin"].as_f64().unwrap() - (150.0 / 110.0 - 1.0)).abs() < 1e-12);
        let two = [fixture::comparison("a"), fixture::comparison("b")];
        let two: Value = serde_json::from_str(&compare(&two).unwrap()).unwrap();
        assert_eq!(two[1]["topology"], "b");
    }
}
