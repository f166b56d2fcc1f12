//! A machine: nodes, directed links, shared capacities, routes, and the GPU profile of each GPU.
//!
//! Only memories (GPUs and hosts) end a transfer. A flow crosses switches and roots cut-through at
//! one rate. A GPU pair without peer access is staged: it stops in a host's memory on the way, in
//! pipelined chunks.

pub mod bound;
pub mod build;
mod embed;
mod flow;
pub mod generate;
pub mod matrix;
pub mod paths;
mod read;
pub mod rings;
pub mod route;
mod set;
pub mod sketch;

pub use embed::{load, names, of_text, text};
pub use read::{ResolveGpu, parse};

use std::sync::Arc;

use petgraph::graph::{DiGraph, EdgeIndex, NodeIndex};

use crate::device::Device;
use crate::units::{Bytes, BytesPerSecond, Seconds};

/// A node of the graph (`NodeIndex::index` is also its place in the file's order).
pub type NodeId = NodeIndex<u32>;
/// One direction of a link.
pub type LinkId = EdgeIndex<u32>;

/// Why there is no topology; the text is complete, with the place in the file and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// No shipped topology of that name.
    #[error("`{name}` is not a topology: {remedy}")]
    Unknown { name: String, remedy: String },
    /// The file cannot be read.
    #[error(
        "cannot read the topology `{path}`: {reason}\n  help: name a file that can be read, or a built-in topology; `duet topology list` shows them"
    )]
    Unreadable { path: String, reason: String },
    /// The file has mistakes; all are rendered.
    #[error("{0}")]
    Invalid(String),
    /// An override is wrong.
    #[error("`--set {text}`: {words}")]
    Set { text: String, words: String },
}

/// What a node is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A GPU's memory; the number is its place among the GPUs.
    Gpu(u32),
    /// The DRAM of a NUMA domain.
    Host,
    /// A switch: forwards only.
    Switch,
    /// A root complex or socket: forwards only.
    Root,
}

impl NodeKind {
    /// Whether transfers can start and end here.
    pub const fn is_memory(self) -> bool {
        matches!(self, Self::Gpu(_) | Self::Host)
    }
}

/// A node with its name.
#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    pub kind: NodeKind,
}

/// Where a number comes from, in the file's words: one of [`crate::device::SOURCE_KINDS`], then free
/// text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source(pub String);

/// Index into [`Topology::sources`]; `None` where the file names no source.
pub type SourceId = Option<u32>;

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Link {
    /// Index into [`Topology::kinds`].
    pub kind: u16,
    /// Bandwidth of this direction.
    pub bandwidth: BytesPerSecond,
    /// Latency of crossing it.
    pub latency: Seconds,
    /// Where the two numbers come from.
    pub source: SourceId,
}

/// One capacity over several link directions.
#[derive(Clone, Debug)]
pub struct Shared {
    pub name: String,
    pub links: Vec<LinkId>,
    pub bandwidth: BytesPerSecond,
    /// Bandwidth by the bytes of staging memory in use (what fits a processor's cache is faster than
    /// what does not), ascending; empty: [`Self::bandwidth`] whatever is in use.
    pub footprint: Vec<(Bytes, BytesPerSecond)>,
    /// Made by `duplex: half` (the two directions of one link), not by `shared:`.
    pub half_duplex: bool,
    /// Where the number comes from.
    pub source: SourceId,
}

impl Shared {
    /// Bytes/s while `staged` bytes of staging memory are in use: between entries linear in the
    /// logarithm of the bytes, outside constant; with nothing staged [`Self::bandwidth`].
    pub fn capacity(&self, staged: f64) -> f64 {
        let above = (self.footprint).partition_point(|(bytes, _)| bytes.as_f64() < staged);
        let point = |at: usize| {
            (self.footprint)
                .get(at)
                .map(|(b, rate)| (b.as_f64(), rate.get()))
        };
        match (above.checked_sub(1).and_then(point), point(above)) {
            _ if staged <= 0.0 => self.bandwidth.get(),
            (None, None) => self.bandwidth.get(),
            (Some((_, rate)), None) | (None, Some((_, rate))) => rate,
            (Some((from, slow)), Some((to, fast))) => {
                slow + (fast - slow) * (staged / from).ln() / (to / from).ln()
            }
        }
    }
}

/// Efficiency of a link by the number of flows that cross it at once: pairs (flows, efficiency),
/// flows ascending from 1; between entries linear, beyond the last constant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contention(pub Vec<(u32, f64)>);

impl Contention {
    /// Efficiency with `flows` flows on the link; 1 where the curve says nothing.
    pub fn efficiency(&self, flows: u32) -> f64 {
        let after = self.0.partition_point(|(at, _)| *at < flows);
        match (after.checked_sub(1).map(|i| self.0[i]), self.0.get(after)) {
            (Some((n0, e0)), Some(&(n1, e1))) => {
                e0 + (e1 - e0) * f64::from(flows - n0) / f64::from(n1 - n0)
            }
            (None, Some(&(n1, e1))) if n1 == flows => e1,
            (None, _) => 1.0,
            (Some((_, e0)), None) => e0,
        }
    }
}

/// One way of moving bytes between two memories.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Share of the bytes that take this path [0–1]; the shares of a route add up to 1.
    pub share: f64,
    /// The stretches between memories: one for a direct path, more for a staged one.
    pub legs: Vec<Leg>,
    /// Chunk in which a staged path is pipelined; unused with one leg.
    pub chunk: Bytes,
    /// Slots of staging memory, handed to and fro by events, chunks being whole rows
    /// ([`paths`]); 0: as much as needed, handed over at no cost.
    pub slots: u32,
}

