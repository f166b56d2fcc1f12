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

/// Largest time of a GEMM \[us\].
const MOST_US: f64 = 1e12;

/// Stands where a shape was not measured.
const MISSING: &str = "none";

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
    let each = fields.get("us");
    let matrix = each.is_none().then(|| {
        let columns = fields.need("columns", "[4096x4096]", found);
        (columns, fields.need("rows", "{ 128: [35 us] }", found))
    });
    fields.finish(found);
    let dtype = DType::ALL[dtype?.choice("dtype", &DType::ALL.map(DType::name), found)?];
    let launch = launch.unwrap_or_default();
    let mut keep = |node: &Node, [m, n, k]: [u64; 3], time: Seconds, found: &mut Diagnostics| {
        let kernel = time.get() - launch.get();
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
        Some(())
    };
    if let Some(node) = each {
        for (key, times) in Section::of("us", node, found)?.entries {
            let (k, n) = pair(key, "a column (k x n)", MAX_EXTENT, found)?;
            for (m, time) in micros(times, found)? {
                keep(times, [m, n, k], time, found)?;
            }
        }
    }
    let Some((columns, rows)) = matrix else {
        return Some(());
    };
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
            keep(node, [m, n, k], time, found)?;
        }
    }
    Some(())
}

/// Numbers of rows and their times, `128:35 256:46.1` \[us\]; `None` with a mistake pushed.
fn micros(node: &Node, found: &mut Diagnostics) -> Option<Vec<(u64, Seconds)>> {
    let mut all: Vec<(u64, Seconds)> = Vec::new();
    for word in node.word("times", found)?.split_whitespace() {
        let entry = word.split_once(':').and_then(|(m, us)| {
            let m = m.parse::<u64>().ok()?;
            let us = us.parse::<f64>().ok()?;
            let after = all.last().is_none_or(|(before, _)| *before < m);
            let fits = (1..=MAX_EXTENT).contains(&m) && us > 0.0 && us < MOST_US;
            (after && fits).then(|| (m, Seconds::of(us * 1e-6)))
        });
        let Some(entry) = entry else {
            let label = "expected growing numbers of rows, each with its time in microseconds";
            let mistake = node.wrong(format!("`{word}` is no time of rows"), label);
            found.push(mistake.help("write e.g. `128:35 256:46.1`"));
            return None;
        };
        all.push(entry);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use crate::device::{Device, parse};

    const BASE: &str = include_str!("../../topologies/gpus/h200.yaml");

    /// The H200's profile with another table.
    fn with(table: &str) -> String {
        let begin = BASE.find("    launch: 16 us\n").unwrap();
        let end = begin + BASE[begin..].find("  source:").unwrap();
        format!("{}{table}{}", &BASE[..begin], &BASE[end..])
    }

    fn points(gpu: &Device) -> Vec<([u64; 3], f64)> {
        let us = |time: f64| (time * 1e9).round() / 1e3;
        let point = |p: &crate::device::MeasuredGemm| ([p.m, p.n, p.k], us(p.time.get()));
        let mut all: Vec<_> = gpu.gemm_table.iter().map(point).collect();
        all.sort_by_key(|(shape, _)| *shape);
        all
    }

    #[test]
    fn times_by_column_are_those_of_the_matrix() {
        let matrix = with(
            "    launch: 5 us\n    columns: [4096x4096, 8192x3584]\n    rows: { 128: [35 us, none], 256: [none, 46.5 us] }\n",
        );
        let each =
            with("    launch: 5 us\n    us: { 4096x4096: \"128:35\", 8192x3584: \"256:46.5\" }\n");
        let [matrix, each] = [matrix, each].map(|text| {
            let gpu = parse(&text, "h200.yaml").unwrap_or_else(|e| panic!("{e}"));
            points(&gpu)
        });
        assert_eq!(
            matrix,
            [([128, 4096, 4096], 30.0), ([256, 3584, 8192], 41.5)]
        );
        assert_eq!(matrix, each);
    }

    #[test]
    fn wrong_times_by_column_have_place_and_remedy() {
        for (times, words) in [
            ("128:x", "`128:x` is no time of rows"),
            ("128", "`128` is no time of rows"),
            ("256:46 128:35", "`128:35` is no time of rows"),
            ("0:35", "`0:35` is no time of rows"),
            ("128:-1", "`128:-1` is no time of rows"),
            ("128:inf", "`128:inf` is no time of rows"),
            ("128:NaN", "`128:NaN` is no time of rows"),
            ("128:5", "5 us leaves nothing for the GEMM"),
        ] {
            let text = with(&format!(
                "    launch: 5 us\n    us: {{ 4096x4096: \"{times}\" }}\n"
            ));
            let error = parse(&text, "h200.yaml").unwrap_err().to_string();
            assert!(error.contains(words), "{times}: {error}");
            assert!(error.contains("h200.yaml:"), "{error}");
        }
        let both = with("    us: { 4096x4096: \"128:35\" }\n    columns: [4096x4096]\n");
        let error = parse(&both, "h200.yaml").unwrap_err().to_string();
        assert!(error.contains("columns"), "{error}");
    }
}
