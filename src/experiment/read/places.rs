//! Where ranks lie and which way they reach each other: the keys `gpus` and `paths` of a grid, and
//! what of them becomes part of a machine.

use super::{some, twice};
use crate::input::yaml::Node;
use crate::input::{Diagnostic, Diagnostics};
use crate::topology::Topology;
use crate::topology::paths::PathChoice;
use crate::units::count;

/// One way and one number of GPUs; `None` where the grid does not have the key.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(super) struct Place {
    pub path: Option<PathChoice>,
    pub gpus: Option<u32>,
}

/// The two keys as written, each value with its place.
#[derive(Clone, Debug, Default)]
pub(super) struct Places<'n> {
    pub paths: Option<Vec<PathChoice>>,
    pub gpus: Option<Vec<(&'n Node, u32)>>,
}

impl<'n> Places<'n> {
    /// Reads the keys; mistakes are pushed.
    pub fn read(paths: Option<&'n Node>, gpus: Option<&'n Node>, found: &mut Diagnostics) -> Self {
        Self {
            paths: paths.map(|node| read_paths(node, found)),
            gpus: gpus.map(|node| read_gpus(node, found)),
        }
    }

    /// Names of the columns that the grid's keys become.
    pub fn columns(&self) -> impl Iterator<Item = &'static str> {
        let paths = self.paths.as_ref().map(|_| PATH);
        paths.into_iter().chain(self.gpus.as_ref().map(|_| GPUS))
    }

    /// All combinations, the number of GPUs fastest.
    pub fn all(&self) -> Vec<(Option<&'n Node>, Place)> {
        let paths = options(self.paths.as_deref().map(|list| list.iter().copied()));
        let gpus = options(self.gpus.as_deref().map(|list| list.iter().copied()));
        let pairs = paths.iter().flat_map(|&path| {
            gpus.iter().map(move |&gpus| {
                let place = Place {
                    path,
                    gpus: gpus.map(|(_, gpus)| gpus),
                };
                (gpus.map(|(node, _)| node), place)
            })
        });
        pairs.collect()
    }
}

/// The column of ways, and of numbers of GPUs.
pub(super) const PATH: &str = "path";
pub(super) const GPUS: &str = "gpus";

/// The values, or one `None` for a missing key.
fn options<T>(values: Option<impl Iterator<Item = T>>) -> Vec<Option<T>> {
    match values {
        None => vec![None],
        Some(values) => values.map(Some).collect(),
    }
}

fn read_paths(node: &Node, found: &mut Diagnostics) -> Vec<PathChoice> {
    let mut paths: Vec<PathChoice> = Vec::new();
    for node in some("paths", node, found) {
        let Some(word) = node.word("paths", found) else {
            continue;
        };
        match word.parse::<PathChoice>() {
            Err(error) => found.push(Diagnostic::from_words(
                node.span.clone(),
                "no such path",
                &error.to_string(),
            )),
            Ok(path) if paths.contains(&path) => found.push(twice("paths", word, node)),
            Ok(path) => paths.push(path),
        }
    }
    paths
}

fn read_gpus<'n>(node: &'n Node, found: &mut Diagnostics) -> Vec<(&'n Node, u32)> {
    let mut all: Vec<(&'n Node, u32)> = Vec::new();
    for node in some("gpus", node, found) {
        let read = node.whole("gpus", 1, u64::from(u16::MAX), found);
        let Some(gpus) = read.and_then(|gpus| u32::try_from(gpus).ok()) else {
            continue;
        };
        match all.iter().any(|(_, known)| *known == gpus) {
            true => found.push(twice("gpus", &gpus.to_string(), node)),
            false => all.push((node, gpus)),
        }
    }
    all
}

/// Whether there is a GPU for every rank, or as many GPUs as `shared` names and a rank for each;
/// otherwise the mistake.
pub(super) fn fits(
    topology: &Topology,
    name: &str,
    tp: u32,
    node: &Node,
    shared: Option<(&Node, u32)>,
) -> Result<(), Diagnostic> {
    let gpus = topology.gpus.len();
    match shared {
        None if tp as usize > gpus => {
            let message = format!(
                "{} on the {} of `{name}`",
                count(u64::from(tp), "rank"),
                count(gpus as u64, "GPU")
            );
            Err(node.wrong(message, "too many").help(format!(
                "use {gpus} or less, a larger topology, a grid of its own for it, or let ranks share GPUs with `gpus`"
            )))
        }
        Some((at, some)) if some as usize > gpus => {
            let message = format!("`{name}` has {gpus} GPUs, and `gpus` asks for {some}");
            Err(at
                .wrong(message, "too many")
                .help(format!("use {gpus} or less")))
        }
        Some((at, some)) if some > tp => {
            let message = format!("{some} GPUs for {tp} ranks");
            let help = format!("use {tp} or less: every GPU has at least one rank");
            Err(at.wrong(message, "too many").help(help))
        }
        _ => Ok(()),
    }
}
