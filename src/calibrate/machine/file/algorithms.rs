//! The profile's list of the GEMM library's choices, as [`crate::device::gemm::library`] uses it.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::device::gemm::library::{Algorithm, Library};
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
        algorithms,
        choices,
        ..
    } = library;
    let factors = [
        ("arithmetic", rates.arithmetic),
        ("memory", rates.memory),
        ("overhead", rates.overhead),
    ];
    let factors = factors.map(|(name, value)| format!("{name}: {}", digits(value)));
    let tile = |algorithm: &Algorithm| {
        let Algorithm {
            tile: (rows, columns),
            split,
            efficiency,
        } = algorithm;
        let parts = match split {
            1 => String::new(),
            parts => format!("/{parts}"),
        };
        format!("{rows}x{columns}{parts}: {}", digits(*efficiency))
    };
    let tiles: Vec<String> = algorithms.iter().map(tile).collect();
    let _ = writeln!(
        out,
        "    algorithms:\n      dtype: {}\n      rates: {{ {}, load: {} GB/s, epilogue: {} us, partials: {} GB/s, latency: {} ns, cached: {} B, reduction: {} us }}\n      tiles: {{ {} }}\n      chosen:",
        dtype.name(),
        factors.join(", "),
        digits(rates.load.get() / 1e9),
        digits(rates.epilogue.get() * 1e6),
        digits(rates.partials.get() / 1e9),
        digits(rates.latency.get() * 1e9),
        rates.cached.round(),
        digits(rates.reduction.get() * 1e6),
        tiles.join(", "),
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
