//! A schedule in which every task is work of its own: no kernel waits inside, and collectives
//! that the library cannot perform are copies and sums. It is what real GPUs perform in place of the
//! schedule, and what the simulator performs to predict them.
//!
//! * The tile groups of a fused kernel become GEMMs of their own, one after another in their lane.
//!   A kernel begins its groups in that order anyway, so no circle of waits can arise. Kernels that
//!   `fused` keeps stay what they are.
//! * GEMMs of ranks that share a GPU take all SMs: they follow one another in one stream.
//! * A wait by a kernel flag becomes one by a stream flag, except in such a kernel: the stream
//!   waits, not the kernel.
//! * Copies within one GPU are kernels.
//!
//! The result is again a schedule: the verifier can check it, residency included.

use rustc_hash::FxHashMap;

mod clock;
mod epilogue;
mod exchange;
mod fused;
mod loader;
mod order;

pub use clock::{Clocks, Moment};
pub use epilogue::{Stored, Unfused, by_epilogue, stored};
pub use fused::BAND;
pub use loader::{Loaded, by_loader, loadable, loaded};

use crate::schedule::verify::{GpuSms, Limits, VerifyError, verify};
use crate::schedule::{
    Collective, CollectiveId, Compute, ComputeId, Dep, Lane, LaunchId, Member, Mover, Rank,
    Schedule, Slice, Task, TaskId, Via, Work,
};

/// Streams that one GPU serves independently of one another; of its 32 queues a few are left to
/// the collective library and to the watchdog. Where its ranks have more lanes, equally numbered ones share a stream.
pub const MOST_STREAMS: usize = 28;

/// What takes the place of what.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether the library performs the collectives whose members each have a GPU of their own and
    /// whose slices are whole rows.
    pub library: bool,
    /// Thread blocks of a copy within one GPU that the schedule leaves to a copy engine.
    pub local_blocks: u16,
    /// Whether tile groups of one product stay one kernel, see `fused`.
    pub fuse: bool,
    /// Whether such a kernel tells of rows before it ends.
    pub tell: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            library: true,
            local_blocks: 16,
            fuse: false,
            tell: true,
        }
    }
}

/// The schedule, and where its tasks come from.
#[derive(Clone, Debug)]
pub struct Lowered {
    pub schedule: Schedule,
    /// By task: the task of the original.
    pub origin: Vec<TaskId>,
    /// By task: the number of the product whose rows it is among others, of kernels that `fused` keeps.
    /// Products of one kernel follow one another in it.
    pub product: Vec<Option<u32>>,
}

/// Rewrites `schedule`, whose ids must be in range and whose waits form no circle.
pub fn lower(schedule: &Schedule, options: &Options) -> Lowered {
    let mut writer = Writer::new(schedule, options);
    let scratch = exchange::Scratch::new(schedule, |c| !writer.calls(schedule, c));
    let mut order = order::issue(schedule);
    if options.fuse {
        let kept = fused::kept(schedule, &order, options.tell);
        let (kept, joined) = fused::kernels(schedule, &order, kept, options.tell);
        order = fused::together(&order, &kept);
        writer.keep(schedule, &kept, &joined);
    }
    let mut next = 0;
    while let Some(&task) = order.get(next) {
        match schedule.task(task).work {
            Work::Collective(c) => {
                writer.collective(schedule, c, &scratch);
                next += schedule.collectives[c.index()].members.len();
            }
            work => {
                writer.single(schedule, task, work);
                next += 1;
            }
        }
    }
    Lowered {
        schedule: writer.out,
        origin: writer.origin,
        product: writer.product,
    }
}

/// The same, without kernels that wait where they could keep what they wait for from its SMs; `sms` are
/// those of a GPU by its number. Real GPUs and simulations of them perform this.
pub fn fitting(schedule: &Schedule, options: &Options, sms: &dyn Fn(u32) -> GpuSms) -> Lowered {
    let fused = lower(schedule, options);
    if fused.schedule.launches.is_empty() {
        return fused;
    }
    let limits = Limits {
        budget: Limits::BUDGET,
        sms: Some(sms),
    };
    match verify(&fused.schedule, &limits) {
        // Kernels that wait hold their SMs; streams that wait hold none.
        Err(VerifyError::CanDeadlock { .. }) => lower(
            schedule,
            &Options {
                fuse: false,
                ..*options
            },
        ),
        _ => fused,
    }
}

/// Appends tasks to the new schedule.
struct Writer {
    pub out: Schedule,
    origin: Vec<TaskId>,
    product: Vec<Option<u32>>,
    /// By task of the original: the new tasks with which it ends.
    ends: Vec<Vec<TaskId>>,
    /// By lane: the new tasks with which its latest original task ends.
    tails: FxHashMap<(Rank, Lane), Vec<TaskId>>,
    library: bool,
    local: Mover,
    /// By task of the original: the kernel that it is a part of in the new schedule, if any, and the product.
    launches: Vec<Option<(LaunchId, u32)>>,
    /// By GPU of several ranks: the last group of its latest kernel.
    kernels: FxHashMap<u32, (LaunchId, TaskId)>,
}

