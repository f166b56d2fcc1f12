//! The `gemm` section: tile shapes, and the table of measured GEMMs.
//!
//! ```yaml
//! gemm:
//!   overhead: 7 us
//!   tiles: { 256x128: 0.95, 128x128: 0.89 }     # tm × tn: share of an SM's peak
//!   table:
//!     dtype: bf16
//!     launch: 16 us                             # part of every entry, taken off
//!     columns: [4096x4096, 8192x3584]           # k × n
//!     rows:
//!       128: [35 us, 46 us]                     # m: times
//!       256: [35 us, none]                      # not measured
//!     us: { 4096x4096: 128:35 256:46.1 }        # or, where columns have other rows: m:microseconds by k × n
//!   algorithms: …                               # see `algorithms`
//! ```

use std::collections::BTreeSet;

use super::section::{Section, filled, map_of, once, words};
use super::slot::share;
use super::{DType, Device, MeasuredGemm, Tile, algorithms};
use crate::input::yaml::Node;
use crate::input::{Diagnostic, Diagnostics, Fields, Span};
use crate::units::Seconds;

/// Tiles are powers of two or thrice those; beyond this no SM holds one.
pub(super) const MAX_TILE: u32 = 4096;

/// Largest extent of a measured GEMM.
pub(super) const MAX_EXTENT: u64 = 1 << 32;

/// Largest time of a GEMM \[us\].
const MOST_US: f64 = 1e12;

/// Stands where a shape was not measured.
const MISSING: &str = "none";

/// Reads tiles, table and algorithms into `device`; returns the places of the table's times.
pub(super) fn read(
    section: &Section<'_>,
    device: &mut Device,
    found: &mut Diagnostics,
) -> Vec<Span> {
    let mut places = Vec::new();
    let mut seen = BTreeSet::new();
    device.tiles.clear();
    let example = "{ 256x128: 0.95, 128x128: 0.89 }";
    for (key, value) in map_of(section, "tiles", example, found) {
        let Some((m, n)) = pair(key, "a tile", u64::from(MAX_TILE), found) else {
            continue;
        };
        let (Some(()), Some(text)) = (
            once(&mut seen, (m, n), key, found),
            value.word("tiles", found),
        ) else {
            continue;
        };
        match share(text) {
            Ok(efficiency) => device.tiles.push(Tile {
                m: m as u32,
                n: n as u32,
                efficiency,
            }),
            Err(words) => found.push(Diagnostic::from_words(
                value.span.clone(),
                "an efficiency",
                &words,
            )),
        }
    }
    if device.tiles.is_empty() && found.is_empty() {
        let mistake = section
            .node
            .wrong("`tiles` is empty", "expected at least one tile");
        found.push(mistake.help(format!("write e.g. `tiles: {example}`")));
    }
    if let Some(node) = section.get("table") {
        // Mistakes are in `found`.
        let _: Option<()> = table(node, device, &mut places, found);
    }
    if let Some(node) = section.get("algorithms") {
        let _: Option<()> = algorithms::read(node, device, found);
    }
    places
}

/// Two extents written `256x128`, each from 1 to `most`, or a mistake pushed.
pub(super) fn pair(
    node: &Node,
    what: &str,
    most: u64,
    found: &mut Diagnostics,
) -> Option<(u64, u64)> {
    let text = node.word(what, found)?;
    let extent = |text: &str| {
        let number = text.trim().parse::<u64>().ok();
        number.filter(|number| (1..=most).contains(number))
    };
    let both = text
        .split_once('x')
        .and_then(|(one, two)| Some((extent(one)?, extent(two)?)));
    if both.is_none() {
        let label = format!("expected two whole numbers from 1 to {most}");
        let mistake = node.wrong(format!("`{text}` is not {what}"), label);
        found.push(mistake.help("write e.g. `256x128`"));
    }
    both
}

