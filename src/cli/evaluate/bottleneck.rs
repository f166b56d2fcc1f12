//! What bounds a timeline.

use crate::report::names;
use crate::timeline::{Bound, Timeline, critical_path};
use crate::topology::Topology;

/// What bounds most of the critical path: `compute`, `nvlink links`, `launch and sync`, …
pub fn bottleneck(topology: &Topology, timeline: &Timeline) -> String {
    let mut causes: Vec<(String, f64)> = Vec::new();
    let mut add = |cause: String, seconds: f64| match causes.iter_mut().find(|(c, _)| *c == cause) {
        Some((_, sum)) => *sum += seconds,
        None => causes.push((cause, seconds)),
    };
    let mut before = 0.0;
    for task in critical_path(timeline) {
        let span = &timeline.spans[task.index()];
        add("launch and sync".to_owned(), (span.start - before).max(0.0));
        add(
            class(topology, span.bound),
            span.end - span.start.max(before),
        );
        before = span.end;
    }
    let most = causes
        .into_iter()
        .reduce(|most, next| if next.1 > most.1 { next } else { most });
    most.map_or_else(|| "nothing".to_owned(), |(cause, _)| cause)
}

/// A bound without its place: all links of a kind are one cause.
fn class(topology: &Topology, bound: Bound) -> String {
    match bound {
        Bound::Link(id) => match topology.graph.edge_weight(id) {
            Some(link) => format!("{} links", topology.kinds[usize::from(link.kind)]),
            None => "links".to_owned(),
        },
        Bound::Hbm(_) => "GPU memory".to_owned(),
        Bound::Nothing | Bound::Latency => "launch and sync".to_owned(),
        other => names::bound(topology, other),
    }
}
