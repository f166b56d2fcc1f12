//! Work in issue order, each with the waits that nothing else implies.

use super::{StreamId, What};
use crate::schedule::lowered::Clocks;
use crate::schedule::{Dep, TaskId, Via};

/// How a step learns of the end of another.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Signal {
    Event,
    Flag,
    /// A flag that a kernel awaits.
    Kernel,
}

/// The end of a step, needed by another.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Need {
    pub step: usize,
    pub signal: Signal,
}

impl Need {
    pub(super) fn event(step: usize) -> Self {
        Self {
            step,
            signal: Signal::Event,
        }
    }
}

/// A step that does something, with its waits.
#[derive(Debug)]
pub(super) struct Work {
    pub stream: StreamId,
    pub task: TaskId,
    /// `None` for a place in a stream where nothing is done.
    pub what: Option<What>,
    pub waits: Vec<Need>,
    /// Of a product with gates, by group: the steps that it awaits.
    pub gates: Vec<Vec<usize>>,
    /// The rows of which group of which product, and those before, are there.
    pub reached: Option<(usize, usize)>,
}

impl Work {
    fn new(stream: StreamId, task: TaskId, what: Option<What>, waits: Vec<Need>) -> Self {
        Self {
            stream,
            task,
            what,
            waits,
            gates: Vec::new(),
            reached: None,
        }
    }
}

/// Work so far.
#[derive(Debug, Default)]
pub(super) struct Emitter {
    pub works: Vec<Work>,
    pub clocks: Clocks,
    /// By task: the steps with which it ends.
    ends: Vec<Vec<usize>>,
}

impl Emitter {
    /// Appends a step that begins after all `needs`. Returns its number.
    pub(super) fn step(
        &mut self,
        stream: StreamId,
        task: TaskId,
        what: What,
        needs: &[Need],
    ) -> usize {
        let waits = self.await_all(stream, needs);
        self.append(Work::new(stream, task, Some(what), waits))
    }

    /// Appends a product whose groups, of these tasks, await the `gates` of each inside the kernel.
    /// The tasks, which have ended without a step, end with places behind it: who awaits one by a flag
    /// is told by the kernel, and by then the places before it have been reached. The last place is
    /// the kernel's end.
    pub(super) fn gated(
        &mut self,
        stream: StreamId,
        tasks: &[(TaskId, TaskId)],
        what: What,
        needs: &[Need],
        mut gates: Vec<Vec<usize>>,
    ) {
        let [(_, origin), ..] = *tasks else { return };
        let waits = self.await_all(stream, needs);
        for group in &mut gates {
            group.sort_unstable();
            group.dedup();
            group.retain(|&step| !self.clocks.knows(stream.0, step));
        }
        // The kernel ends after all of them.
        for &step in gates.iter().flatten() {
            self.clocks.wait(stream.0, step);
        }
        let mut work = Work::new(stream, origin, Some(what), waits);
        work.gates = gates;
        let kernel = self.append(work);
        for (group, &(task, origin)) in tasks.iter().enumerate() {
            let mut work = Work::new(stream, origin, None, Vec::new());
            work.reached = Some((kernel, group));
            self.ends[task.index()] = vec![self.append(work)];
        }
        self.append(Work::new(stream, origin, None, Vec::new()));
    }

    /// Appends the members of one call, `(stream, task, what, needs)`, which begin together.
    pub(super) fn together(&mut self, members: Vec<(StreamId, TaskId, What, Vec<Need>)>) -> usize {
        let first = self.works.len();
        let mut works = Vec::with_capacity(members.len());
        for (stream, task, what, needs) in members {
            let waits = self.await_all(stream, &needs);
            works.push(Work::new(stream, task, Some(what), waits));
        }
        let streams: Vec<u32> = works.iter().map(|w| w.stream.0).collect();
        self.clocks.meet(&streams);
        for work in works {
            self.append(work);
        }
        first
    }

    /// The next step of `stream` begins after all `needs`; returns those to be awaited. The latest
    /// come first, as they may imply earlier ones and never the other way round.
    fn await_all(&mut self, stream: StreamId, needs: &[Need]) -> Vec<Need> {
        let mut needs = needs.to_vec();
        // Of two ways to learn of one end the flag is what the schedule asks for.
        needs.sort_unstable_by(|a, b| b.cmp(a));
        needs.dedup_by_key(|need| need.step);
        needs.retain(|need| {
            let new = !self.clocks.knows(stream.0, need.step);
            if new {
                self.clocks.wait(stream.0, need.step);
            }
            new
        });
        needs
    }

    fn append(&mut self, work: Work) -> usize {
        let step = self.clocks.push(work.stream.0);
        self.works.push(work);
        step
    }

    /// The next task in order ends with these steps.
    pub(super) fn end(&mut self, steps: Vec<usize>) {
        self.ends.push(steps);
    }

    /// The steps with which a task ends.
    pub(super) fn ends(&self, task: TaskId) -> &[usize] {
        &self.ends[task.index()]
    }

    /// What a dependency asks for.
    pub(super) fn needs(&self, dep: &Dep) -> impl Iterator<Item = Need> + '_ {
        let signal = match dep.via {
            Via::Lane | Via::Launch | Via::Event => Signal::Event,
            Via::StreamFlag => Signal::Flag,
            Via::KernelFlag => Signal::Kernel,
        };
        let ends = self.ends[dep.task.index()].iter();
        ends.map(move |&step| Need { step, signal })
    }
}
