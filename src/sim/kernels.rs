//! Kernels on SMs: GEMMs, elementwise kernels, SM copies, collectives and fused kernels.
//!
//! SMs are whole numbers, given out first come, first served. A kernel takes what it asks for, or
//! what is free if it can run on less; a library or elementwise kernel that started on less grows
//! when SMs come free. A fused kernel keeps its SMs from its start to the end of its last task,
//! while it waits for flags too; on real GPUs its blocks that found no SM begin when one comes free.
//! A collective keeps them from each member's arrival.

mod fused;
mod grants;

use rustc_hash::FxHashMap;

use super::blocks::{Late, Leaving};
use super::cost::{Cost, On};
use super::engine::Engine;
use super::fluid::FlowId;
use super::operands::Operands;
use super::pool::Pool;
use super::slabs::Slabs;
use super::{SimError, Terms};
use crate::device::gemm::GemmTime;
use crate::schedule::{Compute, Schedule, Work};
use crate::timeline::{Counter, Sample};
use crate::topology::Topology;

/// A kernel that would take more SMs if there were any.
#[derive(Copy, Clone, Debug)]
struct Growing {
    task: u32,
    want: u32,
}

/// SMs and who holds them.
pub(super) struct Kernels {
    /// SMs of each GPU.
    pub(super) pools: Vec<Pool<u32>>,
    /// GEMMs whose last blocks wait for SMs, and SMs that others leave before their last wave.
    pub(super) late: FxHashMap<u32, Late>,
    pub(super) leaving: FxHashMap<u32, Leaving>,
    /// Running GEMMs of several waves, and their GPUs.
    pub(super) waves: FxHashMap<u32, u32>,
    growing: Vec<Vec<Growing>>,
    /// What GEMMs find in cache.
    operands: Operands,
    /// SMs of each running kernel that runs beside what holds them.
    beside: FxHashMap<u32, u32>,
    /// SMs held by each step that holds any.
    pub(super) held: FxHashMap<u32, u32>,
    /// Flows of running kernels that may grow.
    pub(super) flows: FxHashMap<u32, FlowId>,
    /// Each fused kernel as one GEMM, and its tasks.
    launches: Vec<(Vec<u32>, GemmTime, f64)>,
    /// When the tiles of each task of a fused kernel were free to begin [s]; empty without any.
    opened: Vec<f64>,
    /// Which part of k each is.
    pub(super) slabs: Slabs,
    /// SMs in use per GPU as last recorded.
    recorded: Vec<u32>,
    sms: Vec<u32>,
}

impl Kernels {
    pub fn new(schedule: &Schedule, topology: &Topology, terms: Terms) -> Result<Self, SimError> {
        let gpus = topology.gpus.len();
        let sms: Vec<u32> = (0..gpus as u32)
            .map(|gpu| topology.device(gpu).sms)
            .collect();
        // Without contention nobody takes another's SMs away.
        let pool = |&sms| Pool::new(if terms.contention { sms } else { u32::MAX });
        let mut launches = vec![(Vec::new(), GemmTime::default(), 0.0); schedule.launches.len()];
        let fused = if launches.is_empty() {
            &[]
        } else {
            &schedule.tasks[..]
        };
        for (t, task) in fused.iter().enumerate() {
            if let Some(launch) = task.launch {
                launches[launch.index()].0.push(t as u32);
            }
        }
        let kernels = launches.iter().map(|(tasks, ..)| &tasks[..]);
        Ok(Self {
            slabs: Slabs::new(schedule, kernels),
            operands: Operands::new(gpus),
            pools: sms.iter().map(pool).collect(),
            growing: vec![Vec::new(); gpus],
            late: FxHashMap::default(),
            leaving: FxHashMap::default(),
            waves: FxHashMap::default(),
            beside: FxHashMap::default(),
            held: FxHashMap::default(),
            flows: FxHashMap::default(),
            opened: match schedule.launches.is_empty() {
                true => Vec::new(),
                false => vec![0.0; schedule.tasks.len()],
            },
            launches,
            recorded: vec![0; gpus],
            sms,
        })
    }

    /// SMs that a step holds.
    pub fn held(&self, step: u32) -> u32 {
        let beside = || self.beside.get(&step).copied();
        self.held.get(&step).copied().or_else(beside).unwrap_or(0)
    }

