//! Transfers with several paths or with stops: a task becomes *stretches*, one per leg of each
//! path. A staged path is cut into chunks; a leg moves one chunk at a time, and a chunk goes on
//! once it has landed in the memory on its way.
//!
//! With c chunks of size s over two legs of rates B₁ and B₂ and start-ups α the last byte lands
//! after about (c + 1)·(α + s/min(B₁, B₂)).
//!
//! Where a path has slots ([`Path::slots`]), chunk i leaves only when chunk i − slots has reached the
//! other end, and every hand-over of a chunk or a slot costs an event between the two GPUs.

mod shares;
mod told;

use std::collections::VecDeque;

use super::SimError;
use super::cost::Cost;
use super::engine::{Engine, EngineKind, Event, STRETCH};
use crate::schedule::{Mover, TaskId, Work};
use crate::timeline::Cause;
use crate::topology::{Leg, NodeId, Path};
use shares::parts;
pub(super) use shares::staged_bytes;

/// Most chunks that one simulation moves, each leg counted.
const MOST_CHUNKS: u64 = 1 << 21;

/// One leg of one path of a task.
#[derive(Clone, Debug)]
struct Stretch {
    task: u32,
    leg: Leg,
    mover: Mover,
    /// Copy engine it needs: (GPU, kind).
    engine: Option<(u32, EngineKind)>,
    chunks: u32,
    chunk_bytes: f64,
    last_bytes: f64,
    done: u32,
    busy: bool,
    /// Slots of the ring; 0: no ring.
    slots: u32,
    /// GPUs at the ends of the path.
    ends: (u32, u32),
    /// With a ring: chunks known to be filled (second leg), or slots known to be emptied (first).
    told: u32,
    /// Without a ring, when each chunk that waits landed here by the leg before [s].
    landed: VecDeque<f64>,
    /// Whether the leg before / after it is the stretch numbered one less / more.
    first: bool,
    last: bool,
}

/// All stretches of the simulation so far.
#[derive(Debug, Default)]
pub(super) struct Staging {
    stretches: Vec<Stretch>,
    /// Chunks of all of them.
    chunks: u64,
    /// Paths of each staged task that have not landed.
    paths_left: rustc_hash::FxHashMap<u32, u32>,
    /// And those of which something has not left the first GPU.
    leaving: rustc_hash::FxHashMap<u32, u32>,
    /// Where tasks through a ring ended.
    ended_on: rustc_hash::FxHashMap<u32, u32>,
}

impl Staging {
    /// The task of a stretch.
    pub fn task(&self, stretch: u32) -> u32 {
        self.stretches[stretch as usize].task
    }

    /// The GPU on which a task through a ring ended.
    pub fn ended_on(&self, task: u32) -> Option<u32> {
        self.ended_on.get(&task).copied()
    }

    /// Whether a task went by stretches.
    pub fn was_staged(&self, task: u32) -> bool {
        self.paths_left.contains_key(&task)
    }
}

