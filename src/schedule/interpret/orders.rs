//! Random orders of starts and ends.
//!
//! Uniformly random orders seldom delay one task far behind the others, which is what brings a
//! missing wait to light. So every order first draws a bias: a priority per event, per lane or per
//! rank, the newest or the oldest first, all starts before ends, or ends at once.
//!
//! The tasks of a fused kernel start after the task before them in their lane and end before the
//! one after; among themselves they wait as their dependencies say, in one order of four as they
//! are numbered too, which shows a kernel that waits for a part of itself that comes later.

use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::machine::{Matrix, Memory};
use super::{InterpretError, Random};
use crate::schedule::{CollectiveId, Dep, LaunchId, Schedule, Task, TaskId, Via, Work};

/// Which event comes next among those that can.
#[derive(Copy, Clone, Debug)]
enum Bias {
    Event,
    Lane,
    Rank,
    Newest,
    Oldest,
    LateEnds,
    PromptEnds,
}

const BIASES: [Bias; 7] = [
    Bias::Event,
    Bias::Lane,
    Bias::Rank,
    Bias::LateEnds,
    Bias::Newest,
    Bias::PromptEnds,
    Bias::Oldest,
];

/// A task starts or ends; a collective is represented by its first member.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    priority: u64,
    task: u32,
    end: bool,
}

/// What a running task has read and has still to write.
enum Window {
    /// Reads at the end.
    Unread,
    /// Has read; writes at the end.
    Unwritten(Vec<Matrix>),
    Written,
}

struct Performance<'a> {
    schedule: &'a Schedule,
    bias: Bias,
    salt: u64,
    random: &'a mut Random,
    ready: BinaryHeap<Event>,
    /// By task: what it still waits for.
    waits: Vec<u32>,
    /// By task: who waits for it.
    next: Vec<Vec<u32>>,
    /// By collective: members that are not ready.
    absent: Vec<usize>,
    windows: FxHashMap<u32, Window>,
    done: usize,
}

/// Performs all tasks in one random order.
pub(super) fn perform(
    schedule: &Schedule,
    order: u32,
    random: &mut Random,
    memory: &mut Memory,
) -> Result<(), InterpretError> {
    let tasks = schedule.tasks.len();
    let mut run = Performance {
        schedule,
        bias: BIASES[order as usize % BIASES.len()],
        salt: random.next(),
        random,
        ready: BinaryHeap::new(),
        waits: vec![0; tasks],
        next: vec![Vec::new(); tasks],
        absent: schedule
            .collectives
            .iter()
            .map(|c| c.members.len())
            .collect(),
        windows: FxHashMap::default(),
        done: 0,
    };
    run.connect(order % 4 == 3);
    for task in 0..tasks as u32 {
        if run.waits[task as usize] == 0 {
            run.arrive(task);
        }
    }
    while let Some(event) = run.ready.pop() {
        if event.end {
            run.end(event.task, memory)?;
        } else {
            run.start(event.task, memory)?;
        }
    }
    match run.waits.iter().position(|&w| w > 0) {
        _ if run.done == tasks => Ok(()),
        first => Err(InterpretError::Stuck {
            done: run.done,
            tasks,
            first: format!("task {}", first.unwrap_or(0)),
        }),
    }
}

/// One after another in a lane: a task, or all tasks of a fused kernel.
struct Run {
    launch: Option<LaunchId>,
    tasks: Vec<u32>,
    /// The one before it in the lane.
    before: Option<usize>,
}

struct Runs {
    runs: Vec<Run>,
    /// By task: its run.
    of: Vec<usize>,
}

impl Runs {
    fn new(schedule: &Schedule) -> Self {
        let (mut runs, mut of) = (Vec::<Run>::new(), Vec::new());
        let mut last: FxHashMap<(u16, u16), usize> = FxHashMap::default();
        for (id, task) in schedule.tasks.iter().enumerate() {
            let lane = (task.rank.0, task.lane.0);
            let before = last.get(&lane).copied();
            let same = before.filter(|&b| task.launch.is_some() && runs[b].launch == task.launch);
            let run = same.unwrap_or(runs.len());
            match same {
                Some(run) => runs[run].tasks.push(id as u32),
                None => runs.push(Run {
                    launch: task.launch,
                    tasks: vec![id as u32],
                    before,
                }),
            }
            last.insert(lane, run);
            of.push(run);
        }
        Self { runs, of }
    }

