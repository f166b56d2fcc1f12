//! What each ring edge loads, and the sum over a ring.

use rustc_hash::FxHashMap;

use super::super::route::{RouteError, Router};
use super::super::{LinkId, Topology};

/// A load on one resource by one ring edge.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(in crate::topology) struct Use {
    /// Link direction, or number of links + place among the shared capacities.
    pub resource: u32,
    /// Flows on it.
    pub flows: u32,
    /// Bytes on it per byte that the edge moves.
    pub load: f64,
}

/// The route from one GPU to another.
#[derive(Copy, Clone, Debug)]
pub(in crate::topology) struct Edge {
    start: u32,
    end: u32,
    /// Latency [s].
    pub latency: f64,
    /// Latency [ps], for exact sums.
    pub picoseconds: u64,
}

/// The ring edges among `gpus`, routed when first asked for.
#[derive(Debug)]
pub(in crate::topology) struct Edges<'t> {
    pub topology: &'t Topology,
    pub gpus: &'t [u32],
    router: Router<'t>,
    uses: Vec<Use>,
    known: FxHashMap<(u32, u32), Edge>,
    /// Link → shared capacities it belongs to, as (link, place) sorted.
    members: Vec<(u32, u32)>,
    /// Why the first pair found without a route has none.
    pub gap: Option<RouteError>,
}

/// Bytes/s between GPUs that have no route: below the least bandwidth a link may have, so that
/// any ring along routes beats one with a gap.
pub(super) const GAP: f64 = 1e-6;

impl<'t> Edges<'t> {
    pub fn new(topology: &'t Topology, gpus: &'t [u32]) -> Self {
        let mut members: Vec<(u32, u32)> = (topology.shared.iter().zip(0..))
            .flat_map(|(shared, place)| {
                (shared.links.iter()).map(move |link| (link.index() as u32, place))
            })
            .collect();
        members.sort_unstable();
        Self {
            topology,
            gpus,
            router: Router::new(topology),
            uses: Vec::new(),
            known: FxHashMap::default(),
            members,
            gap: None,
        }
    }

    /// Number of GPUs.
    pub fn len(&self) -> usize {
        self.gpus.len()
    }

    /// Number of link directions and shared capacities, and one for all gaps.
    pub fn resources(&self) -> usize {
        self.topology.graph.edge_count() + self.topology.shared.len() + 1
    }

    /// Bytes/s of a resource beyond the links.
    fn beyond_links(&self, place: usize) -> f64 {
        let shared = self.topology.shared.get(place);
        shared.map_or(GAP, |shared| shared.bandwidth.get())
    }

    /// Bytes/s of `resource` under `flows` flows.
    pub fn capacity(&self, resource: u32, flows: u32) -> f64 {
        let links = self.topology.graph.edge_count();
        match (resource as usize).checked_sub(links) {
            Some(place) => self.beyond_links(place),
            None => (self.topology).capacity(LinkId::new(resource as usize), flows),
        }
    }

    /// The most bytes/s of `resource` under `flows` flows or more.
    pub fn most(&self, resource: u32, flows: u32) -> f64 {
        let links = self.topology.graph.edge_count();
        match (resource as usize).checked_sub(links) {
            Some(place) => self.beyond_links(place),
            None => {
                let link = LinkId::new(resource as usize);
                self.topology.best_capacity_from(link, flows)
            }
        }
    }

    /// `resource` in words.
    pub fn name(&self, resource: u32) -> String {
        let graph = &self.topology.graph;
        if let Some(shared) = (resource as usize).checked_sub(graph.edge_count()) {
            return match self.topology.shared.get(shared) {
                Some(shared) => format!("the shared capacity `{}`", shared.name),
                None => "a pair of GPUs without a route".to_owned(),
            };
        }
        let ends = graph.edge_endpoints(LinkId::new(resource as usize));
        ends.map_or_else(String::new, |(from, to)| {
            format!("`{}->{}`", graph[from].name, graph[to].name)
        })
    }

    /// The edge between two places in `gpus`; without a route it is a gap.
    pub fn edge(&mut self, from: u32, to: u32) -> Edge {
        if let Some(edge) = self.known.get(&(from, to)) {
            return *edge;
        }
        let edge = self.route(from, to);
        self.known.insert((from, to), edge);
        edge
    }

