//! From YAML to a [`Topology`]; every mistake is reported with its place and a remedy.
//!
//! The sections are read in the order in which they build on each other: nodes, generators, links,
//! shared capacities, contention, preferences, routes, GPU profiles; then the whole is checked.
//! `docs/topology.md` describes the format.

mod check;
pub(super) mod draft;
mod gpus;
pub(super) mod links;
pub(super) mod names;
pub(super) mod nodes;
pub(super) mod profile;
mod routes;
pub(super) mod shared;

pub use gpus::ResolveGpu;

use super::{Clock, Ties, Topology, TopologyError, generate, set};
use crate::input::yaml::Node as Yaml;
use crate::input::{Fields, yaml};
use crate::units::Bytes;
use draft::Draft;

/// Chunk of staged transfers where the file names none (assumed: large enough that the start-up of
/// a chunk's copy is below a tenth of its time on PCIe 4).
const STAGING_CHUNK: Bytes = Bytes::new(4 << 20);

/// Most GPUs of the default tensor-parallel group where neither file nor generator names a number.
const DEFAULT_TP: u32 = 8;

/// Reads a topology from `text`, applies the overrides `sets` (`links.pcie.bandwidth=2x`) and checks
/// it. `file` is the name to print; `resolve_gpu` finds GPU profiles.
///
/// # Errors
/// [`TopologyError::Invalid`] with all mistakes rendered, or [`TopologyError::Set`].
pub fn parse(
    text: &str,
    file: &str,
    sets: &[String],
    resolve_gpu: ResolveGpu,
) -> Result<Topology, TopologyError> {
    let mut draft = Draft::default();
    draft.staging_chunk = STAGING_CHUNK;
    let topology = match yaml::parse(text) {
        Ok(root) => read(&root, &mut draft, resolve_gpu),
        Err(mistake) => {
            draft.found.push(mistake);
            None
        }
    };
    match topology {
        Some(mut topology) => {
            set::apply(&mut topology, sets)?;
            Ok(topology)
        }
        None => {
            debug_assert!(!draft.found.is_empty(), "refused without a reason");
            Err(TopologyError::Invalid(draft.found.render(file, text)))
        }
    }
}

/// Reads the whole file; `None` after a mistake.
fn read(root: &Yaml, draft: &mut Draft, resolve_gpu: ResolveGpu) -> Option<Topology> {
    if root.value == yaml::Value::Null {
        draft.found.push(
            root.wrong("the file is empty", "expected a topology")
                .help("start with `name:`, `gpu:`, `nodes:` and `links:`"),
        );
        return None;
    }
    let mut fields = Fields::of(root, "a topology", &mut draft.found)?;
    let name = fields.need("name", "my-box", &mut draft.found);
    let name = name.and_then(|node| node.word("name", &mut draft.found));
    let about = fields.get("about");
    let about = about.and_then(|node| node.word("about", &mut draft.found));
    if let Some(node) = fields.get("source") {
        draft.default_source = draft.source_of(node);
    }
    let nodes = fields.get("nodes");
    if let Some(node) = nodes {
        nodes::read(node, "", draft);
    }
    let generators = fields.get("generate");
    if let Some(node) = generators {
        generate::read(node, "", draft);
    }
    if let Some(node) = fields.get("links") {
        links::read(node, "", draft);
    }
    if let Some(node) = fields.get("shared") {
        shared::read(node, "", draft);
    }
    if let Some(node) = fields.get("contention") {
        shared::read_contention(node, draft);
    }
    let prefer = fields
        .get("prefer")
        .and_then(|node| read_prefer(node, draft));
    let ties = fields.get("ties").and_then(|node| {
        let words = ["lowest", "spread"];
        Some([Ties::Lowest, Ties::Spread][node.choice("ties", &words, &mut draft.found)?])
    });
    let p2p = fields.get("p2p");
    let peer_access = p2p.and_then(|node| node.flag("p2p", &mut draft.found));
    if let Some(node) = fields.get("staging_chunk")
        && let Some(chunk) = routes::chunk(node, "staging_chunk", &mut draft.found)
    {
        draft.staging_chunk = chunk;
    }
    let tp = fields.get("default_tp");
    if let Some(node) = fields.get("routes") {
        routes::read(node, draft);
    }
    let gpu = fields.need("gpu", "h200", &mut draft.found);
    let mut profiles = gpu.and_then(|node| gpus::read(node, draft, resolve_gpu));
    let clock = fields.get("clock").and_then(|node| {
        let at = node.choice("clock", &Clock::WORDS, &mut draft.found)?;
        Some((node, Clock::ALL[at]))
    });
    if let (Some((node, Clock::Sustained)), Some(profiles)) = (clock, &mut profiles) {
        profiles.load(node, draft);
    }
    fields.finish(&mut draft.found);
    let count = u32::try_from(draft.gpus.len()).ok()?;
    check::gpus(nodes.or(generators).unwrap_or(root), draft);
    let tp = match tp {
        Some(node) => node.whole("default_tp", 1, u64::from(count.max(1)), &mut draft.found),
        None => Some(u64::from(draft.box_size.unwrap_or(count.min(DEFAULT_TP)))),
    };
    if let (Some(false), Some(node)) = (peer_access, p2p) {
        check::staging(node, draft);
    }
    if !draft.found.is_empty() {
        return None;
    }
    let profiles = profiles?;
    Some(Topology {
        name: name?.to_owned(),
        about: about.unwrap_or("").to_owned(),
        graph: std::mem::take(&mut draft.graph),
        gpus: std::mem::take(&mut draft.gpus),
        gpu_device: profiles.of_gpu,
        devices: profiles.devices,
        kinds: std::mem::take(&mut draft.kinds),
        contention: std::mem::take(&mut draft.contention),
        contention_source: std::mem::take(&mut draft.contention_source),
        shared: std::mem::take(&mut draft.shared),
        prefer: prefer.unwrap_or_default(),
        ties: ties.unwrap_or(draft.ties),
        clock: clock.map_or(Clock::default(), |(_, clock)| clock),
        explicit: std::mem::take(&mut draft.explicit),
        path: Default::default(),
        p2p: peer_access.unwrap_or(true),
        staging_chunk: draft.staging_chunk,
        default_tp: u32::try_from(tp?).ok()?,
        sources: std::mem::take(&mut draft.sources),
    })
}

/// `prefer:` link kinds in order.
fn read_prefer(node: &Yaml, draft: &mut Draft) -> Option<Vec<u16>> {
    let mut prefer = Vec::new();
    for item in node.list("a list of link kinds", &mut draft.found)? {
        let kinds: Vec<&str> = draft.kinds.iter().map(String::as_str).collect();
        if let Some(at) = item.choice("prefer", &kinds, &mut draft.found) {
            prefer.push(u16::try_from(at).ok()?);
        }
    }
    Some(prefer)
}
