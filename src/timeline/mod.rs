//! What a performer returns: start and end of every task, what bound it, and the critical path.

mod critical;
mod explanation;

pub use critical::critical_path;
pub use explanation::{Explanation, Term};

use crate::schedule::TaskId;
use crate::topology::LinkId;

/// What limited a task for most of its running time.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bound {
    /// Nothing: it took no time.
    Nothing,
    /// The arithmetic of its GPU (waves of a GEMM).
    Compute,
    /// Memory bandwidth of GPU n.
    Hbm(u32),
    /// Bandwidth of one link direction.
    Link(LinkId),
    /// Shared capacity n of the topology.
    Shared(u32),
    /// The rate of its own mover (copy engine or SM copy).
    Mover,
    /// Fixed latency and start-up.
    Latency,
}

/// What a task waited for last before it could start.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nothing: it started at time 0.
    Start,
    /// A dependency or the task before it in its lane.
    Task(TaskId),
    /// A copy engine or SMs held by this task.
    Resource(TaskId),
    /// The host's submission queue.
    Host,
}

/// One task's place in time [seconds from the start].
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Span {
    /// All dependencies and the lane were done.
    pub ready: f64,
    /// The task held its resources.
    pub start: f64,
    pub end: f64,
    pub cause: Cause,
    pub bound: Bound,
}

/// Use of one link direction.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct LinkUse {
    /// Bytes that crossed it.
    pub bytes: f64,
    /// Seconds in which at least one flow crossed it.
    pub busy: f64,
}

/// One change of a counter, for traces.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Sample {
    pub time: f64,
    pub counter: Counter,
    pub value: f64,
}

/// What is counted over time.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// Bytes per second over one link direction.
    Link(LinkId),
    /// SMs held on GPU n.
    Sms(u32),
}

/// The result of performing a schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// One entry per task, by [`TaskId`].
    pub spans: Vec<Span>,
    /// End of the last task \[seconds\].
    pub makespan: f64,
    /// By link index; empty where the performer cannot see links.
    pub links: Vec<LinkUse>,
    /// Counter changes in order of time; empty unless recording was asked for.
    pub samples: Vec<Sample>,
}

impl Timeline {
    /// The same with every time `factor` times as long.
    pub(crate) fn stretched(mut self, factor: f64) -> Self {
        for span in &mut self.spans {
            span.ready *= factor;
            span.start *= factor;
            span.end *= factor;
        }
        for link in &mut self.links {
            link.busy *= factor;
        }
        for sample in &mut self.samples {
            sample.time *= factor;
        }
        self.makespan *= factor;
        self
    }
}
