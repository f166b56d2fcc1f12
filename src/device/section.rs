//! A section of a profile: a map of numbers by name.

use std::collections::BTreeSet;

use crate::input::yaml::{Node, Value};
use crate::input::{Diagnostics, Span, did_you_mean};

/// A section's entries.
pub(super) struct Section<'n> {
    pub name: &'static str,
    pub node: &'n Node,
    pub entries: &'n [(Node, Node)],
}

impl<'n> Section<'n> {
    pub fn of(name: &'static str, node: &'n Node, found: &mut Diagnostics) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            let message = format!("`{name}` holds {}", node.found());
            found.push(node.wrong(message, "expected a map of `key: value`"));
            return None;
        };
        Some(Self {
            name,
            node,
            entries,
        })
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&'n Node> {
        entry_of(self.node, key)
    }

    /// The value of a key, or a mistake pushed.
    pub fn need(&self, key: &str, example: &str, found: &mut Diagnostics) -> Option<&'n Node> {
        let value = self.get(key);
        if value.is_none() {
            let label = format!("`{}` needs `{key}`", self.name);
            let mistake = self.node.wrong(format!("`{key}` is missing"), label);
            found.push(mistake.help(format!("add e.g. `{key}: {example}`")));
        }
        value
    }

    /// Reports keys that are none of a profile's.
    pub fn finish(&self, known: &[&str], found: &mut Diagnostics) {
        let known: Vec<&str> = known
            .iter()
            .filter_map(|name| name.strip_prefix(self.name)?.strip_prefix('.'))
            .chain(["source"])
            .collect();
        for (key, _) in self.entries {
            let name = key.text().unwrap_or("");
            if !known.contains(&name) {
                let message = format!("`{name}` is not a key of `{}`", self.name);
                let mistake = key.wrong(message, "unknown key");
                found.push(mistake.help(did_you_mean(name, known.iter().copied())));
            }
        }
    }
}

/// An entry of a map by its key.
pub(super) fn entry_of<'n>(map: &'n Node, key: &str) -> Option<&'n Node> {
    let Value::Map(entries) = &map.value else {
        return None;
    };
    let at = entries
        .iter()
        .position(|(name, _)| name.text() == Some(key))?;
    Some(&entries[at].1)
}

/// The entries of a map under a section, or a mistake pushed.
pub(super) fn map_of<'n>(
    section: &Section<'n>,
    key: &str,
    example: &str,
    found: &mut Diagnostics,
) -> &'n [(Node, Node)] {
    let Some(node) = section.need(key, example, found) else {
        return &[];
    };
    match Section::of("", node, &mut Diagnostics::default()) {
        Some(map) => map.entries,
        None => {
            let message = format!("`{key}` holds {}", node.found());
            found.push(
                node.wrong(message, "expected a map")
                    .help(format!("write e.g. `{key}: {example}`")),
            );
            &[]
        }
    }
}

/// The words of a scalar, each with its place; the scalar's where the file does not write it as it is
/// read.
pub(super) fn words<'n>(node: &'n Node, text: &'n str) -> impl Iterator<Item = (Span, &'n str)> {
    let quote = match node.span.len().checked_sub(text.len()) {
        Some(0) => Some(0),
        Some(2) => Some(1),
        _ => None,
    };
    let mut from = 0;
    text.split_whitespace().map(move |word| {
        let at = from + text[from..].find(word).unwrap_or(0);
        from = at + word.len();
        let inside = quote.map(|quote| node.span.start + quote + at);
        let span = inside.map_or_else(|| node.span.clone(), |start| start..start + word.len());
        (span, word)
    })
}

/// Notes what a key names; a mistake pushed where an earlier key of the map names the same, in whatever
/// spelling.
pub(super) fn once<T: Ord>(
    seen: &mut BTreeSet<T>,
    value: T,
    key: &Node,
    found: &mut Diagnostics,
) -> Option<()> {
    if seen.insert(value) {
        return Some(());
    }
    let text = key.text().unwrap_or("");
    let mistake = key.wrong(
        format!("`{text}` is given twice"),
        "an earlier key is the same, spelled differently",
    );
    found.push(mistake.help("remove one of them"));
    None
}

/// Refuses what is empty.
pub(super) fn filled<T>(
    node: &Node,
    name: &str,
    entries: &[T],
    example: &str,
    found: &mut Diagnostics,
) -> Option<()> {
    if !entries.is_empty() {
        return Some(());
    }
    let mistake = node.wrong(format!("`{name}` is empty"), "expected at least one entry");
    found.push(mistake.help(format!("write e.g. `{name}: {example}`")));
    None
}
