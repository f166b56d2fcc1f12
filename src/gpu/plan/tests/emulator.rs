//! Performs a plan as a machine would: one host issues actions in order, streams work them off in
//! order and otherwise in any order, steps read at their start or end and write at their start or
//! end. An await of an event binds to the event's latest record when it is issued, and to none if
//! there was none; an await of a flag blocks until the word has the run's epoch.
//!
//! Runs follow one another without the host waiting: poison and fresh inputs, fork, steps, join,
//! comparison.

use super::machine::{Machine, Matrix, touches};
use crate::gpu::plan::{EventId, Plan, StreamId, What};
use crate::schedule::Schedule;
use crate::schedule::interpret::Random;
use crate::schedule::interpret::reference::Reference;

/// What the host hands to a stream.
#[derive(Clone, Debug)]
enum Action {
    Fill,
    Check,
    Record(EventId),
    Await(EventId),
    Step(usize),
}

/// What lies in a stream.
#[derive(Clone, Debug)]
enum Item {
    Fill(u32),
    Check(u32),
    Record(usize),
    /// `None`: the event was not recorded before.
    Await(Option<usize>),
    Step(usize, u32),
}

enum Window {
    Closed,
    Unread,
    Unwritten(Vec<Matrix>),
    Written,
}

#[derive(Copy, Clone, Debug)]
enum Bias {
    Event,
    Stream,
    Gpu,
    LateEnds,
    PromptEnds,
    HostLast,
    HostFirst,
}

const BIASES: [Bias; 7] = [
    Bias::Event,
    Bias::Stream,
    Bias::LateEnds,
    Bias::Gpu,
    Bias::HostFirst,
    Bias::PromptEnds,
    Bias::HostLast,
];

/// Why a performance is no good.
#[derive(Debug, PartialEq)]
pub(super) enum Fault {
    Wrong(String),
    Stuck(String),
}

struct Emulation<'a> {
    plan: &'a Plan,
    schedule: &'a Schedule,
    references: &'a [Reference],
    machine: Machine,
    random: Random,
    bias: Bias,
    salt: u64,
    /// What the host has still to issue, last first.
    host: Vec<(StreamId, u32, Action)>,
    queues: Vec<std::collections::VecDeque<Item>>,
    windows: Vec<Window>,
    /// By record: whether it has happened.
    records: Vec<bool>,
    latest: Vec<Option<usize>>,
    /// By call: the outputs of the members, once known.
    results: Vec<Option<Vec<Matrix>>>,
}

/// Performs as many runs as there are references, in an order that `seed` draws.
pub(super) fn emulate(
    plan: &Plan,
    schedule: &Schedule,
    references: &[Reference],
    seed: u64,
) -> Result<(), Fault> {
    let mut random = Random::new(seed);
    let salt = random.next();
    let mut emulation = Emulation {
        plan,
        schedule,
        references,
        machine: Machine::new(plan),
        random,
        bias: BIASES[seed as usize % BIASES.len()],
        salt,
        host: host(plan, references.len() as u32),
        queues: vec![Default::default(); plan.streams.len()],
        windows: plan.streams.iter().map(|_| Window::Closed).collect(),
        records: Vec::new(),
        latest: vec![None; plan.events.len()],
        results: plan.collectives.iter().map(|_| None).collect(),
    };
    emulation.perform()
}

/// Everything that the host issues, last first.
fn host(plan: &Plan, runs: u32) -> Vec<(StreamId, u32, Action)> {
    let mut host = Vec::new();
    for run in 0..runs {
        host.push((plan.origin, run, Action::Fill));
        host.push((plan.origin, run, Action::Record(plan.fork.event)));
        let forked = plan.fork.streams.iter();
        host.extend(forked.map(|&s| (s, run, Action::Await(plan.fork.event))));
        for (i, step) in plan.steps.iter().enumerate() {
            host.push((
                step.stream,
                run,
                match step.what {
                    What::Record(event) => Action::Record(event),
                    What::Await(event) => Action::Await(event),
                    _ => Action::Step(i),
                },
            ));
        }
        for &(stream, event) in &plan.join {
            host.push((stream, run, Action::Record(event)));
            host.push((plan.origin, run, Action::Await(event)));
        }
        host.push((plan.origin, run, Action::Check));
    }
    host.reverse();
    host
}

