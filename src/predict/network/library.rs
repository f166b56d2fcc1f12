//! The collective library: alpha and seconds per byte on the link graph.
//!
//! A member sends `sent` bytes: (n − 1)/n of S for all-gather, reduce-scatter and all-to-all, twice
//! that for all-reduce. With u_l the bytes on link l per byte sent, raised by the inverse of the
//! library's efficiency on that kind of link,
//!
//! ```text
//! t = base + rounds·(n − 1)·(step + latency) + sent · max(max_l u_l/B_l, accesses/HBM, 1/(SMs · rate))
//! ```
//!
//! Its channels lie on the ring; where every hop is a link of its own, also backwards or over all
//! pairs.

use rustc_hash::FxHashMap;

use crate::schedule::CollectiveKind;
use crate::topology::route::Router;
use crate::topology::{LinkId, Path, Topology};

/// One kind of collective.
#[derive(Copy, Clone, Debug, Default)]
pub(in crate::predict) struct Library {
    /// Steps of the ring: n − 1, twice that for all-reduce.
    pub steps: f64,
    /// Latency of a step \[s\].
    pub latency: f64,
    /// Seconds per byte that a member sends: over links, and at least, by memory and its SMs.
    pub links_per_byte: f64,
    pub least_per_byte: f64,
    /// Bytes read and written in a GPU's memory per byte sent.
    pub accesses: f64,
    /// Bytes that a member sends per byte of the message (nccl-tests' size).
    pub sent: f64,
}

impl Library {
    /// Of `gpus` in ring order.
    ///
    /// # Errors
    /// Why two of them cannot reach each other, in words.
    pub fn new(
        topology: &Topology,
        router: &mut Router<'_>,
        gpus: &[u32],
        kind: CollectiveKind,
        contention: bool,
    ) -> Result<Self, String> {
        let n = gpus.len();
        let (accesses, rounds) = match kind {
            CollectiveKind::AllGather | CollectiveKind::AllToAll => (2.0, 1.0),
            CollectiveKind::ReduceScatter => (3.0, 1.0),
            CollectiveKind::AllReduce => (2.5, 2.0),
        };
        let mut latency = 0f64;
        let mut uses: FxHashMap<LinkId, (f64, u32)> = FxHashMap::default();
        for (from, to, share) in channels(topology, router, kind, gpus)? {
            for path in paths(topology, router, from, to)? {
                for link in path.legs.iter().flat_map(|leg| &leg.links) {
                    let slot = uses.entry(*link).or_default();
                    slot.0 += share * path.share / efficiency(topology, from, *link);
                    slot.1 += 1;
                }
                latency = latency.max(path.legs.iter().map(|leg| leg.latency.get()).sum());
            }
        }
        let device = topology.device(gpus[0]);
        let mut least_per_byte = accesses / device.hbm.get();
        if device.library.sms > 0 {
            let rate = f64::from(device.library.sms) * device.sm_copy.get();
            least_per_byte = least_per_byte.max(1.0 / rate);
        }
        let mut per_byte = 0f64;
        for (link, (load, flows)) in &uses {
            let flows = if contention { *flows } else { 1 };
            per_byte = per_byte.max(load / topology.capacity(*link, flows));
        }
        for shared in &topology.shared {
            let load: f64 = (shared.links.iter())
                .filter_map(|link| uses.get(link).map(|(load, _)| load))
                .sum();
            per_byte = per_byte.max(load / shared.bandwidth.get());
        }
        let steps = rounds * (n - 1) as f64;
        Ok(Self {
            steps,
            latency,
            links_per_byte: per_byte,
            least_per_byte,
            accesses,
            sent: steps / n as f64,
        })
    }
}

fn paths(
    topology: &Topology,
    router: &mut Router<'_>,
    from: u32,
    to: u32,
) -> Result<Vec<Path>, String> {
    let node = |gpu: u32| topology.gpus[gpu as usize];
    router
        .paths(node(from), node(to))
        .map_err(|error| error.to_string())
}

/// The pairs that bytes move between, each with its share of what a member sends.
fn channels(
    topology: &Topology,
    router: &mut Router<'_>,
    kind: CollectiveKind,
    gpus: &[u32],
) -> Result<Vec<(u32, u32, f64)>, String> {
    let n = gpus.len();
    let share = 1.0 / (n - 1) as f64;
    let all = || -> Vec<(u32, u32, f64)> {
        let others = |i: usize| gpus[..i].iter().chain(&gpus[i + 1..]);
        (0..n)
            .flat_map(|i| others(i).map(move |&to| (gpus[i], to, share)))
            .collect()
    };
    if kind == CollectiveKind::AllToAll {
        return Ok(all());
    }
    let forward: Vec<_> = (0..n).map(|i| (gpus[i], gpus[(i + 1) % n], 1.0)).collect();
    let mut own = |pairs: &[(u32, u32, f64)]| -> bool {
        pairs.iter().all(|&(from, to, _)| {
            paths(topology, router, from, to).is_ok_and(|paths| {
                paths.len() == 1 && paths[0].legs.len() == 1 && paths[0].legs[0].links.len() == 1
            })
        })
    };
    // Only where the ring's own hops are links can all pairs' or the reverse's be.
    if own(&forward) {
        let both: Vec<_> = (forward.iter())
            .flat_map(|&(from, to, _)| [(from, to, 0.5), (to, from, 0.5)])
            .collect();
        for candidate in [all(), both] {
            if own(&candidate) {
                return Ok(candidate);
            }
        }
    }
    Ok(forward)
}

/// Share of a link's bandwidth that the library reaches.
fn efficiency(topology: &Topology, gpu: u32, link: LinkId) -> f64 {
    let kind = &topology.kinds[usize::from(topology.graph[link].kind)];
    let library = &topology.device(gpu).library;
    (library.efficiency.iter())
        .find(|(name, _)| name == kind)
        .map_or(library.other, |(_, efficiency)| *efficiency)
}
