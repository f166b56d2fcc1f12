//! Bandwidth of transfers that run at once: every link, shared capacity and copy engine divided
//! max-min fairly.
//!
//! All rates rise together until a resource is full; its transfers keep theirs, the others go on
//! rising. Capacities are those under the number of transfers on the link.

use super::Edge;
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
        Self {
            topology,
            contention,
            links,
            shared_of,
        }
    }

    /// Copy engines that GPU `gpu` has for peers.
    pub fn engines(&self, gpu: u32) -> u32 {
        self.topology.device(gpu).engines.peer
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
    pub fn rates(&self, flows: &[&Flow]) -> Vec<f64> {
        let resources = self.links + self.topology.shared.len();
        let mut count = vec![0u32; resources];
        for (resource, _) in flows.iter().flat_map(|flow| &flow.uses) {
            count[*resource] += 1;
        }
        let mut left: Vec<f64> = (0..resources)
            .map(|r| {
                if count[r] > 0 {
                    self.capacity(r, count[r])
                } else {
                    0.0
                }
            })
            .collect();
        let mut rates: Vec<Option<f64>> = vec![None; flows.len()];
        while rates.contains(&None) {
            let mut load = vec![0.0; resources];
            let open = |rates: &[Option<f64>]| -> Vec<usize> {
                (0..flows.len()).filter(|&i| rates[i].is_none()).collect()
            };
            let rising = open(&rates);
            for &i in &rising {
                for (resource, per_byte) in &flows[i].uses {
                    load[*resource] += per_byte;
                }
            }
            let full = |r: usize| {
                if load[r] > 0.0 {
                    left[r].max(0.0) / load[r]
                } else {
                    f64::INFINITY
                }
            };
            let limit = |i: &usize| {
                let flow = flows[*i];
                flow.uses
                    .iter()
                    .map(|(r, _)| full(*r))
                    .fold(flow.bound, f64::min)
            };
            let level = rising.iter().map(limit).fold(f64::INFINITY, f64::min);
            // Those at the level keep it; a little slack against rounding.
            let stopped: Vec<usize> = (rising.iter().copied())
                .filter(|i| level.is_infinite() || limit(i) <= level * (1.0 + 1e-9))
                .collect();
            for i in stopped {
                rates[i] = Some(level);
                for (resource, per_byte) in &flows[i].uses {
                    left[*resource] -= level * per_byte;
                }
            }
        }
        rates
            .into_iter()
            .map(|rate| rate.unwrap_or(f64::INFINITY))
            .collect()
    }

    /// `flows` running at once as α + bytes · s/byte each.
    pub fn edges(&self, flows: &[Flow]) -> Vec<Edge> {
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
