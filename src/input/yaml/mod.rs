//! YAML as a tree whose every node knows its place in the text.
//!
//! Scalars stay text (`Value::Text`), exactly as written: what they mean is the reader's business,
//! and `1e400` or `0x10` must reach it unchanged. Size, nesting and alias expansion are bounded.

mod error;

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::NonFiniteFloatPolicy;
use serde_saphyr::{Location, Spanned};

use super::{Diagnostic, Diagnostics, Span};

/// A value with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Where it stands in the text: a scalar whole, a list or map from its first to its last entry.
    pub span: Span,
    pub value: Value,
}

/// What stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing, `~` or `null`.
    Null,
    /// A scalar as written, without quotes.
    Text(String),
    List(Vec<Node>),
    /// Entries in the file's order; keys are distinct.
    Map(Vec<(Node, Node)>),
}

/// Deepest nesting of lists and maps.
const MAX_DEPTH: usize = 32;
/// Most nodes after aliases are expanded.
const MAX_NODES: usize = 4_000_000;

/// Most of them that aliases may bring in: people write a few, bombs write millions.
const MAX_ALIASED: usize = 100_000;

/// Reads a text; the text of an empty file is `Value::Null`.
///
/// # Errors
/// The first place where the text is no YAML.
pub fn parse(text: &str) -> Result<Node, Diagnostic> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: 2 * MAX_NODES,
            max_documents: 1,
            max_recorded_anchor_events: MAX_ALIASED,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_ALIASED,
            max_replay_stack_depth: 16,
        },
        strict_booleans: true,
        underscored_numbers_as_strings: true,
        leading_zero_numbers_as_strings: true,
        with_snippet: false,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
    };
    let mut node: Node = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| error::diagnose(&error, text))?;
    node.settle(text);
    Ok(node)
}

