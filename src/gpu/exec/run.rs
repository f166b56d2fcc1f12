//! A plan with its memory, streams and signals.

use std::cell::Cell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::Faults;
use super::asked::problem;
use super::graphs::Part;
use super::lane::{GRAPH, Lane, commands};
use super::machine::{Device, Machine, Role};
use super::memory::{memory, multiplies};
use super::needs::{does, reachable};
use super::tables::Tables;
use crate::gpu::GpuError;
use crate::gpu::lt::{Problem, WORKSPACE};
use crate::gpu::plan::{Library, Mode, Plan, StreamId};
use crate::gpu::raw::nccl::{Comms, Registration};
use crate::gpu::raw::window::{self, Windows};
use crate::gpu::raw::{Event, Memory, Pinned, Priority, Region, Stream};
use crate::schedule::{Rank, Schedule};

/// A plan on a machine, ready to be performed again and again.
#[derive(Debug)]
pub struct Run<'m> {
    pub(super) machine: &'m Machine<'m>,
    pub(super) schedule: Rc<Schedule>,
    pub(super) plan: Rc<Plan>,
    /// By the plan's GPU: the position among the machine's.
    pub(super) at: Vec<usize>,
    /// What NCCL knows of the arenas; dropped before them.
    #[expect(dead_code, reason = "kept until the run ends")]
    registrations: Vec<Registration>,
    #[expect(dead_code, reason = "kept until the run ends")]
    windows: Vec<Windows>,
    pub(super) arenas: Vec<Memory>,
    /// By the plan's GPU: the flags that lie there, 4 bytes each.
    pub(super) flags: Vec<Option<Memory>>,
    /// By the plan's GPU: where the watchdog reads the flags; taken beforehand, because a driver
    /// may wait for the GPUs before it gives or takes memory.
    pub(super) mirrors: Vec<Option<Pinned>>,
    /// By flag: its word.
    pub(super) words: Vec<u64>,
    /// By the plan's GPU: where the epoch lies for what cannot be told it, as in a graph.
    pub(super) epochs: Vec<Memory>,
    pub(super) staging: Vec<Pinned>,
    pub(super) lanes: Vec<Rc<Lane>>,
    pub(super) events: Vec<Event>,
    /// By [`Plan::gemms`].
    pub(super) problems: Vec<Problem>,
    /// By step: what a product with gates goes by.
    pub(super) tables: Vec<Option<Tables>>,
    /// By the plan's GPU: a word for each step, in which blocks that copy are counted; none where no
    /// kernel that copies writes a flag.
    pub(super) copied: Vec<Memory>,
    /// By stream; those that multiply.
    pub(super) workspaces: Vec<Option<Memory>>,
    /// By [`Plan::groups`].
    pub(super) comms: Vec<Option<Rc<Comms>>>,
    /// By parity.
    pub(super) graphs: [Vec<Part>; 2],
    /// Recorded in the origin at the end of a run.
    pub(super) done: Event,
    pub(super) epoch: Cell<u32>,
    pub(super) faults: Faults,
}

