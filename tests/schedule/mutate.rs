//! Ways of breaking a schedule, each at a random place.

use duet::schedule::{
    Buffer, BufferId, Compute, Dep, GemmKernel, Lane, Launch, LaunchId, Schedule, Slice, Task,
    TaskId, Via, Work,
};

/// A xorshift64 generator; the mutants are the same on every run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 16) as usize) % n.max(1)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.below(from.len())])
    }
}

/// Changes the schedule in one place; `None` where there is no such place.
pub type Mutation = fn(&mut Schedule, &mut Random) -> Option<()>;

/// All kinds of mutation by name.
pub const MUTATIONS: [(&str, Mutation); 20] = [
    ("drop a dependency", drop_dependency),
    ("wait for an earlier task instead", wait_earlier),
    ("drop a transfer", drop_transfer),
    ("drop a computation", drop_computation),
    ("repeat a transfer at once", repeat_transfer),
    ("repeat a transfer at the end", repeat_transfer_last),
    ("duplicate a reduction input", duplicate_input),
    ("drop a reduction input", drop_input),
    ("shift a slice", shift),
    ("shrink a transfer", shrink_transfer),
    ("shrink a computation", shrink_compute),
    ("swap the sources of two transfers", swap_sources),
    ("swap the operands of two computations", swap_operands),
    ("use one slot fewer", merge_slots),
    ("swap neighbours in a lane", reorder_lane),
    ("move a task to another lane", change_lane),
    ("put neighbours into one kernel", fuse),
    ("toggle accumulate", toggle_accumulate),
    ("deliver to another rank", retarget),
    ("fetch from another rank", resource),
];

/// Tasks with their dependencies, for changes of order.
fn take(schedule: &mut Schedule) -> Vec<(u32, Task, Vec<Dep>)> {
    (0..schedule.tasks.len() as u32)
        .map(|t| {
            (
                t,
                *schedule.task(TaskId(t)),
                schedule.deps(TaskId(t)).to_vec(),
            )
        })
        .collect()
}

/// Writes tasks back in a new order; their dependencies still name the old ids.
fn put(schedule: &mut Schedule, tasks: Vec<(u32, Task, Vec<Dep>)>) {
    let old = schedule.tasks.len();
    let mut new = vec![None; old.max(tasks.len() + 1)];
    for (i, (id, _, _)) in tasks.iter().enumerate() {
        // A repeated task counts as its first copy.
        if (*id as usize) < old && new[*id as usize].is_none() {
            new[*id as usize] = Some(TaskId(i as u32));
        }
    }
    schedule.tasks.clear();
    schedule.deps.clear();
    schedule.dep_start = vec![0];
    for (_, task, deps) in tasks {
        schedule.tasks.push(task);
        let kept = deps.iter().filter_map(|dep| {
            let task = new[dep.task.index()]?;
            Some(Dep { task, ..*dep })
        });
        schedule.deps.extend(kept);
        schedule.dep_start.push(schedule.deps.len() as u32);
    }
    for member in schedule.collectives.iter_mut().flat_map(|c| &mut c.members) {
        if let Some(task) = new[member.task.index()] {
            member.task = task;
        }
    }
}

fn transfers(schedule: &Schedule) -> Vec<usize> {
    let is = |t: &usize| matches!(schedule.tasks[*t].work, Work::Transfer { .. });
    (0..schedule.tasks.len()).filter(is).collect()
}

fn computes(schedule: &Schedule) -> Vec<usize> {
    let is = |t: &usize| matches!(schedule.tasks[*t].work, Work::Compute(_));
    (0..schedule.tasks.len()).filter(is).collect()
}

/// A random dependency as (task, place among its dependencies).
fn dependency(schedule: &Schedule, random: &mut Random) -> Option<(usize, usize)> {
    let all: Vec<(usize, usize)> = (0..schedule.tasks.len())
        .flat_map(|t| (0..schedule.deps(TaskId(t as u32)).len()).map(move |d| (t, d)))
        .collect();
    random.pick(&all)
}

fn drop_dependency(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let (task, dep) = dependency(schedule, random)?;
    let mut tasks = take(schedule);
    tasks[task].2.remove(dep);
    put(schedule, tasks);
    Some(())
}

fn wait_earlier(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let (task, dep) = dependency(schedule, random)?;
    let mut tasks = take(schedule);
    let on = tasks[task].2[dep].task.0;
    let other = random.below(on as usize) as u32;
    tasks[task].2[dep] = Dep {
        task: TaskId(other),
        via: Via::Event,
    };
    put(schedule, tasks);
    (other != on).then_some(())
}

/// Drops a task; who waited for it waits for what it waited for.
fn drop_task(schedule: &mut Schedule, task: usize) {
    let mut tasks = take(schedule);
    let (_, _, inherited) = tasks.remove(task);
    for (_, _, deps) in &mut tasks {
        let before = deps.len();
        deps.retain(|d| d.task.index() != task);
        if deps.len() < before {
            deps.extend(inherited.iter().map(|d| Dep {
                via: Via::Event,
                ..*d
            }));
        }
    }
    put(schedule, tasks);
}