    /// What `edge` loads, by ascending resource.
    pub fn uses(&self, edge: Edge) -> &[Use] {
        &self.uses[edge.start as usize..edge.end as usize]
    }

    fn route(&mut self, from: u32, to: u32) -> Edge {
        let node = |place: u32| self.topology.gpus[self.gpus[place as usize] as usize];
        let paths = match self.router.paths(node(from), node(to)) {
            Ok(paths) => paths,
            Err(error) => {
                self.gap.get_or_insert(error);
                self.uses.push(Use {
                    resource: self.resources() as u32 - 1,
                    flows: 1,
                    load: 1.0,
                });
                let end = self.uses.len() as u32;
                return Edge {
                    start: end - 1,
                    end,
                    latency: 0.0,
                    picoseconds: 0,
                };
            }
        };
        let mut list = Vec::new();
        let mut latency = 0.0_f64;
        for path in &paths {
            latency = latency.max(path.legs.iter().map(|leg| leg.latency.get()).sum());
            for link in path.legs.iter().flat_map(|leg| &leg.links) {
                let link = link.index() as u32;
                let (flows, load) = (1, path.share);
                let with = |resource| Use {
                    resource,
                    flows,
                    load,
                };
                list.push(with(link));
                let first = self.members.partition_point(|(member, _)| *member < link);
                let shared = self.members[first..].iter();
                let links = self.topology.graph.edge_count() as u32;
                list.extend(
                    (shared.take_while(|(member, _)| *member == link))
                        .map(|(_, place)| with(links + place)),
                );
            }
        }
        list.sort_by_key(|item| item.resource);
        let start = self.uses.len();
        for item in list {
            match self.uses[start..].last_mut() {
                Some(last) if last.resource == item.resource => {
                    last.flows += item.flows;
                    last.load += item.load;
                }
                _ => self.uses.push(item),
            }
        }
        Edge {
            start: start as u32,
            end: self.uses.len() as u32,
            latency,
            picoseconds: (latency * 1e12).round() as u64,
        }
    }

    /// Bytes/s of one edge alone.
    pub fn alone(&self, edge: Edge) -> f64 {
        (self.uses(edge).iter())
            .map(|item| self.capacity(item.resource, item.flows) / item.load)
            .fold(f64::INFINITY, f64::min)
    }

    /// The load of the ring `order`.
    pub fn load(&mut self, order: &[u32]) -> Load {
        let mut load = Load::new(self.resources());
        load.set(self, order);
        load
    }
}

/// The sum of the uses of a ring's edges, by resource.
#[derive(Clone, Debug)]
pub(in crate::topology) struct Load {
    pub load: Vec<f64>,
    pub flows: Vec<u32>,
    /// Resources with a load, in order of first use.
    pub touched: Vec<u32>,
    /// Greatest latency of an edge [s].
    pub latency: f64,
    /// Sum of the latencies [ps].
    pub picoseconds: u64,
}

impl Load {
    pub fn new(resources: usize) -> Self {
        Self {
            load: vec![0.0; resources],
            flows: vec![0; resources],
            touched: Vec::new(),
            latency: 0.0,
            picoseconds: 0,
        }
    }

    /// Replaces the load by that of the ring `order`.
    pub fn set(&mut self, edges: &mut Edges<'_>, order: &[u32]) {
        for resource in self.touched.drain(..) {
            self.load[resource as usize] = 0.0;
            self.flows[resource as usize] = 0;
        }
        (self.latency, self.picoseconds) = (0.0, 0);
        for (i, &from) in order.iter().enumerate() {
            let edge = edges.edge(from, order[(i + 1) % order.len()]);
            self.latency = self.latency.max(edge.latency);
            self.picoseconds = self.picoseconds.saturating_add(edge.picoseconds);
            for item in edges.uses(edge) {
                let at = item.resource as usize;
                if self.flows[at] == 0 {
                    self.touched.push(item.resource);
                }
                self.load[at] += item.load;
                self.flows[at] += item.flows;
            }
        }
    }

    /// Bytes/s over every edge when the ring runs alone.
    pub fn bandwidth(&self, edges: &Edges<'_>) -> f64 {
        (self.touched.iter())
            .map(|&r| edges.capacity(r, self.flows[r as usize]) / self.load[r as usize])
            .fold(f64::INFINITY, f64::min)
    }
}
