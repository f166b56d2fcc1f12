//! A section of a profile: a map of numbers by name.

use crate::input::yaml::{Node, Value};
use crate::input::{Diagnostics, did_you_mean};

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
