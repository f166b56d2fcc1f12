//! GPU profiles as topology files name them: shipped, in a file of their own, or inline.

use std::path::Path;

use crate::device::{self, Device, DeviceError};
use crate::input::Diagnostics;
use crate::input::yaml::{Node as Yaml, Value};

/// The profile that `node` names or holds; a relative path starts at `base`, the directory of the
/// topology file. Pushes a mistake where there is none.
pub(in crate::topology) fn resolve(
    node: &Yaml,
    base: &Path,
    found: &mut Diagnostics,
) -> Option<Device> {
    if let Value::Map(_) = node.value {
        return device::read(node, found);
    }
    let word = node.word("gpu", found)?;
    let in_base = base.join(word);
    let name = match in_base.to_str() {
        Some(path) if word.contains('/') => path,
        _ => word,
    };
    device::load(name)
        .map_err(|error| found.push(explain(&error, word, node)))
        .ok()
}

fn explain(error: &DeviceError, word: &str, node: &Yaml) -> crate::input::Diagnostic {
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
