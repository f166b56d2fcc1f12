//! The topology as resources: link directions, shared capacities, and each GPU's memory.
//!
//! Resource r < L is link direction r; L ≤ r < L + S is shared capacity r − L; then come the memories
//! of the GPUs, and for each GPU what copies take of GEMMs ([`Beside`]), which limits no flow itself.
//! Only finite ones are ever used.

use std::sync::Arc;

use super::SimError;
use super::Terms;
use super::fluid::{Fluid, Usage};
use crate::device::Beside;
use crate::timeline::Bound;
use crate::topology::route::Router;
use crate::topology::{Contention, LinkId, NodeId, Path, Topology};

/// A capacity that no flow reaches.
const UNLIMITED: f64 = 1e30;

/// Resources and routes.
#[derive(Debug)]
pub(super) struct Machine<'t> {
    pub topology: &'t Topology,
    router: Router<'t>,
    /// Routes of the collective library, where transfers take a chosen way.
    library: Option<Router<'t>>,
    /// Capacity by resource.
    capacity: Vec<f64>,
    pub links: usize,
    /// Shared capacities of each link; empty if the machine has none at all.
    shared_of: Vec<Vec<u32>>,
    /// Last direct route asked for, by sending GPU.
    recent: Vec<Recent>,
    /// Contention curves count; otherwise every factor is 1.
    contention: bool,
}

#[derive(Clone, Debug)]
struct Recent {
    to: u32,
    latency: f64,
    direct: bool,
    links: Vec<LinkId>,
}

/// How bytes get from one GPU to another.
#[derive(Debug)]
pub(super) enum Way {
    /// One direct path: ask [`Machine::recent_links`] for its links; its latency [s].
    Direct(f64),
    /// Several paths or stops.
    Paths(Vec<Path>),
}

impl<'t> Machine<'t> {
    /// `staged`: bytes of staging memory in use.
    pub fn new(topology: &'t Topology, terms: Terms, staged: f64) -> Self {
        let links = topology.graph.edge_count();
        let mut capacity: Vec<f64> = topology
            .graph
            .edge_weights()
            .map(|link| link.bandwidth.get())
            .collect();
        let has_shared = !topology.shared.is_empty();
        let mut shared_of = vec![Vec::new(); if has_shared { links } else { 0 }];
        for (s, shared) in topology.shared.iter().enumerate() {
            capacity.push(shared.capacity(staged));
            for link in &shared.links {
                shared_of[link.index()].push((links + s) as u32);
            }
        }
        for gpu in 0..topology.gpus.len() as u32 {
            capacity.push(if terms.contention {
                topology.device(gpu).hbm.get()
            } else {
                f64::INFINITY
            });
        }
        let beside = topology.gpus.iter().map(|_| UNLIMITED);
        capacity.extend(beside);
        Self {
            topology,
            router: Router::new(topology),
            library: (topology.path.host()).map(|_| Router::of_routes(topology)),
            capacity,
            links,
            shared_of,
            recent: vec![
                Recent {
                    to: u32::MAX,
                    latency: 0.0,
                    direct: false,
                    links: Vec::new(),
                };
                topology.gpus.len()
            ],
            contention: terms.contention,
        }
    }

    /// A solver over these resources.
    pub fn fluid(&self) -> Fluid {
        let mut fluid = Fluid::new(&self.capacity);
        if !self.contention {
            return fluid;
        }
        let tabulate = |curve: &Contention| -> Arc<[f64]> {
            let most = curve.0.last().map_or(1, |(flows, _)| *flows);
            (1..=most).map(|n| curve.efficiency(n)).collect()
        };
        let curves: Vec<Option<Arc<[f64]>>> = self
            .topology
            .contention
            .iter()
            .map(|curve| curve.as_ref().map(tabulate))
            .collect();
        for (l, link) in self.topology.graph.edge_weights().enumerate() {
            if let Some(factors) = &curves[link.kind as usize] {
                fluid.set_curve(l as u32, Arc::clone(factors));
            }
        }
        fluid
    }

    /// The way from GPU `from` to another GPU `to`.
    pub fn way(&mut self, from: u32, to: u32) -> Result<Way, SimError> {
        let recent = &mut self.recent[from as usize];
        if recent.to != to {
            let gpus = &self.topology.gpus;
            let (a, b) = (gpus[from as usize], gpus[to as usize]);
            recent.links.clear();
            recent.to = u32::MAX;
            let latency = self.router.direct(a, b, &mut recent.links)?;
            recent.to = to;
            recent.direct = latency.is_some();
            recent.latency = latency.map_or(0.0, |latency| latency.get());
        }
        if recent.direct {
            return Ok(Way::Direct(recent.latency));
        }
        Ok(Way::Paths(self.paths(from, to)?))
    }