/// The bytes of a location; `None` where the parser gave none.
fn span_of(location: Location) -> Option<Span> {
    let span = location.span();
    let start = usize::try_from(span.byte_offset()?).ok()?;
    let len = usize::try_from(span.byte_len()?).ok()?;
    Some(start..start.checked_add(len)?)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self {
            // The place of definition: an alias is as wrong as what it stands for.
            span: span_of(spanned.defined).unwrap_or(0..0),
            value: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a scalar, a list or a map")
            }

            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(Value::Text(value.to_string()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(Value::Text(value.to_string()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
                Ok(Value::Text(value.to_string()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(Value::Text(value.to_string()))
            }

            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(Value::Text(value.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
                let mut nodes = Vec::new();
                while let Some(node) = list.next_element()? {
                    nodes.push(node);
                }
                Ok(Value::List(nodes))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Value::Map(entries))
            }
        }

        deserializer.deserialize_any(Any)
    }
}

impl Node {
    /// Gives plain scalars their spelling back (the parser has read `1e3` as the number 1000) and
    /// lists and maps the place of all they hold.
    fn settle(&mut self, text: &str) {
        match &mut self.value {
            Value::Null => {}
            Value::Text(word) => {
                let written = text.get(self.span.clone()).unwrap_or("").trim();
                let quoted = written.starts_with(['"', '\'', '|', '>', '!', '&', '*']);
                if !written.is_empty() && !quoted && !written.contains('\n') {
                    written.clone_into(word);
                }
            }
            Value::List(nodes) => {
                for node in nodes.iter_mut() {
                    node.settle(text);
                }
                let last = nodes.last().map(|node| node.span.end);
                self.widen(last, ']', text);
            }
            Value::Map(entries) => {
                for (key, value) in entries.iter_mut() {
                    key.settle(text);
                    value.settle(text);
                }
                let last = entries.last().map(|(_, value)| value.span.end);
                self.widen(last, '}', text);
            }
        }
    }

    /// Extends the place to the end of the last entry and to the closing bracket after it.
    fn widen(&mut self, last: Option<usize>, close: char, text: &str) {
        let end = self.span.end.max(last.unwrap_or(0));
        let rest = text.get(end..).unwrap_or("");
        let space = rest.len() - rest.trim_start().len();
        let bracket = rest[space..].starts_with(close);
        self.span.end = if bracket { end + space + 1 } else { end };
    }

    /// What stands there, for "expected …, found …".
    pub fn found(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Text(_) => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    /// A mistake at this node.
    pub fn wrong(&self, message: impl Into<String>, label: impl Into<String>) -> Diagnostic {
        Diagnostic::new(self.span.clone(), message, label)
    }

    /// The scalar's text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The entries of a list, or a mistake pushed: `what` says what was expected, e.g.
    /// `a list of links`.
    pub fn list(&self, what: &str, found: &mut Diagnostics) -> Option<&[Self]> {
        if let Value::List(nodes) = &self.value {
            return Some(nodes);
        }
        found.push(self.wrong(
            format!("found {}", self.found()),
            format!("expected {what}"),
        ));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(node: &Node, into: &mut Vec<String>) {
        match &node.value {
            Value::Null => into.push("~".to_owned()),
            Value::Text(text) => into.push(text.clone()),
            Value::List(nodes) => nodes.iter().for_each(|node| texts(node, into)),
            Value::Map(entries) => entries.iter().for_each(|(key, value)| {
                texts(key, into);
                texts(value, into);
            }),
        }
    }

    fn all(text: &str) -> Vec<String> {
        let mut into = Vec::new();
        texts(&parse(text).unwrap(), &mut into);
        into
    }

    fn message(text: &str) -> String {
        parse(text).unwrap_err().message
    }

    #[test]
    fn scalars_stay_as_written() {
        let text = "a: [1e3, 'b c', \"q\", 0x10, yes, ~, 01, é1, .inf, nan, 1_0, 1e999, True]";
        let expected = [
            "a", "1e3", "b c", "q", "0x10", "yes", "~", "01", "é1", ".inf", "nan", "1_0", "1e999",
            "True",
        ];
        assert_eq!(all(text), expected);
        assert_eq!(
            all("a: &x [1]\nb: *x\n<<: { c: d }"),
            ["a", "1", "b", "1", "c", "d"]
        );
        assert_eq!(all(""), ["~"]);
    }

    #[test]
    fn every_node_knows_its_place() {
        let text = "links:\n  - { é: [a, b ] , k: 1 }\n  - x\n";
        let root = parse(text).unwrap();
        let Value::Map(entries) = &root.value else {
            panic!("{root:?}")
        };
        let Value::List(links) = &entries[0].1.value else {
            panic!("{root:?}")
        };
        assert_eq!(&text[links[0].span.clone()], "{ é: [a, b ] , k: 1 }");
        assert_eq!(&text[links[1].span.clone()], "x");
    }

    #[test]
    fn refuses_in_words() {
        assert!(message("a: [").starts_with("not readable as YAML: unclosed bracket"));
        assert_eq!(message("a: 1\na: 2"), "`a` is given twice");
        assert_eq!(message("a:\n\tb: 1"), "a tab in the indentation");
        assert_eq!(message("a: 1\n---\nb: 2"), "a second document starts here");
        assert!(message("a: *x").contains("unknown anchor"));
    }

    #[test]
    fn bounds_nesting_and_aliases() {
        let flow = "[".repeat(100_000);
        assert_eq!(message(&flow), "nested deeper than 32 levels");
        let block: String = (0..999).map(|i| " ".repeat(i) + "a:\n").collect();
        assert_eq!(message(&block), "nested deeper than 32 levels");
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for i in 1..12 {
            let inner = vec![format!("*a{}", i - 1); 10].join(",");
            bomb += &format!("a{i}: &a{i} [{inner}]\n");
        }
        assert_eq!(message(&bomb), "aliases expand to too many values");
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "[-a-c:,\\[\\]{}&*|>'\"!#%@ \n\té0-9.]{0,60}") {
            let _ = parse(&text);
        }
    }
}