impl Writer {
    fn new(schedule: &Schedule, options: &Options) -> Self {
        let out = Schedule {
            tasks: Vec::with_capacity(schedule.tasks.len()),
            dep_start: vec![0],
            deps: Vec::with_capacity(schedule.deps.len()),
            computes: Vec::with_capacity(schedule.computes.len()),
            collectives: Vec::new(),
            launches: Vec::new(),
            operator: schedule.operator,
            strategy: schedule.strategy.clone(),
            tensors: schedule.tensors.clone(),
            buffers: schedule.buffers.clone(),
            placement: schedule.placement.clone(),
            lanes: schedule.lanes.clone(),
        };
        Self {
            out,
            origin: Vec::with_capacity(schedule.tasks.len()),
            product: Vec::with_capacity(schedule.tasks.len()),
            ends: vec![Vec::new(); schedule.tasks.len()],
            tails: FxHashMap::default(),
            library: options.library,
            local: Mover::Sm {
                blocks: options.local_blocks,
            },
            launches: vec![None; schedule.tasks.len()],
            kernels: FxHashMap::default(),
        }
    }

    /// Makes kernels of these groups; those that are `joined` go on with the kernel of the ones before.
    fn keep(&mut self, schedule: &Schedule, kept: &[Vec<TaskId>], joined: &[bool]) {
        for (product, (tasks, &joined)) in kept.iter().zip(joined).enumerate() {
            let Some(launch) = tasks.first().and_then(|&id| schedule.task(id).launch) else {
                continue;
            };
            if !joined {
                let launch = schedule.launches[launch.index()].clone();
                self.out.launches.push(launch);
            }
            let kernel = LaunchId(self.out.launches.len() as u32 - 1);
            for id in tasks {
                self.launches[id.index()] = Some((kernel, product as u32));
            }
        }
    }

    /// The kernel that a task of the original is a part of in the new schedule, if any.
    fn kept(&self, id: TaskId) -> Option<LaunchId> {
        self.launches[id.index()].map(|(launch, _)| launch)
    }

    /// Whether the library performs a collective: each member on a GPU of its own, each slice
    /// whole rows of its buffer, which lie contiguously.
    fn calls(&self, schedule: &Schedule, c: usize) -> bool {
        let members = &schedule.collectives[c].members;
        let mut gpus = schedule.placement.clone();
        gpus.sort_unstable();
        gpus.dedup();
        let whole = |slice: &Slice| {
            slice.cols.start == 0 && slice.cols.len == schedule.buffers[slice.buffer.index()].cols
        };
        self.library
            && gpus.len() == schedule.placement.len()
            && members.len() > 1
            && members.iter().all(|m| whole(&m.input) && whole(&m.output))
    }

    /// Whether another rank is on the same GPU.
    fn shares(&self, rank: Rank) -> bool {
        let gpu = self.out.placement[usize::from(rank.0)];
        self.out.placement.iter().filter(|&&g| g == gpu).count() > 1
    }

    fn single(&mut self, schedule: &Schedule, id: TaskId, work: Work) {
        let task = schedule.task(id);
        let launch = self.kept(id);
        let work = match work {
            Work::Compute(c) if launch.is_some() => {
                self.compute(schedule.computes[c.index()].clone())
            }
            Work::Compute(c) => {
                let mut compute = schedule.computes[c.index()].clone();
                if let (Compute::Gemm { kernel, sms, .. }, Some(launch)) =
                    (&mut compute, task.launch)
                {
                    *kernel = crate::schedule::GemmKernel::Library;
                    *sms = schedule.launches[launch.index()].sms;
                }
                // Ranks of one GPU compute one after another: none needs to leave SMs to another.
                if let Compute::Gemm {
                    kernel: crate::schedule::GemmKernel::Library,
                    sms,
                    ..
                } = &mut compute
                    && self.shares(task.rank)
                {
                    *sms = 0;
                }
                self.compute(compute)
            }
            other => other,
        };
        let mut after = self.waits(schedule, id);
        self.tail_of((task.rank, task.lane), &mut after);
        let gpu = self.out.placement[usize::from(task.rank.0)];
        // Kernels of ranks that share a GPU follow one another.
        if let (Some(launch), Some(&(before, task))) = (launch, self.kernels.get(&gpu))
            && before != launch
            && after.iter().all(|dep| dep.task != task)
        {
            let via = Via::Event;
            after.push(Dep { task, via });
        }
        let new = self.push((task.rank, task.lane), work, &after, id);
        self.out.tasks[new.index()].launch = launch;
        self.product[new.index()] = self.launches[id.index()].map(|(_, product)| product);
        if let Some(launch) = launch.filter(|_| self.shares(task.rank)) {
            self.kernels.insert(gpu, (launch, new));
        }
        self.end(schedule, id, vec![new]);
    }

