//! Reading lists of algorithms.

use crate::device::{DType, gemm, parse};

const BASE: &str = include_str!("../../../topologies/gpus/h200.yaml");
const MORE: &str = "  algorithms:
    dtype: bf16
    rates: { arithmetic: 0.95, memory: 0.98, overhead: 0.9, load: 110 GB/s, epilogue: 2.5 us, partials: 2.4 TB/s, latency: 1.4 ns, cached: 26 MB, reduction: 1 us }
    tiles: { 64x64: 0.98, 128x256: 1.01, 64x64/4: 1.02 }
    chosen:
      4096x4096: 192:0 512:2 8192:1
";

/// The H200's profile with the list above, `from` replaced by `to` in it.
fn with(from: &str, to: &str) -> String {
    assert!(MORE.contains(from), "{from}");
    let more = MORE.replacen(from, to, 1);
    let text = BASE.replacen("  table:\n", &format!("{more}  table:\n"), 1);
    // Every part of a section has a source.
    text.replacen(
        "    table: measured",
        "    algorithms: assumed\n    table: measured",
        1,
    )
}

#[test]
fn a_list_is_read() {
    let gpu =
        parse(&with("64x64: 0.98", "64x64: 0.98"), "h200.yaml").unwrap_or_else(|e| panic!("{e}"));
    let library = gpu.gemm_library.as_deref().unwrap();
    assert_eq!(
        (library.algorithms[2].split, library.rates.cached),
        (4, 26e6)
    );
    assert_eq!(library.choices[0].rows, [(192, 0), (512, 2), (8192, 1)]);
    // A measured point is met, by fp16 as well.
    let point = gpu
        .gemm_table
        .iter()
        .find(|p| (p.n, p.k, p.m) == (4096, 4096, 512))
        .unwrap();
    for dtype in [DType::Bf16, DType::Fp16] {
        let time = gemm::gemm(&gpu, dtype, 512, 4096, 4096, gpu.sms).unwrap();
        assert!((time.seconds / point.time.get() - 1.0).abs() < 1e-12);
    }
}

#[test]
fn rows_that_are_not_aligned_have_rates_and_tiles() {
    let text = with(
        "    tiles: { 64x64: 0.98,",
        "    unaligned:\n      2: { arithmetic: 0.2, memory: 0.98, overhead: 0.9, load: 110 GB/s, epilogue: 2.5 us, partials: 2.4 TB/s }\n    tiles: { 64x64@2: 0.9, 64x64: 0.98,",
    );
    let gpu = parse(&text, "h200.yaml").unwrap_or_else(|e| panic!("{e}"));
    let library = gpu.gemm_library.as_deref().unwrap();
    assert_eq!(library.rates_of(2).arithmetic, 0.2);
    assert_eq!(library.rates_of(16).arithmetic, 0.95);
    let aligned: Vec<u32> = library.algorithms.iter().map(|a| a.align).collect();
    assert_eq!(aligned, [2, 16, 16, 16]);
}

#[test]
fn clusters_are_read() {
    let text = with("64x64/4: 1.02", "64x64/4+2x1: 1.02");
    let gpu = parse(&text, "h200.yaml").unwrap_or_else(|e| panic!("{e}"));
    let all = &gpu.gemm_library.as_deref().unwrap().algorithms;
    let [_, whole, parts] = &all[..] else {
        panic!()
    };
    assert_eq!((whole.cluster, whole.split), ((1, 1), 1));
    assert_eq!(
        (parts.tile, parts.split, parts.cluster),
        ((64, 64), 4, (2, 1))
    );
}

#[test]
fn work_and_choices_beside_collectives_are_read() {
    let text = with(
        "    chosen:",
        "    work: { 64x64: 1.5 }\n    beside: { sms: 108, chosen: { 4096x4096: 256:1 8192:0 } }\n    chosen:",
    );
    let gpu = parse(&text, "h200.yaml").unwrap_or_else(|e| panic!("{e}"));
    let library = gpu.gemm_library.as_deref().unwrap();
    // Whatever k is split into.
    let work: Vec<f64> = library.algorithms.iter().map(|a| a.work).collect();
    assert_eq!(work, [1.5, 1.0, 1.5]);
    assert_eq!(library.left, 108);
    assert_eq!(library.beside[0].rows, [(256, 1), (8192, 0)]);
}

