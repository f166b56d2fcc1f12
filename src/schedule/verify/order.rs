//! Happens-before.
//!
//! A task starts after the end of its dependencies and of the task before it in its lane; the
//! members of a collective start and end together and form one node. u happens before v if v can
//! start only after u has ended: there is a path of such edges from u to v.
//!
//! The tasks of one fused kernel overlap. The kernel L takes its place in the lane as two nodes:
//!
//! ```text
//! before the lane's task before L, what L's first task awaits other than by kernel flags
//!   ──► start(L) ──► every task of L ──► end(L) ──► the next task in the lane
//! ```
//!
//! Between tasks of L only their own dependencies count. An event is recorded after the kernel,
//! so that who waits by one waits for end(L). Kernels begin their tasks in task order, though:
//! the sort and the search for circles take that order for a wait.
//!
//! A chain is a lane, or tasks of a kernel that wait for one another in a row.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::error::VerifyError;
use crate::schedule::{Dep, LaunchId, Schedule, TaskId, Via, Work};

/// Chains, positions in them and one topological order.
///
/// Node t < T is task t; two more nodes are the start and the end of each kernel.
#[derive(Debug)]
pub(super) struct Order {
    /// Number of tasks T.
    tasks: u32,
    /// Chain of each node.
    pub chain: Vec<u32>,
    /// Position of each node in its chain, from 1.
    pub position: Vec<u32>,
    /// The task before each in its lane, of the same kernel or not.
    pub before: Vec<Option<TaskId>>,
    /// The first chains are the lanes; so many there are.
    pub lanes: u32,
    /// All chains.
    pub chains: u32,
    /// First task of each kernel.
    first: Vec<Option<u32>>,
    /// (task of a kernel, who waits for it), sorted.
    awaited: Vec<(u32, u32)>,
    /// Tasks in a topological order; the first member stands for a collective.
    pub nodes: Vec<u32>,
}

impl Order {
    /// Numbers the chains and sorts the nodes; ids must be in range.
    pub(super) fn new(schedule: &Schedule) -> Result<Self, VerifyError> {
        let mut order = Self::number(schedule);
        order.sort(schedule)?;
        Ok(order)
    }

    fn number(schedule: &Schedule) -> Self {
        let tasks = schedule.tasks.len();
        let nodes = tasks + 2 * schedule.launches.len();
        let mut order = Self {
            tasks: tasks as u32,
            chain: vec![0; nodes],
            position: vec![0; nodes],
            before: Vec::with_capacity(tasks),
            lanes: 0,
            chains: 0,
            first: vec![None; schedule.launches.len()],
            awaited: Vec::new(),
            nodes: Vec::new(),
        };
        // By chain: its last node.
        let mut tail: Vec<u32> = Vec::new();
        let mut numbers: FxHashMap<(u16, u16), u32> = FxHashMap::default();
        let mut last: Vec<u32> = Vec::new();
        for (id, task) in schedule.tasks.iter().enumerate() {
            let lane = *numbers
                .entry((task.rank.0, task.lane.0))
                .or_insert_with(|| {
                    tail.push(u32::MAX);
                    last.push(u32::MAX);
                    tail.len() as u32 - 1
                });
            let before = std::mem::replace(&mut last[lane as usize], id as u32);
            order
                .before
                .push((before != u32::MAX).then_some(TaskId(before)));
            let Some(launch) = task.launch else {
                order.append(&mut tail, lane, id as u32);
                continue;
            };
            // The tasks of a kernel follow one another in its lane, so both its nodes do.
            if order.first[launch.index()].is_none() {
                order.first[launch.index()] = Some(id as u32);
                let ends = [order.start(launch), order.end(launch)];
                for node in ends {
                    order.append(&mut tail, lane, node);
                }
            }
        }
        order.lanes = tail.len() as u32;
        for (id, task) in schedule.tasks.iter().enumerate() {
            let deps = schedule.deps(TaskId(id as u32));
            let in_kernels = deps.iter().map(|dep| dep.task.0);
            let in_kernels = in_kernels.filter(|&t| schedule.tasks[t as usize].launch.is_some());
            order.awaited.extend(in_kernels.map(|t| (t, id as u32)));
            let Some(launch) = task.launch else { continue };
            let joins = deps.iter().map(|dep| dep.task.0).find(|&t| {
                schedule.tasks[t as usize].launch == Some(launch)
                    && t < id as u32
                    && tail[order.chain[t as usize] as usize] == t
            });
            let chain = joins.map_or(tail.len() as u32, |t| order.chain[t as usize]);
            if joins.is_none() {
                tail.push(u32::MAX);
            }
            order.append(&mut tail, chain, id as u32);
        }
        order.chains = tail.len() as u32;
        order.awaited.sort_unstable();
        order
    }

