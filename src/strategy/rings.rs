//! Rings of ranks: the rings that the link graph offers, carried over from GPUs to ranks.

use super::Job;
use crate::schedule::Rank;

/// Ranks in the order of a ring.
pub(super) type Order = Vec<Rank>;

/// The best single ring of the job's ranks.
pub(super) fn single(job: &Job<'_>) -> Order {
    natural(job)
}

fn natural(job: &Job<'_>) -> Order {
    (0..job.ranks()).map(|r| Rank(r as u16)).collect()
}
