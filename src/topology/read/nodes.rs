//! `nodes:` GPUs, hosts, switches and roots, by number or by name.

use super::draft::{Draft, MOST_NODES};
use super::names;
use crate::input::yaml::{Node as Yaml, Value};
use crate::input::{Diagnostic, Fields};
use crate::topology::NodeKind;

/// Key, kind and the name that numbered nodes get.
const KINDS: [(&str, NodeKind, &str); 4] = [
    ("gpus", NodeKind::Gpu(0), "gpu"),
    ("hosts", NodeKind::Host, "dram"),
    ("switches", NodeKind::Switch, "switch"),
    ("roots", NodeKind::Root, "cpu"),
];

/// Reads the section; GPUs come first, then hosts, switches and roots. `prefix` is put before every name.
pub(in crate::topology) fn read(node: &Yaml, prefix: &str, draft: &mut Draft) -> Option<()> {
    let mut fields = Fields::of(node, "`nodes`", &mut draft.found)?;
    for (key, kind, stem) in KINDS {
        if let Some(node) = fields.get(key) {
            read_kind(node, key, kind, &format!("{prefix}{stem}"), prefix, draft);
        }
    }
    fields.finish(&mut draft.found);
    Some(())
}

/// One kind: `8`, or a list of names and ranges, or a single range.
fn read_kind(
    node: &Yaml,
    key: &str,
    kind: NodeKind,
    stem: &str,
    prefix: &str,
    draft: &mut Draft,
) -> Option<()> {
    if node
        .text()
        .map(|text| text.trim_start_matches(['-', '+', '.']))
        .is_some_and(|text| text.starts_with(|c: char| c.is_ascii_digit()))
    {
        let count = node.whole(key, 0, u64::from(u32::MAX), &mut draft.found)?;
        if !draft.room(node, count, 0) {
            return None;
        }
        for number in 0..count {
            add(node, format!("{stem}{number}"), kind, draft)?;
        }
        return Some(());
    }
    for (node, name) in names_of(node, "a number, or a list of names", MOST_NODES, draft)? {
        add(node, format!("{prefix}{name}"), kind, draft);
    }
    Some(())
}

fn add(node: &Yaml, name: String, kind: NodeKind, draft: &mut Draft) -> Option<()> {
    match kind {
        NodeKind::Gpu(_) => draft.gpu(&node.span, name),
        _ => draft.node(&node.span, name, kind),
    }
    .map(drop)
}

/// The names that a word or a list of words stands for, `most` in all, each with the word's place.
pub(in crate::topology) fn names_of<'n>(
    node: &'n Yaml,
    what: &str,
    most: u64,
    draft: &mut Draft,
) -> Option<Vec<(&'n Yaml, String)>> {
    let words: &[Yaml] = match &node.value {
        Value::Text(_) => std::slice::from_ref(node),
        _ => node.list(what, &mut draft.found)?,
    };
    let mut all = Vec::new();
    for word in words {
        let Some(text) = word.word("a name", &mut draft.found) else {
            continue;
        };
        match names::expand(text, most.saturating_sub(all.len() as u64)) {
            Ok(expanded) => all.extend(expanded.into_iter().map(|name| (word, name))),
            Err(words) => draft.found.push(Diagnostic::from_words(
                word.span.clone(),
                "bad name",
                &words,
            )),
        }
    }
    Some(all)
}
