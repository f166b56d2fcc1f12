//! What the closed forms know of the link graph: seconds per byte and latencies, worked out once.
//!
//! ```text
//! ring       (n − 1) · max over edges of (α_e + (m/n)/B_e), B_e with all edges running at once
//! two rings  the same with every edge of both running, the bytes divided as the rings share them
//! exchange   all pairs, as many at once as there are copy engines: last arrival per byte of a shard
//! library    (n − 1)·α + sent · max over links of load/B, at the library's efficiency
//! ```

mod exchange;
mod library;
mod share;
mod table;
mod timed;

use exchange::{Of, PIECES};

pub(super) use exchange::Exchange;
pub(super) use library::Library;
pub(super) use timed::{Arrivals, HeldUp};

use share::{Flow, Sharing};

use super::form::greater;

use crate::schedule::CollectiveKind;
use crate::topology::route::Router;
use crate::topology::{Topology, rings};

/// Beyond this many GPUs rings are the GPUs in their own order, as strategies take them.
const SEARCHED: usize = 256;

/// One edge of a ring under the load of all: `α + bytes · per_byte`.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Edge {
    /// Latency, and the filling of stops on the way \[s\].
    pub latency: f64,
    /// Inverse of its bandwidth \[s/byte\].
    pub per_byte: f64,
}

impl Edge {
    /// With `bytes` on it \[s\].
    #[inline]
    pub fn at(&self, bytes: f64) -> f64 {
        self.latency + bytes * self.per_byte
    }
}

/// A ring.
#[derive(Clone, Debug)]
pub(super) struct Course {
    /// Share of every shard that travels on it \[0–1\].
    pub share: f64,
    /// Its distinct edges.
    pub edges: Vec<Edge>,
    /// The sums over the n − 1 slowest edges in a row: what one shard goes through.
    pub around: Edge,
}

impl Course {
    fn new(share: f64, edges: &[Edge]) -> Self {
        let sum = Edge {
            latency: edges.iter().map(|edge| edge.latency).sum(),
            per_byte: edges.iter().map(|edge| edge.per_byte).sum(),
        };
        // The lap leaves out one edge; the slowest lap leaves out the fastest.
        let least = |of: fn(&Edge) -> f64| edges.iter().map(of).fold(f64::INFINITY, f64::min);
        let around = Edge {
            latency: sum.latency - least(|edge| edge.latency),
            per_byte: sum.per_byte - least(|edge| edge.per_byte),
        };
        let mut distinct: Vec<Edge> = Vec::new();
        for edge in edges {
            if !distinct.contains(edge) {
                distinct.push(*edge);
            }
        }
        Self {
            share,
            edges: distinct,
            around,
        }
    }

    /// The slowest edge with `bytes` on it \[s\].
    pub fn slowest(&self, bytes: f64) -> f64 {
        (self.edges.iter())
            .map(|edge| edge.at(bytes))
            .fold(0.0, greater)
    }

    /// The edges that are the slowest for some number of bytes, and perhaps others.
    pub fn slow_edges(&self) -> impl Iterator<Item = &Edge> {
        let above = |other: &Edge, edge: &Edge| {
            other != edge && other.latency >= edge.latency && other.per_byte >= edge.per_byte
        };
        let edges = self.edges.iter();
        edges.filter(move |edge| !self.edges.iter().any(|other| above(other, edge)))
    }
}

/// The link graph in numbers, for ranks on GPUs of their own.
#[derive(Clone, Debug)]
pub(super) struct Network {
    /// The best ring.
    pub ring: Course,
    /// The best pair of rings, or why there is none.
    pub pair: Result<[Course; 2], String>,
    /// Every pair of ranks: shards to everyone, parts to their owners.
    pub gather: Exchange,
    pub scatter: Exchange,
    /// The same with every shard in [`PIECES`] pieces.
    cut: [Exchange; 2],
    /// The message from rank 0 to rank 1.
    pub message: Edge,
    library: [Option<Library>; 4],
}

