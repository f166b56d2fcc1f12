//! Lower bounds on the time of a collective, whatever the algorithm.
//!
//! GPUs, hosts, switches and roots all forward, and copy or add on the way where the collective
//! allows it; shared capacities and contention are relaxed; of the latencies only the least one
//! between two of the GPUs counts. With S the bytes (nccl-tests' meaning), n GPUs and cap(U) the
//! bandwidth of the links that leave the node set U:
//!
//! - all-gather: every set U with k of the GPUs, but not all, must let k·S/n bytes out;
//!   the largest k·S/n / cap(U) is found for each receiver by maximum flows;
//! - reduce-scatter: the same with every link turned round;
//! - all-reduce: S bytes out of every such U, hence S / (least cut); and every element is sent at
//!   least 2(n − 1) times, hence 2(n − 1)·S / Σ (bandwidth out of a GPU), and into a GPU;
//! - all-to-all: |U|·|V|·S/n bytes from GPUs U to the GPUs V outside, for single GPUs and for
//!   groups that slow links part, by the least cut between U and V;
//! - point-to-point: S / (least cut).
//!
//! ```
//! use duet::topology::{bound::{self, Kind}, build::Builder};
//! let mut b = Builder::new("switch");
//! let gpus = b.gpus(8);
//! let switch = b.switch("nvswitch");
//! for &gpu in &gpus {
//!     b.link(gpu, switch, "nvlink", 50e9, 250e-9);
//! }
//! let bounds = bound::bounds(&b.build(), Kind::AllGather, 8e6, &[0, 1, 2, 3, 4, 5, 6, 7]);
//! let best = &bounds[0]; // 7 MB into a GPU at 50 GB/s, after 500 ns
//! assert!((best.seconds.get() - (7e6 / 50e9 + 500e-9)).abs() < 1e-12);
//! ```

mod cuts;

use super::Topology;
use super::route::Router;
use crate::units::Seconds;

/// What is done with the bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// S is the gathered output.
    AllGather,
    /// S is one rank's input.
    ReduceScatter,
    /// S is the buffer.
    AllReduce,
    /// S is one rank's send buffer, its own block included.
    AllToAll,
    /// S is the message, from the first GPU to the second.
    PointToPoint,
}

/// A time no schedule can beat.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// What bounds, e.g. `flow into gpu3`.
    pub name: String,
    pub seconds: Seconds,
    /// Whether some schedule comes arbitrarily close as the bytes grow; `None`: not known.
    pub tight: Option<bool>,
    /// The numbers behind it, in words.
    pub why: String,
}

/// Up to this many GPUs there is a maximum flow for each.
const FLOW_GPUS: usize = 64;

/// Valid lower bounds for `bytes` over the GPU numbers `gpus`, the largest first; empty with
/// fewer than two GPUs, where nothing has to move.
pub fn bounds(topology: &Topology, kind: Kind, bytes: f64, gpus: &[u32]) -> Vec<Bound> {
    let known = gpus.iter().all(|gpu| (*gpu as usize) < topology.gpus.len());
    if gpus.len() < 2 || !known {
        return Vec::new();
    }
    let mut cuts = cuts::Cuts::new(topology, gpus, bytes);
    match kind {
        Kind::AllGather => cuts.gather(false),
        Kind::ReduceScatter => cuts.gather(true),
        Kind::AllReduce => cuts.all_reduce(),
        Kind::AllToAll => cuts.all_to_all(),
        Kind::PointToPoint => cuts.point_to_point(),
    }
    let mut bounds = cuts.bounds;
    let pair = match kind {
        Kind::PointToPoint => &gpus[..2],
        _ => gpus,
    };
    let latency = least_latency(topology, pair, kind == Kind::PointToPoint);
    for bound in &mut bounds {
        bound.seconds = Seconds::of(bound.seconds.get() + latency);
    }
    bounds.sort_by(|x, y| y.seconds.get().total_cmp(&x.seconds.get()));
    bounds
}

/// The least latency with which anything of the collective can arrive [s].
fn least_latency(topology: &Topology, gpus: &[u32], one_way: bool) -> f64 {
    if gpus.len() > FLOW_GPUS {
        return 0.0;
    }
    let mut router = Router::new(topology);
    let mut least = f64::INFINITY;
    for (i, &from) in gpus.iter().enumerate() {
        for (j, &to) in gpus.iter().enumerate() {
            if i == j || (one_way && i > j) {
                continue;
            }
            let ends = [from, to].map(|gpu| topology.gpus[gpu as usize]);
            for path in router.paths(ends[0], ends[1]).unwrap_or_default() {
                least = least.min(path.legs.iter().map(|leg| leg.latency.get()).sum());
            }
        }
    }
    if least.is_finite() { least } else { 0.0 }
}

#[cfg(test)]
mod tests;
