//! The profile's tiles and its table of GEMM times.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::super::book::Product;
use super::profile::kept_words;
use crate::device::{DType, Device, digits};

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
    let by_shape: BTreeMap<[u64; 3], f64> = (points.iter())
        .map(|&([m, n, k], time)| ([k, n, m], time))
        .collect();
    let all: Vec<_> = by_shape.into_iter().collect();
    if all.is_empty() {
        return false;
    }
    let _ = writeln!(out, "    table:\n      dtype: bf16");
    columns(out, &all, launch, "      ");
    true
}

/// Times by (k, n, m), and what precedes each.
pub fn columns(out: &mut String, all: &[([u64; 3], f64)], launch: Option<f64>, indent: &str) {
    let us = |seconds: f64| digits(seconds * 1e6);
    if let Some(launch) = launch {
        let _ = writeln!(out, "{indent}launch: {} us", us(launch));
    }
    let _ = writeln!(out, "{indent}us:");
    for column in all.chunk_by(|a, b| a.0[..2] == b.0[..2]) {
        let [k, n, _] = column[0].0;
        let times = column
            .iter()
            .map(|([.., m], time)| format!("{m}:{}", us(*time)));
        let times: Vec<String> = times.collect();
        // One alone could be read as a number to the base 60.
        let quote = if times.len() == 1 { "\"" } else { "" };
        let times = times.join(" ");
        let _ = writeln!(out, "{indent}  {k}x{n}: {quote}{times}{quote}");
    }
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
