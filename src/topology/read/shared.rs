//! `shared:` one capacity over several link directions; `contention:` loss by number of flows.

use rustc_hash::FxHashSet;

use super::draft::Draft;
use super::names;
use crate::input::yaml::{Node as Yaml, Value};
use crate::input::{Diagnostic, Fields, did_you_mean};
use crate::topology::{Contention, LinkId, Shared};
use crate::units::{Bytes, BytesPerSecond};

/// Most entries of a contention curve.
const MOST_POINTS: usize = 1024;
/// Largest number of flows in one; the simulator tabulates the curve up to there.
const MOST_FLOWS: u64 = 65_536;

/// Reads `shared:`; `prefix` belongs to the copy that is being made.
pub(in crate::topology) fn read(node: &Yaml, prefix: &str, draft: &mut Draft) -> Option<()> {
    let items = node.list("a list of shared capacities", &mut draft.found)?;
    for (position, item) in items.iter().enumerate() {
        read_one(item, position, prefix, draft);
    }
    Some(())
}

fn read_one(item: &Yaml, position: usize, prefix: &str, draft: &mut Draft) -> Option<()> {
    let mut fields = Fields::of(item, "a shared capacity", &mut draft.found)?;
    let name = fields.get("name");
    let links = fields.need("links", "[a->b, b->a]", &mut draft.found);
    let bandwidth = fields.need("bandwidth", "38 GB/s", &mut draft.found);
    let bandwidth = bandwidth.and_then(|node| draft.rate(node));
    let footprint = fields.get("footprint");
    let footprint = footprint.and_then(|node| read_footprint(node, draft));
    let source = draft.source(&mut fields);
    fields.finish(&mut draft.found);
    let name = match name {
        Some(node) => (
            node,
            format!("{prefix}{}", node.word("name", &mut draft.found)?),
        ),
        None => (item, format!("{prefix}shared{position}")),
    };
    if let Err(words) = names::check(&name.1) {
        let mistake = Diagnostic::from_words(name.0.span.clone(), "bad name", &words);
        draft.found.push(mistake);
    }
    if !draft.claim_shared(&name.1) {
        draft.found.push(
            name.0
                .wrong(
                    format!("there are two shared capacities `{}`", name.1),
                    "second of that name",
                )
                .help("give each its own `name`"),
        );
    }
    let mut members: Vec<LinkId> = Vec::new();
    let mut seen = FxHashSet::default();
    let links = links?;
    for link in links.list("a list of links such as `[a->b, b->a]`", &mut draft.found)? {
        let Some(id) = link_named(link, prefix, draft) else {
            continue;
        };
        if !seen.insert(id) {
            draft.found.push(
                link.wrong("a link is named twice", "second mention")
                    .help("name each direction once"),
            );
            continue;
        }
        members.push(id);
    }
    if links.value == Value::List(Vec::new()) {
        draft.found.push(links.wrong(
            "a shared capacity over no links",
            "expected at least one link",
        ));
    }
    draft.shared.push(Shared {
        name: name.1,
        links: members,
        bandwidth: bandwidth?,
        footprint: footprint.unwrap_or_default(),
        half_duplex: false,
        source,
    });
    Some(())
}

/// `footprint: { 16 MiB: 180 GB/s, … }`, ascending.
fn read_footprint(node: &Yaml, draft: &mut Draft) -> Option<Vec<(Bytes, BytesPerSecond)>> {
    let Value::Map(entries) = &node.value else {
        draft.found.push(node.wrong(
            format!("found {}", node.found()),
            "expected a map such as `{ 16 MiB: 180 GB/s, 64 MiB: 140 GB/s }`",
        ));
        return None;
    };
    let mut points: Vec<(Bytes, BytesPerSecond)> = Vec::new();
    for (size, rate) in entries {
        let bytes: Bytes = size.parse("a size", &mut draft.found)?;
        let rate = draft.rate(rate)?;
        if bytes == Bytes::ZERO || points.iter().any(|(known, _)| *known == bytes) {
            let message = format!("a footprint of {bytes}");
            let mistake = size.wrong(message, "expected sizes above 0, each once");
            draft.found.push(mistake);
            return None;
        }
        points.push((bytes, rate));
    }
    points.sort_by_key(|(bytes, _)| *bytes);
    Some(points)
}

