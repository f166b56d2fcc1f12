//! The machines of an experiment: each topology under each setting, loaded once.

use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::places::{GPUS, PATH, Place};
use crate::experiment::Machine;
use crate::input::yaml::Node;
use crate::input::{Diagnostic, Diagnostics};
use crate::topology::paths::{PathChoice, with_path};
use crate::topology::{self, TopologyError};

/// Most machines of one experiment; all are kept in memory.
pub(super) const MOST: u64 = 10_000;

/// What is loaded so far.
#[derive(Debug)]
pub(super) struct Machines<'b> {
    base: &'b Path,
    pub list: Vec<Machine>,
    /// By the topology as loaded and the settings as written.
    known: FxHashMap<(String, Vec<String>), Option<u32>>,
    /// The name inside each topology's file, and what was loaded.
    names: FxHashMap<String, String>,
    /// The diagnostics of topology files with mistakes.
    pub broken: Vec<String>,
}

/// A path to set, one of its values, and where the two stand.
pub(super) type Setting<'n> = (&'n Node, &'n str, &'n Node, &'n str);

impl<'b> Machines<'b> {
    /// None yet; files are found relative to `base`.
    pub fn new(base: &'b Path) -> Self {
        Self {
            base,
            list: Vec::new(),
            known: FxHashMap::default(),
            names: FxHashMap::default(),
            broken: Vec::new(),
        }
    }

    /// The index of the topology that `node` names under `settings`, or a mistake pushed.
    pub fn get(
        &mut self,
        node: &Node,
        name: &str,
        settings: &[Setting<'_>],
        found: &mut Diagnostics,
    ) -> Option<u32> {
        let path = match name.contains(['/', '\\', '.']) {
            true => self.base.join(name).display().to_string(),
            false => name.to_owned(),
        };
        let sets: Vec<String> = settings
            .iter()
            .map(|(_, path, _, value)| format!("{path}={value}"))
            .collect();
        let key = (path, sets);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let (path, sets) = &key;
        let index = match topology::load(path, sets) {
            Ok(topology) => {
                let sound = self.distinct(&topology.name, path, node, found);
                self.list.push(Machine {
                    topology: Arc::new(topology),
                    sets: settings
                        .iter()
                        .map(|(_, path, _, value)| ((*path).to_owned(), (*value).to_owned()))
                        .collect(),
                    path: PathChoice::default(),
                    gpus: None,
                });
                sound.then(|| self.list.len() as u32 - 1)
            }
            Err(error) => {
                self.explain(error, node, path, settings, found);
                None
            }
        };
        self.known.insert(key, index);
        index
    }

    /// The index of a machine with its ranks at `place`; made where there is none yet.
    pub fn at(&mut self, index: u32, place: Place) -> u32 {
        if place == Place::default() {
            return index;
        }
        let base = &self.list[index as usize];
        let mut sets = base.sets.clone();
        sets.extend(place.path.map(|path| (PATH.to_owned(), path.to_string())));
        sets.extend(place.gpus.map(|gpus| (GPUS.to_owned(), gpus.to_string())));
        let same =
            |other: &Machine| other.topology.name == base.topology.name && other.sets == sets;
        if let Some(known) = self.list.iter().position(same) {
            return known as u32;
        }
        let topology = match place.path {
            None => Arc::clone(&base.topology),
            Some(path) => Arc::new(with_path(&base.topology, path)),
        };
        self.list.push(Machine {
            topology,
            sets,
            path: place.path.unwrap_or_default(),
            gpus: place.gpus,
        });
        self.list.len() as u32 - 1
    }

    /// Two topologies may not share the name that results show.
    fn distinct(&mut self, name: &str, path: &str, node: &Node, found: &mut Diagnostics) -> bool {
        let first = self
            .names
            .entry(name.to_owned())
            .or_insert_with(|| path.to_owned());
        if name.contains(char::is_control) {
            let mistake = node.wrong("the topology's name has a line break or the like in it", "");
            found.push(mistake.help("give it a name that fits on a line of a table"));
            return false;
        }
        if first == path {
            return true;
        }
        let message = format!("`{first}` and `{path}` are both called `{name}`");
        let mistake = node.wrong(message, "the second of that name");
        found.push(
            mistake.help("change `name:` in one of the two files: results tell them apart by it"),
        );
        false
    }

    fn explain(
        &mut self,
        error: TopologyError,
        node: &Node,
        path: &str,
        settings: &[Setting<'_>],
        found: &mut Diagnostics,
    ) {
        match error {
            TopologyError::Set { text, words } => {
                let at = settings
                    .iter()
                    .find(|(_, path, _, value)| text == format!("{path}={value}"));
                let Some(&(key, set, value, _)) = at else {
                    found.push(Diagnostic::from_words(node.span.clone(), "", &words));
                    return;
                };
                // The path is at fault where no value of any kind can be set at it.
                let usable = ["1x", "1", "true", "lowest"]
                    .iter()
                    .any(|value| topology::load(path, &[format!("{set}={value}")]).is_ok());
                let (place, label) = match usable {
                    true => (value, format!("not a value of `{set}`")),
                    false => (key, format!("cannot be set on `{path}`")),
                };
                found.push(Diagnostic::from_words(place.span.clone(), label, &words));
            }
            TopologyError::Invalid(text) => {
                let message = format!("the topology `{path}` has mistakes");
                let mistake = node.wrong(message, "named here");
                found.push(mistake.help("put right what is shown below"));
                if !self.broken.contains(&text) {
                    self.broken.push(text);
                }
            }
            TopologyError::Unreadable { path, reason } => {
                let message = format!("cannot read the topology `{path}`: {reason}");
                let mistake = node.wrong(message, "no such topology");
                found.push(mistake.help("a path is relative to the experiment's file"));
            }
            other @ TopologyError::Unknown { .. } => found.push(Diagnostic::from_words(
                node.span.clone(),
                "no such topology",
                &other.to_string(),
            )),
        }
    }
}
