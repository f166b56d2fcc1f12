use super::*;
use crate::input::yaml::Value;
use proptest::prelude::*;

/// The tree as `serde_json` sees it, numbers as text.
fn plain(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Null => serde_json::Value::Null,
        Value::Text(text) => text.clone().into(),
        Value::List(nodes) => nodes.iter().map(plain).collect(),
        Value::Map(entries) => entries
            .iter()
            .map(|(k, v)| (k.text().unwrap().to_owned(), plain(v)))
            .collect(),
    }
}

fn text_of(value: serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Number(n) => n.to_string().into(),
        serde_json::Value::Bool(b) => b.to_string().into(),
        serde_json::Value::Array(list) => list.into_iter().map(text_of).collect(),
        serde_json::Value::Object(map) => map.into_iter().map(|(k, v)| (k, text_of(v))).collect(),
        other => other,
    }
}

fn whole(text: &str) -> Read<Node> {
    entries(text)?;
    let start = text.find('{').unwrap_or(0);
    node(text, &(start..text.len()))
}

#[test]
fn reads_what_serde_json_reads() {
    let text = r#" { "a": [1, -2.5e3, true, null, "x\n\u00e9\ud83d\ude00\/"], "é": {}, "b": [] } "#;
    let expected: serde_json::Value = serde_json::from_str(text).unwrap();
    let expected = text_of(expected).to_string().replace("-2500.0", "-2.5e3");
    assert_eq!(plain(&whole(text).unwrap()).to_string(), expected);
}

#[test]
fn refuses_in_words() {
    let cases = [
        ("", "the file is not a JSON object", "wrap"),
        ("{", "a key is missing", "double quotes"),
        ("{\"a\": 1", "`{` is never closed", "add `}`"),
        ("{\"a\": [1,]}", "a comma before `]`", "remove the comma"),
        ("{\"a\": 1 \"b\": 2}", "two entries run together", "commas"),
        ("{\"a\": 1, \"a\": 2}", "`a` is given twice", "keep one"),
        ("{\"a\": 'x'}", "`'x'` is no JSON value", "double quotes"),
        ("{\"a\": NaN}", "`NaN` is no JSON value", "numbers without"),
        ("{\"a\": 01}", "`01` is no JSON value", "numbers without"),
        ("{\"a\": // x\n1}", "`//` is no JSON value", "JSON has none"),
        ("{\"a\": \"x\n\"}", "a string is never closed", "close it"),
        ("{\"a\": \"\\q\"}", "an unknown escape", "JSON knows"),
        ("{\"a\": \"\\ud800\"}", "an unknown escape", "JSON knows"),
        ("{} {}", "text after the end of the object", "one object"),
        ("{\"a\" 1}", "a key without a value", "value"),
        ("{\"a\": }", "a value is missing", "write a value"),
    ];
    for (text, message, help) in cases {
        let error = whole(text).unwrap_err();
        assert_eq!(error.message, message, "{text}");
        assert!(error.help.contains(help), "{text}: {}", error.help);
    }
    let deep = "[".repeat(100);
    let error = whole(&format!("{{\"a\": {deep}")).unwrap_err();
    assert_eq!(error.message, "nested deeper than 32 levels");
}

proptest! {
    #[test]
    fn agrees_with_serde_json(text in "\\{(\"[ab\\\\u0-9é]{0,5}\"[:,] ?[-0-9.eE\\[\\]{}tru,nl\" ]{0,9}){0,3}\\}") {
        let ours = whole(&text);
        // Numbers beyond a double and keys given twice are where the two may differ.
        match serde_json::from_str::<serde_json::Value>(&text) {
            Ok(_) => prop_assert!(ours.is_ok() || ours.unwrap_err().message.contains("twice")),
            Err(error) if error.to_string().contains("out of range") => {}
            Err(_) => prop_assert!(ours.is_err()),
        }
    }

    #[test]
    fn never_panics(text in "[{}\\[\\]:,\"\\\\a-fu0-9.eE+é\\n -]{0,60}") {
        let _ = whole(&text);
    }
}