fn drop_transfer(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let task = random.pick(&transfers(schedule))?;
    drop_task(schedule, task);
    Some(())
}

fn drop_computation(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let task = random.pick(&computes(schedule))?;
    drop_task(schedule, task);
    Some(())
}

fn repeat_transfer(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let task = random.pick(&transfers(schedule))?;
    let mut tasks = take(schedule);
    tasks.insert(task + 1, (u32::MAX, tasks[task].1, tasks[task].2.clone()));
    put(schedule, tasks);
    Some(())
}

fn repeat_transfer_last(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let task = random.pick(&transfers(schedule))?;
    let mut tasks = take(schedule);
    let copy = Task {
        lane: Lane(99),
        ..tasks[task].1
    };
    let after = [TaskId(task as u32), TaskId(tasks.len() as u32 - 1)];
    let after = after.map(|task| Dep {
        task,
        via: Via::Event,
    });
    tasks.push((u32::MAX, copy, after.to_vec()));
    put(schedule, tasks);
    Some(())
}

/// The inputs of a random reduction.
fn inputs<'s>(schedule: &'s mut Schedule, random: &mut Random) -> Option<&'s mut Vec<Slice>> {
    let reductions: Vec<usize> = (0..schedule.computes.len())
        .filter(|&c| matches!(schedule.computes[c], Compute::Reduce { .. }))
        .collect();
    match &mut schedule.computes[random.pick(&reductions)?] {
        Compute::Reduce { inputs, .. } => Some(inputs),
        _ => None,
    }
}

fn duplicate_input(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let place = random.below(1 << 16);
    let inputs = inputs(schedule, random)?;
    inputs.push(inputs[place % inputs.len()]);
    Some(())
}

fn drop_input(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let place = random.below(1 << 16);
    let inputs = inputs(schedule, random)?;
    inputs.remove(place % inputs.len());
    Some(())
}

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

fn shift(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    change_slice(schedule, random, |slice, buffer, random| {
        let (extent, of) = match slice.rows.len == buffer.rows {
            true => (&mut slice.cols, buffer.cols),
            false => (&mut slice.rows, buffer.rows),
        };
        extent.start = shifted(extent.start, extent.len, of, random);
    })
}

fn shrink_transfer(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
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

fn shrink_compute(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
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

fn swap_sources(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
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

fn swap_operands(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
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
fn merge_slots(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
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

fn reorder_lane(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let x = random.below(schedule.tasks.len());
    let key = |t: &Task| (t.rank, t.lane);
    let y = (x + 1..schedule.tasks.len())
        .find(|&y| key(&schedule.tasks[y]) == key(&schedule.tasks[x]))?;
    let mut tasks = take(schedule);
    tasks.swap(x, y);
    put(schedule, tasks);
    Some(())
}

fn change_lane(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let x = random.below(schedule.tasks.len());
    let other = schedule.tasks[random.below(schedule.tasks.len())].lane;
    let fresh = random.below(2) == 1;
    let task = &mut schedule.tasks[x];
    let before = task.lane;
    task.lane = if fresh { Lane(99) } else { other };
    task.launch = None;
    (before != schedule.tasks[x].lane).then_some(())
}

/// A computation and the next one of its lane become one kernel, or one of the kernel of the
/// other; events from outside become flags.
fn fuse(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let x = random.pick(&computes(schedule))?;
    let Task { rank, lane, .. } = schedule.tasks[x];
    let y = (x + 1..schedule.tasks.len())
        .find(|&y| (schedule.tasks[y].rank, schedule.tasks[y].lane) == (rank, lane))?;
    computes(schedule).binary_search(&y).ok()?;
    if schedule.tasks[x].launch.is_some() && schedule.tasks[y].launch.is_some() {
        return None;
    }
    let known = schedule.tasks[x].launch.or(schedule.tasks[y].launch);
    let launch = known.unwrap_or(LaunchId(schedule.launches.len() as u32));
    if known.is_none() {
        let name = "fused".into();
        schedule.launches.push(Launch { name, rank, sms: 0 });
    }
    for task in [x, y] {
        schedule.tasks[task].launch = Some(launch);
        if let Work::Compute(c) = schedule.tasks[task].work
            && let Compute::Gemm { kernel, .. } = &mut schedule.computes[c.index()]
        {
            *kernel = GemmKernel::Gated;
        }
        let range = schedule.dep_start[task] as usize..schedule.dep_start[task + 1] as usize;
        for dep in &mut schedule.deps[range] {
            dep.via = match schedule.tasks[dep.task.index()].launch {
                Some(other) if other == launch => Via::Launch,
                _ => Via::KernelFlag,
            };
        }
    }
    Some(())
}

fn toggle_accumulate(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
    let which = random.below(schedule.computes.len());
    match schedule.computes.get_mut(which)? {
        Compute::Gemm { accumulate, .. } => *accumulate = !*accumulate,
        _ => return None,
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

fn retarget(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
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

fn resource(schedule: &mut Schedule, random: &mut Random) -> Option<()> {
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
