//! Handing a run over to the driver, step by step.

use std::cell::RefCell;
use std::time::Duration;

use super::Run;
use super::graphs::captured;
use super::lane::{Before, commands};
use super::tables::Traced;
use crate::gpu::GpuError;
use crate::gpu::plan::{Mode, Step, StreamId, What};
use crate::gpu::raw::{Event, patiently};

/// Longest delay before a run's streams, and before one of its steps, in a shaken run.
const LATE: Duration = Duration::from_micros(300);
const PAUSE: Duration = Duration::from_micros(50);

/// What the streams of a run begin after.
#[derive(Copy, Clone, Debug)]
pub enum Start<'a> {
    /// What precedes in the origin.
    Origin,
    /// An event of their own GPU, by GPU of the plan; all work of earlier runs has ended.
    Each(&'a [Event]),
}

/// What is done beside the steps.
#[derive(Copy, Clone, Debug, Default)]
pub struct Extras<'a> {
    /// Delays drawn from here, so that what is not ordered happens in other orders.
    pub shake: Option<&'a RefCell<fastrand::Rng>>,
    /// By step: recorded in its stream before and after it.
    pub trace: Option<&'a [(Event, Event)]>,
    /// By step: takes the moments of a product's tiles, see [`Run::traced`].
    pub tiles: Option<&'a [Option<Traced>]>,
    /// By stream: recorded behind its last step. In a graph if it was captured with them.
    pub tails: Option<&'a [Event]>,
    /// Recorded behind the whole run, in the origin.
    pub end: Option<&'a Event>,
    /// By GPU of the plan: recorded behind its graph, where each has one of its own ([`Run::parts`]).
    pub ends: Option<&'a [Event]>,
    /// How often the steps follow one another between fork and join, for those of [`Run::is_calls`]; 0
    /// is once.
    pub calls: u32,
}

/// What a run is handed to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Into {
    /// The streams, as fast as they take it.
    Streams,
    /// A graph that is captured, all of it.
    Graph,
    /// The graph of the GPU of a stream that is captured, what is its own.
    Part(StreamId),
}

