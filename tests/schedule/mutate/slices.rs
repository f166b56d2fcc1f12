//! Slices moved, cut, exchanged, in another slot or on another rank.

use duet::schedule::{Buffer, BufferId, Compute, Schedule, Slice, Work};

use super::{Random, transfers};

/// Applies `change` to a random slice that some task uses.
fn change_slice(
    schedule: &mut Schedule,
    random: &mut Random,
    change: impl Fn(&mut Slice, &Buffer, &mut Random),
) -> Option<()> {
    let task = random.below(schedule.tasks.len());
    let which = random.below(1 << 16);
    let mut slices: Vec<&mut Slice> = match &mut schedule.tasks[task].work {
        Work::Transfer { from, to, .. } => vec![from, to],
        Work::Compute(c) => match &mut schedule.computes[c.index()] {
            Compute::Gemm { a, b, out, .. } => vec![a, b, out],
            Compute::Reduce { inputs, out } | Compute::Pointwise { inputs, out, .. } => {
                inputs.iter_mut().chain([out]).collect()
            }
        },
        Work::Collective(c) => {
            let members = &mut schedule.collectives[c.index()].members;
            let member = members.iter_mut().find(|m| m.task.index() == task)?;
            vec![&mut member.input, &mut member.output]
        }
    };
    let count = slices.len();
    let slice = &mut slices[which % count];
    let before = **slice;
    change(slice, &schedule.buffers[before.buffer.index()], random);
    (before != **slice).then_some(())
}

fn shifted(start: u32, len: u32, of: u32, random: &mut Random) -> u32 {
    let room = of.saturating_sub(len);
    if room == 0 {
        return start;
    }
    match random.below(3) {
        0 => (start + 1).min(room),
        1 => start.saturating_sub(1),
        _ => random.below(room as usize + 1) as u32,
    }
}

pub fn shift(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    change_slice(schedule, random, |slice, buffer, random| {
        let (extent, of) = match slice.rows.len == buffer.rows {
            true => (&mut slice.cols, buffer.cols),
            false => (&mut slice.rows, buffer.rows),
        };
        extent.start = shifted(extent.start, extent.len, of, random);
    })
}

pub fn shrink_transfer(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let task = random.pick(&transfers(schedule))?;
    let (first, cols) = (random.below(2) as u32, random.below(2) == 1);
    let Work::Transfer { from, to, .. } = &mut schedule.tasks[task].work else {
        return None;
    };
    for slice in [from, to] {
        let extent = if cols {
            &mut slice.cols
        } else {
            &mut slice.rows
        };
        if extent.len < 2 {
            return None;
        }
        extent.start += first;
        extent.len -= 1;
    }
    Some(())
}

pub fn shrink_compute(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let which = random.below(schedule.computes.len());
    let cols = random.below(2) == 1;
    let slices: Vec<&mut Slice> = match schedule.computes.get_mut(which)? {
        Compute::Gemm { a, b, .. } if cols => {
            // Less of k on both sides.
            if b.rows.len < 2 {
                return None;
            }
            a.cols.len -= 1;
            b.rows.len -= 1;
            return Some(());
        }
        Compute::Gemm { a, out, .. } => vec![a, out],
        Compute::Reduce { inputs, out } | Compute::Pointwise { inputs, out, .. } => {
            inputs.iter_mut().chain([out]).collect()
        }
    };
    for slice in slices {
        if slice.rows.len < 2 {
            return None;
        }
        slice.rows.len -= 1;
    }
    Some(())
}

pub fn swap_sources(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let all = transfers(schedule);
    let (x, y) = (random.pick(&all)?, random.pick(&all)?);
    let source = |s: &Schedule, t: usize| match s.tasks[t].work {
        Work::Transfer { from, .. } => from,
        _ => unreachable!("a transfer"),
    };
    let (a, b) = (source(schedule, x), source(schedule, y));
    for (task, source) in [(x, b), (y, a)] {
        if let Work::Transfer { from, .. } = &mut schedule.tasks[task].work {
            *from = source;
        }
    }
    (a != b).then_some(())
}

pub fn swap_operands(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let count = schedule.computes.len();
    let (x, y) = (random.below(count), random.below(count));
    let which = random.below(3);
    fn operand(compute: &mut Compute, which: usize) -> &mut Slice {
        match (compute, which) {
            (Compute::Gemm { a, .. }, 0) => a,
            (Compute::Gemm { b, .. }, 1) => b,
            (Compute::Gemm { out, .. }, _) => out,
            (Compute::Reduce { inputs, .. } | Compute::Pointwise { inputs, .. }, n)
                if n < 2 && n < inputs.len() =>
            {
                &mut inputs[n]
            }
            (Compute::Reduce { out, .. } | Compute::Pointwise { out, .. }, _) => out,
        }
    }
    if x == y || count < 2 {
        return None;
    }
    let a = *operand(&mut schedule.computes[x], which);
    let b = std::mem::replace(operand(&mut schedule.computes[y], which), a);
    *operand(&mut schedule.computes[x], which) = b;
    (a != b).then_some(())
}

/// What was in the last slot of a buffer comes into the first one.
pub fn merge_slots(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let many: Vec<usize> = (0..schedule.buffers.len())
        .filter(|&b| schedule.buffers[b].slots > 1)
        .collect();
    let index = random.pick(&many)?;
    let buffer = &schedule.buffers[index];
    let from = 1 + random.below(usize::from(buffer.slots) - 1) as u16;
    let to = random.below(usize::from(from)) as u16;
    let change = |slice: &mut Slice| {
        if slice.buffer.index() == index && slice.slot == from {
            slice.slot = to;
        }
    };
    for task in &mut schedule.tasks {
        if let Work::Transfer { from, to, .. } = &mut task.work {
            change(from);
            change(to);
        }
    }
    for compute in &mut schedule.computes {
        match compute {
            Compute::Gemm { a, b, out, .. } => [a, b, out].into_iter().for_each(change),
            Compute::Reduce { inputs, out } | Compute::Pointwise { inputs, out, .. } => {
                inputs.iter_mut().chain([out]).for_each(change);
            }
        }
    }
    for member in schedule.collectives.iter_mut().flat_map(|c| &mut c.members) {
        change(&mut member.input);
        change(&mut member.output);
    }
    Some(())
}

/// The buffer of the same name and shape on another rank.
fn elsewhere(schedule: &Schedule, buffer: BufferId, random: &mut Random) -> Option<BufferId> {
    let this = &schedule.buffers[buffer.index()];
    let others: Vec<BufferId> = (0..schedule.buffers.len())
        .filter(|&b| {
            let other = &schedule.buffers[b];
            (&other.name, other.rows, other.cols) == (&this.name, this.rows, this.cols)
                && other.rank != this.rank
        })
        .map(|b| BufferId(b as u32))
        .collect();
    random.pick(&others)
}

pub fn retarget(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let task = random.pick(&transfers(schedule))?;
    let Work::Transfer { to, .. } = schedule.tasks[task].work else {
        return None;
    };
    let other = elsewhere(schedule, to.buffer, random)?;
    if let Work::Transfer { to, .. } = &mut schedule.tasks[task].work {
        to.buffer = other;
    }
    Some(())
}

pub fn resource(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let task = random.pick(&transfers(schedule))?;
    let Work::Transfer { from, .. } = schedule.tasks[task].work else {
        return None;
    };
    let other = elsewhere(schedule, from.buffer, random)?;
    if let Work::Transfer { from, .. } = &mut schedule.tasks[task].work {
        from.buffer = other;
    }
    Some(())
}
