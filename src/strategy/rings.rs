//! Rings of ranks: the rings that the link graph offers, carried over from GPUs to ranks.
//!
//! Ranks that share a GPU are neighbours on the ring.

use crate::schedule::Rank;
use crate::topology::{self, Topology};

/// Ranks in the order of a ring.
pub(super) type Order = Vec<Rank>;

/// Beyond this many ranks the ring is the ranks in their own order: the search would take longer
/// than the simulation, and machines of that size are numbered box by box.
const SEARCHED: usize = 256;

/// The rings of a site.
#[derive(Debug)]
pub(super) struct RankRings {
    /// The best single ring.
    pub single: Order,
    /// The best pair of rings with the first one's share of the bytes, or why there is none.
    pub pair: Result<(Order, Order, f64), String>,
}

/// The best rings over the ranks' GPUs.
pub(super) fn find(topology: &Topology, placement: &[u32]) -> RankRings {
    let mut gpus: Vec<u32> = Vec::new();
    for &gpu in placement {
        if !gpus.contains(&gpu) {
            gpus.push(gpu);
        }
        if gpus.len() > SEARCHED {
            return RankRings {
                single: (0..placement.len()).map(|r| Rank(r as u16)).collect(),
                pair: Err(format!(
                    "rings are searched for among up to {SEARCHED} GPUs"
                )),
            };
        }
    }
    let found = topology::rings::find(topology, &gpus);
    let ranks = |order: &[u32]| -> Order {
        let on = |gpu: u32| {
            let ranks = placement.iter().enumerate();
            ranks.filter_map(move |(r, &g)| (g == gpu).then_some(Rank(r as u16)))
        };
        order.iter().flat_map(|&gpu| on(gpu)).collect()
    };
    let pair = match found.pair {
        Some(pair) => Ok((
            ranks(&pair.first.order),
            ranks(&pair.second.order),
            pair.share_first,
        )),
        None => Err(found
            .no_pair_reason
            .unwrap_or_else(|| "no pair of rings beats one ring".to_owned())),
    };
    RankRings {
        single: ranks(&found.single.order),
        pair,
    }
}
