//! `replicate`: copies of a part, each with its own names (`box0.gpu0`, `box1.gpu0`, …).
//!
//! Inside the part a name means the copy's own node if there is one, else a node of the whole.

use super::{Generator, Scope, count};
use crate::input::Fields;
use crate::topology::read::draft::Draft;
use crate::topology::read::{links, nodes, shared};

pub(super) const GENERATOR: Generator = Generator {
    name: "replicate",
    about: "copies of a part: nodes, generators, links and shared capacities",
    run,
};

fn run(fields: &mut Fields, scope: Scope, draft: &mut Draft) -> Option<()> {
    let copies = count(fields, "count", (1, 1_000_000), None, draft)?;
    let stem = match fields.get("name") {
        Some(node) => node.word("name", &mut draft.found)?,
        None => "box",
    };
    let part_nodes = fields.get("nodes");
    let generators = fields.get("generate");
    let part_links = fields.get("links");
    let part_shared = fields.get("shared");
    if part_nodes.or(generators).is_none() {
        draft.found.push(
            scope
                .at
                .wrong("nothing to copy", "expected `nodes` or `generate`")
                .help("write e.g. `replicate: { count: 4, nodes: { gpus: 8 }, links: […] }`"),
        );
        return None;
    }
    draft.room(scope.at, copies, 0).then_some(())?;
    let outer = draft.scope_start;
    let before = draft.gpus.len();
    let nodes_before = draft.graph.node_count();
    for copy in 0..copies {
        let prefix = format!("{}{stem}{copy}.", scope.prefix);
        draft.scope_start = draft.gpus.len();
        if let Some(node) = part_nodes {
            nodes::read(node, &prefix, draft);
        }
        if let Some(node) = generators {
            super::read(node, &prefix, draft);
        }
        if let Some(node) = part_links {
            links::read(node, &prefix, draft);
        }
        if let Some(node) = part_shared {
            shared::read(node, &prefix, draft);
        }
        if draft.graph.node_count() == nodes_before && draft.found.is_empty() {
            let mistake = scope
                .at
                .wrong("a copy of no nodes", "expected nodes to copy");
            draft
                .found
                .push(mistake.help("put nodes or a generator into the part"));
        }
        // Every further copy would have the same mistakes.
        if !draft.found.is_empty() {
            break;
        }
    }
    draft.scope_start = outer;
    let copied = u64::try_from(draft.gpus.len() - before).ok()?;
    let gpus = u32::try_from(copied / copies).ok().filter(|&gpus| gpus > 0);
    draft.box_size = draft.box_size.or(gpus);
    Some(())
}
