//! Ways of breaking a schedule, each at a random place.

mod collectives;
mod slices;

use duet::schedule::{
    Compute, Dep, GemmKernel, Lane, Launch, LaunchId, Schedule, Slice, Task, TaskId, Via, Work,
};

use collectives::{change_kind, drop_collective, shrink_collective};
use slices::{
    merge_slots, resource, retarget, shift, shrink_compute, shrink_transfer, swap_operands,
    swap_sources,
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
pub const MUTATIONS: [(&str, Mutation); 23] = [
    ("drop a dependency", drop_dependency),
    ("wait for an earlier task instead", wait_earlier),
    ("drop a transfer", drop_transfer),
    ("drop a computation", drop_computation),
    ("drop a collective", drop_collective),
    ("repeat a transfer at once", repeat_transfer),
    ("repeat a transfer at the end", repeat_transfer_last),
    ("duplicate a reduction input", duplicate_input),
    ("drop a reduction input", drop_input),
    ("shift a slice", shift),
    ("shrink a transfer", shrink_transfer),
    ("shrink a computation", shrink_compute),
    ("shrink a collective", shrink_collective),
    ("swap the sources of two transfers", swap_sources),
    ("swap the operands of two computations", swap_operands),
    ("use one slot fewer", merge_slots),
    ("swap neighbours in a lane", reorder_lane),
    ("move a task to another lane", change_lane),
    ("put neighbours into one kernel", fuse),
    ("change a collective's kind", change_kind),
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
