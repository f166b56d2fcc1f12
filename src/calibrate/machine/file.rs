//! A calibration as a topology file with the GPU's profile inside.
//!
//! Every number states its source with median or fit, number of samples and interval; numbers that
//! were not measured keep the profile's value they started from and say so. What has no place in
//! the format follows as comments that [`super::difference`] reads, one a line:
//!
//! ```text
//! #= p2p.rate.1MiB = 133.1e9 from 132.8e9 to 133.4e9, n 9
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;

use super::book::Product;
use super::estimate::Estimate;
use super::profile::{Facts, Field, apply, fields, fit_waves};
use crate::device::{self, DType, Device};

/// Marks a fact that has no place in the format.
pub const MARK: &str = "#= ";
/// Latencies of links \[us\], assumed: a copy's start-up cannot be told from them.
const LATENCY: [f64; 3] = [0.5, 0.4, 0.1];
/// Bandwidth of memory where nothing tells \[bytes/s\], as in the shipped machines.
const DRAM: f64 = 200e9;

/// The machine, in words.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Name of the topology.
    pub name: String,
    pub gpus: u32,
    /// The GPUs' name by the driver.
    pub model: String,
    /// Hashes of the GPUs' unique ids.
    pub hashes: Vec<String>,
    /// Whether GPUs reach each other's memory, and by NVLink.
    pub peers: bool,
    pub nvlink: bool,
    pub sms: u32,
    pub memory: u64,
    pub l2: u64,
    /// Versions of driver and libraries.
    pub software: String,
    /// `2026-11-30`.
    pub date: String,
}

impl Machine {
    /// The kind of the links between GPUs.
    pub const fn kind(&self) -> &'static str {
        match (self.nvlink, self.gpus) {
            (true, 2) => "nvlink-pair",
            (true, _) => "nvlink",
            _ => "pcie-peer",
        }
    }

    /// Links from GPU to GPU.
    const fn hops(&self) -> u32 {
        if self.gpus > 2 { 2 } else { 1 }
    }

    /// Latency of the way from GPU to GPU \[s\].
    pub fn latency(&self) -> f64 {
        LATENCY[0] * 1e-6 * f64::from(self.hops())
    }
}

/// The file's text, and what is to be told.
pub fn text(
    machine: &Machine,
    base: &Device,
    facts: &Facts,
    products: &[Product],
    notes: &[String],
) -> (String, Vec<String>) {
    let (latency, kind) = (machine.latency(), machine.kind());
    let mut all = fields(facts, base, latency, kind);
    let told = |name: &str, value: f64| Field {
        name: name.to_owned(),
        value: Estimate::exact(value, 1),
        kind: "measured",
        how: "as the driver says",
    };
    all.push(told("compute.sms", f64::from(machine.sms)));
    all.push(told("memory.size", machine.memory as f64));
    all.push(told("memory.l2", machine.l2 as f64));
    let (device, mut refused) = apply(base, &all, kind);
    let launch = device.costs.lane.get() + device.costs.kernel_start.get();
    if let Some([sustained, overhead]) = fit_waves(&device, products, launch) {
        let how = "wave model to the table below";
        for (name, value) in [
            ("compute.sustained", sustained),
            ("gemm.overhead", overhead),
        ] {
            let (name, kind) = (name.to_owned(), "fitted");
            all.push(Field {
                name,
                value,
                kind,
                how,
            });
        }
    }
    let (mut device, more) = apply(base, &all, kind);
    refused.extend(more);
    refused.sort();
    refused.dedup();
    base.name.clone_into(&mut device.name);
    let mut out = String::new();
    head(&mut out, machine, notes);
    profile(&mut out, machine, &device, &base.name, &all, products);
    links(&mut out, machine, facts);
    // A calibration is read by eyes as well.
    let _ = writeln!(
        out,
        "\n# Measured, without a place in the format, in base units:"
    );
    for (name, e) in facts {
        let [value, low, high] = [e.value, e.low, e.high].map(|v| format!("{v:.4e}"));
        let _ = writeln!(
            out,
            "{MARK}{name} = {value} from {low} to {high}, n {}",
            e.n
        );
    }
    (out, refused)
}

