//! Bandwidth of transfers that run at once: every link, shared capacity and copy engine divided
//! max-min fairly.
//!
//! All rates rise together until a resource is full; its transfers keep theirs, the others go on
//! rising. Capacities are those under the number of transfers on the link.

use super::Edge;
use crate::device::Costs;
use crate::topology::Topology;
use crate::topology::route::Router;

/// A transfer between two GPUs.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// Resources with bytes on them per byte moved.
    uses: Vec<(usize, f64)>,
    /// Fastest rate of its copy engine \[bytes/s\].
    bound: f64,
    /// Latency of the way \[s\].
    latency: f64,
    /// Stops on the way: chunk \[bytes\] and what starting one costs \[s\].
    staged: Option<(f64, f64)>,
}

/// Resources: link directions, then shared capacities.
#[derive(Debug)]
pub(super) struct Sharing<'t> {
    topology: &'t Topology,
    contention: bool,
    links: usize,
    /// Shared capacities of each link.
    shared_of: Vec<Vec<usize>>,
    /// Scratch by resource: flows on it, what is left of it, load of the rising flows.
    count: Vec<u32>,
    left: Vec<f64>,
    load: Vec<f64>,
}

impl<'t> Sharing<'t> {
    pub fn new(topology: &'t Topology, contention: bool) -> Self {
        let links = topology.graph.edge_count();
        let mut shared_of = vec![Vec::new(); links];
        for (place, shared) in topology.shared.iter().enumerate() {
            for link in &shared.links {
                shared_of[link.index()].push(links + place);
            }
        }
        let resources = links + topology.shared.len();
        Self {
            topology,
            contention,
            links,
            shared_of,
            count: vec![0; resources],
            left: vec![0.0; resources],
            load: vec![0.0; resources],
        }
    }

    /// Copy engines that GPU `gpu` has for peers.
    pub fn engines(&self, gpu: u32) -> u32 {
        self.topology.device(gpu).engines.peer
    }

    /// What handing over costs GPU `gpu`.
    pub fn costs(&self, gpu: u32) -> &Costs {
        &self.topology.device(gpu).costs
    }

    /// The transfer from one GPU to another by copy engine.
    ///
    /// # Errors
    /// Why there is no way, in words.
    pub fn flow(&self, router: &mut Router<'_>, from: u32, to: u32) -> Result<Flow, String> {
        let node = |gpu: u32| self.topology.gpus[gpu as usize];
        let device = self.topology.device(from);
        let mut flow = Flow {
            uses: Vec::new(),
            bound: device.peer_copy.get(),
            latency: 0.0,
            staged: None,
        };
        let paths = router
            .paths(node(from), node(to))
            .map_err(|e| e.to_string())?;
        let start = device.costs.copy_start.get();
        for path in paths.iter().filter(|path| path.share > 0.0) {
            let latencies = path.legs.iter().map(|leg| leg.latency.get());
            flow.latency = flow.latency.max(latencies.clone().sum());
            if path.legs.len() > 1 {
                let longest = latencies.fold(0.0, f64::max);
                flow.staged = Some((path.chunk.as_f64(), start + longest));
            }
            for link in path.legs.iter().flat_map(|leg| &leg.links) {
                let link = link.index();
                for resource in [link].iter().chain(&self.shared_of[link]) {
                    match flow.uses.iter_mut().find(|(known, _)| known == resource) {
                        Some((_, load)) => *load += path.share,
                        None => flow.uses.push((*resource, path.share)),
                    }
                }
            }
        }
        Ok(flow)
    }

    fn capacity(&self, resource: usize, flows: u32) -> f64 {
        match resource.checked_sub(self.links) {
            Some(shared) => self.topology.shared[shared].bandwidth.get(),
            None => {
                let link = crate::topology::LinkId::new(resource);
                self.topology
                    .capacity(link, if self.contention { flows } else { 1 })
            }
        }
    }

    /// Rates of `flows` running at once \[bytes/s\].
    pub fn rates(&mut self, flows: &[&Flow]) -> Vec<f64> {
        // Only what these flows touch is looked at, and left clean for the next call.
        let mut touched: Vec<usize> = Vec::new();
        for (resource, _) in flows.iter().flat_map(|flow| &flow.uses) {
            if self.count[*resource] == 0 {
                touched.push(*resource);
            }
            self.count[*resource] += 1;
        }
        for &resource in &touched {
            self.left[resource] = self.capacity(resource, self.count[resource]);
        }
        let mut rates = vec![f64::INFINITY; flows.len()];
        let mut rising: Vec<usize> = (0..flows.len()).collect();
        while !rising.is_empty() {
            for &resource in &touched {
                self.load[resource] = 0.0;
            }
            for (resource, per_byte) in rising.iter().flat_map(|&i| &flows[i].uses) {
                self.load[*resource] += per_byte;
            }
            let full = |r: usize| self.left[r].max(0.0) / self.load[r];
            let limit = |i: usize| {
                let shares = flows[i].uses.iter().map(|(r, _)| full(*r));
                shares.fold(flows[i].bound, f64::min)
            };
            let limits: Vec<f64> = rising.iter().map(|&i| limit(i)).collect();
            let level = limits.iter().copied().fold(f64::INFINITY, f64::min);
            if level.is_infinite() {
                break;
            }
            // Those at the level keep it; a little slack against rounding.
            let mut place = 0;
            rising.retain(|&i| {
                place += 1;
                if limits[place - 1] > level * (1.0 + 1e-9) {
                    return true;
                }
                rates[i] = level;
                for (resource, per_byte) in &flows[i].uses {
                    self.left[*resource] -= level * per_byte;
                }
                false
            });
        }
        for resource in touched {
            self.count[resource] = 0;
        }
        rates
    }

    /// `flows` running at once as α + bytes · s/byte each.
    pub fn edges(&mut self, flows: &[Flow]) -> Vec<Edge> {
        let all: Vec<&Flow> = flows.iter().collect();
        let rates = self.rates(&all);
        flows
            .iter()
            .zip(rates)
            .map(|(flow, rate)| flow.at(rate))
            .collect()
    }
}

impl Flow {
    /// Latency of the way \[s\].
    pub fn latency(&self) -> f64 {
        self.latency
    }

    /// Whether it stops on its way.
    pub fn stops(&self) -> bool {
        self.staged.is_some()
    }

    /// The transfer at a rate: a stop on the way is passed in chunks, each started anew.
    pub fn at(&self, rate: f64) -> Edge {
        let mut edge = Edge {
            latency: self.latency,
            per_byte: 1.0 / rate,
        };
        if let Some((chunk, start)) = self.staged.filter(|(chunk, _)| *chunk > 0.0) {
            edge.per_byte += start / chunk;
            edge.latency += chunk / rate;
        }
        edge
    }
}
