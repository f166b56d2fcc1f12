//! `links:` pairs, lists of pairs and ranges of pairs; one way or both; full or half duplex.

use super::draft::{Draft, LinkSpec};
use super::names;
use crate::input::yaml::{Node as Yaml, Value};
use crate::input::{Diagnostic, Fields};
use crate::topology::{NodeId, Shared};

/// How the two directions of a link relate.
#[derive(Copy, Clone, PartialEq)]
enum Duplex {
    /// Each has the whole bandwidth.
    Full,
    /// Both together have it.
    Half,
    /// There is only one.
    OneWay,
}

/// Reads the section; `prefix` belongs to the copy that is being made.
pub(in crate::topology) fn read(node: &Yaml, prefix: &str, draft: &mut Draft) -> Option<()> {
    for item in node.list("a list of links", &mut draft.found)? {
        read_one(item, prefix, draft);
        if draft.found.is_full() {
            break;
        }
    }
    Some(())
}

fn read_one(item: &Yaml, prefix: &str, draft: &mut Draft) -> Option<()> {
    let mut fields = Fields::of(item, "a link", &mut draft.found)?;
    let spec = draft.spec(&mut fields, "link");
    let between = fields.get("between");
    let (from, to) = (fields.get("from"), fields.get("to"));
    let half = fields
        .get("duplex")
        .and_then(|node| node.choice("duplex", &["full", "half"], &mut draft.found));
    fields.finish(&mut draft.found);
    let mut pairs = Vec::new();
    let duplex = match (between, from, to) {
        (Some(node), None, None) => {
            read_between(node, prefix, draft, &mut pairs)?;
            if half == Some(1) {
                Duplex::Half
            } else {
                Duplex::Full
            }
        }
        (None, Some(from), Some(to)) => {
            join(from, to, prefix, draft, &mut pairs)?;
            Duplex::OneWay
        }
        _ => {
            draft.found.push(
                item.wrong("a link without its two ends", "expected `between`, or `from` and `to`")
                    .help("write e.g. `between: [gpu0, gpu1]`, or `from: gpu0, to: gpu1` for one direction"),
            );
            return None;
        }
    };
    let spec = spec?;
    if !draft.room(item, 0, 2 * pairs.len() as u64) {
        return None;
    }
    for (place, a, b) in pairs {
        if add(place, a, b, spec, duplex, draft).is_none() && draft.found.is_full() {
            break;
        }
    }
    Some(())
}

fn add(
    place: &Yaml,
    a: NodeId,
    b: NodeId,
    spec: LinkSpec,
    duplex: Duplex,
    draft: &mut Draft,
) -> Option<()> {
    if duplex == Duplex::OneWay {
        draft.one_way(&place.span, a, b, spec)?;
        return Some(());
    }
    let links = draft.both(&place.span, a, b, spec)?;
    if duplex == Duplex::Half {
        let name = format!("{}<->{}", draft.name(a), draft.name(b));
        draft.shared.push(Shared {
            name,
            links: links.to_vec(),
            bandwidth: spec.bandwidth,
            footprint: Vec::new(),
            half_duplex: true,
            source: spec.source,
        });
    }
    Some(())
}

type Pairs<'n> = Vec<(&'n Yaml, NodeId, NodeId)>;

/// `[a, b]`, or a list of such pairs.
fn read_between<'n>(
    node: &'n Yaml,
    prefix: &str,
    draft: &mut Draft,
    pairs: &mut Pairs<'n>,
) -> Option<()> {
    let what = "a pair `[a, b]` or a list of pairs";
    let items = node.list(what, &mut draft.found)?;
    let nested = |item: &Yaml| matches!(item.value, Value::List(_));
    if !items.is_empty() && items.iter().all(nested) {
        for item in items {
            read_pair(
                item,
                item.list(what, &mut draft.found)?,
                prefix,
                draft,
                pairs,
            );
        }
        return Some(());
    }
    read_pair(node, items, prefix, draft, pairs)
}

fn read_pair<'n>(
    node: &'n Yaml,
    items: &'n [Yaml],
    prefix: &str,
    draft: &mut Draft,
    pairs: &mut Pairs<'n>,
) -> Option<()> {
    let [a, b] = items else {
        draft.found.push(node.wrong(
            format!("a link between {} nodes", items.len()),
            "expected two nodes",
        ));
        return None;
    };
    join(a, b, prefix, draft, pairs)
}

/// Two nodes; a range and a node (each with that node); or two ranges of equal length (one by one).
fn join<'n>(
    a: &'n Yaml,
    b: &'n Yaml,
    prefix: &str,
    draft: &mut Draft,
    pairs: &mut Pairs<'n>,
) -> Option<()> {
    let left = side(a, prefix, draft);
    let right = side(b, prefix, draft);
    let (left, right) = (left?, right?);
    let count = left.len().max(right.len());
    if !draft.room(a, 0, 2 * count as u64) {
        return None;
    }
    if left.len() != right.len() && left.len() != 1 && right.len() != 1 {
        draft.found.push(
            b.wrong(
                format!("{} nodes cannot be joined with {}", left.len(), right.len()),
                "expected one node, or as many as on the other side",
            )
            .help("join them in two steps, or use the generator `full_mesh`"),
        );
        return None;
    }
    // The place of the second end, where it is the wrong one of the two that is usually meant.
    let place = if left.len() == 1 { b } else { a };
    let at = |side: &[NodeId], index: usize| side[if side.len() == 1 { 0 } else { index }];
    pairs.extend((0..count).map(|index| (place, at(&left, index), at(&right, index))));
    Some(())
}

fn side(node: &Yaml, prefix: &str, draft: &mut Draft) -> Option<Vec<NodeId>> {
    let word = node.word("an end of a link", &mut draft.found)?;
    if !names::is_range(word) {
        return draft.resolve(&node.span, prefix, word).map(|id| vec![id]);
    }
    match names::expand(word, draft.graph.node_count() as u64) {
        Ok(expanded) => expanded
            .iter()
            .map(|name| draft.resolve(&node.span, prefix, name))
            .collect(),
        Err(words) => {
            draft.found.push(Diagnostic::from_words(
                node.span.clone(),
                "bad range",
                &words,
            ));
            None
        }
    }
}