fn head(out: &mut String, machine: &Machine, notes: &[String]) {
    let Machine {
        gpus,
        model,
        software,
        date,
        ..
    } = machine;
    let _ = writeln!(
        out,
        "# Written by `duet calibrate` on {date}: {gpus} x {model}, {software}."
    );
    let _ = writeln!(
        out,
        "# GPUs by hash of their unique id: {}.",
        machine.hashes.join(", ")
    );
    let _ = writeln!(
        out,
        "# Intervals are of 95 %, by bootstrap over the samples."
    );
    for note in notes {
        let _ = writeln!(out, "# {}", note.replace('\n', " "));
    }
    let _ = writeln!(out, "name: {}", machine.name);
    let _ = writeln!(out, "about: {gpus} × {model}, calibrated {date}");
}

/// A source's words: `measured, median 5.1 us, n=20, 95 % 5.0 to 5.2 us; how`.
fn source(field: &Field, number: &str, state: impl Fn(f64) -> String) -> String {
    let Estimate { low, high, n, .. } = field.value;
    let what = if field.kind == "measured" {
        "median"
    } else {
        "fit"
    };
    let spread = match low == high {
        true => String::new(),
        false => format!(", 95 % {} to {}", state(low), state(high)),
    };
    format!(
        "{}, {what} {number}, n={n}{spread}; {}",
        field.kind, field.how
    )
}

fn profile(
    out: &mut String,
    machine: &Machine,
    device: &Device,
    base: &str,
    fields: &[Field],
    products: &[Product],
) {
    let kept = device::sources(base);
    let _ = writeln!(out, "gpu:\n  name: {}", device.name);
    let _ = writeln!(
        out,
        "  about: {}, calibrated {}",
        machine.model, machine.date
    );
    let numbers = device::numbers(device);
    let mut sections: Vec<&str> = Vec::new();
    for number in &numbers {
        let section = number.name.split('.').next().unwrap_or_default();
        if !sections.contains(&section) {
            sections.push(section);
        }
    }
    for section in sections {
        let _ = writeln!(out, "  {section}:");
        let mut sources = BTreeMap::new();
        let mut maps: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for number in &numbers {
            let Some(key) = number
                .name
                .strip_prefix(section)
                .and_then(|k| k.strip_prefix('.'))
            else {
                continue;
            };
            let (key, entry) = key
                .split_once('.')
                .map_or((key, None), |(k, e)| (k, Some(e)));
            match entry {
                Some(entry) => maps
                    .entry(key)
                    .or_default()
                    .push(format!("{entry}: {}", number.text)),
                None => {
                    let _ = writeln!(out, "    {key}: {}", number.text);
                }
            }
            let state = |value: f64| {
                let mut other = device.clone();
                let _ = device::assign(&mut other, &number.name, value);
                let all = device::numbers(&other);
                let found = all.into_iter().find(|n| n.name == number.name);
                found.map_or_else(|| value.to_string(), |n| n.text)
            };
            let words = match fields.iter().rfind(|f| f.name == number.name) {
                Some(field) => source(field, &number.text, state),
                None => kept_words(&kept, &format!("{section}.{key}"), base),
            };
            // One source for all entries of a map: the measured one names its entry.
            let measured = fields.iter().any(|f| f.name == number.name);
            if measured || !sources.contains_key(key) {
                let words = match entry.filter(|_| measured) {
                    Some(entry) => format!("{words}; this is {entry}, others kept from `{base}`"),
                    None => words,
                };
                sources.insert(key.to_owned(), words);
            }
        }
        for (key, entries) in &maps {
            let _ = writeln!(out, "    {key}: {{ {} }}", entries.join(", "));
        }
        // The map of a profile may be empty and is needed all the same.
        if section == "library" && !maps.contains_key("efficiency") {
            let _ = writeln!(out, "    efficiency: {{}}");
            sources.insert(
                "efficiency".to_owned(),
                kept_words(&kept, "library.efficiency", base),
            );
        }
        if section == "gemm" {
            gemm(out, device, products, &kept, base, &mut sources);
        }
        let _ = writeln!(out, "    source:");
        for (key, words) in sources {
            let _ = writeln!(out, "      {key}: {}", quoted(&words));
        }
    }
}

