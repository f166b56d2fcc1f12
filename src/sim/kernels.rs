//! Kernels on SMs: GEMMs, elementwise kernels, SM copies, collectives and fused kernels.
//!
//! SMs are whole numbers, given out first come, first served. A kernel takes what it asks for, or
//! what is free if it can run on less; a library or elementwise kernel that started on less grows
//! when SMs come free. A fused kernel keeps its SMs from its start to the end of its last task,
//! while it waits for flags too; on real GPUs its blocks that found no SM begin when one comes free.
//! A collective keeps them from each member's arrival.
//!
//! A tile group takes its share s of the fused kernel's time T, one group after another. But one
//! tile takes a whole wave t, however few there are: with its flag seen at f and its share over at
//! e, what a group wrote is there at max(e, f + t), while the next groups' tiles fill the SMs it
//! leaves free. A kernel that never waits takes T; one that waits for its last flag, or whose
//! groups wait for one another across GPUs (partial sums on a ring), pays t each time.

use rustc_hash::FxHashMap;

use super::blocks::{LATE, Late, Leaving};
use super::cost::{Cost, Costs, On};
use super::engine::{Engine, Event};
use super::fluid::{FlowId, TIE};
use super::operands::Operands;
use super::pool::{Pool, Request};
use super::slabs::Slabs;
use super::{SimError, Streams, Terms};
use crate::device::gemm::GemmTime;
use crate::schedule::{Compute, LaunchId, Mover, Schedule, TaskId, Work};
use crate::timeline::{Cause, Counter, Sample};
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

    /// A task of fused kernel `launch`, if it is of any, learns that its tiles may begin no earlier than
    /// `at`, or get to its slab of k no earlier.
    pub fn opens(&mut self, task: u32, launch: Option<LaunchId>, at: f64) {
        let (Some(launch), Some(opened)) = (launch, self.opened.get_mut(task as usize)) else {
            return;
        };
        let (_, whole, _) = &self.launches[launch.index()];
        *opened = opened.max(at - self.slabs.of(task).before * whole.wave);
    }

    /// Tiles are taken up in order: those of `next` begin no earlier than those of `task`.
    pub fn follows(&mut self, task: u32, next: u32) {
        self.opened[next as usize] = self.opened[next as usize].max(self.opened[task as usize]);
    }

    /// When the last tile of a task of fused kernel `launch` ends whose share of the kernel's time
    /// was over at `now`.
    pub fn last_tile(&self, task: u32, launch: LaunchId, now: f64) -> f64 {
        let (_, whole, _) = &self.launches[launch.index()];
        now.max(self.opened[task as usize] + whole.wave)
    }

    /// The time of a wave of fused kernel `launch` [s].
    pub fn wave(&self, launch: LaunchId) -> f64 {
        let (_, whole, _) = &self.launches[launch.index()];
        whole.wave
    }

    /// Whether all tiles of fused kernel `launch` are computed at once.
    pub fn is_one_wave(&self, launch: LaunchId) -> bool {
        let (_, whole, _) = &self.launches[launch.index()];
        whole.wave >= (whole.seconds - whole.overhead) * (1.0 - TIE)
    }

    /// What so many products take of its time [s].
    pub fn alone(&self, launch: LaunchId, products: f64) -> f64 {
        let (_, whole, total) = &self.launches[launch.index()];
        match *total > 0.0 {
            true => (whole.seconds - whole.overhead) * products / total,
            false => 0.0,
        }
    }

    /// Products (m · n · k) of a wave of fused kernel `launch`.
    pub fn of_wave(&self, launch: LaunchId) -> f64 {
        let (_, whole, total) = &self.launches[launch.index()];
        let time = whole.seconds - whole.overhead;
        match time > 0.0 && whole.wave > 0.0 {
            true => total * (whole.wave / time),
            false => *total,
        }
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
    /// How many SMs a task asks for: (want, all or nothing).
    fn wanted(&self, task: u32, gpu: u32) -> Result<(u32, bool), SimError> {
        let sms = self.costs.device(gpu).sms;
        let (want, fixed) = match self.schedule.tasks[task as usize].work {
            Work::Transfer {
                mover: Mover::Sm { blocks },
                ..
            } => (u32::from(blocks.max(1)), true),
            Work::Transfer { .. } => (Costs::local_sms(self.costs.device(gpu)), false),
            Work::Collective(id) => {
                let collective = &self.schedule.collectives[id.index()];
                (self.costs.collective_sms(collective, gpu), true)
            }
            Work::Compute(id) => match self.schedule.computes[id.index()] {
                // A margin left for others counts as contention.
                Compute::Gemm { sms: limit, .. } if limit > 0 && self.options.terms.contention => {
                    (u32::from(limit), false)
                }
                _ => (sms, false),
            },
        };
        if let Some(shape) = self.whole_gemm(task) {
            let want = want.min(sms);
            let tiles = self.costs.gemm_tiles(gpu, shape, want)?;
            return Ok((want.min(tiles), false));
        }
        if fixed && want > sms {
            return Err(SimError::TooManySms {
                task: self.schedule.describe(TaskId(task)),
                want,
                have: sms,
                device: self.costs.device(gpu).name.clone(),
            });
        }
        Ok((want.min(sms), fixed))
    }

    /// A kernel's conditions are met: take SMs or queue for them.
    pub fn kernel_ready(&mut self, task: u32, now: f64) -> Result<(), SimError> {
        let t = &self.schedule.tasks[task as usize];
        if t.launch.is_some() {
            return self.kernel_begins(task, now); // its fused kernel holds the SMs
        }
        if self.lets_first(task, now) {
            return Ok(());
        }
        let gpu = self.costs.gpu(task);
        let (want, fixed) = self.wanted(task, gpu)?;
        if self.beside(task) {
            self.kernels.beside.insert(task, want);
            return self.kernel_begins(task, now);
        }
        let request = Request {
            who: task,
            want,
            fixed,
        };
        match self.kernels.pools[gpu as usize].request(request) {
            Some(got) => self.granted(task, got, now),
            None => Ok(()),
        }
    }

    /// A fused kernel's lane is free: take its SMs or queue for them.
    pub fn launch_ready(&mut self, launch: u32, now: f64) -> Result<(), SimError> {
        let (gpu, want) = self.launch_wants(launch);
        let who = self.graph.launch_step(LaunchId(launch));
        let request = Request {
            who,
            want,
            fixed: false,
        };
        match self.kernels.pools[gpu as usize].request(request) {
            Some(got) => self.granted(who, got, now),
            None => Ok(()),
        }
    }

    /// The GPU of a fused kernel, and the SMs that it asks for.
    fn launch_wants(&self, launch: u32) -> (u32, u32) {
        let l = &self.schedule.launches[launch as usize];
        let gpu = self.schedule.placement[l.rank.0 as usize];
        let sms = self.costs.device(gpu).sms;
        let want = match l.sms {
            limit if limit > 0 && self.options.terms.contention => u32::from(limit).min(sms),
            _ => sms,
        };
        (gpu, want)
    }

    fn granted(&mut self, step: u32, got: u32, now: f64) -> Result<(), SimError> {
        if self.options.streams == Streams::PerGpu && step & LATE != 0 {
            return self.blocks_follow(step & !LATE, got, now);
        }
        self.kernels.held.insert(step, got);
        if let Some(launch) = step.checked_sub(self.graph.tasks) {
            let (gpu, want) = self.launch_wants(launch);
            if self.options.streams == Streams::PerGpu && got < want {
                let growing = Growing { task: step, want };
                self.kernels.growing[gpu as usize].push(growing);
            }
            return self.launch_opens(launch, got, now);
        }
        let gpu = self.costs.gpu(step);
        if let Work::Collective(id) = self.schedule.tasks[step as usize].work {
            self.scatters(id, (gpu, got))?;
        }
        let (want, fixed) = self.wanted(step, gpu)?;
        if self.whole_gemm(step).is_some() {
            self.blocks_begin(step, (want, got), now)?;
        } else if !fixed && got < want {
            let growing = Growing { task: step, want };
            self.kernels.growing[gpu as usize].push(growing);
        }
        self.kernel_begins(step, now)
    }

    /// The fused kernel has its SMs: its tiles may begin after the kernel's own start.
    fn launch_opens(&mut self, launch: u32, got: u32, now: f64) -> Result<(), SimError> {
        let l = &self.schedule.launches[launch as usize];
        let gpu = self.schedule.placement[l.rank.0 as usize];
        let tasks = std::mem::take(&mut self.kernels.launches[launch as usize].0);
        let mut start = 0.0;
        if self.options.terms.compute {
            let whole = self.launch_time(&tasks, gpu, got)?;
            let flops = |&t: &u32| {
                let shape = self.costs.gemm_shape(t);
                shape.map_or(0.0, |s| s.iter().map(|&d| d as f64).product())
            };
            let total: f64 = tasks.iter().map(flops).sum();
            start = self.costs.launch_start(l, &whole);
            for &task in &tasks {
                let before = self.kernels.slabs.of(task).before * whole.wave;
                let opened = &mut self.kernels.opened[task as usize];
                *opened = (*opened - before).max(now + start);
            }
            self.kernels.launches[launch as usize] = (tasks, whole, total);
        }
        self.events.push(now + start, Event::Open(launch));
        Ok(())
    }

    /// A fused kernel of these tasks on so many SMs, as one GEMM.
    fn launch_time(&self, tasks: &[u32], gpu: u32, sms: u32) -> Result<GemmTime, SimError> {
        let (slabs, apart) = (&self.kernels.slabs, (&self.graph.sums, &self.stores));
        let Some(tiled) = self.costs.tiled(tasks, slabs, apart, (gpu, sms)) else {
            return self.costs.launch_gemm(tasks, slabs, (gpu, sms));
        };
        let all = self.costs.device(gpu).sms;
        let whole = self.costs.launch_gemm(tasks, slabs, (gpu, all))?;
        Ok(whole.tiled(tiled.time, tiled.wave))
    }

    /// A fused kernel goes on with so many SMs.
    fn launch_grows(&mut self, launch: u32, sms: u32) -> Result<(), SimError> {
        let (gpu, _) = self.launch_wants(launch);
        let tasks = std::mem::take(&mut self.kernels.launches[launch as usize].0);
        if self.options.terms.compute {
            self.kernels.launches[launch as usize].1 = self.launch_time(&tasks, gpu, sms)?;
            for &task in &tasks {
                if let Some(&flow) = self.kernels.flows.get(&task) {
                    let bound = self.kernel_cost(task)?.bound;
                    self.rebound(flow, bound);
                }
            }
        }
        self.kernels.launches[launch as usize].0 = tasks;
        Ok(())
    }

    /// A kernel has its SMs.
    fn kernel_begins(&mut self, task: u32, now: f64) -> Result<(), SimError> {
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

    /// Gives back the SMs of an ended task (and of its fused kernel after its last task), and
    /// hands them on. Says whether the task held any.
    pub fn release_kernel(&mut self, task: u32, now: f64) -> Result<bool, SimError> {
        if self.kernels.beside.remove(&task).is_some() {
            return Ok(true);
        }
        if self.kernels.held.is_empty() {
            return Ok(false);
        }
        self.kernels.flows.remove(&task);
        let t = &self.schedule.tasks[task as usize];
        let mut holder = task;
        if let Some(launch) = t.launch {
            let left = &mut self.graph.launch_left[launch.index()];
            *left -= 1;
            if *left > 0 {
                return Ok(true);
            }
            holder = self.graph.launch_step(launch);
        }
        let Some(held) = self.kernels.held.remove(&holder) else {
            return Ok(false);
        };
        let gpu = self.costs.gpu(task) as usize;
        self.kernels.growing[gpu].retain(|growing| growing.task != holder);
        self.blocks_done(task);
        self.kernels.waves.remove(&task);
        self.leaves_turns(task, now);
        self.hand_on(task, held, now)?;
        Ok(true)
    }

    /// Gives SMs of `task` to whoever waits for some.
    pub(super) fn hand_on(&mut self, task: u32, sms: u32, now: f64) -> Result<(), SimError> {
        let gpu = self.costs.gpu(task) as usize;
        self.kernels.pools[gpu].release(sms);
        while let Some((step, got)) = self.kernels.pools[gpu].next() {
            if let Some(span) = self.spans.get_mut(step as usize) {
                span.cause = Cause::Resource(TaskId(task));
            }
            self.granted(step, got, now)?;
        }
        self.grow(gpu)
    }

    /// Gives free SMs to running kernels that started on fewer than they asked for.
    fn grow(&mut self, gpu: usize) -> Result<(), SimError> {
        let mut growing = std::mem::take(&mut self.kernels.growing[gpu]);
        for kernel in &growing {
            let held = self.kernels.held(kernel.task);
            let more = self.kernels.pools[gpu].take_free(kernel.want - held);
            if more == 0 {
                continue;
            }
            self.kernels.held.insert(kernel.task, held + more);
            if let Some(launch) = kernel.task.checked_sub(self.graph.tasks) {
                self.launch_grows(launch, held + more)?;
            } else if let Some(&flow) = self.kernels.flows.get(&kernel.task) {
                let bound = match self.schedule.tasks[kernel.task as usize].work {
                    Work::Transfer { .. } => self.transfer_cost(kernel.task)?.bound,
                    _ => self.kernel_cost(kernel.task)?.bound,
                };
                self.rebound(flow, bound);
            }
        }
        growing.retain(|kernel| self.kernels.held(kernel.task) < kernel.want);
        self.kernels.growing[gpu] = growing;
        Ok(())
    }
}
