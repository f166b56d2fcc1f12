//! The GPU-to-GPU matrix and the link table.

use crate::report::grid::{Grid, Look, Paint, clean, paint, wrap};
use crate::report::names;
use crate::topology::matrix::Matrix;
use crate::topology::sketch::{Bundle, Sketch};
use crate::topology::{Link, NodeKind, Topology};

/// Bandwidths in GB/s, one row a sender; staged pairs carry an `s`, pairs of several paths an `m`.
pub fn bandwidths(topology: &Topology, matrix: &Matrix, look: &Look) -> String {
    let mut grid = Grid::default().right("", 0);
    for gpu in &matrix.gpus {
        grid = grid.right(names::gpu(topology, *gpu), 0);
    }
    let (mut staged, mut split, mut apart) = (false, false, false);
    for (row, gpu) in matrix.gpus.iter().enumerate() {
        let mut cells = vec![paint(&names::gpu(topology, *gpu), Paint::Bold)];
        for column in 0..matrix.gpus.len() {
            let cell = matrix.cell(row, column);
            if row == column {
                cells.push(paint("–", Paint::Dim));
                continue;
            }
            if cell.paths == 0 {
                apart = true;
                cells.push(paint("none", Paint::Dim));
                continue;
            }
            staged |= cell.stops > 0;
            split |= cell.paths > 1;
            let mark = match (cell.stops > 0, cell.paths > 1) {
                (true, _) => "s",
                (false, true) => "m",
                (false, false) => "",
            };
            cells.push(format!("{}{mark}", gigabytes(cell.bandwidth.get())));
        }
        grid.row(cells);
    }
    let mut out = grid.draw(look);
    if staged {
        out.push_str("s: staged through host memory\n");
    }
    if apart {
        out.push_str("none: no way but through other GPUs, which do not forward\n");
    }
    if split {
        out.push_str("m: split over several paths\n");
    }
    out
}

/// Three digits in GB/s.
fn gigabytes(rate: f64) -> String {
    let value = rate / 1e9;
    if !value.is_finite() {
        return "inf".to_owned();
    }
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// Links of a kind and looks in one row, with where the numbers come from; then shared capacities.
pub fn links(topology: &Topology, look: &Look) -> String {
    let sketch = Sketch::new(topology);
    let mut rows: Vec<Row> = Vec::new();
    for bundle in &sketch.bundles {
        let ends = [bundle.from, bundle.to].map(|part| &sketch.parts[part]);
        let count = u64::from(bundle.at_from) * u64::from(ends[0].count);
        // Within one class each link is seen from both ends.
        let count = if bundle.from == bundle.to {
            count / 2
        } else {
            count
        };
        let arrow = if bundle.both_ways { "–" } else { "→" };
        let pair = format!("{} {arrow} {}", clean(&ends[0].name), clean(&ends[1].name));
        let head = [
            clean(&bundle.kind),
            bundle.bandwidth.to_string(),
            bundle.latency.to_string(),
            source(topology, bundle),
        ];
        match rows.iter_mut().find(|row| row.head == head) {
            Some(row) => {
                row.count += count;
                row.pairs.push(pair);
            }
            None => rows.push(Row {
                head,
                count,
                pairs: vec![pair],
            }),
        }
    }
    let mut grid = Grid::default()
        .left("kind", 0)
        .right("links", 0)
        .right("each way", 0)
        .right("latency", 0)
        .left("between", 1);
    let mut notes = String::new();
    for row in rows {
        let [kind, bandwidth, latency, source] = row.head;
        if !source.is_empty() {
            let note = format!("{kind} {bandwidth}: {source}");
            notes.push_str(&wrap(&note, 0, 2, look.width));
        }
        let between = match row.pairs.as_slice() {
            [pair] => pair.clone(),
            [first, second] => format!("{first}, {second}"),
            [first, .., last] => format!("{first}, …, {last}"),
            [] => String::new(),
        };
        grid.row(vec![
            kind,
            row.count.to_string(),
            bandwidth,
            latency,
            between,
        ]);
    }
    let mut out = grid.draw(look);
    out.push_str(&notes);
    let shown = 12;
    for shared in topology.shared.iter().take(shown) {
        out.push_str(&format!(
            "shared: {} over {} link directions ({})\n",
            shared.bandwidth,
            shared.links.len(),
            clean(&shared.name)
        ));
    }
    if topology.shared.len() > shown {
        let more = topology.shared.len() - shown;
        out.push_str(&format!("… and {more} more shared capacities\n"));
    }
    for (kind, curve) in topology.kinds.iter().zip(&topology.contention) {
        if let Some(curve) = curve {
            let points: Vec<String> = (curve.0.iter())
                .map(|(flows, efficiency)| format!("{flows}: {efficiency}"))
                .collect();
            let kind = clean(kind);
            out.push_str(&format!(
                "contention: {kind} by flows {{{}}}\n",
                points.join(", ")
            ));
        }
    }
    out
}

struct Row {
    head: [String; 4],
    count: u64,
    pairs: Vec<String>,
}

/// The source of the first link with these looks.
fn source(topology: &Topology, bundle: &Bundle) -> String {
    let like = topology.graph.edge_weights().find(|link| {
        topology.kinds[usize::from(link.kind)] == bundle.kind
            && link.bandwidth == bundle.bandwidth
            && link.latency == bundle.latency
    });
    like.and_then(|link| source_of(topology, link))
        .map_or_else(String::new, clean)
}

/// Where a link's numbers come from, where the file says so.
pub fn source_of<'t>(topology: &'t Topology, link: &Link) -> Option<&'t str> {
    let source = topology.sources.get(link.source? as usize)?;
    Some(&source.0)
}

/// A kind of node as files call it.
pub const fn kind(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Gpu(_) => "gpu",
        NodeKind::Host => "host",
        NodeKind::Switch => "switch",
        NodeKind::Root => "root",
    }
}
