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
//!   algorithms: …                               # see `algorithms`
//! ```

use super::section::{Section, map_of};
use super::slot::share;
use super::{DType, Device, MeasuredGemm, Tile, algorithms};
use crate::input::yaml::Node;
use crate::input::{Diagnostic, Diagnostics, Fields};
use crate::units::Seconds;

/// Tiles are powers of two or thrice those; beyond this no SM holds one.
pub(super) const MAX_TILE: u32 = 4096;

/// Largest extent of a measured GEMM.
pub(super) const MAX_EXTENT: u64 = 1 << 32;

/// Stands where a shape was not measured.
pub(crate) const MISSING: &str = "none";

/// Reads tiles, table and algorithms into `device`.
pub(super) fn read(section: &Section<'_>, device: &mut Device, found: &mut Diagnostics) {
    device.tiles.clear();
    let example = "{ 256x128: 0.95, 128x128: 0.89 }";
    for (key, value) in map_of(section, "tiles", example, found) {
        let Some((m, n)) = pair(key, "a tile", u64::from(MAX_TILE), found) else {
            continue;
        };
        let Some(text) = value.word("tiles", found) else {
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
        let _: Option<()> = table(node, device, found);
    }
    if let Some(node) = section.get("algorithms") {
        let _: Option<()> = algorithms::read(node, device, found);
    }
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

/// Reads the table; `None` with a mistake pushed when it is wrong.
fn table(node: &Node, device: &mut Device, found: &mut Diagnostics) -> Option<()> {
    let mut fields = Fields::of(node, "a GEMM table", found)?;
    let dtype = fields.need("dtype", "bf16", found);
    let launch: Option<Seconds> = fields.parse("launch", found);
    let columns = fields.need("columns", "[4096x4096]", found);
    let rows = fields.need("rows", "{ 128: [35 us] }", found);
    fields.finish(found);
    let dtype = DType::ALL[dtype?.choice("dtype", &DType::ALL.map(DType::name), found)?];
    let mut shapes = Vec::new();
    for column in columns?.list("a list of k x n", found)? {
        shapes.push(pair(column, "a column (k x n)", MAX_EXTENT, found)?);
    }
    let rows = Section::of("rows", rows?, found)?;
    for (key, times) in rows.entries {
        let m = key.whole("a row (m)", 1, MAX_EXTENT, found)?;
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
            let kernel = time.get() - launch.unwrap_or_default().get();
            if kernel <= 0.0 {
                let message = format!("{time} leaves nothing for the GEMM");
                let mistake = node.wrong(message, "expected more than `launch`");
                found.push(mistake);
                return None;
            }
            device.gemm_table.push(MeasuredGemm {
                dtype,
                m,
                n,
                k,
                time: Seconds::of(kernel),
                correction: 1.0,
            });
        }
    }
    Some(())
}