/// The link direction `a->b`, or a mistake pushed.
pub(super) fn link_named(node: &Yaml, prefix: &str, draft: &mut Draft) -> Option<LinkId> {
    let word = node.word("a link", &mut draft.found)?;
    let (from, to) = match names::ends(word) {
        Ok(ends) => ends,
        Err(words) => {
            let mistake = Diagnostic::from_words(node.span.clone(), "expected `from->to`", &words);
            draft.found.push(mistake);
            return None;
        }
    };
    let from = draft.resolve(&node.span, prefix, from);
    let to = draft.resolve(&node.span, prefix, to);
    let (from, to) = (from?, to?);
    let link = draft.link_between(from, to);
    if link.is_none() {
        let mistake = no_link(node, from, to, draft);
        draft.found.push(mistake);
    }
    link
}

/// The mistake "there is no such link", with the links that start at the same node.
pub(super) fn no_link(
    node: &Yaml,
    from: crate::topology::NodeId,
    to: crate::topology::NodeId,
    draft: &Draft,
) -> Diagnostic {
    let wanted = format!("{}->{}", draft.name(from), draft.name(to));
    let there: Vec<String> = draft
        .graph
        .neighbors(from)
        .take(64)
        .map(|next| format!("{}->{}", draft.name(from), draft.name(next)))
        .collect();
    let remedy = if there.is_empty() {
        format!(
            "no link starts at `{}`: add one under `links`",
            draft.name(from)
        )
    } else {
        did_you_mean(&wanted, there.iter().rev().map(String::as_str))
    };
    node.wrong(format!("there is no link `{wanted}`"), "no such link")
        .help(remedy)
}

/// Reads `contention:` by link kind.
pub(in crate::topology) fn read_contention(node: &Yaml, draft: &mut Draft) -> Option<()> {
    let Value::Map(entries) = &node.value else {
        draft.found.push(node.wrong(
            format!("found {}", node.found()),
            "expected a map from link kinds to curves",
        ));
        return None;
    };
    for (kind, curve) in entries {
        let name = kind.word("a link kind", &mut draft.found)?;
        match draft.kinds.iter().position(|known| known == name) {
            Some(index) => read_curve(index, name, curve, draft),
            None => {
                let remedy = did_you_mean(name, draft.kinds.iter().map(String::as_str));
                let mistake = kind.wrong(format!("no link is of kind `{name}`"), "unknown kind");
                draft.found.push(mistake.help(remedy));
                None
            }
        };
    }
    Some(())
}

fn read_curve(index: usize, kind: &str, node: &Yaml, draft: &mut Draft) -> Option<()> {
    let mut fields = Fields::of(node, "a contention curve", &mut draft.found)?;
    let efficiency = fields.need("efficiency", "{ 1: 1.0, 2: 0.5 }", &mut draft.found);
    let source = fields.get("source");
    fields.finish(&mut draft.found);
    match source {
        Some(source) => draft.contention_source[index] = draft.source_of(source),
        None => draft.found.push(
            node.wrong(
                format!("the contention curve of `{kind}` has no source"),
                "needs `source`",
            )
            .help("say where it was measured or published, e.g. `source: measured, 8 flows`"),
        ),
    }
    let efficiency = efficiency?;
    let Value::Map(entries) = &efficiency.value else {
        draft.found.push(efficiency.wrong(
            format!("found {}", efficiency.found()),
            "expected a map such as `{ 1: 1.0, 2: 0.5 }`",
        ));
        return None;
    };
    if entries.len() > MOST_POINTS {
        let label = format!("expected at most {MOST_POINTS} entries");
        let mistake = efficiency.wrong("a contention curve of too many entries", label);
        draft.found.push(mistake);
        return None;
    }
    let mut curve: Vec<(u32, f64)> = Vec::new();
    for (flows, share) in entries {
        let count = flows.whole("a number of flows", 1, MOST_FLOWS, &mut draft.found);
        let number = share.number("efficiency", &mut draft.found);
        let (Some(count), Some(number)) = (count, number) else {
            continue;
        };
        if !(number > 0.0 && number <= 1.0) {
            draft.found.push(share.wrong(
                format!("an efficiency of {number}"),
                "expected more than 0 and at most 1",
            ));
            continue;
        }
        let count = u32::try_from(count).ok()?;
        if curve.iter().any(|(known, _)| *known == count) {
            draft
                .found
                .push(flows.wrong(format!("`{count}` is given twice"), "second mention"));
        }
        curve.push((count, number));
    }
    curve.sort_by_key(|(flows, _)| *flows);
    if curve.first().is_none_or(|(flows, _)| *flows != 1) {
        curve.insert(0, (1, 1.0));
    }
    draft.contention[index] = Some(Contention(curve));
    Some(())
}
