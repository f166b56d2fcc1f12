//! Who waits for whom: dependencies, lanes and fused kernels as one graph of *steps*.
//!
//! Step t < T is task t. Step T + l is the start of fused kernel l: it takes its SMs before the
//! kernel's first task, whose flags are awaited inside the kernel, SMs in hand.

use super::Streams;
use super::sums::{Sums, brings};
use super::waits::{Signals, Waits, compute_queues, shares};
use crate::schedule::lowered::Loaded;
use crate::schedule::{Dep, LaunchId, Schedule, TaskId, Via};

/// No step.
pub(super) const NONE: u32 = u32::MAX;

/// The graph of steps.
#[derive(Debug)]
pub(super) struct Graph {
    /// Number of tasks T.
    pub tasks: u32,
    /// Conditions a step still waits for.
    pub waiting: Vec<u32>,
    /// The step after this task in its lane; [`NONE`] at the end.
    pub next_in_lane: Vec<u32>,
    /// Waiting steps of each task, compressed rows, and how each is told.
    start: Vec<u32>,
    successors: Vec<u32>,
    vias: Vec<Via>,
    /// Which of them are told of what they add to; empty: none.
    brings: Vec<bool>,
    pub sums: Sums,
    /// Tasks of each fused kernel that have not ended.
    pub launch_left: Vec<u32>,
    /// First task of each fused kernel.
    pub launch_first: Vec<u32>,
    /// Transfers that a fused kernel performs once it has begun.
    pub brought: Vec<Loaded>,
    /// Which dependencies are waits.
    waits: Waits,
}

impl Graph {
    /// The graph of `schedule`.
    ///
    /// `brought`: its transfers by loaders; `split`: whether transfers between GPUs go in two parts; `host`: the share
    /// of the rows between GPUs that goes through a host.
    pub fn new(
        schedule: &Schedule,
        brought: Vec<Loaded>,
        streams: Streams,
        (split, host): (bool, f64),
    ) -> Self {
        let tasks = schedule.tasks.len();
        let launches = schedule.launches.len();
        let shared = shares(schedule, streams, host);
        let mut graph = Self {
            tasks: tasks as u32,
            waiting: vec![0; tasks + launches],
            next_in_lane: vec![NONE; tasks],
            start: vec![0; tasks + 2],
            successors: Vec::new(),
            vias: Vec::new(),
            brings: Vec::new(),
            sums: Sums::default(),
            launch_left: vec![0; launches],
            launch_first: vec![NONE; launches],
            brought,
            waits: Waits::new(schedule, streams, split, shared),
        };
        let fused = if launches > 0 {
            &schedule.tasks[..]
        } else {
            &[]
        };
        for (t, task) in fused.iter().enumerate() {
            if let Some(LaunchId(l)) = task.launch {
                graph.launch_left[l as usize] += 1;
                if graph.launch_first[l as usize] == NONE {
                    graph.launch_first[l as usize] = t as u32;
                    graph.waiting[t] += 1; // the kernel's start
                }
            }
        }
        for one in &graph.brought {
            graph.waiting[one.transfer.index()] += 1; // its kernel's start
        }
        graph.link_lanes(schedule, streams, shared);
        graph.link_dependencies(schedule, streams);
        graph
    }

    /// The kernel-start step of a fused kernel.
    pub const fn launch_step(&self, launch: LaunchId) -> u32 {
        self.tasks + launch.0
    }

    /// What a task awaits and makes known, where that is counted.
    pub fn signals(&self, task: u32) -> Signals {
        let signals = self.waits.signals.get(task as usize);
        signals.copied().unwrap_or_default()
    }

    /// Places of the steps that wait for `task`, for [`Self::successor`].
    pub fn successors(&self, task: u32) -> std::ops::Range<usize> {
        self.start[task as usize] as usize..self.start[task as usize + 1] as usize
    }

    /// A waiting step, with how it is told.
    pub fn successor(&self, place: usize) -> (u32, Via) {
        (self.successors[place], self.vias[place])
    }

    /// Whether what a step is told of is what it adds to.
    pub fn brings(&self, place: usize) -> bool {
        self.brings.get(place).copied().unwrap_or(false)
    }

    /// Where a task's own wait is entered: the kernel start for a fused kernel's first task.
    fn entry(&self, schedule: &Schedule, t: u32) -> u32 {
        if self.launch_first.is_empty() {
            return t; // millions of tasks need not be looked at again
        }
        match schedule.tasks[t as usize].launch {
            Some(launch) if self.launch_first[launch.index()] == t => self.launch_step(launch),
            _ => t,
        }
    }

    fn link_lanes(&mut self, schedule: &Schedule, streams: Streams, shared: bool) {
        let compute = compute_queues(schedule, streams);
        // The last task so far, by rank and lane; grown as lanes appear, in one pass.
        let mut last: Vec<Vec<u32>> = vec![Vec::new(); schedule.placement.len()];
        for (t, task) in schedule.tasks.iter().enumerate() {
            let rank = usize::from(task.rank.0);
            let lanes = &mut last[if task.lane.0 == 0 || shared {
                compute[rank]
            } else {
                rank
            }];
            let lane = usize::from(task.lane.0);
            if lane >= lanes.len() {
                lanes.resize(lane + 1, NONE);
            }
            let before = std::mem::replace(&mut lanes[lane], t as u32);
            if before != NONE {
                let step = self.entry(schedule, t as u32);
                self.next_in_lane[before as usize] = step;
                self.waiting[step as usize] += 1;
            }
        }
    }

    fn link_dependencies(&mut self, schedule: &Schedule, streams: Streams) {
        // Counted one place late, so that filling moves each row's start into place.
        let kept = |place: usize| self.waits.kept.get(place) != Some(&false);
        for (place, dep) in schedule.deps.iter().enumerate() {
            if kept(place) {
                self.start[dep.task.index() + 2] += 1;
            }
        }
        for t in 2..self.start.len() {
            self.start[t] += self.start[t - 1];
        }
        self.successors = vec![0; schedule.deps.len()];
        self.vias = vec![Via::Lane; schedule.deps.len()];
        for t in 0..schedule.tasks.len() as u32 {
            let entry = self.entry(schedule, t);
            let first = schedule.dep_start[t as usize] as usize;
            for (at, &Dep { task, via }) in schedule.deps(TaskId(t)).iter().enumerate() {
                if self.waits.kept.get(first + at) == Some(&false) {
                    continue;
                }
                let step = if via == Via::KernelFlag { t } else { entry };
                let place = &mut self.start[task.index() + 1];
                self.successors[*place as usize] = step;
                self.vias[*place as usize] = via;
                let late = via == Via::KernelFlag
                    && streams == Streams::PerGpu
                    && brings(schedule, &schedule.tasks[t as usize], task);
                if late {
                    self.brings.resize(schedule.deps.len(), false);
                    self.brings[*place as usize] = true;
                    self.sums.expect(t, schedule.tasks.len());
                } else {
                    self.waiting[step as usize] += 1;
                }
                *place += 1;
            }
        }
    }
}
