//! Groups of closest ranks, for strategies that work inside groups first and then across.

use super::Skip;
use crate::schedule::Rank;
use crate::topology::route::{RouteError, Router};
use crate::topology::{NodeId, Topology};

/// Beyond this many ranks every pair would be looked at for too long.
const SEARCHED: usize = 256;

/// How close two GPUs are: the bandwidth of one flow alone [bytes/s], then the latency [s].
#[derive(Copy, Clone, Debug, PartialEq)]
struct Closeness {
    bandwidth: f64,
    latency: f64,
}

impl Closeness {
    fn beats(self, other: Self) -> bool {
        self.bandwidth > other.bandwidth
            || (self.bandwidth == other.bandwidth && self.latency < other.latency)
    }
}

fn closeness(
    topology: &Topology,
    router: &mut Router<'_>,
    from: NodeId,
    to: NodeId,
) -> Result<Closeness, RouteError> {
    let mut best = Closeness {
        bandwidth: 0.0,
        latency: f64::INFINITY,
    };
    for path in router.paths(from, to)? {
        let links = path.legs.iter().flat_map(|leg| &leg.links);
        let narrowest = links
            .map(|&link| topology.graph[link].bandwidth.get())
            .fold(f64::INFINITY, f64::min);
        let here = Closeness {
            bandwidth: narrowest,
            latency: path.legs.iter().map(|leg| leg.latency.get()).sum(),
        };
        if here.beats(best) {
            best = here;
        }
    }
    Ok(best)
}

/// The ranks in groups: two ranks belong together when they are as close as any two are, or both
/// belong with a third.
pub(super) fn find(topology: &Topology, placement: &[u32]) -> Result<Vec<Vec<Rank>>, Skip> {
    let n = placement.len();
    if n > SEARCHED {
        return Err(Skip::because(format!(
            "more than {SEARCHED} ranks: state the groups with group=N"
        )));
    }
    let mut router = Router::new(topology);
    let node = |rank: usize| topology.gpus[placement[rank] as usize];
    let mut best: Option<Closeness> = None;
    let mut closest: Vec<(usize, usize)> = Vec::new();
    for a in 0..n {
        for b in a + 1..n {
            let here = if node(a) == node(b) {
                Closeness {
                    bandwidth: f64::INFINITY,
                    latency: 0.0,
                }
            } else {
                closeness(topology, &mut router, node(a), node(b))
                    .map_err(|error| Skip::because(error.to_string()))?
            };
            if best.is_none_or(|best| here.beats(best)) {
                best = Some(here);
                closest.clear();
            }
            if best == Some(here) {
                closest.push((a, b));
            }
        }
    }
    let mut group: Vec<usize> = (0..n).collect();
    for (a, b) in closest {
        let (keep, drop) = (group[a].min(group[b]), group[a].max(group[b]));
        group
            .iter_mut()
            .filter(|g| **g == drop)
            .for_each(|g| *g = keep);
    }
    let mut groups: Vec<Vec<Rank>> = vec![Vec::new(); n];
    for (rank, group) in group.into_iter().enumerate() {
        groups[group].push(Rank(rank as u16));
    }
    groups.retain(|group| !group.is_empty());
    let size = groups[0].len();
    if groups.len() == 1 {
        return Err(Skip::because(
            "one group: all GPUs are equally close or linked in a chain; state groups with group=N",
        ));
    }
    if groups.iter().any(|group| group.len() != size) {
        return Err(Skip::because(
            "the groups of closest GPUs are of unequal size; state groups with group=N",
        ));
    }
    Ok(groups)
}

/// Groups of `size` consecutive ranks.
pub(super) fn consecutive(ranks: usize, size: usize) -> Result<Vec<Vec<Rank>>, Skip> {
    if !ranks.is_multiple_of(size) {
        return Err(Skip::because(format!(
            "{ranks} ranks cannot be cut into groups of {size}"
        )));
    }
    if size == ranks {
        return Err(Skip::because(format!(
            "one group: {ranks} ranks in groups of {size}"
        )));
    }
    if size == 1 {
        return Err(Skip::because("groups of one rank: that is `direct`"));
    }
    Ok((0..ranks / size)
        .map(|group| {
            let first = group * size;
            (first..first + size).map(|r| Rank(r as u16)).collect()
        })
        .collect())
}
