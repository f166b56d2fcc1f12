//! `gpu:` the profile of the GPUs: a name, a path, the profile itself, or one per GPU.

use std::sync::Arc;

use super::draft::Draft;
use super::names;
use crate::device::Device;
use crate::input::yaml::{Node as Yaml, Value};
use crate::input::{Diagnostic, Diagnostics, Fields};
use crate::topology::NodeKind;

/// Finds the profile that a YAML value names or holds; pushes a mistake where there is none.
pub type ResolveGpu<'r> = &'r dyn Fn(&Yaml, &mut Diagnostics) -> Option<Device>;

/// The distinct profiles, and the index of each GPU's.
#[derive(Debug, Default)]
pub(super) struct Profiles {
    pub devices: Vec<Arc<Device>>,
    pub of_gpu: Vec<u32>,
}

impl Profiles {
    /// Makes all of them as slow as under continuous load, or pushes a mistake at `node`.
    pub fn load(&mut self, node: &Yaml, draft: &mut Draft) {
        for device in &mut self.devices {
            if !Arc::make_mut(device).load(true) {
                let message = format!(
                    "profile `{}` does not say how fast it is under load",
                    device.name
                );
                let mistake = node.wrong(message, "needs the profile's `gemm.loaded`");
                draft
                    .found
                    .push(mistake.help("state `loaded: 0.85` in its section `gemm`"));
            }
        }
    }
}

/// Reads the value of `gpu:`, after all nodes.
pub(super) fn read(node: &Yaml, draft: &mut Draft, resolve: ResolveGpu) -> Option<Profiles> {
    let is_map = |key: &str| match &node.value {
        Value::Map(entries) => entries.iter().any(|(name, _)| name.text() == Some(key)),
        _ => false,
    };
    if !is_map("per_gpu") {
        let device = resolve(node, &mut draft.found)?;
        return Some(Profiles {
            devices: vec![Arc::new(device)],
            of_gpu: vec![0; draft.gpus.len()],
        });
    }
    let mut fields = Fields::of(node, "`gpu`", &mut draft.found)?;
    let map = fields.get("per_gpu");
    fields.finish(&mut draft.found);
    read_each(map?, draft, resolve)
}

/// `per_gpu:` a map from names, ranges and `others` to profiles.
fn read_each(node: &Yaml, draft: &mut Draft, resolve: ResolveGpu) -> Option<Profiles> {
    let Value::Map(entries) = &node.value else {
        draft.found.push(node.wrong(
            format!("found {}", node.found()),
            "expected a map such as `{ gpu0..3: h100, others: a100 }`",
        ));
        return None;
    };
    let mut profiles = Profiles::default();
    let mut of_gpu: Vec<Option<u32>> = vec![None; draft.gpus.len()];
    let mut others = None;
    for (key, profile) in entries {
        let word = key.word("a GPU", &mut draft.found)?;
        let device = resolve(profile, &mut draft.found)?;
        let known = profiles.devices.iter().position(|known| **known == device);
        let index = known.unwrap_or_else(|| {
            profiles.devices.push(Arc::new(device));
            profiles.devices.len() - 1
        });
        let index = u32::try_from(index).ok()?;
        if word == "others" {
            others = Some(index);
            continue;
        }
        for gpu in gpus_named(key, word, draft)? {
            if of_gpu[gpu as usize].replace(index).is_some() {
                let name = draft.name(draft.gpus[gpu as usize]).to_owned();
                draft
                    .found
                    .push(key.wrong(format!("`{name}` has a profile already"), "second mention"));
            }
        }
    }
    if let Some(gpu) = of_gpu.iter().position(Option::is_none)
        && others.is_none()
    {
        let name = draft.name(draft.gpus[gpu]).to_owned();
        draft.found.push(
            node.wrong(
                format!("`{name}` has no profile"),
                "expected every GPU here",
            )
            .help("add it, or `others: PROFILE` for the rest"),
        );
        return None;
    }
    profiles.of_gpu = of_gpu
        .into_iter()
        .map(|index| index.or(others).unwrap_or(0))
        .collect();
    Some(profiles)
}

/// The numbers of the GPUs that a name or range stands for.
fn gpus_named(key: &Yaml, word: &str, draft: &mut Draft) -> Option<Vec<u32>> {
    let expanded = match names::expand(word, draft.gpus.len() as u64) {
        Ok(expanded) => expanded,
        Err(words) => {
            let mistake = Diagnostic::from_words(key.span.clone(), "bad name", &words);
            draft.found.push(mistake);
            return None;
        }
    };
    expanded
        .iter()
        .map(|name| {
            let id = draft.resolve(&key.span, "", name)?;
            if let NodeKind::Gpu(number) = draft.graph[id].kind {
                return Some(number);
            }
            draft.found.push(key.wrong(
                format!("`{name}` is not a GPU"),
                "expected a GPU or `others`",
            ));
            None
        })
        .collect()
}
