//! The profile's list of the GEMM library's choices, as [`crate::device::gemm::library`] uses it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::table::columns;
use crate::device::gemm::library::{ALIGNED, Algorithm, Choices, Library, Rates};
use crate::device::{Device, MeasuredGemm, digits};

/// Writes it below `gemm:` and notes its source; nothing where nothing is known.
pub fn write(
    out: &mut String,
    device: &Device,
    measured: usize,
    sources: &mut BTreeMap<String, String>,
) {
    let Some(library) = device.gemm_library.as_deref() else {
        return;
    };
    let Library {
        dtype,
        rates,
        unaligned,
        algorithms,
        choices,
        left,
        beside,
        fewer,
        ..
    } = library;
    let tile = |algorithm: &Algorithm| {
        let Algorithm {
            tile: (rows, columns),
            split,
            cluster,
            align,
            efficiency,
            ..
        } = algorithm;
        let parts = match split {
            1 => String::new(),
            parts => format!("/{parts}"),
        };
        let bytes = match *align {
            ALIGNED.. => String::new(),
            bytes => format!("@{bytes}"),
        };
        let cluster = match cluster {
            (1, 1) => String::new(),
            (rows, columns) => format!("+{rows}x{columns}"),
        };
        format!(
            "{rows}x{columns}{parts}{cluster}{bytes}: {}",
            digits(*efficiency)
        )
    };
    let work = |algorithm: &&Algorithm| algorithm.work.to_bits() != 1f64.to_bits();
    let works: BTreeSet<String> = algorithms
        .iter()
        .filter(work)
        .map(|algorithm| {
            tile(&Algorithm {
                split: 1,
                efficiency: algorithm.work,
                ..*algorithm
            })
        })
        .collect();
    let tiles: Vec<String> = algorithms.iter().map(tile).collect();
    let _ = writeln!(
        out,
        "    algorithms:\n      dtype: {}\n      rates: {{ {} }}",
        dtype.name(),
        stated(rates)
    );
    if !unaligned.is_empty() {
        let _ = writeln!(out, "      unaligned:");
    }
    for (align, rates) in unaligned {
        let _ = writeln!(out, "        {align}: {{ {} }}", stated(rates));
    }
    let _ = writeln!(out, "      tiles: {{ {} }}", tiles.join(", "));
    if !works.is_empty() {
        let works: Vec<String> = works.into_iter().collect();
        let _ = writeln!(out, "      work: {{ {} }}", works.join(", "));
    }
    let _ = writeln!(out, "      chosen:");
    list(out, choices, "        ");
    if !beside.is_empty() {
        let _ = writeln!(out, "      beside:\n        sms: {left}\n        chosen:");
        list(out, beside, "          ");
    }
    if !fewer.is_empty() {
        let launch = device.costs.lane.get() + device.costs.kernel_start.get();
        let time = |p: &MeasuredGemm| ([p.k, p.n, p.m], p.time.get() + launch);
        let all: Vec<_> = fewer.iter().map(time).collect();
        columns(out, &all, Some(launch), "        ");
    }
    let on_fewer = match fewer.len() {
        0 => String::new(),
        count => format!(
            "; beside: {count} GEMMs told to use {left} SMs, medians in a row behind a first one"
        ),
    };
    let words = format!(
        "fitted to {measured} measured GEMMs, rates and efficiencies; chosen: cuBLASLt's first algorithm for {} columns, as it says when asked{on_fewer}",
        choices.len()
    );
    sources.insert("algorithms".to_owned(), words);
}

/// Choices as the format has them.
fn list(out: &mut String, choices: &[Choices], indent: &str) {
    for Choices { n, k, rows } in choices {
        let rows: Vec<String> = rows.iter().map(|(m, at)| format!("{m}:{at}")).collect();
        let _ = writeln!(out, "{indent}{k}x{n}: {}", rows.join(" "));
    }
}

/// Rates as the format has them.
fn stated(rates: &Rates) -> String {
    let numbers = [
        ("arithmetic", rates.arithmetic, ""),
        ("memory", rates.memory, ""),
        ("overhead", rates.overhead, ""),
        ("load", rates.load.get() / 1e9, " GB/s"),
        ("epilogue", rates.epilogue.get() * 1e6, " us"),
        ("partials", rates.partials.get() / 1e9, " GB/s"),
        ("latency", rates.latency.get() * 1e9, " ns"),
    ];
    let mut all: Vec<String> = numbers
        .iter()
        .map(|(name, value, unit)| format!("{name}: {}{unit}", digits(*value)))
        .collect();
    all.push(format!("cached: {} B", rates.cached.round()));
    let reduction = digits(rates.reduction.get() * 1e6);
    all.push(format!("reduction: {reduction} us"));
    all.join(", ")
}