    /// Puts a node behind the last one of a chain.
    fn append(&mut self, tail: &mut [u32], chain: u32, node: u32) {
        let last = std::mem::replace(&mut tail[chain as usize], node);
        self.chain[node as usize] = chain;
        self.position[node as usize] = match last {
            u32::MAX => 1,
            last => self.position[last as usize] + 1,
        };
    }

    /// The node of a kernel's start.
    pub(super) const fn start(&self, launch: LaunchId) -> u32 {
        self.tasks + 2 * launch.0
    }

    /// The node of a kernel's end.
    pub(super) const fn end(&self, launch: LaunchId) -> u32 {
        self.tasks + 2 * launch.0 + 1
    }

    /// The node that a dependency waits for.
    fn source(&self, schedule: &Schedule, dep: &Dep) -> u32 {
        match schedule.task(dep.task).launch {
            Some(launch) if dep.via == Via::Event => self.end(launch),
            _ => dep.task.0,
        }
    }

    /// The waits that `task` brings about, as (node, the one that it waits for), other than those
    /// between neighbours of a chain.
    pub(super) fn edges(&self, schedule: &Schedule, task: TaskId) -> Vec<(u32, u32)> {
        let deps = schedule.deps(task).iter();
        let own = deps.map(|dep| (dep.via, self.source(schedule, dep)));
        let Some(launch) = schedule.task(task).launch else {
            return own.map(|(_, from)| (task.0, from)).collect();
        };
        let start = self.start(launch);
        let mut edges = vec![(task.0, start)];
        if self.first[launch.index()] == Some(task.0) {
            let early = own.clone().filter(|&(via, _)| via != Via::KernelFlag);
            edges.splice(0..0, early.map(|(_, from)| (start, from)));
        }
        edges.extend(own.map(|(_, from)| (task.0, from)));
        edges.push((self.end(launch), task.0));
        edges
    }

    /// The node before a task of no kernel in its lane.
    pub(super) fn lane_before(&self, schedule: &Schedule, task: TaskId) -> Option<u32> {
        let before = self.before[task.index()]?;
        Some(match schedule.task(before).launch {
            Some(launch) => self.end(launch),
            None => before.0,
        })
    }

    /// Some of those that wait for a task of a kernel.
    pub(super) fn awaited(&self, task: u32) -> impl Iterator<Item = u32> {
        let at = self.awaited.partition_point(|&(t, _)| t < task);
        self.awaited[at..]
            .iter()
            .take(8)
            .take_while(move |&&(t, _)| t == task)
            .map(|&(_, by)| by)
    }

    /// The node of a task.
    pub(super) fn node(schedule: &Schedule, task: u32) -> u32 {
        match schedule.tasks[task as usize].work {
            Work::Collective(c) => schedule.collectives[c.index()].members[0].task.0,
            _ => task,
        }
    }

    /// What a task waits for, lane order included.
    fn waits(&self, schedule: &Schedule, task: u32) -> impl Iterator<Item = u32> {
        schedule
            .deps(TaskId(task))
            .iter()
            .map(|dep| dep.task.0)
            .chain(self.before[task as usize].map(|t| t.0))
    }

