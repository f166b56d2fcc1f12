//! Structure of one collective: members with tasks of their own, slices that fit one another.

use super::structure::{Check, overlaps, refuse, slice};
use crate::schedule::{CollectiveKind, Rank, Schedule, Work};

/// Checks collective `index` and marks its members' tasks as seen.
pub(super) fn check(schedule: &Schedule, index: usize, seen: &mut [bool]) -> Check {
    let group = &schedule.collectives[index];
    let place = || format!("collective {index}");
    if group.members.is_empty() {
        return refuse(place(), "it has no members", "list its members");
    }
    let blocks = group.members.len() as u32;
    let mut ranks: Vec<Rank> = group.members.iter().map(|m| m.rank).collect();
    ranks.sort_unstable();
    if let Some(twice) = ranks.windows(2).find(|w| w[0] == w[1]) {
        return refuse(
            place(),
            format!("rank {} is a member twice", twice[0].0),
            "a rank takes part once",
        );
    }
    let first = &group.members[0];
    for member in &group.members {
        let refers = schedule.tasks.get(member.task.index()).is_some_and(|t| {
            matches!(t.work, Work::Collective(c) if c.index() == index) && t.rank == member.rank
        });
        if !refers || std::mem::replace(&mut seen[member.task.index()], true) {
            return refuse(
                place(),
                format!(
                    "member task {} on rank {} is no task of its own",
                    member.task.0, member.rank.0
                ),
                "give each member one task of this collective on the member's rank",
            );
        }
        let at = || schedule.describe(member.task);
        for s in [&member.input, &member.output] {
            slice(schedule, at, s)?;
            if schedule.rank_of(s) != member.rank {
                return refuse(
                    at(),
                    format!("{} is another rank's memory", schedule.describe_slice(s)),
                    "a member's input and output lie on its own rank",
                );
            }
        }
        let (input, output) = (member.input, member.output);
        let (grow, shrink) = match group.kind {
            CollectiveKind::AllGather => (blocks, 1),
            CollectiveKind::ReduceScatter => (1, blocks),
            CollectiveKind::AllReduce | CollectiveKind::AllToAll => (1, 1),
        };
        let rows_fit = u64::from(input.rows.len) * u64::from(grow)
            == u64::from(output.rows.len) * u64::from(shrink)
            && (group.kind != CollectiveKind::AllToAll || input.rows.len % blocks == 0);
        let alike =
            (input.rows.len, input.cols.len) == (first.input.rows.len, first.input.cols.len);
        if !rows_fit || !alike || input.cols.len != output.cols.len {
            return refuse(
                at(),
                format!(
                    "{} and {} are no input and output of {blocks} members",
                    schedule.describe_slice(&input),
                    schedule.describe_slice(&output)
                ),
                "inputs have one shape, and rows divide among the members",
            );
        }
        let block = ranks.partition_point(|r| *r < member.rank) as u32;
        let in_place = match group.kind {
            CollectiveKind::AllGather => {
                input == output.rows(block * input.rows.len, input.rows.len)
            }
            CollectiveKind::ReduceScatter => {
                output == input.rows(block * output.rows.len, output.rows.len)
            }
            CollectiveKind::AllReduce => input == output,
            CollectiveKind::AllToAll => false,
        };
        if overlaps(&input, &output) && !in_place {
            return refuse(
                at(),
                format!(
                    "it writes {} while it reads {}",
                    schedule.describe_slice(&output),
                    schedule.describe_slice(&input)
                ),
                "use separate slices, or in place the member's own block",
            );
        }
    }
    Ok(())
}
