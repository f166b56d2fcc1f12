//! Transfers with several paths or with stops: a task becomes *stretches*, one per leg of each
//! path. A staged path is cut into chunks; a leg moves one chunk at a time, and a chunk goes on
//! once it has landed in the memory on its way.
//!
//! With c chunks of size s over two legs of rates B₁ and B₂ and start-ups α the last byte lands
//! after about (c + 1)·(α + s/min(B₁, B₂)).

use super::SimError;
use super::cost::Cost;
use super::engine::{Engine, EngineKind, Event, STRETCH};
use crate::schedule::{Mover, TaskId};
use crate::topology::{Leg, Path};

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
}

impl Staging {
    /// The task of a stretch.
    pub fn task(&self, stretch: u32) -> u32 {
        self.stretches[stretch as usize].task
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
        let paths: Vec<&Path> = paths.iter().filter(|path| path.share > 0.0).collect();
        self.staging.paths_left.insert(task, paths.len() as u32);
        for path in paths {
            let bytes = bytes * path.share;
            let chunk = match path.chunk.as_f64() {
                chunk if path.legs.len() > 1 && chunk > 0.0 => chunk.min(bytes),
                _ => bytes,
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
                    first: k == 0,
                    last: k + 1 == path.legs.len(),
                };
                self.staging.stretches.push(stretch);
            }
            self.next_chunk(first, now);
        }
        Ok(())
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
        let here = s.first || self.staging.stretches[id as usize - 1].done > s.done;
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
        let s = &self.staging.stretches[id as usize];
        let device = self.costs.device(self.issuer(s));
        let alpha = self.costs.start_up(device, s.mover) + s.leg.latency.get();
        self.events.push(now + alpha, Event::Flow(STRETCH + id));
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
        let (task, engine, last) = (s.task, s.engine, s.last);
        let landed = last && s.done == s.chunks;
        if let Some((gpu, kind)) = engine {
            self.release_engine(gpu, kind, task, now)?;
        }
        self.next_chunk(id, now);
        if !last {
            self.next_chunk(id + 1, now);
        }
        if landed && let Some(left) = self.staging.paths_left.get_mut(&task) {
            *left -= 1;
            if *left == 0 {
                self.end_task(task);
            }
        }
        Ok(())
    }
}
