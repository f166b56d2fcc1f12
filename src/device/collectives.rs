//! The `library` section's table of measured collectives.
//!
//! ```yaml
//! library:
//!   table:
//!     ranks: 2
//!     launch: 3.1 us                                  # part of every entry, taken off
//!     link: { kind: nvlink-pair, bandwidth: 394 GB/s, latency: 500 ns }
//!     all-gather: { 4 KiB: 9 us, 256 MiB: 1.05 ms }   # by bytes that each member sends
//! ```
//!
//! A library changes its protocol and algorithm with the size, so that no line fits all sizes. The
//! table is a factor on the line, `measured / line`, as the table of GEMMs is on the wave model:
//!
//! ```text
//! line(kind, s) = kernel_start + base + steps · (step + latency) + s / (bandwidth · efficiency)
//! steps = ranks − 1, twice that for an all-reduce
//! ```
//!
//! Between sizes it is linear in log s, beyond them constant.

use std::collections::BTreeSet;

use super::section::{Section, once};
use super::{Device, Library};
use crate::input::yaml::{Node, Value};
use crate::input::{Diagnostics, Fields};
use crate::units::{Bytes, BytesPerSecond, Seconds};

/// The collectives of a table, by their place in [`CollectiveTable::points`].
pub const COLLECTIVES: [&str; 4] = ["all-gather", "reduce-scatter", "all-reduce", "all-to-all"];

/// Measured collectives as factors on the line of [`Library`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectiveTable {
    /// By [`COLLECTIVES`]: (bytes that each member sends, measured time over the line's), ascending.
    pub points: [Vec<(f64, f64)>; 4],
}

impl CollectiveTable {
    /// The factor for the collective at `place` in [`COLLECTIVES`]; 1 without points.
    pub fn factor(&self, place: usize, sent: f64) -> f64 {
        let points = &self.points[place];
        let above = points.partition_point(|(bytes, _)| *bytes < sent);
        match (above.checked_sub(1).map(|i| points[i]), points.get(above)) {
            (None, None) => 1.0,
            (None, Some(&(_, factor))) | (Some((_, factor)), None) => factor,
            (Some((s0, f0)), Some(&(s1, f1))) => {
                let share = (sent.ln() - s0.ln()) / (s1.ln() - s0.ln());
                f0 + (f1 - f0) * share
            }
        }
    }
}

/// What a table holds before the section's other numbers are known.
pub(super) struct Measured {
    ranks: u32,
    kind: String,
    bandwidth: f64,
    latency: f64,
    /// (place, bytes, time).
    points: Vec<(usize, f64, f64)>,
}

/// Reads the table, if there is one.
pub(super) fn read(section: &Section<'_>, found: &mut Diagnostics) -> Option<Measured> {
    let node = section.get("table")?;
    let mut fields = Fields::of(node, "a table of collectives", found)?;
    let ranks = fields.need("ranks", "2", found);
    let launch: Option<Seconds> = fields.parse("launch", found);
    let link = fields.need(
        "link",
        "{ kind: nvlink, bandwidth: 450 GB/s, latency: 1 us }",
        found,
    );
    let kinds = COLLECTIVES.map(|name| fields.get(name));
    fields.finish(found);
    let ranks = ranks?.whole("ranks", 2, 1 << 16, found)?;
    let (kind, bandwidth, latency) = read_link(link?, found)?;
    let launch = launch.unwrap_or_default().get();
    let mut points = Vec::new();
    for (place, node) in kinds.into_iter().enumerate() {
        let Some(node) = node else { continue };
        let Value::Map(entries) = &node.value else {
            let message = format!("`{}` holds {}", COLLECTIVES[place], node.found());
            found.push(
                node.wrong(message, "expected a map of sizes and times")
                    .help(format!(
                        "write e.g. `{}: {{ 4 KiB: 9 us }}`",
                        COLLECTIVES[place]
                    )),
            );
            return None;
        };
        let mut seen = BTreeSet::new();
        for (size, time) in entries {
            let bytes: Bytes = size.parse("a size", found)?;
            once(&mut seen, bytes, size, found)?;
            let measured: Seconds = time.parse("a time", found)?;
            if bytes == Bytes::ZERO || measured.get() <= launch {
                let message = format!("{bytes} in {measured} leaves nothing to measure");
                found.push(time.wrong(message, "expected bytes, and more than `launch`"));
                return None;
            }
            points.push((place, bytes.as_f64(), measured.get() - launch));
        }
    }
    Some(Measured {
        ranks: ranks as u32,
        kind,
        bandwidth,
        latency,
        points,
    })
}

