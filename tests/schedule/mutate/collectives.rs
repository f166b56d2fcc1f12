//! Collectives left out, of another kind, or of less.

use duet::schedule::{CollectiveId, CollectiveKind, Schedule, Work};

use super::{Random, drop_task};

pub fn drop_collective(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let count = schedule.collectives.len();
    let which = random.below(count);
    let members = std::mem::take(&mut schedule.collectives.get_mut(which)?.members);
    let mut members: Vec<usize> = members.iter().map(|member| member.task.index()).collect();
    members.sort_unstable();
    for &task in members.iter().rev() {
        drop_task(schedule, task);
    }
    // The last one takes its number.
    schedule.collectives.swap_remove(which);
    for task in &mut schedule.tasks {
        if let Work::Collective(c) = &mut task.work
            && c.index() == count - 1
        {
            *c = CollectiveId(which as u32);
        }
    }
    Some(())
}

pub fn change_kind(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    use CollectiveKind::{AllGather, AllReduce, AllToAll, ReduceScatter};
    let which = random.below(schedule.collectives.len());
    let other = random.pick(&[AllGather, ReduceScatter, AllReduce, AllToAll])?;
    let group = schedule.collectives.get_mut(which)?;
    let before = std::mem::replace(&mut group.kind, other);
    (before != other).then_some(())
}

/// A collective that leaves out its first or last column; its slices still fit one another.
pub fn shrink_collective(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let which = random.below(schedule.collectives.len());
    let first = random.below(2) as u32;
    for member in &mut schedule.collectives.get_mut(which)?.members {
        for slice in [&mut member.input, &mut member.output] {
            if slice.cols.len < 2 {
                return None;
            }
            slice.cols.start += first;
            slice.cols.len -= 1;
        }
    }
    Some(())
}