impl Engine<'_> {
    /// Starts all paths of a transfer of `bytes`.
    pub fn start_paths(
        &mut self,
        task: u32,
        paths: &[Path],
        bytes: f64,
        mover: Mover,
        now: f64,
    ) -> Result<(), SimError> {
        let row = self.row(task);
        let parts = parts(paths, bytes, row);
        self.staging.paths_left.insert(task, parts.len() as u32);
        self.staging.leaving.insert(task, parts.len() as u32);
        for (path, bytes) in parts {
            let chunk = match path.chunk.as_f64() {
                chunk if path.slots > 0 => ((chunk / row).floor().max(1.0) * row).min(bytes),
                chunk if path.legs.len() > 1 && chunk > 0.0 => chunk.min(bytes),
                _ => bytes,
            };
            // A ring is filled and emptied by copy engines.
            let mover = match path.slots {
                0 => mover,
                _ => Mover::CopyEngine,
            };
            let chunks = (bytes / chunk).ceil().max(1.0);
            // Saturates at u64::MAX.
            let moves = (chunks * path.legs.len() as f64) as u64;
            self.staging.chunks = self.staging.chunks.saturating_add(moves);
            if self.staging.chunks > MOST_CHUNKS {
                return Err(SimError::TooManyChunks {
                    task: self.costs.schedule.describe(TaskId(task)),
                    chunk: path.chunk,
                    most: MOST_CHUNKS,
                });
            }
            let first = self.staging.stretches.len() as u32;
            let gpu = |leg: Option<&Leg>, end: fn(&Leg) -> NodeId| {
                let gpu = leg.and_then(|leg| self.costs.machine.gpu_of(end(leg)));
                gpu.unwrap_or_else(|| self.costs.gpu(task))
            };
            let ends = (
                gpu(path.legs.first(), |leg| leg.from),
                gpu(path.legs.last(), |leg| leg.to),
            );
            for (k, leg) in path.legs.iter().enumerate() {
                let stretch = Stretch {
                    task,
                    mover,
                    engine: self.engine_of(task, leg, mover),
                    leg: leg.clone(),
                    chunks: chunks as u32,
                    chunk_bytes: chunk,
                    last_bytes: bytes - (chunks - 1.0) * chunk,
                    done: 0,
                    busy: false,
                    slots: path.slots,
                    ends,
                    told: 0,
                    landed: VecDeque::new(),
                    first: k == 0,
                    last: k + 1 == path.legs.len(),
                };
                self.staging.stretches.push(stretch);
            }
            self.next_chunk(first, now);
        }
        Ok(())
    }

    /// Bytes of a row of a transfer's slice.
    fn row(&self, task: u32) -> f64 {
        match self.schedule.tasks[task as usize].work {
            Work::Transfer { from, .. } => {
                f64::from(from.cols.len) * self.schedule.operator.dtype.size() as f64
            }
            _ => 1.0,
        }
    }

    /// The copy engine that moves a leg: the one of the GPU at its end, host copies before peer.
    fn engine_of(&self, task: u32, leg: &Leg, mover: Mover) -> Option<(u32, EngineKind)> {
        if mover != Mover::CopyEngine {
            return None; // the copy kernel's own SMs
        }
        let machine = &self.costs.machine;
        match (machine.gpu_of(leg.from), machine.gpu_of(leg.to)) {
            (Some(gpu), None) => Some((gpu, EngineKind::DeviceToHost)),
            (None, Some(gpu)) => Some((gpu, EngineKind::HostToDevice)),
            (Some(from), Some(_)) if self.costs.gpu(task) == from => {
                Some((from, EngineKind::PeerOut))
            }
            (Some(_), Some(to)) => Some((to, EngineKind::PeerIn)),
            (None, None) => None,
        }
    }

    /// Starts the next chunk of a stretch if it is there and the stretch is free.
    fn next_chunk(&mut self, id: u32, now: f64) {
        let s = &self.staging.stretches[id as usize];
        let here = match (s.first, s.slots) {
            (true, 0) => true,
            (true, slots) => s.done < s.told.saturating_add(slots),
            (false, 0) => self.staging.stretches[id as usize - 1].done > s.done,
            (false, _) => s.told > s.done,
        };
        if s.busy || s.done == s.chunks || !here {
            return;
        }
        let engine = s.engine;
        self.staging.stretches[id as usize].busy = true;
        let free = engine.is_none_or(|(gpu, kind)| self.take_engine(gpu, kind, STRETCH + id));
        if free {
            self.begin_stretch(id, now);
        }
    }

    /// A chunk has its engine: start-up and latency, then flow.
    pub fn begin_stretch(&mut self, id: u32, now: f64) {
        let start_up = self.stretch_start(id, now);
        let s = &mut self.staging.stretches[id as usize];
        s.landed.pop_front();
        let alpha = start_up + s.leg.latency.get();
        self.events.push(now + alpha, Event::Flow(STRETCH + id));
    }

    /// Start-up of the next chunk of a stretch that has its engine [s].
    fn stretch_start(&self, id: u32, now: f64) -> f64 {
        let s = &self.staging.stretches[id as usize];
        let gpu = self.issuer(s);
        let Some(engine) = s.engine else {
            return self.costs.start_up(gpu, s.mover, false);
        };
        let to_host = matches!(
            engine.1,
            EngineKind::HostToDevice | EngineKind::DeviceToHost
        );
        let whole = |further| match to_host {
            true => self.costs.host_start_up(gpu, further),
            false => self.costs.start_up(gpu, s.mover, false),
        };
        // On a ring an event lies between a copy and the next of its queue.
        if s.slots > 0 {
            let next = whole(true) + self.costs.lane(gpu);
            return match (s.done > 0, self.pipelined(), s.first) {
                (true, ..) => next,
                (_, false, _) => whole(false),
                (_, true, true) => self.engine_start(engine, s.task, (whole(false), next), now),
                // What fills its first slot is a copy.
                (_, true, false) => match self.used(engine) {
                    true => next,
                    false => whole(false),
                },
            };
        }
        let next = self.costs.start_up(gpu, s.mover, true);
        match (s.first, s.done, s.landed.front()) {
            (true, 0, _) => self.engine_start(engine, s.task, (whole(false), next), now),
            (false, done, Some(landed)) if self.used(engine) => {
                next.max(whole(done > 0) - (now - landed))
            }
            (true, ..) => next, // it was there all the time
            (false, done, _) => whole(done > 0),
        }
    }

    /// The GPU whose engine or SMs move a stretch.
    fn issuer(&self, s: &Stretch) -> u32 {
        s.engine.map_or(self.costs.gpu(s.task), |(gpu, _)| gpu)
    }

    fn stretch_cost(&mut self, id: u32) -> Cost {
        let s = &self.staging.stretches[id as usize];
        let bytes = if s.done + 1 == s.chunks {
            s.last_bytes
        } else {
            s.chunk_bytes
        };
        let machine = &self.costs.machine;
        let ends = [machine.gpu_of(s.leg.from), machine.gpu_of(s.leg.to)];
        let issuer = self.issuer(s);
        self.costs
            .stretch(issuer, &s.leg.links, ends, s.mover, bytes, &mut self.usages)
    }

    /// A chunk's start-up is over.
    pub fn stretch_flows(&mut self, id: u32, now: f64) -> Result<(), SimError> {
        let cost = self.stretch_cost(id);
        if self.flow(&cost, STRETCH + id, now).is_none() {
            self.stretch_ended(id, now)?;
        }
        Ok(())
    }

    /// A chunk has landed: it may go on, the next one may start, the task may be done.
    pub fn stretch_ended(&mut self, id: u32, now: f64) -> Result<(), SimError> {
        let s = &mut self.staging.stretches[id as usize];
        s.busy = false;
        s.done += 1;
        let (task, engine) = (s.task, s.engine);
        if !s.last && s.slots == 0 {
            self.staging.stretches[id as usize + 1]
                .landed
                .push_back(now);
        }
        let later = match engine {
            Some(engine) => !self.copied(engine, STRETCH + id, task, now)?,
            None => false,
        };
        self.next_chunk(id, now);
        let s = &self.staging.stretches[id as usize];
        if s.first
            && s.done == s.chunks
            && let Some(leaving) = self.staging.leaving.get_mut(&task)
        {
            *leaving -= 1;
            if *leaving == 0
                && let Some(next) = self.goes_on(task)
            {
                self.condition(next, now, Cause::Task(TaskId(task)), now);
            }
        }
        if !later {
            self.stretch_tells(id, now);
        }
        Ok(())
    }
}