/// A stretch from memory to memory, crossed cut-through.
#[derive(Clone, Debug, PartialEq)]
pub struct Leg {
    pub from: NodeId,
    pub to: NodeId,
    /// In order, never empty.
    pub links: Vec<LinkId>,
    /// Sum of the links' latencies.
    pub latency: Seconds,
}

/// Tie-breaking between paths of equal latency and hops.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// The lowest node order.
    #[default]
    Lowest,
    /// Spread by destination (destination GPU number modulo the candidates), as d-mod-k.
    Spread,
}

/// An explicit route from the file.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplicitRoute {
    pub from: NodeId,
    pub to: NodeId,
    pub paths: Vec<Path>,
}

/// The clock of the GPUs while they compute.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// The highest: of GPUs that rested, as measurements take them.
    #[default]
    Boost,
    /// What the power limit leaves under continuous load: arithmetic is slower by `gemm.loaded`.
    Sustained,
}

impl Clock {
    /// As files and the command line say it.
    pub const WORDS: [&str; 2] = ["boost", "sustained"];
    /// In the order of [`Self::WORDS`].
    pub const ALL: [Self; 2] = [Self::Boost, Self::Sustained];
}

/// A machine.
#[derive(Clone, Debug)]
pub struct Topology {
    pub name: String,
    /// What it is, in one line, for `topology list`.
    pub about: String,
    pub graph: DiGraph<Node, Link, u32>,
    /// GPU number → node.
    pub gpus: Vec<NodeId>,
    /// GPU number → index into `devices`.
    pub gpu_device: Vec<u32>,
    /// The distinct GPU profiles.
    pub devices: Vec<Arc<Device>>,
    /// Names of link kinds (`nvlink`, `pcie`, …).
    pub kinds: Vec<String>,
    /// Contention curve per link kind (same index as `kinds`); `None`: no loss.
    pub contention: Vec<Option<Contention>>,
    /// Where each contention curve comes from (same index as `kinds`).
    pub contention_source: Vec<SourceId>,
    pub shared: Vec<Shared>,
    /// Link kinds in order of preference (indices into `kinds`); empty: least latency only.
    pub prefer: Vec<u16>,
    pub ties: Ties,
    pub clock: Clock,
    pub explicit: Vec<ExplicitRoute>,
    /// The way between GPUs, where another than the machine's own was chosen.
    pub path: paths::PathChoice,
    /// Whether GPUs reach each other directly; pairs that do not are staged through a host.
    pub p2p: bool,
    /// Chunk of staged transfers.
    pub staging_chunk: Bytes,
    /// Tensor-parallel size where the user names none (usually all GPUs of one box).
    pub default_tp: u32,
    /// The distinct sources of numbers, in the order of first mention.
    pub sources: Vec<Source>,
}

impl Topology {
    /// The GPU profile of GPU `gpu`.
    pub fn device(&self, gpu: u32) -> &Arc<Device> {
        &self.devices[self.gpu_device[gpu as usize] as usize]
    }

    /// Bytes/s of `link` while `flows` flows cross it: bandwidth × contention efficiency.
    pub fn capacity(&self, link: LinkId, flows: u32) -> f64 {
        let Link {
            kind, bandwidth, ..
        } = &self.graph[link];
        let curve = self.contention.get(usize::from(*kind));
        let efficiency = curve.and_then(Option::as_ref);
        bandwidth.get() * efficiency.map_or(1.0, |curve| curve.efficiency(flows))
    }

    /// The most bytes/s that `link` carries under any number of flows ≥ 1.
    pub fn best_capacity(&self, link: LinkId) -> f64 {
        self.best_capacity_from(link, 1)
    }

    /// The most bytes/s that `link` carries under `flows` flows or more.
    pub fn best_capacity_from(&self, link: LinkId, flows: u32) -> f64 {
        let curve = self.contention.get(usize::from(self.graph[link].kind));
        let points = curve.and_then(Option::as_ref).map_or(&[][..], |c| &c.0);
        // The curve is linear between its points, so its best is at one of them.
        (points.iter().filter(|(more, _)| *more > flows))
            .map(|(more, _)| self.capacity(link, *more))
            .fold(self.capacity(link, flows), f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::{Contention, Shared};
    use crate::units::{Bytes, BytesPerSecond};

    #[test]
    fn capacities_fall_with_the_footprint() {
        let point = |bytes, rate| (Bytes::new(bytes), BytesPerSecond::of(rate));
        let mut shared = Shared {
            name: "dram".to_owned(),
            links: Vec::new(),
            bandwidth: BytesPerSecond::of(200.0),
            footprint: vec![point(4, 180.0), point(16, 140.0)],
            half_duplex: false,
            source: None,
        };
        let expected = [
            (0.0, 200.0),
            (2.0, 180.0),
            (4.0, 180.0),
            (8.0, 160.0),
            (99.0, 140.0),
        ];
        for (staged, rate) in expected {
            let got = shared.capacity(staged);
            assert!((got - rate).abs() < 1e-9, "{staged}: {got}");
        }
        shared.footprint.clear();
        assert_eq!(shared.capacity(8.0), 200.0);
    }

    #[test]
    fn contention_is_linear_between_its_points() {
        let curve = Contention(vec![(1, 1.0), (2, 0.5), (6, 0.3)]);
        for (flows, efficiency) in [(0, 1.0), (1, 1.0), (2, 0.5), (4, 0.4), (6, 0.3), (60, 0.3)] {
            let got: f64 = curve.efficiency(flows);
            assert!((got - efficiency).abs() < 1e-15, "{flows}: {got}");
        }
        assert_eq!(Contention::default().efficiency(3), 1.0);
    }
}