    /// Links of the direct path last asked for from GPU `from`.
    pub fn recent_links(&self, from: u32) -> &[LinkId] {
        &self.recent[from as usize].links
    }

    /// All paths from GPU `from` to another GPU `to`.
    pub fn paths(&mut self, from: u32, to: u32) -> Result<Vec<Path>, SimError> {
        let node = |gpu: u32| self.topology.gpus[gpu as usize];
        Ok(self.router.paths(node(from), node(to))?)
    }

    /// All paths from one GPU to another that the collective library may use.
    pub fn library_paths(&mut self, from: u32, to: u32) -> Result<Vec<Path>, SimError> {
        let node = |gpu: u32| self.topology.gpus[gpu as usize];
        let router = self.library.as_mut().unwrap_or(&mut self.router);
        Ok(router.paths(node(from), node(to))?)
    }

    /// Links of the library's one direct path from one GPU to another; `None` if it has several
    /// paths, stops on the way, or no way.
    pub fn library_links(&mut self, from: u32, to: u32) -> Option<usize> {
        if self.library.is_some() {
            return match &self.library_paths(from, to).ok()?[..] {
                [path] if path.legs.len() == 1 => Some(path.legs[0].links.len()),
                _ => None,
            };
        }
        match self.way(from, to) {
            Ok(Way::Direct(_)) => Some(self.recent_links(from).len()),
            _ => None,
        }
    }

    /// Adds the use of `links` and of the shared capacities they lie in.
    pub fn use_links(&self, links: &[LinkId], per_unit: f64, out: &mut Vec<Usage>) {
        for link in links {
            self.add(link.index() as u32, per_unit, out);
            for &shared in self.shared_of.get(link.index()).into_iter().flatten() {
                self.add(shared, per_unit, out);
            }
        }
    }

    /// Adds the use of a GPU's memory [bytes per unit of work].
    pub fn use_memory(&self, gpu: u32, per_unit: f64, out: &mut Vec<Usage>) {
        let base = self.links + self.topology.shared.len();
        self.add(base as u32 + gpu, per_unit, out);
    }

    /// The capacity of a resource, one flow on it [per second].
    pub fn capacity(&self, resource: u32) -> f64 {
        self.capacity[resource as usize]
    }

    /// What copies take of the GEMMs of a GPU is the use of this resource.
    pub fn beside(&self, gpu: u32) -> u32 {
        let base = self.links + self.topology.shared.len() + self.topology.gpus.len();
        base as u32 + gpu
    }

    /// Adds what a copy by copy engine takes of the GEMMs of its ends, `None` being the host.
    pub fn use_beside(&self, ends: [Option<u32>; 2], out: &mut Vec<Usage>) {
        if !self.contention {
            return;
        }
        let [from, to] = ends;
        let of = |gpu: u32| &self.topology.device(gpu).beside;
        let taken = |gpu: Option<u32>, far: Option<u32>, rate: fn(&Beside) -> _| {
            let rate = match far {
                Some(_) => rate,
                None => |beside: &Beside| beside.host,
            };
            Some((gpu?, rate(of(gpu?))?))
        };
        let sent = taken(from, to, |beside| beside.sent);
        let received = taken(to, from, |beside| beside.received);
        for (gpu, rate) in [sent, received].into_iter().flatten() {
            self.add(self.beside(gpu), 1.0 / rate.get(), out);
        }
    }

    /// Adds to what is there for the same resource; unlimited resources are left out.
    fn add(&self, resource: u32, per_unit: f64, out: &mut Vec<Usage>) {
        if per_unit == 0.0 || !self.capacity[resource as usize].is_finite() {
            return;
        }
        match out.iter_mut().find(|usage| usage.resource == resource) {
            Some(usage) => usage.per_unit += per_unit,
            None => out.push(Usage { resource, per_unit }),
        }
    }

    /// What a full resource is called in a timeline.
    pub fn bound(&self, resource: u32) -> Bound {
        let r = resource as usize;
        let shared = self.topology.shared.len();
        if r < self.links {
            Bound::Link(LinkId::new(r))
        } else if r < self.links + shared {
            Bound::Shared((r - self.links) as u32)
        } else {
            Bound::Hbm((r - self.links - shared) as u32)
        }
    }

    /// The GPU number of a node, if it is a GPU.
    pub fn gpu_of(&self, node: NodeId) -> Option<u32> {
        match self.topology.graph[node].kind {
            crate::topology::NodeKind::Gpu(gpu) => Some(gpu),
            _ => None,
        }
    }
}