    /// What must end before a dependency is met: an event is recorded after the whole kernel.
    fn awaited<'a>(&'a self, schedule: &Schedule, dep: &'a Dep) -> &'a [u32] {
        match dep.via {
            Via::Event if schedule.task(dep.task).launch.is_some() => {
                &self.runs[self.of[dep.task.index()]].tasks
            }
            _ => std::slice::from_ref(&dep.task.0),
        }
    }
}

impl Performance<'_> {
    /// Fills in who waits for whom.
    fn connect(&mut self, kernels_in_order: bool) {
        let schedule = self.schedule;
        let deps = |t: u32| schedule.deps(TaskId(t)).iter();
        let runs = Runs::new(schedule);
        for run in &runs.runs {
            let first = run.tasks[0];
            // The kernel starts when its first task could, but for its flags.
            let entry: Vec<u32> = match run.launch {
                None => Vec::new(),
                Some(_) => deps(first)
                    .filter(|d| d.via != Via::KernelFlag)
                    .flat_map(|d| runs.awaited(schedule, d))
                    .copied()
                    .collect(),
            };
            let before = run.before.map_or(&[][..], |b| &runs.runs[b].tasks);
            for (place, &id) in run.tasks.iter().enumerate() {
                let own: Vec<u32> = deps(id)
                    .flat_map(|d| runs.awaited(schedule, d))
                    .copied()
                    .collect();
                let neighbour = (kernels_in_order && place > 0).then(|| run.tasks[place - 1]);
                let all = own.iter().chain(before).chain(&entry).chain(&neighbour);
                for &from in all {
                    self.next[from as usize].push(id);
                    self.waits[id as usize] += 1;
                }
            }
        }
    }

    /// A task has nothing left to wait for.
    fn arrive(&mut self, task: u32) {
        match self.schedule.tasks[task as usize].work {
            Work::Collective(c) => {
                self.absent[c.index()] -= 1;
                if self.absent[c.index()] == 0 {
                    self.queue(self.representative(c), false);
                }
            }
            _ => self.queue(task, false),
        }
    }

    fn representative(&self, c: CollectiveId) -> u32 {
        self.schedule.collectives[c.index()].members[0].task.0
    }

    fn queue(&mut self, task: u32, end: bool) {
        let Task { rank, lane, .. } = self.schedule.tasks[task as usize];
        let hash = |key: u64| Random::new(self.salt ^ (key << 20)).next() >> 8;
        let noise = self.random.next() & 0xff;
        let lane_key = u64::from(rank.0) << 17 | u64::from(lane.0) << 1;
        let priority = match self.bias {
            Bias::Event => self.random.next(),
            // Starts and ends of a lane are biased apart, so that its windows may stay open.
            Bias::Lane => hash(lane_key | u64::from(end)) << 8 | noise,
            Bias::Rank => hash(u64::from(rank.0)) << 8 | noise,
            Bias::Newest => u64::from(task) << 8 | noise,
            Bias::Oldest => (u64::from(u32::MAX - task)) << 8 | noise,
            Bias::LateEnds => u64::from(!end) << 60 | self.random.next(),
            Bias::PromptEnds => u64::from(end) << 60 | self.random.next(),
        };
        self.ready.push(Event {
            priority,
            task,
            end,
        });
    }

    fn start(&mut self, task: u32, memory: &mut Memory) -> Result<(), InterpretError> {
        let (read_now, write_now) = (self.random.coin(), self.random.coin());
        let window = if read_now {
            let results = memory.compute(self.schedule, TaskId(task))?;
            if write_now {
                memory.write(self.schedule, TaskId(task), &results)?;
                Window::Written
            } else {
                Window::Unwritten(results)
            }
        } else {
            Window::Unread
        };
        self.windows.insert(task, window);
        self.queue(task, true);
        Ok(())
    }

    fn end(&mut self, task: u32, memory: &mut Memory) -> Result<(), InterpretError> {
        let id = TaskId(task);
        match self.windows.remove(&task) {
            None | Some(Window::Written) => {}
            Some(Window::Unwritten(results)) => memory.write(self.schedule, id, &results)?,
            Some(Window::Unread) => {
                let results = memory.compute(self.schedule, id)?;
                memory.write(self.schedule, id, &results)?;
            }
        }
        let ended: Vec<u32> = match self.schedule.tasks[task as usize].work {
            Work::Collective(c) => {
                let members = &self.schedule.collectives[c.index()].members;
                members.iter().map(|m| m.task.0).collect()
            }
            _ => vec![task],
        };
        for task in ended {
            self.done += 1;
            for next in std::mem::take(&mut self.next[task as usize]) {
                self.waits[next as usize] -= 1;
                if self.waits[next as usize] == 0 {
                    self.arrive(next);
                }
            }
        }
        Ok(())
    }
}
