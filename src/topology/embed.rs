//! The topologies in the binary, so that `duet` runs from anywhere. To add one: put the file into
//! `topologies/` and its name here.

use std::borrow::Cow;
use std::path::Path;

use super::read::{parse, profile};
use super::{Topology, TopologyError};
use crate::input::yaml::Node;
use crate::input::{Diagnostics, closest, decode, read_file};

/// Largest file that is read [bytes].
const LARGEST: u64 = 256 << 20;

/// Name and text of each file of `topologies/`.
macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../topologies/", $name, ".yaml")))),*]
    };
}

/// By name.
const SHIPPED: &[(&str, &str)] = shipped![
    "a100-nvswitch-8",
    "a100-pcie-8",
    "a6000-pairs-4",
    "a6000-pairs-8",
    "a800-nvswitch-8",
    "b200-nvswitch-8",
    "fat-tree-1024",
    "gb200-nvl72",
    "h100-nvswitch-8",
    "h100-rail-128",
    "h20-nvswitch-8",
    "h200-box8",
    "h200-nvswitch-8",
    "h200-pair",
    "h200-pair-calibrated",
    "h200-pair-datasheet",
    "h800-nvswitch-8",
    "l20-pcie-8",
    "l40s-pcie-8",
    "mi300x-mesh-8",
    "rtx4090-pcie-8",
    "v100-dgx1-8",
    "v100-dgx2-16",
];

/// The names of the shipped topologies, sorted.
pub fn names() -> Vec<&'static str> {
    SHIPPED.iter().map(|(name, _)| *name).collect()
}

/// The shipped topology of that name, or the one in the file at that path (a word with a `/` or a
/// `.`), with the overrides `sets` applied.
///
/// # Errors
/// [`TopologyError`]: an unknown name, an unreadable file, mistakes in it, a wrong override.
pub fn load(name_or_path: &str, sets: &[String]) -> Result<Topology, TopologyError> {
    let text = text(name_or_path)?;
    let shipped = SHIPPED.iter().any(|(name, _)| *name == name_or_path);
    let (base, file) = match shipped {
        true => (Path::new(""), format!("topologies/{name_or_path}.yaml")),
        false => (
            Path::new(name_or_path).parent().unwrap_or(Path::new("")),
            name_or_path.to_owned(),
        ),
    };
    read(&text, &file, base, sets)
}

/// The topology that `text` says, as if it were that of `file`; GPU profiles are looked for in `base`.
///
/// # Errors
/// [`TopologyError::Invalid`].
pub fn of_text(text: &str, file: &str, base: &Path) -> Result<Topology, TopologyError> {
    read(text, file, base, &[])
}

fn read(text: &str, file: &str, base: &Path, sets: &[String]) -> Result<Topology, TopologyError> {
    let resolve = |node: &Node, found: &mut Diagnostics| profile::resolve(node, base, found);
    parse(text, file, sets, &resolve)
}

/// The text of a topology's file, unchecked.
///
/// # Errors
/// [`TopologyError`]: an unknown name or an unreadable file.
pub fn text(name_or_path: &str) -> Result<Cow<'static, str>, TopologyError> {
    if let Some((_, text)) = SHIPPED.iter().find(|(name, _)| *name == name_or_path) {
        return Ok(Cow::Borrowed(text));
    }
    if !name_or_path.contains(['/', '\\', '.']) {
        let near = closest(name_or_path, names()).map(|name| format!("did you mean `{name}`? "));
        return Err(TopologyError::Unknown {
            name: name_or_path.to_owned(),
            remedy: format!(
                "{}shipped are {}; a file needs its path, e.g. `./my-box.yaml`",
                near.unwrap_or_default(),
                names().join(", ")
            ),
        });
    }
    let bytes =
        read_file(Path::new(name_or_path), LARGEST).map_err(|error| TopologyError::Unreadable {
            path: name_or_path.to_owned(),
            reason: error.to_string(),
        })?;
    let text = decode(name_or_path, &bytes).map_err(TopologyError::Invalid)?;
    Ok(Cow::Owned(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_the_directory() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/topologies");
        let mut files: Vec<String> = std::fs::read_dir(dir)
            .unwrap()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|ext| ext == "yaml"))
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .collect();
        files.sort();
        assert_eq!(names(), files);
    }

    #[test]
    fn every_shipped_topology_is_right() {
        for name in names() {
            let topology = load(name, &[]).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(topology.name, name);
            assert!(
                !topology.about.is_empty(),
                "{name} says nothing about itself"
            );
            let mut links = topology.graph.edge_weights();
            assert!(
                links.all(|link| link.source.is_some()),
                "{name}: a link without source"
            );
            let mut shared = topology.shared.iter();
            assert!(
                shared.all(|shared| shared.source.is_some()),
                "{name}: a capacity without source"
            );
        }
    }

    #[test]
    fn gpu_profiles_lie_beside_the_file_or_inside_it() {
        let dir = tempfile::tempdir().unwrap();
        let gpu = crate::device::names();
        let gpu = gpu.iter().find(|name| **name != "ideal").unwrap();
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/topologies/gpus/");
        let profile = std::fs::read_to_string(format!("{root}{gpu}.yaml")).unwrap();
        let text = |gpu: &str| format!("name: b\ngpu: {gpu}\nnodes: {{ gpus: 1 }}\n");
        let inline = profile
            .lines()
            .fold(String::new(), |all, line| all + "\n  " + line);
        let files = [
            ("good", text("./my.yaml")),
            ("inline", text(&inline)),
            ("worse", text("./bad.yaml")),
        ];
        for (name, text) in files {
            std::fs::write(dir.path().join(format!("{name}.yaml")), text).unwrap();
        }
        std::fs::write(dir.path().join("my.yaml"), &profile).unwrap();
        std::fs::write(dir.path().join("bad.yaml"), "name: [").unwrap();
        let load = |name: &str| load(dir.path().join(name).to_str().unwrap(), &[]);
        let expected = crate::device::load(gpu).unwrap();
        assert_eq!(**load("good.yaml").unwrap().device(0), expected);
        assert_eq!(**load("inline.yaml").unwrap().device(0), expected);
        let said = load("worse.yaml").unwrap_err().to_string();
        assert!(
            said.contains("worse.yaml:2:6") && said.contains("bad.yaml:1:7"),
            "{said}"
        );
    }

    #[test]
    fn an_unknown_name_names_the_nearest() {
        let error = load("h200-nvswich-8", &[]).unwrap_err().to_string();
        assert!(error.contains("did you mean `h200-nvswitch-8`?"), "{error}");
        let error = load("./none.yaml", &[]).unwrap_err().to_string();
        assert!(error.starts_with("cannot read the topology `./none.yaml`: "));
    }
}
