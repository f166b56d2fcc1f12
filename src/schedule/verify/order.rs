//! Happens-before.
//!
//! A task starts after the end of its dependencies and of the task before it in its lane; the
//! members of a collective start and end together and form one node. u happens before v if v can
//! start only after u has ended: there is a path of such edges from u to v.
//!
//! Lanes are chains, so a set of predecessors that is closed under happens-before is given by one
//! position per lane. [`Clocks`] keeps, for each lane X and each other lane Y, how far into Y the
//! tasks of X have waited **directly**: a list of (position in X, position in Y) that grows with
//! the sweep and has one entry per edge at most. A query closes this relation lane by lane,
//! backwards from v, until u's position in u's lane is reached. In schedules whose tasks wait
//! directly for what they touch, that is at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::error::VerifyError;
use crate::schedule::{Schedule, TaskId, Work};

/// Lanes, positions in them and one topological order.
#[derive(Debug)]
pub(super) struct Order {
    /// Dense lane number of each task.
    pub lane: Vec<u32>,
    /// Position of each task in its lane, from 1.
    pub position: Vec<u32>,
    /// The task before each in its lane.
    pub before: Vec<Option<TaskId>>,
    /// Tasks of each lane in order.
    pub lanes: Vec<Vec<u32>>,
    /// Nodes in a topological order: a plain task, or the first member of a collective.
    pub nodes: Vec<u32>,
}

impl Order {
    /// Numbers the lanes and sorts the nodes; ids must be in range.
    pub(super) fn new(schedule: &Schedule) -> Result<Self, VerifyError> {
        let mut order = Self::lanes(schedule);
        order.sort(schedule)?;
        Ok(order)
    }

    fn lanes(schedule: &Schedule) -> Self {
        let count = schedule.tasks.len();
        let mut numbers: FxHashMap<(u16, u16), u32> = FxHashMap::default();
        let mut lanes: Vec<Vec<u32>> = Vec::new();
        let mut lane = Vec::with_capacity(count);
        let mut position = Vec::with_capacity(count);
        let mut before = Vec::with_capacity(count);
        for (id, task) in schedule.tasks.iter().enumerate() {
            let number = *numbers
                .entry((task.rank.0, task.lane.0))
                .or_insert_with(|| {
                    lanes.push(Vec::new());
                    lanes.len() as u32 - 1
                });
            let chain = &mut lanes[number as usize];
            before.push(chain.last().map(|&t| TaskId(t)));
            chain.push(id as u32);
            lane.push(number);
            position.push(chain.len() as u32);
        }
        Self {
            lane,
            position,
            before,
            lanes,
            nodes: Vec::new(),
        }
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

/// How far each lane is known to have waited into the others; grows with the sweep.
#[derive(Debug)]
pub(super) struct Clocks {
    /// By lane: other lane → (own position, other's position), both ascending.
    known: Vec<FxHashMap<u32, Vec<(u32, u32)>>>,
    /// Positions reached in the query for `target`; valid where `stamp` is the target's.
    reached: Vec<u32>,
    stamp: Vec<u32>,
    queue: Vec<(u32, u32)>,
    epoch: u32,
    target: Option<u32>,
    /// Steps taken so far, a measure of the work done.
    pub steps: u64,
}

impl Clocks {
    pub(super) fn new(order: &Order) -> Self {
        let lanes = order.lanes.len();
        Self {
            known: vec![FxHashMap::default(); lanes],
            reached: vec![0; lanes],
            stamp: vec![0; lanes],
            queue: Vec::new(),
            epoch: 0,
            target: None,
            steps: 0,
        }
    }

    /// Notes that `task` waits for `from`, or ends with it.
    pub(super) fn wait(&mut self, order: &Order, task: u32, from: u32) {
        let (lane, other) = (order.lane[task as usize], order.lane[from as usize]);
        if lane == other {
            return;
        }
        let (at, upto) = (order.position[task as usize], order.position[from as usize]);
        let list = self.known[lane as usize].entry(other).or_default();
        match list.last_mut() {
            Some(last) if last.1 >= upto => {}
            Some(last) if last.0 == at => last.1 = upto,
            _ => list.push((at, upto)),
        }
        self.steps += 1;
    }

    /// Whether `first` ends before `second` starts (or is a member of the same collective). The
    /// waits of `second` and of all that happens before it must have been noted.
    pub(super) fn ordered(&mut self, order: &Order, first: u32, second: u32) -> bool {
        let (lane, upto) = (order.lane[first as usize], order.position[first as usize]);
        self.start(order, second);
        self.steps += 1;
        if self.at(lane) >= upto {
            return true;
        }
        let own = order.lane[second as usize];
        let direct = self.lookup(own, order.position[second as usize], lane);
        if direct >= upto {
            return true;
        }
        self.close(Some((lane, upto)))
    }

    /// Position up to which each lane has ended before `task` starts; `task`'s own lane up to
    /// itself. Indexed by lane.
    pub(super) fn closure(&mut self, order: &Order, task: u32) -> Vec<u32> {
        self.start(order, task);
        self.close(None);
        (0..self.reached.len() as u32).map(|l| self.at(l)).collect()
    }

    fn start(&mut self, order: &Order, target: u32) {
        if self.target == Some(target) {
            return;
        }
        self.target = Some(target);
        self.epoch += 1;
        self.queue.clear();
        self.reach(order.lane[target as usize], order.position[target as usize]);
    }

    fn at(&self, lane: u32) -> u32 {
        if self.stamp[lane as usize] == self.epoch {
            self.reached[lane as usize]
        } else {
            0
        }
    }

    fn reach(&mut self, lane: u32, position: u32) {
        self.stamp[lane as usize] = self.epoch;
        self.reached[lane as usize] = position;
        self.queue.push((lane, position));
    }

    /// How far `lane` has waited into `other` by its position `position`.
    fn lookup(&self, lane: u32, position: u32, other: u32) -> u32 {
        self.known[lane as usize]
            .get(&other)
            .map_or(0, |list| upto(list, position))
    }

    /// Goes on with the search from the target until `goal` is reached or nothing is left.
    fn close(&mut self, goal: Option<(u32, u32)>) -> bool {
        let mut next = 0;
        while next < self.queue.len() {
            let (lane, position) = self.queue[next];
            next += 1;
            if self.at(lane) > position {
                continue;
            }
            let known = std::mem::take(&mut self.known[lane as usize]);
            for (&other, list) in &known {
                let position = upto(list, position);
                self.steps += 1;
                if position > self.at(other) {
                    self.reach(other, position);
                }
            }
            self.known[lane as usize] = known;
            if goal.is_some_and(|(lane, upto)| self.at(lane) >= upto) {
                break;
            }
        }
        self.queue.drain(..next);
        goal.is_none_or(|(lane, upto)| self.at(lane) >= upto)
    }
}

/// The last entry at or before `position`.
fn upto(list: &[(u32, u32)], position: u32) -> u32 {
    match list.partition_point(|&(own, _)| own <= position) {
        0 => 0,
        n => list[n - 1].1,
    }
}
