//! Reading tables of measured GEMMs.

use crate::device::{Device, parse};

const BASE: &str = include_str!("../../../topologies/gpus/h200.yaml");

/// The H200's profile with another table.
fn with(table: &str) -> String {
    let begin = BASE.find("    launch: 16 us\n").unwrap();
    let end = begin + BASE[begin..].find("  source:").unwrap();
    format!("{}{table}{}", &BASE[..begin], &BASE[end..])
}

fn points(gpu: &Device) -> Vec<([u64; 3], f64)> {
    let us = |time: f64| (time * 1e9).round() / 1e3;
    let point = |p: &crate::device::MeasuredGemm| ([p.m, p.n, p.k], us(p.time.get()));
    let mut all: Vec<_> = gpu.gemm_table.iter().map(point).collect();
    all.sort_by_key(|(shape, _)| *shape);
    all
}

#[test]
fn times_by_column_are_those_of_the_matrix() {
    let matrix = with(
        "    launch: 5 us\n    columns: [4096x4096, 8192x3584]\n    rows: { 128: [35 us, none], 256: [none, 46.5 us] }\n",
    );
    let each =
        with("    launch: 5 us\n    us: { 4096x4096: \"128:35\", 8192x3584: \"256:46.5\" }\n");
    let [matrix, each] = [matrix, each].map(|text| {
        let gpu = parse(&text, "h200.yaml").unwrap_or_else(|e| panic!("{e}"));
        points(&gpu)
    });
    assert_eq!(
        matrix,
        [([128, 4096, 4096], 30.0), ([256, 3584, 8192], 41.5)]
    );
    assert_eq!(matrix, each);
}

/// What is said of a table, whole, below the name and line of its file.
fn said(table: &str) -> String {
    parse(&with(table), "h200.yaml").unwrap_err().to_string()
}

#[test]
fn a_wrong_time_is_marked_where_it_stands() {
    for (times, column) in [("\"128:35 256:x 512:9\"", 30), ("128:35 256:x 512:9", 29)] {
        let error = said(&format!("    us: {{ 4096x4096: {times} }}\n"));
        let line = BASE[..BASE.find("    launch: 16 us\n").unwrap()]
            .matches('\n')
            .count()
            + 1;
        let wanted = format!(
            "error: `256:x` is no time of rows
  --> h200.yaml:{line}:{column}
   |
{line} |     us: {{ 4096x4096: {times} }}
   | {}^^^^^ expected growing numbers of rows, each with its time in microseconds
   |
   = help: write e.g. `128:35 256:46.1`",
            " ".repeat(column - 1)
        );
        assert_eq!(error, wanted);
    }
}

#[test]
fn the_same_in_another_spelling_is_refused() {
    let begin = |error: String| error.lines().next().unwrap_or_default().to_owned();
    for (table, key) in [
        (
            "    us: { 8192x8192: 128:35, 08192x8192: 128:36 }\n",
            "08192x8192",
        ),
        (
            "    columns: [4096x4096, 4096x04096]\n    rows: { 128: [35 us, 36 us] }\n",
            "4096x04096",
        ),
        (
            "    columns: [4096x4096]\n    rows: { 128: [35 us], 0128: [36 us] }\n",
            "0128",
        ),
    ] {
        let error = said(table);
        assert_eq!(
            begin(error.clone()),
            format!("error: `{key}` is given twice")
        );
        assert!(error.contains(" an earlier key is the same, spelled differently\n"));
        assert!(error.ends_with("   = help: remove one of them"), "{error}");
    }
    let tiles = BASE.replacen("256x128: 0.95", "256x128: 0.95, 0256x128: 0.9", 1);
    let error = parse(&tiles, "h200.yaml").unwrap_err().to_string();
    assert_eq!(begin(error), "error: `0256x128` is given twice");
}

#[test]
fn empty_tables_are_refused() {
    for (table, message, help) in [
        (
            "    us: {}\n",
            "`us` is empty",
            "write e.g. `us: { 4096x4096: 128:35 256:46.1 }`",
        ),
        (
            "    us: { 256x256: \"\" }\n",
            "a column without times",
            "write e.g. `128:35 256:46.1`, or leave the column out",
        ),
        (
            "    columns: []\n    rows: {}\n",
            "`columns` is empty",
            "write e.g. `columns: [4096x4096]`",
        ),
        (
            "    columns: [4096x4096]\n    rows: {}\n",
            "`rows` is empty",
            "write e.g. `rows: { 128: [35 us] }`",
        ),
    ] {
        let error = said(table);
        assert!(
            error.starts_with(&format!("error: {message}\n  --> h200.yaml:")),
            "{error}"
        );
        assert!(error.ends_with(&format!("   = help: {help}")), "{error}");
    }
}

#[test]
fn wrong_times_by_column_have_place_and_remedy() {
    for (times, words) in [
        ("128:x", "`128:x` is no time of rows"),
        ("128", "`128` is no time of rows"),
        ("256:46 128:35", "`128:35` is no time of rows"),
        ("0:35", "`0:35` is no time of rows"),
        ("128:-1", "`128:-1` is no time of rows"),
        ("128:inf", "`128:inf` is no time of rows"),
        ("128:NaN", "`128:NaN` is no time of rows"),
        ("128:5", "5 us leaves nothing for the GEMM"),
    ] {
        let text = with(&format!(
            "    launch: 5 us\n    us: {{ 4096x4096: \"{times}\" }}\n"
        ));
        let error = parse(&text, "h200.yaml").unwrap_err().to_string();
        assert!(error.contains(words), "{times}: {error}");
        assert!(error.contains("h200.yaml:"), "{error}");
    }
    let both = with("    us: { 4096x4096: \"128:35\" }\n    columns: [4096x4096]\n");
    let error = parse(&both, "h200.yaml").unwrap_err().to_string();
    assert!(error.contains("columns"), "{error}");
}
