//! Routes: how bytes get from one memory to another.
//!
//! Least total latency, ties by fewer hops, then by [`Ties`]. With `prefer`, link kinds are
//! admitted one by one in that order and the first set that connects the pair wins; after them
//! all kinds are. Explicit routes come before all of it.
//!
//! Ties are broken from the receiver back to the sender. At each node where several last hops are
//! equally good, in order of (node, link), [`Ties::Lowest`] takes the first and [`Ties::Spread`]
//! takes the digit of the receiver's number: number modulo candidates, the quotient going on to
//! the next choice. In a fat tree this is d-mod-k: consecutive receivers come through different
//! spines, and each receiver always through the same.
//!
//! GPU pairs without peer access stop in a host's memory, unless one link joins the two GPUs (a
//! bridge does not pass through what blocks peers): the host with the least total latency,
//! then fewest hops, then the one nearest the sender, then the lowest node order.
//!
//! ```
//! use duet::topology::{build::Builder, route::Router};
//! let mut b = Builder::new("pair");
//! let gpus = b.gpus(2);
//! let switch = b.switch("s");
//! let (up, _) = b.link(gpus[0], switch, "pcie", 24e9, 500e-9);
//! let (_, down) = b.link(gpus[1], switch, "pcie", 24e9, 500e-9);
//! let topology = b.build();
//! let mut links = Vec::new();
//! let latency = Router::new(&topology).direct(gpus[0], gpus[1], &mut links)?;
//! assert_eq!(links, [up, down]);
//! assert_eq!(latency.unwrap().get(), 1e-6);
//! # Ok::<(), duet::topology::route::RouteError>(())
//! ```

mod level;
mod net;
mod tree;

use level::{Level, Pair};
use net::Net;
use tree::Length;

use super::paths::{PathChoice, SLOTS};
use super::{Leg, LinkId, NodeId, NodeKind, Path, Ties, Topology};
use crate::units::{Bytes, Seconds};

/// Why there is no route.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// No way at all.
    #[error("`{from}` cannot reach `{to}`: add a link or a route between them")]
    Unreachable { from: String, to: String },
    /// Staging needs a host that both GPUs reach.
    #[error("`{from}` and `{to}` have no peer access and share no host: add a host or `p2p: true`")]
    NoHost { from: String, to: String },
    /// A way through a host was chosen.
    #[error(
        "`{from}` and `{to}` share no host, so there is no path through one: add a host to the topology, or choose the path p2p"
    )]
    NoHostPath { from: String, to: String },
}

/// Finds routes lazily. Shortest-path trees are kept, one per switch or root that a sender is
/// attached to, each grown only as far as it was asked for.
#[derive(Debug)]
pub struct Router<'t> {
    topology: &'t Topology,
    levels: Vec<Level>,
    /// Node → number among the forwarders; `u32::MAX` for memories.
    rank: Vec<u32>,
    /// Places in `topology.explicit`, sorted by (from, to).
    explicit: Vec<(NodeId, NodeId, u32)>,
    hosts: Vec<NodeId>,
    /// The way between GPUs.
    path: PathChoice,
}

impl<'t> Router<'t> {
    /// A router with nothing found yet.
    pub fn new(topology: &'t Topology) -> Self {
        let mut forwarders = 0_u32;
        let mut rank = Vec::with_capacity(topology.graph.node_count());
        let mut hosts = Vec::new();
        for id in topology.graph.node_indices() {
            match topology.graph[id].kind {
                NodeKind::Switch | NodeKind::Root => {
                    rank.push(forwarders);
                    forwarders += 1;
                }
                kind => {
                    rank.push(u32::MAX);
                    if kind == NodeKind::Host {
                        hosts.push(id);
                    }
                }
            }
        }
        let prefer = &topology.prefer;
        let all = topology.kinds.len();
        let stages = (1..=prefer.len()).map(|count| &prefer[..count]);
        let mut levels: Vec<Level> = stages
            .filter(|stage| stage.len() < all)
            .map(|stage| Net::new(topology, |kind| stage.contains(&kind)))
            .map(|net| Level::new(net, forwarders as usize))
            .collect();
        levels.push(Level::new(
            Net::new(topology, |_| true),
            forwarders as usize,
        ));
        let mut explicit: Vec<_> = (topology.explicit.iter().zip(0..))
            .map(|(route, place)| (route.from, route.to, place))
            .collect();
        explicit.sort_unstable();
        Self {
            topology,
            levels,
            rank,
            explicit,
            hosts,
            path: topology.path,
        }
    }

