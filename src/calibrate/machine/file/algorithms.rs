//! The profile's list of the GEMM library's choices, as [`crate::device::gemm::library`] uses it.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::device::gemm::library::{ALIGNED, Algorithm, Library, Rates};
use crate::device::{Device, digits};

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
        ..
    } = library;
    let tile = |algorithm: &Algorithm| {
        let Algorithm {
            tile: (rows, columns),
            split,
            cluster,
            align,
            efficiency,
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
    let _ = writeln!(
        out,
        "      tiles: {{ {} }}\n      chosen:",
        tiles.join(", ")
    );
    for choice in choices {
        let rows: Vec<String> = choice
            .rows
            .iter()
            .map(|(m, at)| format!("{m}:{at}"))
            .collect();
        let _ = writeln!(out, "        {}x{}: {}", choice.k, choice.n, rows.join(" "));
    }
    let words = format!(
        "fitted to {measured} measured GEMMs, rates and efficiencies; chosen: cuBLASLt's first algorithm for {} columns, as it says when asked",
        choices.len()
    );
    sources.insert("algorithms".to_owned(), words);
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