    fn collective(&mut self, schedule: &Schedule, c: CollectiveId, scratch: &exchange::Scratch) {
        let group = &schedule.collectives[c.index()];
        let mut members = group.members.clone();
        if !self.calls(schedule, c.index()) {
            members.sort_unstable_by_key(|m| m.rank);
            // A rendezvous: all that any member waits for comes before whatever one does.
            let mut before: Vec<TaskId> = Vec::new();
            for member in &members {
                let waits = self.waits(schedule, member.task);
                before.extend(waits.iter().map(|dep| dep.task));
                before.extend(
                    self.tails
                        .get(&lane_of(schedule, member))
                        .into_iter()
                        .flatten(),
                );
            }
            before.sort_unstable();
            before.dedup();
            let ends = exchange::write(self, schedule, group.kind, &members, &before, scratch);
            for member in &members {
                self.end(schedule, member.task, ends.clone());
            }
            return;
        }
        let id = CollectiveId(self.out.collectives.len() as u32);
        members.sort_unstable_by_key(|m| m.task);
        for member in &mut members {
            let lane = lane_of(schedule, member);
            let mut after = self.waits(schedule, member.task);
            self.tail_of(lane, &mut after);
            let original = member.task;
            member.task = self.push(lane, Work::Collective(id), &after, original);
            self.end(schedule, original, vec![member.task]);
        }
        self.out.collectives.push(Collective {
            members,
            ..group.clone()
        });
    }

    /// What the original task waits for, in terms of new tasks.
    fn waits(&self, schedule: &Schedule, id: TaskId) -> Vec<Dep> {
        let here = schedule.task(id);
        let kept = self.kept(id).is_some();
        let mut after = Vec::new();
        for dep in schedule.deps(id) {
            for &task in &self.ends[dep.task.index()] {
                let there = self.out.task(task);
                let via = match dep.via {
                    Via::Launch if kept && self.kept(dep.task) == self.kept(id) => Via::Launch,
                    _ if (there.rank, there.lane) == (here.rank, here.lane) => Via::Lane,
                    Via::Event => Via::Event,
                    // Only a collective that is no longer one ends in other lanes.
                    Via::Lane | Via::Launch => hand_over(there.rank, here.rank),
                    Via::KernelFlag if kept => Via::KernelFlag,
                    Via::StreamFlag | Via::KernelFlag => Via::StreamFlag,
                };
                after.push(Dep { task, via });
            }
        }
        after
    }

    /// Adds the ends of a lane's latest task that lie in other lanes.
    fn tail_of(&self, lane: (Rank, Lane), after: &mut Vec<Dep>) {
        for &task in self.tails.get(&lane).into_iter().flatten() {
            let there = self.out.task(task);
            if (there.rank, there.lane) != lane && after.iter().all(|dep| dep.task != task) {
                let via = hand_over(there.rank, lane.0);
                after.push(Dep { task, via });
            }
        }
    }

    fn end(&mut self, schedule: &Schedule, id: TaskId, ends: Vec<TaskId>) {
        let task = schedule.task(id);
        self.tails.insert((task.rank, task.lane), ends.clone());
        self.ends[id.index()] = ends;
    }

    fn compute(&mut self, compute: Compute) -> Work {
        self.out.computes.push(compute);
        Work::Compute(ComputeId(self.out.computes.len() as u32 - 1))
    }

    /// Appends a task that does `work` for the original task `origin`.
    fn push(
        &mut self,
        (rank, lane): (Rank, Lane),
        mut work: Work,
        after: &[Dep],
        origin: TaskId,
    ) -> TaskId {
        if let Work::Transfer { from, to, mover } = &mut work {
            let gpu = |slice: &Slice| self.out.placement[usize::from(self.out.rank_of(slice).0)];
            if *mover == Mover::CopyEngine && gpu(from) == gpu(to) {
                *mover = self.local;
            }
        }
        self.out.tasks.push(Task {
            work,
            rank,
            lane,
            launch: None,
        });
        self.out.deps.extend_from_slice(after);
        self.out.dep_start.push(self.out.deps.len() as u32);
        self.origin.push(origin);
        self.product.push(None);
        TaskId(self.out.tasks.len() as u32 - 1)
    }
}

/// The lane of a member's task.
fn lane_of(schedule: &Schedule, member: &Member) -> (Rank, Lane) {
    (member.rank, schedule.task(member.task).lane)
}

/// How the end of a task of `from` is made known to another stream, of `to`.
fn hand_over(from: Rank, to: Rank) -> Via {
    match from == to {
        true => Via::Event,
        false => Via::StreamFlag,
    }
}