    fn sort(&mut self, schedule: &Schedule) -> Result<(), VerifyError> {
        let count = schedule.tasks.len();
        let node: Vec<u32> = (0..count as u32).map(|t| Self::node(schedule, t)).collect();
        let mut start = vec![0u32; count + 1];
        let mut waiting = vec![0u32; count];
        for task in 0..count as u32 {
            for from in self.waits(schedule, task) {
                start[node[from as usize] as usize + 1] += 1;
                waiting[node[task as usize] as usize] += 1;
            }
        }
        for i in 0..count {
            start[i + 1] += start[i];
        }
        let mut next = start.clone();
        let mut successors = vec![0u32; start[count] as usize];
        for task in 0..count as u32 {
            for from in self.waits(schedule, task) {
                let slot = &mut next[node[from as usize] as usize];
                successors[*slot as usize] = node[task as usize];
                *slot += 1;
            }
        }
        let is_node = |t: u32| node[t as usize] == t;
        let mut ready: BinaryHeap<Reverse<u32>> = (0..count as u32)
            .filter(|&t| is_node(t) && waiting[t as usize] == 0)
            .map(Reverse)
            .collect();
        self.nodes.reserve_exact(count);
        while let Some(Reverse(task)) = ready.pop() {
            self.nodes.push(task);
            let range = start[task as usize] as usize..start[task as usize + 1] as usize;
            for &to in &successors[range] {
                waiting[to as usize] -= 1;
                if waiting[to as usize] == 0 {
                    ready.push(Reverse(to));
                }
            }
        }
        if self.nodes.len() < (0..count as u32).filter(|&t| is_node(t)).count() {
            return Err(self.cycle(schedule, &node, &waiting));
        }
        Ok(())
    }

    /// Names a circle among the nodes that never became ready.
    fn cycle(&self, schedule: &Schedule, node: &[u32], waiting: &[u32]) -> VerifyError {
        let stuck = |t: u32| waiting[node[t as usize] as usize] > 0;
        // Every stuck node waits for a stuck one; walking along these waits closes a circle.
        let mut members: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for task in (0..node.len() as u32).filter(|&t| stuck(t)) {
            members.entry(node[task as usize]).or_default().push(task);
        }
        let mut at = members.keys().copied().min().unwrap_or(0);
        let mut seen: FxHashMap<u32, usize> = FxHashMap::default();
        let mut path: Vec<(u32, u32)> = Vec::new();
        while !seen.contains_key(&at) {
            seen.insert(at, path.len());
            let wait = members.get(&at).into_iter().flatten().find_map(|&task| {
                let from = self.waits(schedule, task).find(|&t| stuck(t))?;
                Some((task, from))
            });
            let Some((task, from)) = wait else { break };
            path.push((task, from));
            at = node[from as usize];
        }
        let circle = &path[seen.get(&at).copied().unwrap_or(0)..];
        let by_lane = |&(task, from): &(u32, u32)| {
            self.before[task as usize] == Some(TaskId(from))
                && !schedule.deps(TaskId(task)).iter().any(|d| d.task.0 == from)
        };
        let text: Vec<String> = circle
            .iter()
            .take(8)
            .map(|wait| {
                let why = if by_lane(wait) { " in lane order" } else { "" };
                let [task, from] = [wait.0, wait.1].map(|t| schedule.describe(TaskId(t)));
                format!("{task} waits for {from}{why}")
            })
            .collect();
        let more = match circle.len() {
            n if n > 8 => format!(", and {} more", n - 8),
            _ => String::new(),
        };
        let deadlock = circle.iter().any(by_lane)
            || circle
                .iter()
                .any(|&(t, _)| matches!(schedule.tasks[t as usize].work, Work::Collective(_)));
        VerifyError::Cycle {
            name: if deadlock {
                "lane deadlock"
            } else {
                "dependencies form a circle"
            },
            cycle: text.join(", ") + &more,
        }
    }
}
