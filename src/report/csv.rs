//! CSV: one line per row, the columns named as in the JSON.

use super::{Comparison, Verification};
use crate::operator::{Operator, Shape};

/// Writes records as CSV text.
pub(super) fn write<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    records(&header, rows.into_iter().map(Vec::from))
}

/// Writes records, each as long as the header.
pub(super) fn records(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory cannot fail, and all records have the same length.
    let _ = writer.write_record(header);
    for row in rows {
        let _ = writer.write_record(&row);
    }
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A number as JSON would print it; empty when there is none.
pub(super) fn number(value: impl Into<Option<f64>>) -> String {
    match value.into() {
        Some(value) if value.is_finite() => format!("{value}"),
        _ => String::new(),
    }
}

/// m, n, k, bytes; those that do not apply are empty.
pub(super) fn shape(operator: &Operator) -> [String; 4] {
    match operator.shape {
        Shape::Gemm { m, n, k } => [m.to_string(), n.to_string(), k.to_string(), String::new()],
        Shape::Bytes(bytes) => [
            String::new(),
            String::new(),
            String::new(),
            bytes.get().to_string(),
        ],
    }
}

/// `duet compare --format csv`: results of all topologies, then what was skipped.
pub fn compare(comparisons: &[Comparison]) -> String {
    let header = [
        "topology",
        "operator",
        "m",
        "n",
        "k",
        "bytes",
        "tp",
        "dtype",
        "launch",
        "place",
        "strategy",
        "makespan_s",
        "speedup_vs_sequential",
        "gemm_only_s",
        "comm_only_s",
        "exposed_comm_s",
        "ect_s",
        "overlap_efficiency",
        "algbw_bytes_per_s",
        "busbw_bytes_per_s",
        "lower_bound_s",
        "tasks",
        "bottleneck",
        "verified",
        "skipped",
    ];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for comparison in comparisons {
        let operator = &comparison.operator;
        let [m, n, k, bytes] = shape(operator);
        let begin = |place: String, strategy: &str| {
            vec![
                comparison.topology.clone(),
                operator.kind.name().to_owned(),
                m.clone(),
                n.clone(),
                k.clone(),
                bytes.clone(),
                operator.tp.to_string(),
                operator.dtype.name().to_owned(),
                comparison.launch.clone(),
                place,
                strategy.to_owned(),
            ]
        };
        for (place, outcome) in comparison.results.iter().enumerate() {
            let mut row = begin((place + 1).to_string(), &outcome.strategy);
            let numbers = [
                Some(outcome.makespan),
                outcome.speedup,
                Some(outcome.gemm_only),
                Some(outcome.comm_only),
                Some(outcome.exposed),
                Some(outcome.ect),
                outcome.overlap_efficiency,
                outcome.bandwidth.map(|(algbw, _)| algbw),
                outcome.bandwidth.map(|(_, busbw)| busbw),
                comparison.lower_bound,
            ];
            row.extend(numbers.map(number));
            row.extend([
                outcome.tasks.to_string(),
                outcome.bottleneck.clone(),
                (outcome.verification == Verification::Verified).to_string(),
                String::new(),
            ]);
            rows.push(row);
        }
        for skipped in &comparison.skipped {
            let mut row = begin(String::new(), &skipped.strategy);
            row.resize(header.len() - 1, String::new());
            row.push(skipped.reason.clone());
            rows.push(row);
        }
    }
    records(&header, rows.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn results_then_skipped() {
        insta::assert_snapshot!(compare(&[fixture::comparison("a, b")]));
    }
}
