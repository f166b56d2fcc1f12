//! JSON as the same tree of places as [`yaml`](super::yaml), read part by part: a file of many
//! thousand list entries need not be in memory as a tree at once.
//!
//! ```
//! use duet::input::json;
//! let text = r#"{ "name": "x", "tasks": [ {"rank": 0}, {"rank": 1} ] }"#;
//! let entries = json::entries(text).unwrap();
//! let tasks = &entries[1];
//! assert_eq!(tasks.0.text(), Some("tasks"));
//! let ranks: Vec<_> = json::items(text, &tasks.1).collect::<Result<_, _>>().unwrap();
//! assert_eq!(&text[ranks[1].span.clone()], r#"{"rank": 1}"#);
//! assert!(json::entries("{ 'name': 1 }").unwrap_err().help.contains("double quotes"));
//! ```

mod reader;
#[cfg(test)]
mod tests;

use super::yaml::Node;
use super::{Diagnostic, Span};
use reader::{Reader, distinct};

type Read<T> = Result<T, Diagnostic>;

/// Checks the syntax of a text that is one map; returns its keys and the places of their values.
///
/// # Errors
/// The first place where the text is no JSON, or is not a map.
pub fn entries(text: &str) -> Read<Vec<(Node, Span)>> {
    let mut reader = Reader::new(text, 0, text.len());
    reader.space();
    if reader.peek() != Some(b'{') {
        return Err(reader
            .wrong("the file is not a JSON object", "expected `{`")
            .help("wrap everything in `{ … }`"));
    }
    let mut found: Vec<(Node, Span)> = Vec::new();
    reader.map(&mut |reader, key| {
        distinct(found.iter().map(|(key, _)| key), &key)?;
        let value = reader.value(1, false)?;
        found.push((key, value.span));
        Ok(())
    })?;
    reader.space();
    match reader.peek() {
        None => Ok(found),
        Some(_) => Err(reader
            .wrong(
                "text after the end of the object",
                "expected the end of the file",
            )
            .help("keep one object in the file")),
    }
}

/// The value at a place that [`entries`] returned.
///
/// # Errors
/// A key that occurs twice in one map.
pub fn node(text: &str, span: &Span) -> Read<Node> {
    Reader::new(text, span.start, span.end).value(1, true)
}

/// The entries of a list at a place that [`entries`] returned, one by one; the value itself if it
/// is no list.
pub fn items<'t>(text: &'t str, span: &Span) -> impl Iterator<Item = Read<Node>> + use<'t> {
    let mut reader = Reader::new(text, span.start, span.end);
    let list = reader.peek() == Some(b'[');
    let mut done = false;
    std::iter::from_fn(move || {
        if done {
            return None;
        }
        if !list {
            done = true;
            return Some(reader.value(1, true));
        }
        // The opening bracket, or the comma after the last entry.
        reader.at += 1;
        reader.space();
        if reader.peek().is_none_or(|c| c == b']') {
            return None;
        }
        let item = reader.value(2, true);
        reader.space();
        done = item.is_err() || reader.peek() != Some(b',');
        Some(item)
    })
}
