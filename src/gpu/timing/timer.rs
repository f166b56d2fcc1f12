//! Timing one run, or some in a row.

use std::time::Instant;

use crate::gpu::GpuError;
use crate::gpu::exec::{Extras, HALF, Run, Start, Traced};
use crate::gpu::kernels::{Epoch, Limit, MOST, STATUS_WORDS};
use crate::gpu::plan::Mode;
use crate::gpu::raw::{Event, Region};
use crate::schedule::Rank;

/// Most commands of one stream that are held back by a gate: less than would make the host wait for
/// room in a queue.
pub const GATED: usize = 400;
const _: () = assert!(GATED < 2 * HALF);

/// One measurement \[seconds\].
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Of one run; of several in a row, their mean.
    pub makespan: f64,
    /// By rank: when its last stream ended, in the last run; empty for graphs that do not record it.
    pub ranks: Vec<f64>,
    /// Whether the host had enqueued everything before anything began.
    pub gated: bool,
}

impl Sample {
    /// Between the first and the last rank to end.
    pub fn skew(&self) -> Option<f64> {
        let last = self.ranks.iter().copied().reduce(f64::max)?;
        let first = self.ranks.iter().copied().reduce(f64::min)?;
        Some(last - first)
    }
}

/// A run with what its times are taken by.
#[derive(Debug)]
pub struct Timer<'m> {
    run: Run<'m>,
    /// By GPU of the plan.
    starts: Vec<Event>,
    /// By stream.
    tails: Vec<Event>,
    /// Behind a graph.
    end: Event,
    /// Behind the graph of each GPU of the plan.
    part_ends: Vec<Event>,
    /// Whether the end of every stream is known: in stream mode, and in graphs that record them.
    ends: bool,
    /// By rank: the streams with its tasks.
    streams_of: Vec<Vec<usize>>,
}

