//! Transfers that products perform: which these are, and why others are refused.

use super::LowerError;
use super::options::{Options, Path};
use crate::schedule::lowered::{self, Loaded, Lowered, Stored};
use crate::schedule::{Rank, Schedule, TaskId};

/// The transfers by epilogues, in terms of the lowered schedule; kernels of Duet's can perform all of them.
pub(super) fn stores(
    schedule: &Schedule,
    alone: &Lowered,
    options: &Options,
) -> Result<Vec<Stored>, LowerError> {
    let refuse = |transfer, why: &str| LowerError::Epilogue {
        transfer: schedule.describe(transfer),
        why: why.to_owned(),
    };
    let mut stored = lowered::stored(schedule).map_err(|no| refuse(no.transfer, &no.why))?;
    let gpu = |rank: Rank| schedule.placement[usize::from(rank.0)];
    let new = |old: TaskId| {
        let at = alone.origin.iter().position(|&origin| origin == old);
        at.map(|at| TaskId(at as u32))
    };
    for one in &mut stored {
        let (Some(transfer), Some(group)) = (new(one.transfer), new(one.group)) else {
            let no = "what runs in its place lacks it or its group; use mover=ce";
            return Err(refuse(one.transfer, no));
        };
        let rank = schedule.task(one.group).rank;
        let no = if gpu(rank) == gpu(schedule.rank_of(&one.to)) {
            "both ranks are on one GPU; use mover=ce"
        } else if options.path != Path::P2p {
            "the path between GPUs is not p2p; use mover=ce"
        } else if alone.product[group.index()].is_none() {
            "no kernel of Duet's own computes its rows; use --gemm duet, bf16 or fp16, and flags that are words"
        } else {
            (one.transfer, one.group) = (transfer, group);
            continue;
        };
        return Err(refuse(one.transfer, no));
    }
    Ok(stored)
}

/// The transfers by loaders, all of which kernels of Duet's can perform.
pub(super) fn loads(alone: &Lowered, options: &Options) -> Result<Vec<Loaded>, LowerError> {
    let schedule = &alone.schedule;
    let loads = lowered::loaded(alone).map_err(|no| LowerError::Loader {
        transfer: schedule.describe(no.transfer),
        why: no.why,
    })?;
    match loads.first() {
        Some(one) if options.path != Path::P2p => Err(LowerError::Loader {
            transfer: schedule.describe(one.transfer),
            why: "the path between GPUs is not p2p; use mover=ce".to_owned(),
        }),
        _ => Ok(loads),
    }
}
