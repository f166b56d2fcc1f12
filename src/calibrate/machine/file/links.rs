//! Nodes, links and shared capacities.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::super::estimate::Estimate;
use super::super::profile::Facts;
use super::{LATENCY, Machine, quoted};
use crate::device::digits;
use crate::units::Bytes;

/// Bandwidth of memory where nothing tells \[bytes/s\], as in the shipped machines.
const DRAM: f64 = 200e9;

/// Writes them from what was measured.
pub fn write(out: &mut String, machine: &Machine, facts: &Facts) {
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
    let exchanges = exchanges(facts, rate);
    let exchange = (exchanges.iter().map(|(_, e)| *e)).reduce(larger);
    let copies = get("host.both.all").or_else(|| get("host.both"));
    let dram = [exchange, copies].into_iter().flatten().reduce(larger);
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
    // Copies both ways stage more than a processor's cache holds; an exchange in rings does not.
    let both = [get("host.both"), exchange.map(|e| e.map(|v| v / 2.0))];
    let port = both.into_iter().flatten().reduce(larger);
    let port = port.unwrap_or(Estimate::exact(2.0 * rate, 0));
    for gpu in 0..gpus {
        let links = format!("gpu{gpu}->cpu0, cpu0->gpu{gpu}");
        shared(
            &format!("port{gpu}"),
            &links,
            port,
            "one GPU, both ways at once, or half of an exchange of two if more",
        );
    }
    let dram = dram.unwrap_or(Estimate::exact(DRAM, 0));
    let how = "both ways of an exchange of two GPUs, written and read, its copies' starts taken off; or all copies at once if more";
    shared("dram0", "cpu0->dram0, dram0->cpu0", dram, how);
    if !exchanges.is_empty() {
        let point =
            |(bytes, e): &(u64, Estimate)| format!("{bytes} B: {} GB/s", digits(e.value / 1e9));
        let points: Vec<String> = exchanges.iter().map(point).collect();
        let _ = writeln!(out, "    footprint: {{ {} }}", points.join(", "));
    }
    let _ = writeln!(
        out,
        "prefer: [{}]\nstaging_chunk: 4 MiB\ndefault_tp: {gpus}",
        prefer.join(", ")
    );
}

/// The estimate of the larger value.
fn larger(a: Estimate, b: Estimate) -> Estimate {
    match a.value > b.value {
        true => a,
        false => b,
    }
}

/// What host memory carries in an exchange of two GPUs, by the staging memory of both rings
/// \[bytes, bytes/s\]: the best chunk of each footprint. Each ring copies chunks of s one after
/// another, each with a start g (`host.next`); while one starts the other three flow at the rate b of their own
/// links. With r the rate measured each way, a chunk takes s/r, and each of the four copies flows at
///
/// ```text
/// x = (s − b·g) / (s/r − 2·g)         memory carries 4·x
/// ```
fn exchanges(facts: &Facts, link: f64) -> Vec<(u64, Estimate)> {
    let of = |name: &str| facts.get(name).map(|e| e.value);
    let start = of("host.next").unwrap_or(0.0);
    let mut found: BTreeMap<u64, Estimate> = BTreeMap::new();
    for (name, rate) in facts {
        let Some(rest) = name.strip_prefix("host.exchange.") else {
            continue;
        };
        let sizes = rest.split_once('.');
        let size = |text: &str| text.parse::<Bytes>().ok().map(Bytes::get);
        let Some((chunk, ring)) = sizes.and_then(|(c, r)| size(c).zip(size(r))) else {
            continue;
        };
        let (s, staged) = (chunk as f64, 2 * ring);
        let own = |r: f64| 4.0 * (s - link * start) / (s / r - 2.0 * start);
        if ring < 4 * chunk || own(rate.high) <= 0.0 || !own(rate.high).is_finite() {
            continue; // too few slots to keep both ends busy, or nothing but starts
        }
        let memory = rate.map(own);
        let best = found.entry(staged).or_insert(memory);
        *best = larger(*best, memory);
    }
    found.into_iter().collect()
}