fn kept_words(kept: &BTreeMap<String, String>, name: &str, base: &str) -> String {
    match kept.get(name) {
        Some(words) => format!("{words}; kept from profile `{base}`, not measured here"),
        None => format!("assumed, kept from profile `{base}`, not measured here"),
    }
}

/// As a scalar in double quotes.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn gemm(
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
    let us = |seconds: f64| format!("{} us", digits(seconds * 1e6));
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
    let by_shape: BTreeMap<[u64; 3], f64> = points.iter().copied().collect();
    let mut columns: Vec<(u64, u64)> = points.iter().map(|([_, n, k], _)| (*k, *n)).collect();
    columns.sort_unstable();
    columns.dedup();
    let mut rows: Vec<u64> = points.iter().map(|([m, ..], _)| *m).collect();
    rows.sort_unstable();
    rows.dedup();
    let time = |m: u64, (k, n): (u64, u64)| by_shape.get(&[m, n, k]);
    // The table is a full rectangle: rows that most columns have, columns that have all of those.
    rows.retain(|&m| 2 * columns.iter().filter(|c| time(m, **c).is_some()).count() > columns.len());
    columns.retain(|&c| rows.iter().all(|&m| time(m, c).is_some()));
    if rows.is_empty() || columns.is_empty() {
        return;
    }
    let _ = writeln!(out, "    table:\n      dtype: bf16");
    let mut words = kept_words(kept, "gemm.table", base);
    if measured {
        let launch = device.costs.lane.get() + device.costs.kernel_start.get();
        let _ = writeln!(out, "      launch: {}", us(launch));
        let n = products.iter().map(|p| p.time.n).min().unwrap_or(0);
        let mut spreads: Vec<f64> = products
            .iter()
            .map(|p| (p.time.high - p.time.low) / 2.0 / p.time.value)
            .collect();
        spreads.sort_by(f64::total_cmp);
        let spread = spreads[spreads.len() / 2];
        words = format!(
            "measured, medians of bursts by cuBLASLt's first algorithm, n={n} or more each, 95 % within {} % (median of shapes); random data, clocks as under load",
            digits(100.0 * spread)
        );
    }
    sources.insert("table".to_owned(), words);
    let names: Vec<String> = columns.iter().map(|(k, n)| format!("{k}x{n}")).collect();
    let _ = writeln!(out, "      columns: [{}]\n      rows:", names.join(", "));
    for m in rows {
        let times: Vec<String> = columns
            .iter()
            .filter_map(|c| time(m, *c))
            .map(|t| us(*t))
            .collect();
        let _ = writeln!(out, "        {m}: [{}]", times.join(", "));
    }
}

/// Five significant digits, without an exponent.
fn digits(value: f64) -> String {
    let rounded = format!("{value:.4e}").parse::<f64>();
    rounded.unwrap_or(value).to_string()
}

