//! Bytes: what takes which path, and what lies in the memory of hosts.

use crate::schedule::{Rank, Schedule, Work};
use crate::topology::paths::SLOTS;
use crate::topology::{Path, Topology};

/// Bytes of staging memory that a schedule uses at most: a ring for every lane and pair of GPUs.
pub(in crate::sim) fn staged_bytes(schedule: &Schedule, topology: &Topology) -> f64 {
    let Some((_, chunk)) = topology.path.host() else {
        return 0.0;
    };
    let gpu = |rank: Rank| schedule.placement[usize::from(rank.0)];
    let mut rings: rustc_hash::FxHashMap<_, f64> = rustc_hash::FxHashMap::default();
    for task in &schedule.tasks {
        if let Work::Transfer { from, to, .. } = task.work {
            let ends = [from, to].map(|slice| gpu(schedule.rank_of(&slice)));
            if ends[0] != ends[1] {
                let bytes = (schedule.bytes(&from) as f64).min(chunk.as_f64());
                let slot = rings.entry((task.rank, task.lane, ends)).or_insert(0.0);
                *slot = slot.max(bytes);
            }
        }
    }
    // In an order of its own: sums of whole numbers do not depend on it.
    rings.values().sum::<f64>() * f64::from(SLOTS)
}

/// The bytes that take each path. What goes through a ring is whole rows of `row` bytes, and the
/// other paths share the rest.
pub(super) fn parts(paths: &[Path], bytes: f64, row: f64) -> Vec<(&Path, f64)> {
    let of = |path: &Path| match path.slots {
        0 => bytes * path.share,
        _ => ((bytes / row * path.share).round() * row).min(bytes),
    };
    let ring: f64 = paths.iter().filter(|path| path.slots > 0).map(of).sum();
    let shares = paths.iter().filter(|path| path.slots == 0);
    let others: f64 = shares.map(|path| path.share).sum();
    let part = |path: &Path| match path.slots {
        0 if ring > 0.0 => (bytes - ring) * path.share / others,
        _ => of(path),
    };
    let parts = paths.iter().map(|path| (path, part(path)));
    parts.filter(|(_, bytes)| *bytes > 0.0).collect()
}
