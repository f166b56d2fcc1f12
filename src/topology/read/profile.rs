//! GPU profiles as topology files name them: shipped, in a file of their own, inline, or those of
//! another machine (`gpu: { of: MACHINE }`), so that what was calibrated on a pair of GPUs can be put
//! into a larger box.

use std::path::Path;

use crate::device::{self, Device, DeviceError};
use crate::input::yaml::{self, Node as Yaml, Value};
use crate::input::{Diagnostic, Diagnostics, Fields};
use crate::topology::{TopologyError, embed};

/// The profile that `node` names or holds; a relative path starts at `base`, the directory of the
/// topology file. Pushes a mistake where there is none.
pub(in crate::topology) fn resolve(
    node: &Yaml,
    base: &Path,
    found: &mut Diagnostics,
) -> Option<Device> {
    match &node.value {
        Value::Map(entries) if entries.iter().any(|(key, _)| key.text() == Some("of")) => {
            of_machine(node, base, found)
        }
        Value::Map(_) => device::read(node, found),
        _ => {
            let word = node.word("gpu", found)?;
            device::load(&from(base, word))
                .map_err(|error| found.push(explain(&error, word, node)))
                .ok()
        }
    }
}

/// A shipped name, or a path that starts at `base`.
fn from(base: &Path, word: &str) -> String {
    match base.join(word).to_str() {
        Some(path) if word.contains('/') => path.to_owned(),
        _ => word.to_owned(),
    }
}

/// `{ of: MACHINE }`: the profile that another topology names or holds for all of its GPUs.
fn of_machine(node: &Yaml, base: &Path, found: &mut Diagnostics) -> Option<Device> {
    let mut fields = Fields::of(node, "`gpu`", found)?;
    let machine = fields.need("of", "h200-pair-calibrated", found);
    fields.finish(found);
    let machine = machine?;
    let word = machine.word("of", found)?;
    let path = from(base, word);
    let wrong = |message: String, help: &str| -> Diagnostic {
        let mistake = machine.wrong(message, "expected a machine whose GPUs have one profile");
        match help {
            "" => mistake,
            help => mistake.help(help),
        }
    };
    let text = match embed::text(&path) {
        Ok(text) => text,
        Err(error) => {
            found.push(match (&error, device::names().contains(&word)) {
                (TopologyError::Invalid(text), _) => {
                    wrong(format!("`{word}` has mistakes"), text.as_str())
                }
                (_, true) => wrong(
                    format!("`{word}` is a profile, not a machine"),
                    &format!("write `gpu: {word}`"),
                ),
                _ => {
                    let words = error.to_string();
                    let (message, help) = words.split_once(": ").unwrap_or((&words, ""));
                    wrong(message.to_owned(), help)
                }
            });
            return None;
        }
    };
    let mut inner = Diagnostics::default();
    let root = match yaml::parse(&text) {
        Ok(root) => root,
        Err(mistake) => {
            inner.push(mistake);
            found.push(wrong(
                format!("`{word}` has mistakes"),
                &inner.render(&path, &text),
            ));
            return None;
        }
    };
    let gpu = match &root.value {
        Value::Map(entries) => entries.iter().find(|(key, _)| key.text() == Some("gpu")),
        _ => None,
    };
    let Some((_, gpu)) = gpu else {
        found.push(wrong(
            format!("`{word}` says nothing of its GPUs"),
            "name a topology file; a file that holds only a profile goes without `of`",
        ));
        return None;
    };
    // A chain of machines could be a circle.
    if let Value::Map(entries) = &gpu.value
        && let Some((key, _)) = entries
            .iter()
            .find(|(key, _)| matches!(key.text(), Some("of" | "per_gpu")))
    {
        let key = key.text().unwrap_or_default();
        found.push(wrong(
            format!("`{word}` itself has `gpu: {{ {key}: … }}`"),
            "name the machine or profile that it takes its GPUs from",
        ));
        return None;
    }
    let inner_base = Path::new(&path).parent().unwrap_or(Path::new(""));
    let device = resolve(gpu, inner_base, &mut inner);
    if device.is_none() || !inner.is_empty() {
        found.push(wrong(
            format!("the GPU profile of `{word}` has mistakes"),
            &inner.render(&path, &text),
        ));
        return None;
    }
    device
}

fn explain(error: &DeviceError, word: &str, node: &Yaml) -> Diagnostic {
    let label = "expected a GPU profile";
    match error {
        DeviceError::Invalid(text) => node
            .wrong(format!("the GPU profile `{word}` has mistakes"), label)
            .help(text.as_str()),
        _ => {
            let words = error.to_string();
            let (message, help) = words.split_once(": ").unwrap_or((&words, ""));
            node.wrong(message, label).help(help)
        }
    }
}