    /// A router to which no other way than the machine's own was chosen.
    pub fn of_routes(topology: &'t Topology) -> Self {
        Self {
            path: PathChoice::Routes,
            ..Self::new(topology)
        }
    }

    /// All sub-flows of a transfer from memory `from` to memory `to` (not the same node).
    ///
    /// # Errors
    /// [`RouteError`] when there is none.
    pub fn paths(&mut self, from: NodeId, to: NodeId) -> Result<Vec<Path>, RouteError> {
        let Some((share, chunk)) = self.chosen(from, to) else {
            return self.own_paths(from, to);
        };
        let host = self.staging_host(from, to).map_err(|error| match error {
            RouteError::NoHost { from, to } => RouteError::NoHostPath { from, to },
            other => other,
        })?;
        let legs = self.stop_at(from, host, to)?;
        let mut paths = Vec::new();
        if share < 1.0 {
            paths = self.own_paths(from, to)?;
            for path in &mut paths {
                path.share *= 1.0 - share;
            }
        }
        paths.push(Path {
            share,
            legs,
            chunk,
            slots: SLOTS,
        });
        Ok(paths)
    }

    /// The chosen share and chunk of the way through a host, between GPUs.
    fn chosen(&self, from: NodeId, to: NodeId) -> Option<(f64, Bytes)> {
        let gpu = |id: NodeId| matches!(self.topology.graph[id].kind, NodeKind::Gpu(_));
        self.path.host().filter(|_| gpu(from) && gpu(to))
    }

    /// The machine's own routes.
    fn own_paths(&mut self, from: NodeId, to: NodeId) -> Result<Vec<Path>, RouteError> {
        if let Some(paths) = self.explicit(from, to) {
            return Ok(paths.to_vec());
        }
        let mut links = Vec::new();
        if let Some(latency) = self.own_direct(from, to, &mut links)? {
            return Ok(vec![Path {
                share: 1.0,
                legs: vec![Leg {
                    from,
                    to,
                    links,
                    latency,
                }],
                chunk: Bytes::ZERO,
                slots: 0,
            }]);
        }
        let host = self.staging_host(from, to)?;
        Ok(vec![Path {
            share: 1.0,
            legs: self.stop_at(from, host, to)?,
            chunk: self.topology.staging_chunk,
            slots: 0,
        }])
    }

    /// Two legs, with a stop in a host's memory.
    fn stop_at(&mut self, from: NodeId, host: NodeId, to: NodeId) -> Result<Vec<Leg>, RouteError> {
        let mut legs = Vec::with_capacity(2);
        for (from, to) in [(from, host), (host, to)] {
            let mut links = Vec::new();
            let latency = self.shortest(from, to, &mut links)?;
            legs.push(Leg {
                from,
                to,
                links,
                latency,
            });
        }
        Ok(legs)
    }

    /// The fast way for the common case: when the route is one direct path, appends its links to
    /// `links` and returns its latency; `None` when the route is explicit multipath or staged
    /// (then ask [`Self::paths`]). Allocates nothing per pair.
    ///
    /// # Errors
    /// [`RouteError`] when there is none.
    pub fn direct(
        &mut self,
        from: NodeId,
        to: NodeId,
        links: &mut Vec<LinkId>,
    ) -> Result<Option<Seconds>, RouteError> {
        match self.chosen(from, to) {
            Some(_) => Ok(None),
            None => self.own_direct(from, to, links),
        }
    }

