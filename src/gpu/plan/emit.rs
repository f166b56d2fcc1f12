//! Work in issue order, each with the waits that nothing else implies.

use rustc_hash::FxHashMap;

use super::{StreamId, What};
use crate::schedule::lowered::{Clocks, Moment};
use crate::schedule::{Dep, LaunchId, TaskId, Via};

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
    /// Of such a product, by group: those of its loads that it awaits.
    pub loads: Vec<Vec<usize>>,
    /// The rows of which group of which product, and those before, are there.
    pub reached: Option<(usize, usize)>,
    /// Of which step in another stream this place tells.
    pub tells: Option<usize>,
}

impl Work {
    fn new(stream: StreamId, task: TaskId, what: Option<What>, waits: Vec<Need>) -> Self {
        Self {
            stream,
            task,
            what,
            waits,
            gates: Vec::new(),
            loads: Vec::new(),
            reached: None,
            tells: None,
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
    /// By stream: its latest kernel of products, and what was known when that began.
    begun: FxHashMap<u32, (LaunchId, Moment)>,
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

    /// Appends a place in a stream that tells of the end of a step of another.
    pub(super) fn tell(&mut self, stream: StreamId, task: TaskId, of: usize) -> usize {
        let waits = self.await_all(stream, &[Need::event(of)]);
        let mut work = Work::new(stream, task, None, waits);
        work.tells = Some(of);
        self.append(work)
    }

    /// What was done when a step has ended: its own work, or what it tells of.
    pub(super) fn done(&self, step: usize) -> &Work {
        let work = &self.works[step];
        work.tells.map_or(work, |of| &self.works[of])
    }

    /// Appends a product whose groups, of these tasks, await the `gates` of each inside the kernel, and those of
    /// what the kernel brings itself.
    /// The tasks, which have ended without a step, end with places behind it: who awaits one by a flag
    /// is told by the kernel, and by then the places before it have been reached. The last place is
    /// the kernel's end.
    pub(super) fn gated(
        &mut self,
        stream: StreamId,
        tasks: &[(TaskId, TaskId)],
        what: What,
        needs: &[Need],
        (mut gates, loads): (Vec<Vec<usize>>, Vec<Vec<usize>>),
    ) {
        let [(_, origin), ..] = *tasks else { return };
        // Rows of a kernel's later product may be taken before those of its earlier ones: what these wait
        // for tells nothing of the later.
        let begun = match (&what, self.begun.get(&stream.0)) {
            (What::Gated { kernel, .. }, Some((latest, then))) if latest == kernel => {
                Some(then.clone())
            }
            _ => None,
        };
        let waits = match &begun {
            Some(then) => self.await_since(then, stream, needs),
            None => self.await_all(stream, needs),
        };
        let then = begun.unwrap_or_else(|| self.clocks.moment(stream.0));
        for group in &mut gates {
            group.sort_unstable();
            group.dedup();
            group.retain(|&step| !self.clocks.knew(&then, step));
        }
        if let What::Gated { kernel, .. } = what {
            self.begun.insert(stream.0, (kernel, then));
        }
        // The kernel ends after all of them.
        for &step in gates.iter().flatten() {
            self.clocks.wait(stream.0, step);
        }
        let mut work = Work::new(stream, origin, Some(what), waits);
        (work.gates, work.loads) = (gates, loads);
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
        self.await_unless(stream, needs, |clocks, step| clocks.knows(stream.0, step))
    }

    /// The same of a kernel that began with what was known `then`.
    fn await_since(&mut self, then: &Moment, stream: StreamId, needs: &[Need]) -> Vec<Need> {
        self.await_unless(stream, needs, |clocks, step| clocks.knew(then, step))
    }

    fn await_unless(
        &mut self,
        stream: StreamId,
        needs: &[Need],
        known: impl Fn(&mut Clocks, usize) -> bool,
    ) -> Vec<Need> {
        let mut needs = needs.to_vec();
        // Of two ways to learn of one end the flag is what the schedule asks for.
        needs.sort_unstable_by(|a, b| b.cmp(a));
        needs.dedup_by_key(|need| need.step);
        needs.retain(|need| {
            let new = !known(&mut self.clocks, need.step);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::plan::{Area, Gpu};

    fn area() -> Area {
        Area {
            gpu: Gpu(0),
            at: 0,
            ld: 1,
            rows: 1,
            cols: 1,
        }
    }

    fn product(kernel: u32) -> What {
        What::Gated {
            a: area(),
            b: area(),
            out: area(),
            groups: Vec::new(),
            accumulate: false,
            sms: 0,
            loads: Vec::new(),
            kernel: LaunchId(kernel),
        }
    }

    /// Of two products that wait for one copy the second waits again if both are one kernel, since its rows may
    /// be taken first; a kernel after it has begun when the copy has ended.
    #[test]
    fn what_a_product_waits_for_is_not_known_to_the_next_of_its_kernel() {
        let mut out = Emitter::default();
        let copy = What::Copy {
            from: area(),
            to: area(),
        };
        let copied = out.step(StreamId(1), TaskId(0), copy, &[]);
        out.end(vec![copied]);
        (0..3).for_each(|_| out.end(Vec::new()));
        for (task, kernel) in [(1, 0), (2, 0), (3, 1)] {
            let tasks = [(TaskId(task), TaskId(task))];
            let gates = (vec![vec![copied]], vec![Vec::new()]);
            out.gated(StreamId(0), &tasks, product(kernel), &[], gates);
        }
        let gates = out
            .works
            .iter()
            .filter(|work| work.what == Some(product(0)));
        assert!(gates.clone().count() == 2 && gates.clone().all(|work| work.gates == [[copied]]));
        let last = out.works.iter().find(|work| work.what == Some(product(1)));
        assert!(last.is_some_and(|work| work.gates == [Vec::<usize>::new()]));
    }
}
