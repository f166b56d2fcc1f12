//! The documented format: the schema, the worked example, the page.

use duet::schedule::verify::{Limits, Verified, verify};
use duet::schedule::{Mover, TaskId, Work, interpret, json};
use serde_json::Value;

use crate::{errors, mutation, samples};

const SCHEMA: &str = include_str!("../../docs/schedule.schema.json");
const EXAMPLE: &str = include_str!("../../examples/two-gpu.json");
const PAGE: &str = include_str!("../../docs/schedule.md");

/// The words of JSON schema that ours uses.
fn fits(value: &Value, schema: &Value, root: &Value) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("{why}: {value}"));
    let Some(schema) = schema.as_object() else {
        return wrong("no schema");
    };
    for (word, means) in schema {
        let list = || means.as_array().into_iter().flatten();
        match word.as_str() {
            "$ref" => {
                let path = means.as_str().unwrap().trim_start_matches('#');
                fits(value, root.pointer(path).unwrap(), root)?;
            }
            "const" if value != means => return wrong("not the constant"),
            "enum" if !list().any(|v| v == value) => return wrong("not one of the words"),
            "type" => {
                let known = |name: &Value| match name.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "integer" => value.is_i64() || value.is_u64(),
                    other => panic!("type {other}"),
                };
                if !(known_any(means, known)) {
                    return wrong("another type");
                }
            }
            "minimum" if value.as_i64().is_some_and(|v| v < means.as_i64().unwrap()) => {
                return wrong("too small");
            }
            "maximum" if value.as_i64().is_some_and(|v| v > means.as_i64().unwrap()) => {
                return wrong("too large");
            }
            "minItems" | "maxItems"
                if value.as_array().map(Vec::len) != means.as_u64().map(|n| n as usize) =>
            {
                return wrong("another length");
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    fits(item, means, root)?;
                }
            }
            "required" => {
                if let Some(key) = list().find(|key| value.get(key.as_str().unwrap()).is_none()) {
                    return wrong(&format!("{key} is missing"));
                }
            }
            "oneOf" if list().filter(|s| fits(value, s, root).is_ok()).count() != 1 => {
                return wrong("none or several alternatives");
            }
            "properties" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    match means.get(key) {
                        Some(schema) => fits(value, schema, root)?,
                        None => return Err(format!("unknown key {key}")),
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn known_any(means: &Value, known: impl Fn(&Value) -> bool) -> bool {
    match means.as_array() {
        Some(names) => names.iter().any(known),
        None => known(means),
    }
}

#[test]
fn what_is_written_fits_the_schema() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut texts = vec![EXAMPLE.to_owned()];
    for (_, schedule) in mutation::of_registry(4) {
        texts.push(json::write(&schedule));
    }
    texts.push(json::write(&samples::two_slots(3)));
    let mut moved = json::read(EXAMPLE, "two-gpu.json").unwrap();
    for by in [Mover::Epilogue, Mover::Loader] {
        for task in &mut moved.tasks {
            if let Work::Transfer { mover, .. } = &mut task.work {
                *mover = by;
            }
        }
        texts.push(json::write(&moved));
    }
    for text in texts {
        let value: Value = serde_json::from_str(&text).unwrap();
        fits(&value, &schema, &schema).unwrap_or_else(|why| panic!("{why}\n{text}"));
    }
}

#[test]
fn the_schema_refuses_broken_files() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let broken = [
        ("\"kind\": \"ag-gemm\"", "\"kind\": \"gemm\""),
        ("\"rows\": 8", "\"rows\": -8"),
        ("\"rows\": [0, 4]", "\"rows\": [0]"),
        ("\"transfer\"", "\"transfers\""),
        ("\"via\": \"kernel-flag\"", "\"via\": \"flag\""),
    ];
    for (old, new) in broken {
        let text = EXAMPLE.replace(old, new);
        assert_ne!(text, EXAMPLE);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert!(fits(&value, &schema, &schema).is_err(), "{new}");
    }
}

#[test]
fn the_example_is_right() {
    let schedule = json::read(EXAMPLE, "two-gpu.json").unwrap_or_else(|error| panic!("{error}"));
    let verified = verify(&schedule, &Limits::default());
    assert!(matches!(verified, Ok(Verified::Yes { .. })), "{verified:?}");
    assert_eq!(interpret(&schedule, 1, 50), Ok(()));
    // The page quotes the file line by line.
    for block in PAGE.split("```json\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            let line = line.trim().trim_end_matches(',');
            assert!(EXAMPLE.contains(line), "not in the example: {line}");
        }
    }
}

#[test]
fn the_page_quotes_what_the_verifier_says() {
    let mut schedule = json::read(EXAMPLE, "two-gpu.json").unwrap();
    let on = schedule.deps(TaskId(3))[1].task;
    errors::drop_dep(&mut schedule, 3, on.0);
    let message = errors::message(&schedule);
    assert!(PAGE.contains(&message), "{message}");
}
