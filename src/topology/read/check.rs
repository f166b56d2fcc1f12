//! Checks of the whole machine, once its parts are right.

use petgraph::Direction;

use super::draft::Draft;
use crate::input::yaml::Node as Yaml;
use crate::topology::{NodeId, NodeKind};

/// There is a GPU, and every GPU reaches every other (through other GPUs too: schedules may pass
/// data on). Checked only while nothing else is wrong, as a mistaken link would be blamed twice.
pub(super) fn gpus(place: &Yaml, draft: &mut Draft) {
    if !draft.found.is_empty() {
        return;
    }
    let Some(&first) = draft.gpus.first() else {
        draft.found.push(
            place
                .wrong("a machine without GPUs", "expected at least one GPU")
                .help("add e.g. `gpus: 8` under `nodes`, or a generator"),
        );
        return;
    };
    for direction in [Direction::Outgoing, Direction::Incoming] {
        let reached = reach(first, direction, draft);
        let lost = draft.gpus.iter().find(|gpu| !reached[gpu.index()]);
        if let Some(&lost) = lost {
            let (from, to) = match direction {
                Direction::Outgoing => (first, lost),
                Direction::Incoming => (lost, first),
            };
            let (from, to) = (draft.name(from), draft.name(to));
            let message = format!("`{from}` cannot reach `{to}`");
            draft.found.push(
                place
                    .wrong(message, "expected every GPU to reach every other")
                    .help(format!("add links that lead from `{from}` to `{to}`")),
            );
            return;
        }
    }
}

/// The nodes that a walk from `start` comes to.
fn reach(start: NodeId, direction: Direction, draft: &Draft) -> Vec<bool> {
    let mut reached = vec![false; draft.graph.node_count()];
    let mut open = vec![start];
    reached[start.index()] = true;
    while let Some(node) = open.pop() {
        for next in draft.graph.neighbors_directed(node, direction) {
            if !std::mem::replace(&mut reached[next.index()], true) {
                open.push(next);
            }
        }
    }
    reached
}

/// Without peer access there must be a host to stage through.
pub(super) fn staging(place: &Yaml, draft: &mut Draft) {
    let is_host = |node: NodeId| draft.graph[node].kind == NodeKind::Host;
    if draft.gpus.len() > 1 && !draft.graph.node_indices().any(is_host) {
        draft.found.push(
            place
                .wrong("no peer access and no host", "transfers would have no way")
                .help("add a host with links to it (`nodes: { hosts: [dram0] }`), or `p2p: true`"),
        );
    }
}