fn read_link(node: &Node, found: &mut Diagnostics) -> Option<(String, f64, f64)> {
    let mut fields = Fields::of(node, "the link of a table", found)?;
    let kind = fields.need("kind", "nvlink", found);
    let bandwidth: Option<BytesPerSecond> = fields.parse("bandwidth", found);
    let latency: Option<Seconds> = fields.parse("latency", found);
    fields.finish(found);
    let kind = kind?.word("kind", found)?.to_owned();
    let bandwidth = bandwidth.map_or(f64::INFINITY, |rate| rate.get());
    Some((kind, bandwidth, latency.unwrap_or_default().get()))
}

/// Turns measured times into factors, once all numbers of the profile are known.
pub(super) fn correct(device: &mut Device, measured: Measured) {
    let Measured {
        ranks,
        kind,
        bandwidth,
        latency,
        mut points,
    } = measured;
    let Library { base, step, .. } = device.library;
    let start = device.costs.kernel_start.get() + base.get();
    let rate = bandwidth * device.library.efficiency_of(&kind);
    points.sort_by(|a, b| {
        (a.0, a.1)
            .partial_cmp(&(b.0, b.1))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    for (place, bytes, time) in points {
        let rounds = if COLLECTIVES[place] == "all-reduce" {
            2.0
        } else {
            1.0
        };
        let steps = rounds * f64::from(ranks - 1);
        let line = start + steps * (step.get() + latency) + bytes / rate;
        if line > 0.0 && line.is_finite() {
            device.library.table.points[place].push((bytes, time / line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    const GOOD: &str = include_str!("../../topologies/gpus/h200.yaml");

    /// The H200 profile with a table.
    fn with(table: &str) -> Result<Device, String> {
        let line = "library:\n";
        assert!(GOOD.contains(line));
        let text = GOOD.replacen(line, &format!("{line}  table: {table}\n"), 1);
        let text = text.replacen(
            "    blocks: paper",
            "    table: measured\n    blocks: paper",
            1,
        );
        parse(&text, "x.yaml").map_err(|error| error.to_string())
    }

    const LINK: &str = "link: { kind: nvlink-pair, bandwidth: 100 GB/s, latency: 1 us }";

    #[test]
    fn factors_are_exact_at_the_points_and_between_them_linear_in_the_logarithm() {
        let gpu = with(&format!(
            "{{ ranks: 2, launch: 10 us, {LINK}, all-reduce: {{ 4 KiB: 60 us, 4 MiB: 310 us }} }}"
        ))
        .unwrap();
        let l = &gpu.library;
        let fixed = gpu.costs.kernel_start.get() + l.base.get() + 2.0 * (l.step.get() + 1e-6);
        let line = |s: f64| fixed + s / (100e9 * l.efficiency_of("nvlink-pair"));
        let (small, large) = (4096.0, 4096.0 * 1024.0);
        let [f0, f1] = [50e-6 / line(small), 300e-6 / line(large)];
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12 * b, "{a} {b}");
        near(l.table.factor(2, small), f0);
        near(l.table.factor(2, large), f1);
        near(l.table.factor(2, 4096.0 * 32.0), (f0 + f1) / 2.0);
        near(l.table.factor(2, 1.0), f0);
        near(l.table.factor(2, 1e12), f1);
        near(l.table.factor(0, small), 1.0);
    }

    #[test]
    fn mistakes_are_refused_in_words() {
        for (table, said) in [
            ("[]", "expected a map"),
            ("{ ranks: 1, link: {} }", "ranks"),
            ("{ ranks: 2, all-gather: { 4 KiB: 9 us } }", "`link`"),
            (
                "{ ranks: 2, launch: 9 us, link: { kind: a, bandwidth: 1 GB/s, latency: 0 us }, all-gather: { 4 KiB: 9 us } }",
                "more than `launch`",
            ),
            (
                "{ ranks: 2, link: { kind: a, bandwidth: 1 GB/s, latency: 0 us }, all-gathre: { 4 KiB: 9 us } }",
                "did you mean `all-gather`?",
            ),
            (
                "{ ranks: 2, link: { kind: a, bandwidth: 1 GB/s, latency: 0 us }, all-gather: { 4 KiB: 9 us, 4096 B: 8 us } }",
                "error: `4096 B` is given twice",
            ),
            (
                "{ ranks: 2, link: { kind: a, bandwidth: 1 GB/s, latency: 0 us }, all-gather: 9 us }",
                "a map of sizes and times",
            ),
        ] {
            let error = with(table).unwrap_err();
            assert!(error.contains(said), "{table}: {error}");
        }
    }
}