impl<'m> Run<'m> {
    /// Takes what `plan` needs, after a look at what is free, and runs every library call once.
    ///
    /// # Errors
    /// [`GpuError::Memory`], [`GpuError::NoPeer`], [`GpuError::Argument`] for work that no kernel
    /// does, and the libraries'.
    pub fn new(
        machine: &'m Machine<'m>,
        schedule: &Rc<Schedule>,
        plan: &Rc<Plan>,
        faults: Faults,
    ) -> Result<Self, GpuError> {
        machine.usable()?;
        let at = plan
            .gpus
            .iter()
            .map(|&gpu| machine.position(gpu))
            .collect::<Result<Vec<_>, _>>()?;
        reachable(machine, plan, &at)?;
        let multiplies = multiplies(plan);
        for (bytes, &position) in memory(plan).into_iter().zip(&at) {
            machine.need_memory(position, bytes)?;
        }
        let device = |gpu: usize| &machine.devices()[at[gpu]];
        let arenas = (plan.arenas.iter().enumerate())
            .map(|(gpu, arena)| match plan.library {
                Library::NcclWindow => window::memory(&device(gpu).gpu, 2 * arena.half),
                _ => Memory::new(&device(gpu).gpu, 2 * arena.half),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut words = Vec::with_capacity(plan.flags.len());
        let mut counts = vec![0_u64; plan.gpus.len()];
        for flag in &plan.flags {
            words.push(counts[flag.gpu.index()]);
            counts[flag.gpu.index()] += 1;
        }
        let flags = counts
            .iter()
            .enumerate()
            .map(|(gpu, &count)| match count {
                0 => Ok(None),
                _ => {
                    let memory = Memory::new(&device(gpu).gpu, 4 * count)?;
                    memory.upload(0, &vec![0; 4 * count as usize])?;
                    Ok(Some(memory))
                }
            })
            .collect::<Result<Vec<_>, GpuError>>()?;
        let told = plan.mode == Mode::Graph && !plan.flags.is_empty();
        let epochs = (0..plan.gpus.len() * usize::from(told))
            .map(|gpu| {
                let memory = Memory::new(&device(gpu).gpu, 4)?;
                memory.upload(0, &[0; 4])?;
                Ok(memory)
            })
            .collect::<Result<Vec<_>, GpuError>>()?;
        let mirrors = flags
            .iter()
            .map(|memory: &Option<Memory>| match memory {
                None => Ok(None),
                Some(memory) => Pinned::new(memory.gpu(), memory.region().bytes()).map(Some),
            })
            .collect::<Result<Vec<_>, GpuError>>()?;
        let staging = plan
            .staging
            .iter()
            .map(|ring| {
                let bytes = ring.bytes.saturating_mul(u64::from(ring.slots));
                Pinned::new(&device(ring.from.index()).gpu, bytes)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut taken: FxHashMap<(usize, Role), usize> = FxHashMap::default();
        let lanes = plan
            .streams
            .iter()
            .zip(does(plan))
            .map(|(stream, does)| {
                let priority = match stream.urgent {
                    true => Priority::High,
                    false => Priority::Low,
                };
                let (position, role) = (at[stream.gpu.index()], (priority, does));
                let taken = taken.entry((position, role)).or_default();
                let nth = *taken;
                *taken += 1;
                machine.lane(position, role, nth)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let events = plan
            .events
            .iter()
            .map(|gpu| Event::new(&device(gpu.index()).gpu, false))
            .collect::<Result<Vec<_>, _>>()?;
        let problems = plan
            .gemms
            .iter()
            .map(|shape| problem(plan, shape))
            .collect();
        let workspaces = multiplies
            .iter()
            .zip(&plan.streams)
            .map(|(&yes, stream)| match yes {
                true => Memory::new(&device(stream.gpu.index()).gpu, WORKSPACE).map(Some),
                false => Ok(None),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut comms = vec![None; plan.groups.len()];
        for call in &plan.collectives {
            let group = call.group as usize;
            if comms[group].is_none() {
                let gpus: Vec<u32> = plan.groups[group]
                    .iter()
                    .map(|rank| schedule.placement[usize::from(rank.0)])
                    .collect();
                comms[group] = Some(machine.comms(&gpus)?);
            }
        }
        let mut registrations = Vec::new();
        let mut windows = Vec::new();
        for (comms, ranks) in comms.iter().zip(&plan.groups) {
            let Some(comms) = comms else { continue };
            let arena = |rank: &Rank| {
                let number = schedule.placement[usize::from(rank.0)];
                let gpu = plan.gpus.partition_point(|&gpu| gpu < number);
                let arena: &Memory = &arenas[gpu];
                arena.region()
            };
            match plan.library {
                Library::NcclRegistered => {
                    for (member, rank) in ranks.iter().enumerate() {
                        registrations.push(Registration::new(comms, member, arena(rank))?);
                    }
                }
                Library::NcclWindow => {
                    let all: Vec<Region> = ranks.iter().map(arena).collect();
                    windows.push(Windows::new(comms, &all)?);
                }
                Library::Nccl | Library::Copies => {}
            }
        }
        let origin = &plan.streams[plan.origin.index()];
        let mut run = Self {
            done: Event::new(&device(origin.gpu.index()).gpu, false)?,
            machine,
            schedule: Rc::clone(schedule),
            plan: Rc::clone(plan),
            at,
            registrations,
            windows,
            arenas,
            flags,
            mirrors,
            words,
            epochs,
            staging,
            lanes,
            events,
            problems,
            tables: Vec::new(),
            copied: Vec::new(),
            workspaces,
            comms,
            graphs: [Vec::new(), Vec::new()],
            epoch: Cell::new(0),
            faults,
        };
        run.choose()?;
        run.tables = run.make_tables()?;
        run.copied = run.make_counters()?;
        run.warm()?;
        Ok(run)
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What is performed.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The machine.
    pub const fn machine(&self) -> &'m Machine<'m> {
        self.machine
    }

    /// The device of a GPU of the plan.
    pub fn device(&self, gpu: usize) -> &'m Device {
        &self.machine.devices()[self.at[gpu]]
    }

    /// The position of a GPU of the plan among the machine's.
    pub(in crate::gpu) fn position(&self, gpu: usize) -> usize {
        self.at[gpu]
    }

    pub(super) fn stream(&self, id: StreamId) -> &Stream {
        &self.lanes[id.index()].stream
    }

    /// About how many commands one performance puts into the stream that gets most.
    pub fn depth(&self) -> usize {
        let plan = &*self.plan;
        if plan.mode == Mode::Graph {
            return GRAPH;
        }
        // An event of the fork and of the join, and one that a timing records.
        let mut depths = vec![3; plan.streams.len()];
        depths[plan.origin.index()] += plan.join.len() + 3;
        for step in &plan.steps {
            depths[step.stream.index()] += commands(&step.what);
        }
        depths.into_iter().max().unwrap_or(0)
    }
}