impl Emulation<'_> {
    fn perform(&mut self) -> Result<(), Fault> {
        loop {
            // Stream, or none for the host.
            let mut best: Option<(u64, Option<usize>)> = None;
            let mut offer = |key: u64, who| {
                if best.is_none_or(|(most, _)| key > most) {
                    best = Some((key, who));
                }
            };
            if !self.host.is_empty() {
                offer(self.priority(None), None);
            }
            for stream in 0..self.queues.len() {
                if self.ready(stream) {
                    offer(self.priority(Some(stream)), Some(stream));
                }
            }
            match best {
                Some((_, None)) => self.issue(),
                Some((_, Some(stream))) => self.go(stream)?,
                None if self.queues.iter().all(|q| q.is_empty()) => return Ok(()),
                None => return Err(Fault::Stuck(self.stuck())),
            }
        }
    }

    fn priority(&mut self, stream: Option<usize>) -> u64 {
        let noise = self.random.next() & 0xffff;
        let fixed = |key: u64| (Random::new(self.salt ^ (key << 9)).next() >> 20) << 16;
        let open = stream.is_some_and(|s| !matches!(self.windows[s], Window::Closed));
        let key = match (self.bias, stream) {
            (Bias::Event, _) => 0,
            (Bias::LateEnds, _) => u64::from(!open) << 16,
            (Bias::PromptEnds, _) => u64::from(open) << 16,
            (Bias::HostLast, None) => 0,
            (Bias::HostFirst, None) => u64::MAX >> 1,
            (Bias::Gpu, Some(s)) => fixed(u64::from(self.plan.streams[s].gpu.0) + 1),
            (_, Some(s)) => fixed(s as u64 + 1),
            (_, None) => fixed(0),
        };
        key | noise
    }

    fn issue(&mut self) {
        let Some((stream, run, action)) = self.host.pop() else {
            return;
        };
        let item = match action {
            Action::Fill => Item::Fill(run),
            Action::Check => Item::Check(run),
            Action::Step(i) => Item::Step(i, run),
            Action::Await(event) => Item::Await(self.latest[event.index()]),
            Action::Record(event) => {
                self.records.push(false);
                self.latest[event.index()] = Some(self.records.len() - 1);
                Item::Record(self.records.len() - 1)
            }
        };
        self.queues[stream.index()].push_back(item);
    }

    fn epoch(run: u32) -> u32 {
        // Epochs wrap around.
        run.wrapping_add(u32::MAX - 1)
    }

    fn ready(&self, stream: usize) -> bool {
        let Some(item) = self.queues[stream].front() else {
            return false;
        };
        match *item {
            Item::Await(Some(record)) => self.records[record],
            Item::Step(i, run) => match self.plan.steps[i].what {
                What::AwaitFlag(flag) => {
                    let word = self.machine.flags[flag.index()];
                    // Words start one epoch before the first.
                    let word = word.wrapping_add(u32::MAX - 2);
                    word.wrapping_sub(Self::epoch(run)) as i32 >= 0
                }
                What::Collective { call, .. } if matches!(self.windows[stream], Window::Closed) => {
                    let parties = &self.plan.collectives[call.index()].members;
                    parties.iter().all(|p| {
                        let item = self.queues[p.stream.index()].front();
                        let what = match item {
                            Some(&Item::Step(i, r)) if r == run => &self.plan.steps[i].what,
                            _ => return false,
                        };
                        matches!(*what, What::Collective { call: c, .. } if c == call)
                    })
                }
                _ => true,
            },
            _ => true,
        }
    }

    fn go(&mut self, stream: usize) -> Result<(), Fault> {
        let item = self.queues[stream].front().cloned();
        let end = match item {
            Some(Item::Fill(run)) => {
                let reference = &self.references[run as usize];
                let parity = u64::from(run % 2);
                self.machine
                    .fill(self.plan, self.schedule, reference, parity);
                true
            }
            Some(Item::Check(run)) => {
                let reference = &self.references[run as usize];
                let parity = u64::from(run % 2);
                let checked = self
                    .machine
                    .check(self.plan, self.schedule, reference, parity);
                checked.map_err(|why| Fault::Wrong(format!("run {run}: {why}")))?;
                true
            }
            Some(Item::Record(record)) => {
                self.records[record] = true;
                true
            }
            Some(Item::Step(i, run)) => self.step(stream, i, run),
            Some(Item::Await(_)) | None => true,
        };
        if end {
            self.queues[stream].pop_front();
        }
        Ok(())
    }

    /// Starts or ends a step; whether it has ended.
    fn step(&mut self, stream: usize, i: usize, run: u32) -> bool {
        let plan = self.plan;
        let parity = u64::from(run % 2);
        let what = &plan.steps[i].what;
        match what {
            What::AwaitFlag(_) => return true,
            What::WriteFlag(flag) => {
                self.machine.flags[flag.index()] = Self::epoch(run).wrapping_sub(u32::MAX - 2);
                return true;
            }
            _ => {}
        }
        let (read, write) = (self.random.coin(), self.random.coin());
        match std::mem::replace(&mut self.windows[stream], Window::Closed) {
            Window::Closed => {
                // All members of a call start together.
                let together = match what {
                    What::Collective { call, .. } => {
                        self.results[call.index()] = None;
                        let parties = &plan.collectives[call.index()].members;
                        parties.iter().map(|p| p.stream.index()).collect()
                    }
                    _ => vec![stream],
                };
                for s in together {
                    let Some(&Item::Step(i, _)) = self.queues[s].front() else {
                        continue;
                    };
                    self.windows[s] = match (read, write) {
                        (false, _) => Window::Unread,
                        (true, now) => {
                            let results = self.results(&plan.steps[i].what, parity);
                            match now {
                                true => {
                                    self.store(&plan.steps[i].what, &results, parity);
                                    Window::Written
                                }
                                false => Window::Unwritten(results),
                            }
                        }
                    };
                }
                false
            }
            Window::Unread => {
                let results = self.results(what, parity);
                self.store(what, &results, parity);
                true
            }
            Window::Unwritten(results) => {
                self.store(what, &results, parity);
                true
            }
            Window::Written => true,
        }
    }

    fn results(&mut self, what: &What, parity: u64) -> Vec<Matrix> {
        let What::Collective { call, member } = what else {
            return self.machine.compute(self.plan, what, parity);
        };
        // Whoever ends first has heard from all.
        let outputs = match self.results[call.index()].take() {
            Some(outputs) => outputs,
            None => self.machine.call(self.plan, call.index(), parity),
        };
        let own = outputs[usize::from(*member)].clone();
        self.results[call.index()] = Some(outputs);
        vec![own]
    }

    fn store(&mut self, what: &What, results: &[Matrix], parity: u64) {
        let (_, writes) = touches(self.plan, what);
        for (memory, matrix) in writes.iter().zip(results) {
            self.machine.store(memory, matrix, parity);
        }
    }

    /// What the streams wait for.
    fn stuck(&self) -> String {
        let waits = self.queues.iter().enumerate().filter_map(|(s, queue)| {
            let name = &self.plan.streams[s].name;
            match queue.front()? {
                Item::Step(i, run) => {
                    let step = &self.plan.steps[*i];
                    let task = step.task.0;
                    Some(format!("{name}: run {run}, task {task}, {:?}", step.what))
                }
                item => Some(format!("{name}: {item:?}")),
            }
        });
        waits.collect::<Vec<_>>().join("; ")
    }
}