    fn own_direct(
        &mut self,
        from: NodeId,
        to: NodeId,
        links: &mut Vec<LinkId>,
    ) -> Result<Option<Seconds>, RouteError> {
        if let Some(paths) = self.explicit(from, to) {
            return Ok(match paths {
                [Path { legs, .. }] if legs.len() == 1 => {
                    links.extend_from_slice(&legs[0].links);
                    Some(legs[0].latency)
                }
                _ => None,
            });
        }
        if self.is_staged(from, to) {
            return Ok(None);
        }
        self.shortest(from, to, links).map(Some)
    }

    fn explicit(&self, from: NodeId, to: NodeId) -> Option<&'t [Path]> {
        let at = self
            .explicit
            .binary_search_by_key(&(from, to), |(from, to, _)| (*from, *to))
            .ok()?;
        Some(&self.topology.explicit[self.explicit[at].2 as usize].paths)
    }

    fn is_staged(&self, from: NodeId, to: NodeId) -> bool {
        let gpu = |id: NodeId| matches!(self.topology.graph[id].kind, NodeKind::Gpu(_));
        !self.topology.p2p && gpu(from) && gpu(to) && {
            let straight = &self.levels[self.levels.len() - 1].net.straight;
            let (from, to) = (from.index() as u32, to.index() as u32);
            straight.between(from, to).is_empty()
        }
    }

    fn unreachable(&self, from: NodeId, to: NodeId) -> RouteError {
        let name = |node: NodeId| self.topology.graph[node].name.clone();
        RouteError::Unreachable {
            from: name(from),
            to: name(to),
        }
    }

    /// The host through which `from` → `to` is staged.
    fn staging_host(&mut self, from: NodeId, to: NodeId) -> Result<NodeId, RouteError> {
        let mut best = None;
        for i in 0..self.hosts.len() {
            let host = self.hosts[i];
            let legs = [self.length(from, host), self.length(host, to)];
            if let [Some(first), Some(second)] = legs {
                let total = (first.0.saturating_add(second.0), first.1 + second.1);
                let key = (total, first, host);
                best = best.filter(|known| *known <= key).or(Some(key));
            }
        }
        let name = |node: NodeId| self.topology.graph[node].name.clone();
        best.map(|(_, _, host)| host)
            .ok_or_else(|| RouteError::NoHost {
                from: name(from),
                to: name(to),
            })
    }

    fn pair(&self, from: NodeId, to: NodeId) -> Pair {
        let number = match self.topology.graph[to].kind {
            NodeKind::Gpu(number) => u64::from(number),
            _ => to.index() as u64,
        };
        Pair {
            from: from.index() as u32,
            to: to.index() as u32,
            digits: (self.topology.ties == Ties::Spread).then_some(number),
        }
    }

    /// Length of the route between two memories, peer access aside.
    fn length(&mut self, from: NodeId, to: NodeId) -> Option<Length> {
        let pair = self.pair(from, to);
        let rank = &self.rank;
        (self.levels.iter_mut()).find_map(|level| Some(level.shortest(rank, pair)?.0))
    }

    /// Appends the links of the shortest path between two memories, peer access aside.
    fn shortest(
        &mut self,
        from: NodeId,
        to: NodeId,
        links: &mut Vec<LinkId>,
    ) -> Result<Seconds, RouteError> {
        let pair = self.pair(from, to);
        let start = links.len();
        let rank = &self.rank;
        let found = (self.levels.iter_mut()).any(|level| level.walk(rank, pair, links));
        if !found || from == to {
            links.truncate(start);
            return Err(self.unreachable(from, to));
        }
        let latency = |link: &LinkId| self.topology.graph[*link].latency.get();
        Ok(Seconds::of(links[start..].iter().map(latency).sum()))
    }
}

#[cfg(test)]
mod tests;