/// Times on the SMs that are left are met there, and change nothing on all; what is near takes part of it.
#[test]
fn times_beside_collectives_are_read_and_met() {
    let on = |us: &str, m, sms| {
        let text = with(
            "    chosen:",
            &format!(
                "    beside: {{ sms: 108, chosen: {{ 4096x4096: 256:1 8192:0 }}{us} }}\n    chosen:"
            ),
        );
        let gpu = parse(&text, "h200.yaml").unwrap_or_else(|e| panic!("{e}"));
        gemm::gemm(&gpu, DType::Bf16, m, 4096, 4096, sms)
            .unwrap()
            .seconds
    };
    let us = ", launch: 1 us, us: { 4096x4096: 512:101 }";
    assert!((on(us, 512, 108) - 100e-6).abs() < 1e-12);
    assert_eq!(on(us, 512, 132), on("", 512, 132));
    let ratio = on(us, 512, 108) / on("", 512, 108);
    let near = on(us, 500, 108) / on("", 500, 108);
    assert!(
        ratio > 1.2 && (1.1..ratio).contains(&near),
        "{ratio} {near}"
    );
}

#[test]
fn mistakes_have_place_and_remedy() {
    for (from, to, words) in [
        ("192:0", "192:7", "`192:7` is no choice"),
        ("512:2", "100:2", "growing numbers of rows"),
        (
            "64x64/4",
            "64x64/x",
            "write e.g. `64x128`, `64x128/4` with k",
        ),
        ("64x64/4", "64x64/4+1", "`64x64/4+1` is not a tile"),
        ("64x64/4", "64x64+0x2", "clusters up to 64"),
        (
            "64x64/4",
            "64x64+65x1",
            "or `64x128/4+1x2` in clusters of 1x2",
        ),
        ("128x256: 1.01", "128x256: 40", "`40` is no factor"),
        ("128x256: 1.01", "128x256@3: 1", "`3` is no alignment"),
        (
            "    tiles:",
            "    unaligned: { 16: 1 }\n    tiles:",
            "`16` is no alignment",
        ),
        ("arithmetic: 0.95, ", "", "`arithmetic` is missing"),
        ("load: 110 GB/s", "load: 0 GB/s", "at least 1 byte a second"),
        (
            "8192:1\n",
            "8192:1\n      04096x4096: 8192:1\n",
            "error: `04096x4096` is given twice",
        ),
        (
            "64x64/4: 1.02",
            "064x64: 1.02",
            "error: `064x64` is given twice",
        ),
        (
            "\n      4096x4096: 192:0 512:2 8192:1",
            " {}",
            "error: `chosen` is empty",
        ),
        (
            "192:0 512:2 8192:1",
            "\"\"",
            "error: a column without choices",
        ),
        (
            "    chosen:",
            "    beside: { sms: 132, chosen: { 4096x4096: 256:1 } }\n    chosen:",
            "error: a collective leaves 132 SMs",
        ),
        ("4096x4096:", "4096:", "`4096` is not a column (k x n)"),
        (
            "    chosen:",
            "    work: { 32x32: 1.5 }\n    chosen:",
            "`32x32` is none of the tiles",
        ),
        (
            "    chosen:",
            "    work: { 64x64/4: 1.5 }\n    chosen:",
            "write the work of a tile of `tiles`, without parts of k",
        ),
        (
            "    chosen:",
            "    beside: { sms: 0, chosen: { 4096x4096: 256:1 } }\n    chosen:",
            "`0` are not SMs that are left",
        ),
        (
            "    chosen:",
            "    beside: { sms: 108, chosen: { 4096x4096: 256:9 } }\n    chosen:",
            "`256:9` is no choice",
        ),
        (
            "{ 64x64: 0.98, 128x256: 1.01, 64x64/4: 1.02 }",
            "{}",
            "0 tiles",
        ),
    ] {
        let error = parse(&with(from, to), "h200.yaml").unwrap_err().to_string();
        assert!(error.contains(words), "{from} → {to}: {error}");
        assert!(error.contains("h200.yaml:"), "{error}");
    }
}