    /// Remembers the flow of a task that may grow, as its `holder`, which may be a fused kernel, does.
    pub fn flows(&mut self, task: u32, holder: u32, flow: FlowId) {
        if !self.held.is_empty() && self.held.contains_key(&holder) {
            self.flows.insert(task, flow);
        }
    }

    /// Adds a sample for every GPU whose use changed.
    pub fn record(&mut self, now: f64, samples: &mut Vec<Sample>) {
        for (gpu, pool) in self.pools.iter().enumerate() {
            let used = self.sms[gpu].saturating_sub(pool.free());
            if used != self.recorded[gpu] {
                self.recorded[gpu] = used;
                samples.push(Sample {
                    time: now,
                    counter: Counter::Sms(gpu as u32),
                    value: f64::from(used),
                });
            }
        }
    }
}

impl Engine<'_> {
    /// A kernel has its SMs.
    pub(super) fn kernel_begins(&mut self, task: u32, now: f64) -> Result<(), SimError> {
        let t = &self.schedule.tasks[task as usize];
        match t.work {
            Work::Collective(id) => self.member_arrived(id, task, now),
            Work::Transfer { from, to, mover } => {
                let (src, dst) = (self.costs.gpu_of(&from), self.costs.gpu_of(&to));
                if src != dst
                    && let super::machine::Way::Paths(paths) = self.costs.machine.way(src, dst)?
                {
                    self.start(task, now);
                    let bytes = self.schedule.bytes(&from) as f64;
                    return self.start_paths(task, &paths, bytes, mover, now);
                }
                self.begin_transfer(task, now)
            }
            Work::Compute(id) => {
                self.start(task, now);
                self.stores_begin(task, now)?;
                if let Compute::Gemm { b, .. } = self.schedule.computes[id.index()]
                    && !self.kernels.slabs.of(task).is_part()
                {
                    let (gpu, rank) = (self.costs.gpu(task), t.rank);
                    self.kernels.operands.begins(task, gpu, rank, b);
                }
                let cost = self.kernel_cost(task)?;
                self.begin(task, cost.alpha, now)
            }
        }
    }

    /// The cost of a kernel on the SMs that it holds; `usages` are left in the engine.
    pub fn kernel_cost(&mut self, task: u32) -> Result<Cost, SimError> {
        let t = &self.schedule.tasks[task as usize];
        match t.work {
            Work::Compute(id) => {
                let compute = &self.schedule.computes[id.index()];
                let (sms, fused) = match t.launch {
                    Some(launch) => {
                        let (_, whole, total) = &self.kernels.launches[launch.index()];
                        let shape = self.costs.gemm_shape(task);
                        let own = shape.map_or(0.0, |s| s.iter().map(|&d| d as f64).product());
                        let wave = match whole.seconds > whole.overhead {
                            true => whole.wave / (whole.seconds - whole.overhead),
                            false => 0.0,
                        };
                        let share = match *total > 0.0 {
                            true => self.kernels.slabs.of(task).share(own / total, wave),
                            false => 0.0,
                        };
                        let sms = self.kernels.held(self.graph.launch_step(launch));
                        (sms, shape.map(|_| (whole, share)))
                    }
                    None => match (self.whole_gemm(task), compute) {
                        // On fewer SMs than it may use only because it has no more tiles.
                        (Some(_), &Compute::Gemm { sms: 0, .. }) => {
                            (self.costs.device(self.costs.gpu(task)).sms, None)
                        }
                        (Some(_), &Compute::Gemm { sms, .. }) => (u32::from(sms), None),
                        _ => (self.kernels.held(task), None),
                    },
                };
                let on = On {
                    sms,
                    fused,
                    cold: self.kernels.operands.cold(task),
                    slab: self.kernels.slabs.of(task).before > 0.0,
                };
                self.costs.compute(task, compute, on, &mut self.usages)
            }
            Work::Collective(id) => {
                let collective = &self.schedule.collectives[id.index()];
                self.costs.collective(collective, &mut self.usages)
            }
            Work::Transfer { .. } => Ok(Cost::instant(0.0)),
        }
    }
}
