//! The best ring over a set of GPUs and the best pair of rings, found on the graph.
//!
//! A ring is a directed Hamiltonian cycle; each of its edges is the route that
//! [`Router`](super::route::Router) finds between two GPUs. Let ring k load resource r (a link
//! direction or a shared capacity) with a_kr bytes per byte that each edge moves, in f_kr flows.
//! With C_r(f) the capacity under f flows:
//!
//! - one ring moves x = min_r C_r(f_r) / a_r bytes/s over every edge;
//! - two rings move x₁ + x₂, the most for which a_1r·x₁ + a_2r·x₂ ≤ C_r(f_1r + f_2r) for all r.
//!   They finish together when the first carries the share x₁ / (x₁ + x₂) of the bytes.
//!
//! The two need not be disjoint, and the second may be the first one reversed. A ring is named by
//! its order, from the first GPU asked for. Of rings equally fast, the one with the least sum of
//! latencies is taken, then the lexicographically smallest order. Of pairs equally fast, the best
//! ring with its reverse is taken, then the one with the best first ring in that ranking, then the
//! best second.
//!
//! To 8 GPUs all rings and pairs are tried. Beyond, file order, nearest neighbour and local
//! search within a fixed number of steps propose rings, and the result is exact where it meets an
//! upper bound.
//!
//! ```
//! use duet::topology::{build::Builder, rings};
//! // Four GPUs on one PCIe switch, NVLink bridges between 0 and 1 and between 2 and 3.
//! let mut b = Builder::new("bridges");
//! let gpus = b.gpus(4);
//! let pcie = b.switch("pcie0");
//! for &gpu in &gpus {
//!     b.link(gpu, pcie, "pcie", 24e9, 1e-6);
//! }
//! b.link(gpus[0], gpus[1], "nvlink", 52e9, 1.5e-6);
//! b.link(gpus[2], gpus[3], "nvlink", 52e9, 1.5e-6);
//! let rings = rings::find(&b.build(), &[0, 1, 2, 3]);
//! assert_eq!(rings.single.order, [0, 1, 2, 3]);
//! assert_eq!(rings.single.bandwidth.get(), 24e9);
//! let pair = rings.pair.unwrap();
//! assert_eq!(pair.second.order, [0, 3, 2, 1]); // the reverse uses the other directions
//! assert_eq!(pair.combined.get(), 48e9);
//! ```

pub(super) mod edges;
mod exact;
mod limit;
mod local;
mod narrow;
mod pair;

use edges::{Edges, GAP, Load};
use limit::Limits;
use pair::Total;

use super::Topology;
use super::route::RouteError;
use crate::units::{BytesPerSecond, Seconds};

/// Relative difference below which two bandwidths are the same.
const SAME: f64 = 1e-9;
/// Up to this many GPUs every ring and every pair is tried.
const EXACT_GPUS: usize = 8;

/// A directed Hamiltonian cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Ring {
    /// GPU numbers; each sends to the next, the last to the first.
    pub order: Vec<u32>,
    /// Bytes per second over every edge at once, the ring running alone.
    pub bandwidth: BytesPerSecond,
    /// Latency of a step: the greatest over the edges.
    pub latency: Seconds,
}

/// Two rings that run at once.
#[derive(Clone, Debug, PartialEq)]
pub struct RingPair {
    pub first: Ring,
    pub second: Ring,
    /// Share of the bytes for the first ring [0–1].
    pub share_first: f64,
    /// Bytes per second over both rings' edges together.
    pub combined: BytesPerSecond,
}

/// What [`find`] found.
#[derive(Clone, Debug, PartialEq)]
pub struct Rings {
    pub single: Ring,
    /// The best pair, where it beats the single ring.
    pub pair: Option<RingPair>,
    /// Why there is no pair.
    pub no_pair_reason: Option<String>,
    /// Whether no better ring and no better pair can exist.
    pub exact: bool,
    /// How the result was found and, where it is not exact, what bounds it.
    pub note: String,
}

/// Finds the best ring and the best pair of rings over `gpus` (distinct GPU numbers, in ring order
/// by default). Numbers the topology lacks and GPUs that cannot reach each other give a ring of
/// bandwidth 0 and say so in the note.
pub fn find(topology: &Topology, gpus: &[u32]) -> Rings {
    let lone = |why: String| Rings {
        single: Ring {
            order: gpus.to_vec(),
            bandwidth: BytesPerSecond::ZERO,
            latency: Seconds::ZERO,
        },
        pair: None,
        no_pair_reason: Some(why.clone()),
        exact: true,
        note: why,
    };
    if let Some(gpu) = gpus.iter().find(|g| **g as usize >= topology.gpus.len()) {
        return lone(format!("no ring: there is no GPU {gpu}"));
    }
    if gpus.len() < 2 {
        return lone("no ring: it takes at least two GPUs".to_owned());
    }
    let mut edges = Edges::new(topology, gpus);
    search(&mut edges).unwrap_or_else(|error| lone(format!("no ring: {error}")))
}

