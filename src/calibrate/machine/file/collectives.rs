//! The profile's table of measured collectives.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::super::profile::Facts;
use super::Machine;
use crate::device::digits;

/// Names of facts are this, the collective and the bytes that each member sends.
pub const PREFIX: &str = "nccl.time.";

/// Writes it below `library:` and notes its source; nothing where nothing was measured.
pub fn write(
    out: &mut String,
    machine: &Machine,
    facts: &Facts,
    sources: &mut BTreeMap<String, String>,
) {
    let mut kinds: BTreeMap<&str, Vec<(u64, f64)>> = BTreeMap::new();
    let mut n = usize::MAX;
    for (name, time) in facts {
        let parts = name.strip_prefix(PREFIX).and_then(|n| n.rsplit_once('.'));
        if let Some((kind, bytes)) = parts
            && let Ok(bytes) = bytes.parse()
        {
            kinds.entry(kind).or_default().push((bytes, time.value));
            n = n.min(time.n);
        }
    }
    let several = machine.gpus > 1 && !kinds.is_empty();
    let Some(link) = facts.get("p2p.bandwidth").filter(|_| several) else {
        return;
    };
    let events = facts.get("kernel.first").zip(facts.get("kernel.each"));
    let launch = events.map_or(0.0, |(first, each)| (first.value - each.value).max(0.0));
    let us = |seconds: f64| format!("{} us", digits(seconds * 1e6));
    let _ = writeln!(
        out,
        "    table:\n      ranks: {}\n      launch: {}\n      link: {{ kind: {}, bandwidth: {} GB/s, latency: {} }}",
        machine.gpus,
        us(launch),
        machine.kind(),
        digits(link.value / 1e9),
        us(machine.latency()),
    );
    for (kind, mut points) in kinds {
        points.sort_unstable_by_key(|(bytes, _)| *bytes);
        // What the two events alone take is no time of a collective.
        let points = points.iter().filter(|(_, time)| *time > launch);
        let points: Vec<String> = points
            .map(|(bytes, time)| format!("{bytes} B: {}", us(*time)))
            .collect();
        let _ = writeln!(out, "      {kind}: {{ {} }}", points.join(", "));
    }
    let words =
        format!("measured, medians of calls by themselves, slowest GPU, n={n} or more each");
    sources.insert("table".to_owned(), words);
}