/// Reads the table and the places of its times; `None` with a mistake pushed when it is wrong.
fn table(
    node: &Node,
    device: &mut Device,
    places: &mut Vec<Span>,
    found: &mut Diagnostics,
) -> Option<()> {
    let mut fields = Fields::of(node, "a GEMM table", found)?;
    let dtype = fields.need("dtype", "bf16", found);
    let launch: Option<Seconds> = fields.parse("launch", found);
    let each = fields.get("us");
    let matrix = each.is_none().then(|| {
        let columns = fields.need("columns", "[4096x4096]", found);
        (columns, fields.need("rows", "{ 128: [35 us] }", found))
    });
    fields.finish(found);
    let dtype = DType::ALL[dtype?.choice("dtype", &DType::ALL.map(DType::name), found)?];
    let launch = launch.unwrap_or_default();
    let mut keep = |place: Span, [m, n, k]: [u64; 3], time: Seconds| {
        places.push(place);
        device.gemm_table.push(MeasuredGemm {
            dtype,
            m,
            n,
            k,
            time,
            correction: 1.0,
        });
    };
    if let Some(node) = each {
        for (place, shape, time) in timed(node, launch, found)? {
            keep(place, shape, time);
        }
    }
    let Some((columns, rows)) = matrix else {
        return Some(());
    };
    let mut shapes = Vec::new();
    let mut seen = BTreeSet::new();
    let columns = columns?;
    let listed = columns.list("a list of k x n", found)?;
    filled(columns, "columns", listed, "[4096x4096]", found)?;
    for column in listed {
        let shape = pair(column, "a column (k x n)", MAX_EXTENT, found)?;
        once(&mut seen, shape, column, found)?;
        shapes.push(shape);
    }
    let rows = Section::of("rows", rows?, found)?;
    filled(rows.node, "rows", rows.entries, "{ 128: [35 us] }", found)?;
    let mut seen = BTreeSet::new();
    for (key, times) in rows.entries {
        let m = key.whole("a row (m)", 1, MAX_EXTENT, found)?;
        once(&mut seen, m, key, found)?;
        let times = times.list("a list of times", found)?;
        if times.len() != shapes.len() {
            let message = format!("{} times for {} columns", times.len(), shapes.len());
            found.push(key.wrong(message, "expected one time per column"));
            return None;
        }
        for (node, &(k, n)) in times.iter().zip(&shapes) {
            if node.text() == Some(MISSING) {
                continue;
            }
            let time: Seconds = node.parse("time", found)?;
            let time = without(launch, &node.span, time, found)?;
            keep(node.span.clone(), [m, n, k], time);
        }
    }
    Some(())
}

/// What a measured time leaves for the GEMM; `None` with a mistake pushed where that is nothing.
fn without(
    launch: Seconds,
    place: &Span,
    time: Seconds,
    found: &mut Diagnostics,
) -> Option<Seconds> {
    let kernel = time.get() - launch.get();
    if kernel <= 0.0 {
        let message = format!("{time} leaves nothing for the GEMM");
        let mistake = Diagnostic::new(place.clone(), message, "expected more than `launch`");
        found.push(mistake);
        return None;
    }
    Some(Seconds::of(kernel))
}

/// A GEMM `[m, n, k]` with its time and where that stands.
type Timed = (Span, [u64; 3], Seconds);

/// The GEMMs of `{ 4096x4096: 128:35 256:46.1 }` without `launch`; `None` with a mistake pushed.
pub(super) fn timed(node: &Node, launch: Seconds, found: &mut Diagnostics) -> Option<Vec<Timed>> {
    let us = Section::of("us", node, found)?;
    let example = "{ 4096x4096: 128:35 256:46.1 }";
    filled(node, "us", us.entries, example, found)?;
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for (key, times) in us.entries {
        let column = pair(key, "a column (k x n)", MAX_EXTENT, found)?;
        once(&mut seen, column, key, found)?;
        let (k, n) = column;
        for (place, m, time) in micros(times, found)? {
            let time = without(launch, &place, time, found)?;
            all.push((place, [m, n, k], time));
        }
    }
    Some(all)
}

/// Numbers of rows and their times, `128:35 256:46.1` \[us\], with their places; `None` with a mistake
/// pushed.
fn micros(node: &Node, found: &mut Diagnostics) -> Option<Vec<(Span, u64, Seconds)>> {
    let mut all: Vec<(Span, u64, Seconds)> = Vec::new();
    for (place, word) in words(node, node.word("times", found)?) {
        let entry = word.split_once(':').and_then(|(m, us)| {
            let m = m.parse::<u64>().ok()?;
            let us = us.parse::<f64>().ok()?;
            let after = all.last().is_none_or(|(_, before, _)| *before < m);
            let fits = (1..=MAX_EXTENT).contains(&m) && us > 0.0 && us < MOST_US;
            (after && fits).then(|| (m, Seconds::of(us * 1e-6)))
        });
        let Some((m, time)) = entry else {
            let label = "expected growing numbers of rows, each with its time in microseconds";
            let mistake = Diagnostic::new(place, format!("`{word}` is no time of rows"), label);
            found.push(mistake.help("write e.g. `128:35 256:46.1`"));
            return None;
        };
        all.push((place, m, time));
    }
    if all.is_empty() {
        let mistake = node.wrong(
            "a column without times",
            "expected numbers of rows and times",
        );
        found.push(mistake.help("write e.g. `128:35 256:46.1`, or leave the column out"));
        return None;
    }
    Some(all)
}

#[cfg(test)]
mod tests;