impl Run<'_> {
    /// Hands one run over and returns; [`Self::finish`] waits for it. Each call takes the next
    /// epoch and the other half of the arenas.
    ///
    /// # Errors
    /// [`GpuError::Unusable`] after a run that hung, [`GpuError::Argument`] for a graph that was
    /// not captured, and the libraries'.
    pub fn enqueue(&self, start: Start<'_>, extras: &Extras<'_>) -> Result<(), GpuError> {
        self.machine.usable()?;
        let parity = self.next_parity();
        let epoch = self.epoch.get().wrapping_add(1);
        self.epoch.set(epoch);
        let origin = self.stream(self.plan.origin);
        self.tell(epoch, start)?;
        // A traced run goes step by step, which a plan for graphs allows.
        if self.plan.mode == Mode::Stream || extras.trace.is_some() || extras.tiles.is_some() {
            self.issue((parity, epoch), start, extras, Into::Streams)?;
        } else {
            self.launch(parity, start, extras)?;
        }
        if let Some(end) = extras.end {
            origin.record(end)?;
        }
        origin.record(&self.done)
    }

    /// Writes the epoch to where graphs read it, before the run begins.
    fn tell(&self, epoch: u32, start: Start<'_>) -> Result<(), GpuError> {
        let origin = self.stream(self.plan.origin);
        let mut told = false;
        for gpu in 0..self.plan.gpus.len() {
            let Some(word) = self.epoch_at(gpu) else {
                continue;
            };
            self.room(self.plan.origin, 1)?;
            origin.write_value(word, epoch)?;
            told = true;
        }
        match start {
            // Other streams do not wait for the origin.
            Start::Each(_) if told => {
                let limit = self.machine.settings().limit;
                origin.finish(limit, "telling the epoch")
            }
            _ => Ok(()),
        }
    }

    /// Fork, steps, join.
    pub(super) fn issue(
        &self,
        (parity, epoch): (u64, u32),
        start: Start<'_>,
        extras: &Extras<'_>,
        into: Into,
    ) -> Result<(), GpuError> {
        let plan = &*self.plan;
        let watched = into == Into::Streams;
        let room = |stream: StreamId, commands: usize| match watched {
            true => self.room(stream, commands),
            false => Ok(()),
        };
        let gpu_of = |stream: StreamId| plan.streams[stream.index()].gpu.index();
        let (head, begin, forked) = match into {
            Into::Streams | Into::Graph => (
                plan.origin,
                &self.events[plan.fork.event.index()],
                plan.fork.streams.clone(),
            ),
            Into::Part(head) => (head, &self.lanes[head.index()].captured, self.beside(head)),
        };
        let here = |stream: StreamId| match into {
            Into::Part(head) => gpu_of(stream) == gpu_of(head),
            _ => true,
        };
        room(head, 2)?;
        let origin = self.stream(head);
        match start {
            Start::Origin => origin.record(begin)?,
            Start::Each(events) => origin.wait(&events[gpu_of(head)])?,
        }
        for &stream in &forked {
            room(stream, 1)?;
            match start {
                Start::Origin => self.stream(stream).wait(begin)?,
                Start::Each(events) => self.stream(stream).wait(&events[gpu_of(stream)])?,
            }
        }
        if let Some(random) = extras.shake {
            for &stream in forked.iter().chain([&head]) {
                self.pause(stream, random, LATE)?;
            }
        }
        let mut late = self.faults.delay;
        // The steps of a part in their own order; else all in the plan's.
        let part = match into {
            Into::Part(head) => Some(captured(plan, head)),
            _ => None,
        };
        let steps = part.as_ref().map_or(plan.steps.len(), Vec::len);
        let (mut turn, mut again) = (0, extras.calls.saturating_sub(1));
        while turn < steps {
            let next = part.as_ref().map_or(turn, |part| part[turn]);
            let step = &plan.steps[next];
            let count = self.together(next);
            if let Some((_, time)) =
                late.filter(|&(rank, _)| self.schedule.task(step.task).rank == rank)
            {
                late = None;
                self.delay(step.stream, time)?;
            }
            let signal = matches!(
                step.what,
                What::Record(_) | What::Await(_) | What::WriteFlag(_) | What::AwaitFlag(_)
            );
            if let Some(random) = extras.shake.filter(|_| !signal)
                && random.borrow_mut().u8(..) < 64
            {
                self.pause(step.stream, random, PAUSE)?;
            }
            let trace = extras.trace.filter(|_| !signal);
            let together = next..next + count;
            let beside = 2 * usize::from(trace.is_some()) + usize::from(extras.shake.is_some());
            for step in &plan.steps[together.clone()] {
                room(step.stream, commands(&step.what) + beside)?;
            }
            if let Some(events) = trace {
                for i in together.clone() {
                    self.stream(plan.steps[i].stream).record(&events[i].0)?;
                }
            }
            self.step(next, count, (parity, epoch), extras)?;
            if let Some(events) = trace {
                for i in together {
                    self.stream(plan.steps[i].stream).record(&events[i].1)?;
                }
            }
            turn += count;
            if turn == steps && again > 0 {
                (turn, again) = (0, again - 1);
            }
        }
        if let Some(tails) = extras.tails {
            for (s, (lane, tail)) in self.lanes.iter().zip(tails).enumerate() {
                match watched {
                    true => lane.stream.record(tail)?,
                    false if self.works(s) && here(StreamId(s as u32)) => {
                        lane.stream.record_in_graph(tail)?;
                    }
                    false => {}
                }
            }
        }
        if let Into::Part(head) = into {
            return self.join_all(head, &self.beside(head));
        }
        for (stream, event) in &plan.join {
            let event = &self.events[event.index()];
            room(*stream, 2)?;
            self.stream(*stream).record(event)?;
            room(plan.origin, 1)?;
            origin.wait(event)?;
        }
        // What a kernel waits for has ended when it has; a graph is not told.
        let inside = plan
            .steps
            .iter()
            .any(|s| matches!(s.what, What::Gated { .. }));
        if !watched && (extras.tails.is_some() || inside) {
            self.join_rest()?;
        }
        Ok(())
    }

    /// Whether it is calls of a collective library and nothing else, which may follow one another as
    /// often as one likes: nothing is signalled.
    pub fn is_calls(&self) -> bool {
        let call = |step: &Step| matches!(step.what, What::Collective { .. });
        self.plan.mode == Mode::Stream && self.plan.steps.iter().all(call)
    }

    /// Whether a stream has steps.
    pub(super) fn works(&self, stream: usize) -> bool {
        let here = |step: &Step| step.stream.index() == stream;
        self.plan.steps.iter().any(here)
    }

    /// Waits until a stream's queue surely takes `commands` more.
    pub(super) fn room(&self, id: StreamId, commands: usize) -> Result<(), GpuError> {
        let lane = &self.lanes[id.index()];
        match lane.add(commands) {
            Before::Nothing => return Ok(()),
            Before::Mark => {}
            Before::Wait => {
                let limit = self.machine.settings().limit;
                if !patiently(limit, || lane.mark.passed())? {
                    return Err(self.hang());
                }
            }
        }
        lane.stream.record(&lane.mark)
    }

    fn pause(
        &self,
        stream: StreamId,
        random: &RefCell<fastrand::Rng>,
        most: Duration,
    ) -> Result<(), GpuError> {
        let time = most.mul_f64(random.borrow_mut().f64());
        self.delay(stream, time)
    }

    fn delay(&self, stream: StreamId, mut time: Duration) -> Result<(), GpuError> {
        const SECOND: Duration = Duration::from_secs(1);
        let kernels = &self
            .device(self.plan.streams[stream.index()].gpu.index())
            .kernels;
        while !time.is_zero() {
            kernels.delay(self.stream(stream), time.min(SECOND))?;
            time = time.saturating_sub(SECOND);
        }
        Ok(())
    }
}
