//! Every number says where it comes from: a section's `source:` is one text for all its numbers, or
//! a text for each, with `others` for the rest. A text starts with one of [`KINDS`].

use super::section::Section;
use crate::input::yaml::{Node, Value};
use crate::input::{Diagnostics, did_you_mean, list};

/// First words of a source.
pub const KINDS: [&str; 6] = [
    "datasheet", // the vendor's figure
    "measured",  // by us, on the machine named
    "fitted",    // to measurements, by the model that uses it
    "paper",     // published by others, including source code and issues
    "derived",   // computed from others here
    "assumed",   // nobody's figure: the words say why
];

/// Pushes a mistake for each number of the section without a source and each source of no number.
pub(super) fn check(section: &Section<'_>, found: &mut Diagnostics) {
    let Some(source) = section.get("source") else {
        let label = format!("the numbers of `{}` need a source", section.name);
        let mistake = section.node.wrong("`source` is missing", label);
        found.push(mistake.help("add e.g. `source: datasheet` or `source: assumed, as for …`"));
        return;
    };
    let Value::Map(texts) = &source.value else {
        kind("source", source, found);
        return;
    };
    let numbers = || {
        let keys = section.entries.iter().map(|(key, _)| key);
        keys.filter(|key| key.text() != Some("source"))
    };
    let has = |wanted: &str| texts.iter().any(|(key, _)| key.text() == Some(wanted));
    for key in numbers() {
        let name = key.text().unwrap_or("");
        if !has(name) && !has("others") {
            let mistake = key.wrong(format!("`{name}` has no source"), "where is it from?");
            found.push(mistake.help(format!("add `{name}: …` or `others: …` under `source`")));
        }
    }
    for (key, text) in texts {
        let name = key.text().unwrap_or("");
        let names = || numbers().filter_map(Node::text).chain(["others"]);
        if !names().any(|known| known == name) {
            let message = format!("`{name}` is not a number of `{}`", section.name);
            let known: Vec<&str> = names().collect();
            let mistake = key.wrong(message, "a source of nothing");
            found.push(mistake.help(did_you_mean(name, known.iter().copied())));
        }
        kind(name, text, found);
    }
}

/// Checks the first word of a source.
fn kind(name: &str, text: &Node, found: &mut Diagnostics) {
    let Some(words) = text.word(name, found) else {
        return;
    };
    let first = words
        .split(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or("");
    if !KINDS.contains(&first) {
        let label = format!("expected to start with one of {}", list(KINDS));
        let mistake = text.wrong("a source that does not say what kind it is", label);
        found.push(mistake.help("write e.g. `datasheet` or `measured, 8192³, idle GPU`"));
    }
}
