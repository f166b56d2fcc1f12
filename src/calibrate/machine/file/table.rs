//! The profile's tiles and its table of GEMM times.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::super::book::Product;
use super::profile::kept_words;
use crate::device::{DType, Device, MISSING, digits};

/// Writes both below `gemm:` and notes their sources.
pub fn write(
    out: &mut String,
    device: &Device,
    products: &[Product],
    kept: &BTreeMap<String, String>,
    base: &str,
    sources: &mut BTreeMap<String, String>,
) {
    let tiles: Vec<String> = device
        .tiles
        .iter()
        .map(|tile| format!("{}x{}: {}", tile.m, tile.n, tile.efficiency))
        .collect();
    let _ = writeln!(out, "    tiles: {{ {} }}", tiles.join(", "));
    sources.insert("tiles".to_owned(), kept_words(kept, "gemm.tiles", base));
    let measured = !products.is_empty();
    let points: Vec<([u64; 3], f64)> = match measured {
        true => products
            .iter()
            .map(|p| ([p.m, p.n, p.k], p.time.value))
            .collect(),
        false => {
            let known = device.gemm_table.iter().filter(|p| p.dtype == DType::Bf16);
            known.map(|p| ([p.m, p.n, p.k], p.time.get())).collect()
        }
    };
    let launch = measured.then(|| device.costs.lane.get() + device.costs.kernel_start.get());
    let words = match measured {
        true => measured_words(products),
        false => kept_words(kept, "gemm.table", base),
    };
    if times(out, &points, launch) {
        sources.insert("table".to_owned(), words);
    }
}

/// The times of GEMMs, what precedes them, below `gemm:`; false where there are none.
pub fn times(out: &mut String, points: &[([u64; 3], f64)], launch: Option<f64>) -> bool {
    let us = |seconds: f64| format!("{} us", digits(seconds * 1e6));
    let by_shape: BTreeMap<[u64; 3], f64> = points.iter().copied().collect();
    let mut columns: Vec<(u64, u64)> = points.iter().map(|([_, n, k], _)| (*k, *n)).collect();
    columns.sort_unstable();
    columns.dedup();
    let mut rows: Vec<u64> = points.iter().map(|([m, ..], _)| *m).collect();
    rows.sort_unstable();
    rows.dedup();
    let time = |m: u64, (k, n): (u64, u64)| by_shape.get(&[m, n, k]);
    if rows.is_empty() || columns.is_empty() {
        return false;
    }
    let _ = writeln!(out, "    table:\n      dtype: bf16");
    if let Some(launch) = launch {
        let _ = writeln!(out, "      launch: {}", us(launch));
    }
    let names: Vec<String> = columns.iter().map(|(k, n)| format!("{k}x{n}")).collect();
    let _ = writeln!(out, "      columns: [{}]\n      rows:", names.join(", "));
    for m in rows {
        let times: Vec<String> = columns
            .iter()
            .map(|c| time(m, *c).map_or_else(|| MISSING.to_owned(), |t| us(*t)))
            .collect();
        let _ = writeln!(out, "        {m}: [{}]", times.join(", "));
    }
    true
}

/// How the times of products were measured.
pub fn measured_words(products: &[Product]) -> String {
    let counts = products.iter().map(|p| p.time.n.min(p.alone.n));
    let n = counts.min().unwrap_or(0);
    let spread = |p: &Product| (p.time.high - p.time.low) / 2.0 / p.time.value;
    let mut spreads: Vec<f64> = products.iter().map(spread).collect();
    spreads.sort_by(f64::total_cmp);
    let spread = spreads.get(spreads.len() / 2).copied().unwrap_or(0.0);
    format!(
        "measured, medians in a row behind a first one, slowest GPU, cuBLASLt's first algorithm, n={n} or more each, 95 % within {} % (median of shapes); random data, GPUs rested before each sample",
        digits(100.0 * spread)
    )
}