impl Network {
    /// Of at least two ranks on GPUs of their own; `contention`: whether curves count.
    ///
    /// # Errors
    /// Why two of them cannot reach each other, in words.
    pub fn new(topology: &Topology, placement: &[u32], contention: bool) -> Result<Self, String> {
        let mut router = Router::new(topology);
        let mut sharing = Sharing::new(topology, contention);
        let found = (placement.len() <= SEARCHED).then(|| rings::find(topology, placement));
        let single = found
            .as_ref()
            .map_or(placement, |found| &found.single.order);
        let flows = |router: &mut Router<'_>, order: &[u32]| -> Result<Vec<Flow>, String> {
            let next = order.iter().cycle().skip(1);
            (order.iter().zip(next))
                .map(|(&from, &to)| sharing.flow(router, from, to))
                .collect()
        };
        let one = flows(&mut router, single)?;
        let two = match found
            .as_ref()
            .map(|found| (&found.pair, &found.no_pair_reason))
        {
            Some((Some(pair), _)) => {
                let both = [
                    flows(&mut router, &pair.first.order)?,
                    flows(&mut router, &pair.second.order)?,
                ];
                Ok((both.concat(), pair.share_first))
            }
            Some((None, reason)) => Err(reason
                .clone()
                .unwrap_or_else(|| "no pair of rings beats one ring".to_owned())),
            None => Err(format!(
                "rings are searched for among up to {SEARCHED} GPUs"
            )),
        };
        let ring = Course::new(1.0, &sharing.edges(&one));
        let pair = two.map(|(flows, share)| {
            let edges = sharing.edges(&flows);
            let (first, second) = edges.split_at(placement.len());
            [Course::new(share, first), Course::new(1.0 - share, second)]
        });
        let message = sharing.flow(&mut router, placement[0], placement[1])?;
        let message = sharing.edges(std::slice::from_ref(&message))[0];
        let kinds = [
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::AllReduce,
            CollectiveKind::AllToAll,
        ];
        let mut own = Router::of_routes(topology);
        let mut library = [None; 4];
        for (place, kind) in library.iter_mut().zip(kinds) {
            // All pairs of a thousand GPUs would take longer than a simulation.
            if kind != CollectiveKind::AllToAll || placement.len() <= SEARCHED {
                let one = Library::new(topology, &mut own, single, kind, contention)?;
                *place = Some(one);
            }
        }
        let mut exchange = |onward, pieces| {
            let paced = onward && contention;
            let of = Of {
                onward,
                paced,
                timed: !onward && contention,
                pieces,
            };
            Exchange::new(&mut sharing, &mut router, placement, of)
        };
        Ok(Self {
            ring,
            pair,
            gather: exchange(false, 1)?,
            scatter: exchange(true, 1)?,
            cut: [exchange(false, PIECES)?, exchange(true, PIECES)?],
            message,
            library,
        })
    }

    /// Shards to everyone and parts to their owners, in so many pieces each; `None` where that was not
    /// worked out.
    pub fn exchanges(&self, pieces: u32) -> Option<(&Exchange, &Exchange)> {
        let [gather, scatter] = &self.cut;
        let found = match pieces {
            1 => (&self.gather, &self.scatter),
            PIECES => (gather, scatter),
            _ => return None,
        };
        found.0.known().then_some(found)
    }

    /// A library collective; `None` for an all-to-all of too many ranks.
    pub fn library(&self, kind: CollectiveKind) -> Option<&Library> {
        self.library[place(kind)].as_ref()
    }
}

/// The place of a kind of collective among [`crate::device::COLLECTIVES`].
pub(super) const fn place(kind: CollectiveKind) -> usize {
    match kind {
        CollectiveKind::AllGather => 0,
        CollectiveKind::ReduceScatter => 1,
        CollectiveKind::AllReduce => 2,
        CollectiveKind::AllToAll => 3,
    }
}
