//! A topology written in Rust: for tests, generators and programs that have no file.
//!
//! ```
//! use duet::topology::build::Builder;
//! let mut b = Builder::new("pair");
//! let gpus = b.gpus(2);
//! let switch = b.switch("pcie0");
//! for &gpu in &gpus {
//!     b.link(gpu, switch, "pcie", 24e9, 500e-9);
//! }
//! let topology = b.build();
//! assert_eq!(topology.gpus.len(), 2);
//! assert_eq!(topology.graph.edge_count(), 4); // both directions
//! ```

use std::sync::Arc;

use petgraph::graph::DiGraph;

use super::{Contention, Link, LinkId, Node, NodeId, NodeKind, Shared, Ties, Topology};
use crate::device::{self, Device};
use crate::units::{Bytes, BytesPerSecond, Seconds};

/// Collects nodes and links; [`Self::build`] gives the [`Topology`].
///
/// Fields not covered by a method (`p2p`, `prefer`, `ties`, `explicit`, …) are set on the result.
#[derive(Debug)]
pub struct Builder {
    topology: Topology,
}

impl Builder {
    /// An empty machine of GPUs without limits of their own, with peer access.
    pub fn new(name: &str) -> Self {
        Self::with_device(name, Arc::new(device::ideal()))
    }

    /// An empty machine whose GPUs are `device`.
    pub fn with_device(name: &str, device: Arc<Device>) -> Self {
        Self {
            topology: Topology {
                name: name.to_owned(),
                about: String::new(),
                graph: DiGraph::default(),
                gpus: Vec::new(),
                gpu_device: Vec::new(),
                devices: vec![device],
                kinds: Vec::new(),
                contention: Vec::new(),
                contention_source: Vec::new(),
                shared: Vec::new(),
                prefer: Vec::new(),
                ties: Ties::default(),
                clock: super::Clock::default(),
                explicit: Vec::new(),
                path: Default::default(),
                p2p: true,
                staging_chunk: Bytes::new(1 << 20),
                default_tp: 0,
                sources: Vec::new(),
            },
        }
    }

    fn node(&mut self, name: &str, kind: NodeKind) -> NodeId {
        let name = name.to_owned();
        self.topology.graph.add_node(Node { name, kind })
    }

    /// The next GPU, named `gpu0`, `gpu1`, ….
    pub fn gpu(&mut self) -> NodeId {
        let number = self.topology.gpus.len() as u32;
        let id = self.node(&format!("gpu{number}"), NodeKind::Gpu(number));
        self.topology.gpus.push(id);
        self.topology.gpu_device.push(0);
        id
    }

    /// `count` further GPUs.
    pub fn gpus(&mut self, count: usize) -> Vec<NodeId> {
        (0..count).map(|_| self.gpu()).collect()
    }

    /// A switch.
    pub fn switch(&mut self, name: &str) -> NodeId {
        self.node(name, NodeKind::Switch)
    }

    /// A root complex or socket.
    pub fn root(&mut self, name: &str) -> NodeId {
        self.node(name, NodeKind::Root)
    }

    /// The memory of a NUMA domain.
    pub fn host(&mut self, name: &str) -> NodeId {
        self.node(name, NodeKind::Host)
    }

    /// The number of link kind `name`, new or known.
    pub fn kind(&mut self, name: &str) -> u16 {
        let known = self.topology.kinds.iter().position(|kind| kind == name);
        let index = known.unwrap_or_else(|| {
            self.topology.kinds.push(name.to_owned());
            self.topology.contention.push(None);
            self.topology.contention_source.push(None);
            self.topology.kinds.len() - 1
        });
        index as u16
    }

    /// A link in both directions, each of `bandwidth` bytes/s and `latency` seconds; returns the
    /// directions `a → b` and `b → a`.
    pub fn link(
        &mut self,
        a: NodeId,
        b: NodeId,
        kind: &str,
        bandwidth: f64,
        latency: f64,
    ) -> (LinkId, LinkId) {
        (
            self.one_way(a, b, kind, bandwidth, latency),
            self.one_way(b, a, kind, bandwidth, latency),
        )
    }

    /// One direction only.
    pub fn one_way(
        &mut self,
        from: NodeId,
        to: NodeId,
        kind: &str,
        bandwidth: f64,
        latency: f64,
    ) -> LinkId {
        let link = Link {
            kind: self.kind(kind),
            bandwidth: BytesPerSecond::of(bandwidth),
            latency: Seconds::of(latency),
            source: None,
        };
        self.topology.graph.add_edge(from, to, link)
    }

    /// One capacity of `bandwidth` bytes/s over several link directions.
    pub fn shared(&mut self, name: &str, links: &[LinkId], bandwidth: f64) {
        self.topology.shared.push(Shared {
            name: name.to_owned(),
            links: links.to_vec(),
            bandwidth: BytesPerSecond::of(bandwidth),
            footprint: Vec::new(),
            half_duplex: false,
            source: None,
        });
    }

    /// The contention curve of link kind `name`: (flows, efficiency), flows ascending from 1.
    pub fn contention(&mut self, name: &str, curve: &[(u32, f64)]) {
        let kind = self.kind(name);
        self.topology.contention[usize::from(kind)] = Some(Contention(curve.to_vec()));
    }

    /// The machine; all its GPUs are the default tensor-parallel group.
    pub fn build(mut self) -> Topology {
        self.topology.default_tp = self.topology.gpus.len() as u32;
        self.topology
    }
}
