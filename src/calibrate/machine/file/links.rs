//! Nodes, links and shared capacities.

use std::fmt::Write;

use super::super::estimate::Estimate;
use super::super::profile::Facts;
use super::{LATENCY, Machine, quoted};
use crate::device::digits;

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