impl<'m> Timer<'m> {
    /// Captures the run if its plan is a graph's; `ends`: with a record at the end of each stream, so
    /// that the times of ranks are known, at the price of a node more in each stream.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(mut run: Run<'m>, ends: bool) -> Result<Self, GpuError> {
        // Made now, because nothing may be made behind a closed gate.
        run.machine().heaters()?;
        let plan = run.plan();
        let starts = (0..plan.gpus.len())
            .map(|gpu| Event::new(&run.device(gpu).gpu, true))
            .collect::<Result<_, _>>()?;
        let tails = plan
            .streams
            .iter()
            .map(|stream| Event::new(&run.device(stream.gpu.index()).gpu, true))
            .collect::<Result<_, _>>()?;
        let origin = plan.streams[plan.origin.index()].gpu.index();
        let end = Event::new(&run.device(origin).gpu, true)?;
        let part_ends = (0..plan.gpus.len())
            .map(|gpu| Event::new(&run.device(gpu).gpu, true))
            .collect::<Result<_, _>>()?;
        let graph = plan.mode == Mode::Graph;
        let schedule = run.schedule();
        let mut streams_of = vec![Vec::new(); schedule.placement.len()];
        for step in &plan.steps {
            let Rank(rank) = schedule.task(step.task).rank;
            let streams = &mut streams_of[usize::from(rank)];
            if !streams.contains(&step.stream.index()) {
                streams.push(step.stream.index());
            }
        }
        let tails: Vec<Event> = tails;
        run.capture(&Extras {
            tails: ends.then_some(tails.as_slice()),
            ..Extras::default()
        })?;
        Ok(Self {
            starts,
            tails,
            end,
            part_ends,
            ends: ends || !graph,
            streams_of,
            run,
        })
    }

    /// The run.
    pub const fn run(&self) -> &Run<'m> {
        &self.run
    }

    /// Times `repeats` runs in a row.
    ///
    /// # Errors
    /// [`GpuError::Hang`], [`GpuError::Wrong`] when the GPUs did not start together, and the
    /// libraries'.
    pub fn once(&self, repeats: u32) -> Result<Sample, GpuError> {
        let repeats = repeats.max(1);
        let gated = self.run.depth().saturating_mul(repeats as usize) <= GATED;
        self.behind_gate(gated, || self.enqueue(repeats))?;
        self.sample(repeats, gated, true)
    }

    /// Times `repeats` calls of a collective library in a row, each GPU's in its stream with nothing
    /// between: as programs call them that synchronise by streams alone. `None` for a run of more than
    /// such calls.
    ///
    /// # Errors
    /// As [`Self::once`].
    pub fn calls(&self, repeats: u32) -> Result<Option<Sample>, GpuError> {
        if !self.run.is_calls() {
            return Ok(None);
        }
        let repeats = repeats.max(1);
        let gated = self.run.depth().saturating_mul(repeats as usize) <= GATED;
        self.behind_gate(gated, || {
            let extras = Extras {
                tails: Some(&self.tails),
                end: Some(&self.end),
                calls: repeats,
                ..Extras::default()
            };
            self.run.enqueue(Start::Each(&self.starts), &extras)
        })?;
        self.sample(repeats, gated, true).map(Some)
    }

    fn enqueue(&self, repeats: u32) -> Result<(), GpuError> {
        for repeat in 0..repeats {
            let last = Extras {
                tails: (repeat + 1 == repeats).then_some(self.tails.as_slice()),
                end: (repeat + 1 == repeats).then_some(&self.end),
                ends: (repeat + 1 == repeats).then_some(self.part_ends.as_slice()),
                ..Extras::default()
            };
            let start = match repeat {
                0 => Start::Each(&self.starts),
                _ => Start::Origin,
            };
            self.run.enqueue(start, &last)?;
        }
        Ok(())
    }

    /// Performs the run once, step by step, noting the moments of `traced` tiles and, in words of 8
    /// bytes by GPU of the plan, the common start on each GPU's own timer \[ns\].
    pub(super) fn traced(
        &self,
        traced: &[Option<Traced>],
        starts: &[Region],
    ) -> Result<Sample, GpuError> {
        let extras = Extras {
            tiles: Some(traced),
            tails: Some(&self.tails),
            end: Some(&self.end),
            ..Extras::default()
        };
        let gated = self.run.plan().steps.len() <= GATED;
        self.behind(gated, starts, || {
            self.run.enqueue(Start::Each(&self.starts), &extras)
        })?;
        self.sample(1, gated, false)
    }

    /// Lets the GPUs rest, lines them up, lets `enqueue` enqueue, opens the gate and waits for the end.
    pub(super) fn behind_gate(
        &self,
        gated: bool,
        enqueue: impl FnOnce() -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        self.behind(gated, &[], enqueue)
    }

    fn behind(
        &self,
        gated: bool,
        stamps: &[Region],
        enqueue: impl FnOnce() -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        let pace = self.run.machine().pace();
        if let Some(pace) = pace {
            pace.rest();
        }
        let began = Instant::now();
        let round = self.line_up(gated, stamps)?;
        let enqueued = enqueue();
        let began = if gated { Instant::now() } else { began };
        // Also after an error, so that what was enqueued ends.
        self.run.machine().gate.store(0, round)?;
        enqueued?;
        self.run.finish()?;
        if let Some(pace) = pace {
            pace.worked(began.elapsed());
        }
        self.lined_up()
    }

    /// Gate, heating, barrier and start events of every GPU, whose times on its own timer go to `stamps`,
    /// if any; the number that opens the gate.
    fn line_up(&self, gated: bool, stamps: &[Region]) -> Result<u32, GpuError> {
        let machine = self.run.machine();
        machine.usable()?;
        let (heaters, warm) = (machine.heaters()?, machine.settings().warm);
        let plan = self.run.plan();
        let round = machine.rounds.get().wrapping_add(1);
        machine.rounds.set(round);
        let members = plan.gpus.len();
        let boards: Vec<_> = (0..members)
            .map(|gpu| self.run.device(gpu).board.region())
            .collect();
        for (gpu, start) in self.starts.iter().enumerate() {
            let device = self.run.device(gpu);
            for word in 0..STATUS_WORDS {
                device.status.store(word, 0)?;
            }
            let limit = Limit {
                time: machine.settings().limit,
                status: device.status.region(),
                tag: 1,
            };
            let epoch = Epoch::fixed(round);
            let kernels = &device.kernels;
            if gated {
                kernels.flag_wait(&device.clock, machine.gate.region(), epoch, limit)?;
            }
            if let Some(heater) = heaters.get(self.run.position(gpu)) {
                heater.heat(&device.clock, warm)?;
            }
            if members > 1 && members <= MOST && machine.all_peers() {
                kernels.barrier(&device.clock, &boards, gpu as u32, epoch, limit)?;
            }
            if let Some(&stamp) = stamps.get(gpu) {
                kernels.stamp(&device.clock, stamp)?;
            }
            device.clock.record(start)?;
        }
        Ok(round)
    }

    /// That no gate and no barrier gave up.
    fn lined_up(&self) -> Result<(), GpuError> {
        for gpu in 0..self.starts.len() {
            let device = self.run.device(gpu);
            if device.status.load(0)? != 0 {
                return Err(GpuError::Wrong(format!(
                    "GPU {} did not start with the others: a wait before the start event passed its limit",
                    device.gpu.ordinal()
                )));
            }
        }
        Ok(())
    }

    pub(super) fn starts(&self) -> &[Event] {
        &self.starts
    }

    /// `graphs`: whether what was captured ran, not step by step.
    fn sample(&self, repeats: u32, gated: bool, graphs: bool) -> Result<Sample, GpuError> {
        let plan = self.run.plan();
        let end = |stream: usize| {
            let gpu = plan.streams[stream].gpu.index();
            self.starts[gpu].seconds_to(&self.tails[stream])
        };
        let graph = plan.mode == Mode::Graph;
        let mut ranks = Vec::new();
        for streams in self.streams_of.iter().filter(|_| self.ends) {
            let mut latest = 0.0_f64;
            for &stream in streams {
                latest = latest.max(end(stream)?);
            }
            ranks.push(latest);
        }
        let mut part_ends = Vec::new();
        for gpu in self.run.parts().into_iter().filter(|_| graphs) {
            part_ends.push(self.starts[gpu].seconds_to(&self.part_ends[gpu])?);
        }
        let makespan = match graph {
            true if part_ends.is_empty() => {
                let origin = plan.streams[plan.origin.index()].gpu.index();
                self.starts[origin].seconds_to(&self.end)?
            }
            true => part_ends.into_iter().fold(0.0, f64::max),
            false => ranks.iter().copied().fold(0.0, f64::max),
        };
        Ok(Sample {
            makespan: makespan / f64::from(repeats),
            ranks,
            gated,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_skew_is_from_the_first_to_the_last_rank() {
        let mut sample = Sample {
            makespan: 3.0,
            ranks: vec![2.5, 3.0, 2.0],
            gated: true,
        };
        assert_eq!(sample.skew(), Some(1.0));
        sample.ranks.clear();
        assert_eq!(sample.skew(), None);
    }
}