/// Nodes, links and shared capacities.
fn links(out: &mut String, machine: &Machine, facts: &Facts) {
    let get = |name: &str| facts.get(name).copied();
    let gpus = machine.gpus;
    let last = gpus.saturating_sub(1);
    let switched = machine.peers && gpus > 2;
    let _ = writeln!(out, "nodes:\n  gpus: {gpus}\n  hosts: 1\n  roots: 1");
    if switched {
        let _ = writeln!(out, "  switches: 1");
    }
    let _ = writeln!(out, "links:");
    let words = |e: Option<Estimate>, how: &str| match e {
        Some(e) => {
            let [low, high] = [e.low, e.high].map(|v| digits(v / 1e9));
            format!("measured, n={}, 95 % {low} to {high} GB/s; {how}", e.n)
        }
        None => format!("assumed, not measured; {how}"),
    };
    let mut link = |between: &str, kind: &str, rate: f64, latency: f64, source: &str| {
        let _ = writeln!(
            out,
            "  - between: [{between}]\n    kind: {kind}\n    bandwidth: {} GB/s\n    latency: {} us\n    source: {}",
            digits(rate / 1e9),
            digits(latency),
            quoted(source)
        );
    };
    let gpu_range = match last {
        0 => "gpu0".to_owned(),
        last => format!("gpu0..{last}"),
    };
    let mut prefer = Vec::new();
    if let Some(rate) = get("p2p.bandwidth").filter(|_| machine.peers && gpus > 1) {
        let between = match switched {
            true => format!("{gpu_range}, switch0"),
            false => "gpu0, gpu1".to_owned(),
        };
        let source = words(
            Some(rate),
            "copies by copy engine, slope over sizes; latency assumed",
        );
        link(&between, machine.kind(), rate.value, LATENCY[0], &source);
        prefer.push(machine.kind());
    }
    let ways = [get("host.d2h"), get("host.h2d")];
    let ways: Vec<Estimate> = ways.into_iter().flatten().collect();
    let pcie = ways.iter().copied().reduce(|a, b| Estimate {
        value: (a.value + b.value) / 2.0,
        low: a.low.min(b.low),
        high: a.high.max(b.high),
        n: a.n + b.n,
    });
    let rate = pcie.map_or(55e9, |e| e.value);
    let source = words(
        pcie,
        "pinned memory, slope over sizes, mean of both ways; latency assumed",
    );
    link(
        &format!("{gpu_range}, cpu0"),
        "pcie",
        rate,
        LATENCY[1],
        &source,
    );
    // Each way in an exchange: two shards are written and read at once.
    let exchange = get("host.exchange").map(|e| e.map(|v| 4.0 * v));
    let copies = get("host.both.all").or_else(|| get("host.both"));
    let dram = [exchange, copies]
        .into_iter()
        .flatten()
        .reduce(|a, b| match a.value > b.value {
            true => a,
            false => b,
        });
    let most = dram.map_or(DRAM, |e| e.value.max(DRAM));
    link(
        "dram0, cpu0",
        "dram",
        most,
        LATENCY[2],
        "assumed, no limit below the shared one was seen",
    );
    prefer.extend(["pcie", "dram"]);
    let _ = writeln!(out, "shared:");
    let mut shared = |name: &str, links: &str, e: Estimate, how: &str| {
        let (rate, source) = (digits(e.value / 1e9), quoted(&words(Some(e), how)));
        let _ = writeln!(
            out,
            "  - name: {name}\n    links: [{links}]\n    bandwidth: {rate} GB/s\n    source: {source}"
        );
    };
    let port = get("host.both").unwrap_or(Estimate::exact(2.0 * rate, 0));
    for gpu in 0..gpus {
        let links = format!("gpu{gpu}->cpu0, cpu0->gpu{gpu}");
        shared(
            &format!("port{gpu}"),
            &links,
            port,
            "GPU 0, both ways at once",
        );
    }
    let dram = dram.unwrap_or(Estimate::exact(DRAM, 0));
    let how = "four times the best exchange of two GPUs each way, or all copies at once if more";
    shared("dram0", "cpu0->dram0, dram0->cpu0", dram, how);
    let _ = writeln!(
        out,
        "prefer: [{}]\nstaging_chunk: 4 MiB\ndefault_tp: {gpus}",
        prefer.join(", ")
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology;

    fn machine(gpus: u32) -> Machine {
        Machine {
            name: "box".to_owned(),
            gpus,
            model: "NVIDIA \"H200\"".to_owned(),
            hashes: vec!["00ff".to_owned()],
            peers: true,
            nvlink: true,
            sms: 132,
            memory: 150_000_000_001,
            l2: 60 << 20,
            software: "driver 580.1".to_owned(),
            date: "2026-11-30".to_owned(),
        }
    }

    fn facts() -> Facts {
        [
            ("kernel.each", 1.912_34e-6),
            ("p2p.start", 9.567_89e-6),
            ("p2p.bandwidth", 393.456_78e9),
            ("host.d2h", 55.1e9),
            ("host.h2d", 54.3e9),
            ("host.both", 99.9e9),
            ("host.exchange", 43.2e9),
            ("nccl.rate", 250e9),
            ("p2p.engines", 2.0),
            ("odd", 1.5),
        ]
        .into_iter()
        .map(|(name, value)| {
            let spread = Estimate {
                value,
                low: 0.99 * value,
                high: 1.01 * value,
                n: 9,
            };
            (name.to_owned(), spread)
        })
        .collect()
    }

    fn products() -> Vec<Product> {
        let mut all = Vec::new();
        for (k, n) in [(8192, 8192), (4096, 4096)] {
            for m in [128, 1024, 8192_u64] {
                let seconds = 10e-6 + 2.0 * (m * n * k) as f64 / 700e12;
                let time = Estimate {
                    value: seconds,
                    low: 0.99 * seconds,
                    high: 1.02 * seconds,
                    n: 5,
                };
                all.push(Product { m, n, k, time });
            }
        }
        all
    }

    fn load(text: &str) -> topology::Topology {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("box.yaml");
        std::fs::write(&path, text).unwrap();
        topology::load(path.to_str().unwrap(), &[])
            .unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn what_is_written_is_read_back() {
        let base = device::load("h200").unwrap();
        for gpus in [1, 2, 8] {
            let machine = machine(gpus);
            let (text, refused) = text(
                &machine,
                &base,
                &facts(),
                &products(),
                &["a: note\nof two lines".to_owned()],
            );
            assert!(refused.is_empty(), "{refused:?}");
            let found = load(&text);
            let all = fields(&facts(), &base, machine.latency(), machine.kind());
            let (wanted, _) = apply(&base, &all, machine.kind());
            let gpu = found.device(0);
            for (one, two) in device::numbers(gpu)
                .into_iter()
                .zip(device::numbers(&wanted))
            {
                assert_eq!(one.name, two.name);
                let own = [
                    "memory.size",
                    "memory.l2",
                    "compute.sustained",
                    "gemm.overhead",
                ];
                if !own.contains(&one.name.as_str()) {
                    let close = (one.value - two.value).abs() <= 1e-9 * two.value;
                    assert!(close, "{one:?} {two:?}");
                }
            }
            assert_eq!(
                (gpu.memory.get(), gpu.l2.get()),
                (150_000_000_001, 60 << 20)
            );
            assert_eq!(gpu.gemm_table.len(), 6);
            let launch = gpu.costs.lane.get() + gpu.costs.kernel_start.get();
            for product in products() {
                let same = |p: &&device::MeasuredGemm| {
                    (p.m, p.n, p.k) == (product.m, product.n, product.k)
                };
                let point = gpu.gemm_table.iter().find(same).unwrap();
                let error = (point.time.get() + launch) / product.time.value - 1.0;
                assert!(error.abs() < 1e-4, "{error}");
            }
            assert!(text.contains("#= odd = 1.5000e0 from 1.4850e0 to 1.5150e0, n 9"));
            assert!(text.contains("kept from profile `h200`"));
        }
    }

    #[test]
    fn a_calibration_of_nothing_is_the_profile_it_began_with() {
        let base = device::load("h100-sxm").unwrap();
        let (text, _) = text(&machine(2), &base, &Facts::new(), &[], &[]);
        let found = load(&text);
        assert_eq!(found.device(0).costs, base.costs);
        assert_eq!(found.device(0).tiles, base.tiles);
        // No bandwidth between GPUs was measured, so they meet in host memory.
        assert!(found.kinds.iter().all(|kind| !kind.starts_with("nvlink")));
    }
}
