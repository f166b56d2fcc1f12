//! CSV: one line per row, the columns named as in the JSON.

use super::{Comparison, Verification};
use crate::operator::{Operator, Shape};

/// Writes records as CSV text.
pub(super) fn write<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut put = |row: &[String]| {
        // Writing to memory cannot fail, and every record has N fields.
        let _ = writer.write_record(row);
    };
    put(&header.map(str::to_owned));
    for row in rows {
        put(&row);
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
fn shape(operator: &Operator) -> [String; 4] {
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
        "lower_bound_s",
        "tasks",
        "bottleneck",
        "verified",
        "skipped",
    ];
    let mut rows = Vec::new();
    for comparison in comparisons {
        let operator = &comparison.operator;
        let row = |strategy: &str, numbers: [String; 12]| {
            let [m, n, k, bytes] = shape(operator);
            let [place, makespan, rest @ ..] = numbers;
            let [
                speedup,
                gemm,
                comm,
                exposed,
                ect,
                overlap,
                bound,
                tasks,
                bottleneck,
                verified,
            ] = rest;
            [
                comparison.topology.clone(),
                operator.kind.name().to_owned(),
                m,
                n,
                k,
                bytes,
                operator.tp.to_string(),
                operator.dtype.name().to_owned(),
                comparison.launch.clone(),
                place,
                strategy.to_owned(),
                makespan,
                speedup,
                gemm,
                comm,
                exposed,
                ect,
                overlap,
                bound,
                tasks,
                bottleneck,
                verified,
                String::new(),
            ]
        };
        for (place, outcome) in comparison.results.iter().enumerate() {
            rows.push(row(
                &outcome.strategy,
                [
                    (place + 1).to_string(),
                    number(outcome.makespan),
                    number(outcome.speedup),
                    number(outcome.gemm_only),
                    number(outcome.comm_only),
                    number(outcome.exposed),
                    number(outcome.ect),
                    number(outcome.overlap_efficiency),
                    number(comparison.lower_bound),
                    outcome.tasks.to_string(),
                    outcome.bottleneck.clone(),
                    (outcome.verification == Verification::Verified).to_string(),
                ],
            ));
        }
        for skipped in &comparison.skipped {
            let mut skip = row(&skipped.strategy, Default::default());
            skip[22].clone_from(&skipped.reason);
            rows.push(skip);
        }
    }
    write(header, rows)
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