/// The orders of two rings.
type Two = (Vec<u32>, Vec<u32>);

/// A ring and, where one was found, two rings with their total; orders are places in `gpus`.
struct Found {
    single: Vec<u32>,
    pair: Option<Two>,
    /// Rings that differ in their loads, or evaluations of the local search.
    tried: usize,
    /// What bounds the result; `None` when everything was tried.
    limits: Option<Limits>,
}

fn search(edges: &mut Edges<'_>) -> Result<Rings, RouteError> {
    let count = edges.len();
    let found = if count <= EXACT_GPUS {
        exact::search(edges)
    } else {
        local::search(edges)
    };
    let one = edges.load(&found.single);
    let best = one.bandwidth(edges);
    if best <= GAP
        && let Some(error) = edges.gap.take()
    {
        return Err(error);
    }
    let single = ring(edges, &found.single, &one);
    let mut pair = None;
    let mut combined = best;
    if let Some((first, second)) = &found.pair {
        let loads = [edges.load(first), edges.load(second)];
        let total = Total::of(edges, &loads[0], &loads[1]);
        if total.rate > best * (1.0 + SAME) {
            combined = total.rate;
            pair = Some(RingPair {
                first: ring(edges, first, &loads[0]),
                second: ring(edges, second, &loads[1]),
                share_first: total.share,
                combined: BytesPerSecond::of(total.rate),
            });
        }
    }
    let (exact, note) = match found.limits {
        None => {
            let tried = found.tried;
            let note = format!("exact: all rings tried, {tried} of them load links differently");
            (true, note)
        }
        Some(limits) => judge(found.tried, limits, best, combined),
    };
    let no_pair_reason = match pair {
        Some(_) => None,
        None => Some(why_no_pair(edges, &found.single, &one)),
    };
    Ok(Rings {
        single,
        pair,
        no_pair_reason,
        exact,
        note,
    })
}

/// Whether the local search met its bounds, and what to say of it.
fn judge(tried: usize, limits: Limits, best: f64, combined: f64) -> (bool, String) {
    let single = best >= limits.single * (1.0 - SAME);
    let pair = combined >= limits.pair * (1.0 - SAME);
    let [no_ring, no_pair] = [limits.single, limits.pair].map(BytesPerSecond::of);
    let note = match (single, pair) {
        (true, true) => "exact: ring and pair meet their upper bounds".to_owned(),
        (true, false) => format!(
            "not proven: the ring meets its upper bound, the pair is the best of {tried} tried; \
             none can exceed {no_pair}"
        ),
        (false, true) => format!(
            "not proven: the pair meets its upper bound, the ring is the best of {tried} tried; \
             none can exceed {no_ring}"
        ),
        (false, false) => format!(
            "not proven: the best of {tried} tried; no ring can exceed {no_ring}, no pair {no_pair}"
        ),
    };
    (single && pair, note)
}

fn ring(edges: &Edges<'_>, order: &[u32], load: &Load) -> Ring {
    Ring {
        order: order
            .iter()
            .map(|&place| edges.gpus[place as usize])
            .collect(),
        bandwidth: BytesPerSecond::of(load.bandwidth(edges)),
        latency: Seconds::of(load.latency),
    }
}

/// The ring turned round, from the same GPU.
fn reverse(order: &[u32]) -> Vec<u32> {
    let mut turned = order.to_vec();
    turned[1..].reverse();
    turned
}

fn why_no_pair(edges: &mut Edges<'_>, order: &[u32], one: &Load) -> String {
    if order.len() == 2 {
        return "two GPUs make one ring only: a second would take the same links".to_owned();
    }
    let other = edges.load(&reverse(order));
    let total = Total::of(edges, one, &other);
    let name = edges.name(total.binding);
    let capacity = BytesPerSecond::of(edges.capacity(total.binding, 1));
    if capacity.get() <= GAP {
        return "no pair beats one ring: it cannot be gone backwards".to_owned();
    }
    format!("no pair beats one ring: forward and backward already share {name} ({capacity})")
}

#[cfg(test)]
mod tests;
