//! What each piece of work costs: its fixed start, its amount, its own speed limit, and what it
//! uses of links and memories while it flows.

use super::fluid::Usage;
use super::machine::{Machine, Way};
use super::{Options, SimError};
use crate::device::Device;
use crate::device::gemm::{GemmTime, gemm};
use crate::schedule::{
    Collective, CollectiveKind, Compute, Launch, Mover, Schedule, Slice, TaskId, Work,
};
use crate::topology::LinkId;

/// What a flow needs; `usages` are kept apart so that their memory is used again.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Cost {
    /// Start-up and latency before the first byte or tile [s].
    pub alpha: f64,
    /// Amount: bytes, or 1 for a GEMM.
    pub work: f64,
    /// Most work per second by itself.
    pub bound: f64,
    /// Weight of its share: makes shares equal in bytes per second.
    pub weight: f64,
}

impl Cost {
    /// Takes no time after `alpha`.
    pub const fn instant(alpha: f64) -> Self {
        Self {
            alpha,
            work: 0.0,
            bound: f64::INFINITY,
            weight: 1.0,
        }
    }
}

/// The schedule on its machine: answers what a task costs.
#[derive(Debug)]
pub(super) struct Costs<'a> {
    pub schedule: &'a Schedule,
    pub machine: Machine<'a>,
    pub options: Options,
}

impl<'a> Costs<'a> {
    /// The GPU of a task's rank.
    pub fn gpu(&self, task: u32) -> u32 {
        let rank = self.schedule.tasks[task as usize].rank;
        self.schedule.placement[rank.0 as usize]
    }

    /// The GPU that holds a slice.
    pub fn gpu_of(&self, slice: &Slice) -> u32 {
        self.schedule.placement[self.schedule.rank_of(slice).0 as usize]
    }

    pub fn device(&self, gpu: u32) -> &'a Device {
        self.machine.topology.device(gpu)
    }

    /// A fixed cost, or nothing when they are switched off.
    pub fn fixed(&self, seconds: crate::units::Seconds) -> f64 {
        if self.options.terms.sync_and_launch {
            seconds.get()
        } else {
            0.0
        }
    }

    /// A transfer over the one direct path last asked for by [`Machine::way`].
    pub fn direct(
        &self,
        task: u32,
        (from, to, mover): (u32, u32, Mover),
        bytes: f64,
        usages: &mut Vec<Usage>,
    ) -> Cost {
        let links = self.machine.recent_links(from);
        self.stretch(
            self.gpu(task),
            links,
            [Some(from), Some(to)],
            mover,
            bytes,
            usages,
        )
    }

    /// The flow over a stretch of links between two memories (`ends`: the GPUs among them), moved
    /// by `issuer`; its α is [`Self::start_up`] and the latency of the links.
    pub fn stretch(
        &self,
        issuer: u32,
        links: &[LinkId],
        ends: [Option<u32>; 2],
        mover: Mover,
        bytes: f64,
        usages: &mut Vec<Usage>,
    ) -> Cost {
        let device = self.device(issuer);
        let (bound, per_byte) = match mover {
            Mover::CopyEngine => (device.peer_copy.get(), 1.0),
            Mover::Sm { blocks } => (
                device.sm_copy.get() * f64::from(blocks.max(1)),
                1.0 / device.sm_copy_efficiency,
            ),
        };
        usages.clear();
        self.machine.use_links(links, per_byte, usages);
        for gpu in ends.into_iter().flatten() {
            self.machine.use_memory(gpu, 1.0, usages);
        }
        Cost {
            alpha: 0.0,
            work: bytes,
            bound,
            weight: 1.0,
        }
    }

    /// From a mover being told to its first byte, latency of the way not counted [s].
    pub fn start_up(&self, device: &Device, mover: Mover) -> f64 {
        let c = &device.costs;
        match mover {
            Mover::CopyEngine => self.fixed(c.copy_start),
            Mover::Sm { .. } => self.fixed(c.kernel_start) + self.fixed(c.sm_copy_start),
        }
    }

    /// A copy within one GPU: read and written once in its memory, by a kernel on `sms` SMs.
    pub fn local(&self, gpu: u32, bytes: f64, sms: u32, usages: &mut Vec<Usage>) -> Cost {
        let device = self.device(gpu);
        usages.clear();
        self.machine.use_memory(gpu, 2.0, usages);
        let share = f64::from(sms) / f64::from(Self::local_sms(device));
        Cost {
            alpha: 0.0,
            work: bytes,
            bound: device.local_copy.get() * share.min(1.0),
            weight: 1.0,
        }
    }

    /// SMs that a copy within the GPU's memory takes: an eighth of them moves 2 TB/s on a GPU
    /// whose single SM copies about 130 GB/s in its own memory (assumed).
    pub fn local_sms(device: &Device) -> u32 {
        (device.sms / 8).max(1)
    }

    /// The time of one GEMM on `sms` SMs, waves quantised or not as the terms say.
    fn gemm_time(&self, gpu: u32, shape: [u64; 3], sms: u32) -> Result<GemmTime, SimError> {
        let device = self.device(gpu);
        let dtype = self.schedule.operator.dtype;
        let [m, n, k] = shape;
        let mut time = gemm(device, dtype, m, n, k, sms).ok_or_else(|| SimError::NoPeak {
            device: device.name.clone(),
            dtype,
        })?;
        if !self.options.terms.wave_quantisation {
            time.seconds = time.unquantised.min(time.seconds);
        }
        if !self.options.terms.sync_and_launch {
            time.seconds = (time.seconds - time.overhead).max(0.0);
            time.overhead = 0.0;
        }
        Ok(time)
    }

    /// Fixed time at the start of fused kernel `launch` on `sms` SMs [s].
    pub fn launch_start(&self, launch: &Launch, whole: &GemmTime) -> f64 {
        let gpu = self.schedule.placement[launch.rank.0 as usize];
        self.fixed(self.device(gpu).costs.kernel_start) + whole.overhead
    }

    /// All GEMMs of a fused kernel as one: groups that agree in two dimensions are stacked along
    /// the third, so that waves are quantised once.
    pub fn launch_gemm(&self, tasks: &[u32], gpu: u32, sms: u32) -> Result<GemmTime, SimError> {
        let shapes: Vec<[u64; 3]> = tasks.iter().filter_map(|&t| self.gemm_shape(t)).collect();
        let Some(&first) = shapes.first() else {
            return Ok(GemmTime::default());
        };
        for along in 0..3 {
            let alike = |s: &[u64; 3]| (0..3).all(|d| d == along || s[d] == first[d]);
            if shapes.iter().all(alike) {
                let mut whole = first;
                whole[along] = shapes.iter().map(|s| s[along]).sum();
                return self.gemm_time(gpu, whole, sms);
            }
        }
        // Groups of unlike shapes: each on its own, without losing a wave at every seam.
        let mut sum = GemmTime::default();
        for shape in shapes {
            let one = self.gemm_time(gpu, shape, sms)?;
            sum.seconds += one.unquantised.min(one.seconds);
            sum.unquantised += one.unquantised;
            sum.hbm_bytes += one.hbm_bytes;
            sum.overhead = sum.overhead.max(one.overhead);
        }
        Ok(sum)
    }

    /// `[m, n, k]` of a GEMM task.
    pub fn gemm_shape(&self, task: u32) -> Option<[u64; 3]> {
        match self.schedule.tasks[task as usize].work {
            Work::Compute(id) => match &self.schedule.computes[id.index()] {
                Compute::Gemm { a, b, .. } => {
                    Some([a.rows.len, b.cols.len, a.cols.len].map(u64::from))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// SM work on `sms` SMs; `share` of `whole` for a tile group of a fused kernel.
    pub fn compute(
        &mut self,
        task: u32,
        compute: &Compute,
        sms: u32,
        fused: Option<(&GemmTime, f64)>,
        usages: &mut Vec<Usage>,
    ) -> Result<Cost, SimError> {
        usages.clear();
        let gpu = self.gpu(task);
        if !self.options.terms.compute {
            return Ok(Cost::instant(0.0));
        }
        let start = self.fixed(self.device(gpu).costs.kernel_start);
        match compute {
            Compute::Gemm {
                a,
                b,
                out,
                accumulate,
                ..
            } => {
                let (time, share, alpha) = match fused {
                    Some((whole, share)) => (*whole, share, 0.0),
                    None => {
                        let shape = [a.rows.len, b.cols.len, a.cols.len].map(u64::from);
                        let time = self.gemm_time(gpu, shape, sms)?;
                        (time, 1.0, start + time.overhead)
                    }
                };
                let seconds = (time.seconds - time.overhead) * share;
                let mut bytes = time.hbm_bytes * share;
                if *accumulate {
                    bytes += self.schedule.bytes(out) as f64; // C is read as well as written
                }
                let mut remote = 0.0;
                for slice in [a, b, out] {
                    remote += self.remote(task, slice, 1.0, usages)?;
                }
                self.machine
                    .use_memory(gpu, (bytes - remote).max(0.0), usages);
                Ok(Cost {
                    alpha,
                    work: if seconds > 0.0 { 1.0 } else { 0.0 },
                    bound: 1.0 / seconds,
                    weight: if bytes > 0.0 { 1.0 / bytes } else { 1.0 },
                })
            }
            Compute::Reduce { inputs, out } => {
                let bytes: u64 = inputs.iter().map(|s| self.schedule.bytes(s)).sum();
                let bytes = (bytes + self.schedule.bytes(out)) as f64;
                self.elementwise(task, (inputs, out), bytes, 0.0, sms, usages)
            }
            Compute::Pointwise {
                inputs,
                out,
                bytes,
                flops,
            } => self.elementwise(task, (inputs, out), *bytes as f64, *flops, sms, usages),
        }
    }

    /// An elementwise kernel: bound by memory traffic or by its arithmetic, whichever is slower.
    fn elementwise(
        &mut self,
        task: u32,
        (inputs, out): (&[Slice], &Slice),
        bytes: f64,
        flops: f64,
        sms: u32,
        usages: &mut Vec<Usage>,
    ) -> Result<Cost, SimError> {
        let gpu = self.gpu(task);
        let device = self.device(gpu);
        let mut remote = 0.0;
        for slice in inputs.iter().chain([out]) {
            remote += self.remote(task, slice, 1.0 / bytes, usages)?;
        }
        self.machine
            .use_memory(gpu, (1.0 - remote).max(0.0), usages);
        let share = (f64::from(sms) / f64::from(device.sms)).min(1.0);
        let peak = device
            .peak
            .iter()
            .find(|(dtype, _)| *dtype == crate::device::DType::Fp32);
        let arithmetic = match peak {
            Some((_, peak)) if flops > 0.0 => bytes * peak.get() / flops,
            _ => f64::INFINITY,
        };
        Ok(Cost {
            alpha: self.fixed(device.costs.kernel_start),
            work: bytes,
            bound: device.elementwise.get().min(arithmetic) * share,
            weight: 1.0,
        })
    }

    /// Use of the links by a kernel that touches another GPU's slice directly; returns the slice's
    /// share of the kernel's traffic (0 for a slice of its own GPU).
    fn remote(
        &mut self,
        task: u32,
        slice: &Slice,
        per_byte: f64,
        usages: &mut Vec<Usage>,
    ) -> Result<f64, SimError> {
        let (here, there) = (self.gpu(task), self.gpu_of(slice));
        if here == there {
            return Ok(0.0);
        }
        let share = self.schedule.bytes(slice) as f64 * per_byte;
        let written = matches!(
            self.schedule.tasks[task as usize].work,
            Work::Compute(id) if matches!(
                &self.schedule.computes[id.index()],
                Compute::Gemm { out, .. } | Compute::Reduce { out, .. } | Compute::Pointwise { out, .. }
                    if out == slice
            )
        );
        let (from, to) = if written {
            (here, there)
        } else {
            (there, here)
        };
        match self.machine.way(from, to)? {
            Way::Direct(_) => {
                let per_byte = 1.0 / self.device(here).sm_copy_efficiency;
                let links = self.machine.recent_links(from);
                self.machine.use_links(links, share * per_byte, usages);
                self.machine.use_memory(there, share, usages);
                Ok(share)
            }
            Way::Paths(_) => Err(SimError::NotDirect {
                task: self.schedule.describe(TaskId(task)),
                gpu: there,
            }),
        }
    }

    /// A library collective as one flow over all its links at once. Its work is what each member
    /// sends, per member: (n − 1)/n of S for all-gather, reduce-scatter and all-to-all, twice that
    /// for all-reduce, with S as in nccl-tests; its α is that of all its steps.
    pub fn collective(
        &mut self,
        collective: &Collective,
        usages: &mut Vec<Usage>,
    ) -> Result<Cost, SimError> {
        usages.clear();
        let n = collective.members.len();
        let first = self.schedule.placement[collective.members[0].rank.0 as usize];
        let device = self.device(first);
        let library = &device.library;
        let start = self.fixed(device.costs.kernel_start) + self.fixed(library.base);
        if n < 2 {
            return Ok(Cost::instant(start));
        }
        let gpus: Vec<u32> = collective
            .members
            .iter()
            .map(|m| self.schedule.placement[m.rank.0 as usize])
            .collect();
        let largest = |slice: fn(&crate::schedule::Member) -> &Slice| {
            let bytes = |m| self.schedule.bytes(slice(m)) as f64;
            collective.members.iter().map(bytes).fold(0.0, f64::max)
        };
        let steps = (n - 1) as f64;
        // (bytes each member sends, memory accesses per byte sent, ring edges or all pairs). A
        // gathering step reads and writes once; a reducing one reads its own part too.
        let (sent, accesses, rounds) = match collective.kind {
            CollectiveKind::AllGather => (largest(|m| &m.input) * steps, 2.0, 1.0),
            CollectiveKind::ReduceScatter => (largest(|m| &m.output) * steps, 3.0, 1.0),
            CollectiveKind::AllReduce => (largest(|m| &m.input) / n as f64 * 2.0 * steps, 2.5, 2.0),
            CollectiveKind::AllToAll => (largest(|m| &m.input) / n as f64 * steps, 2.0, 1.0),
        };
        let mut latency = 0f64;
        if collective.kind == CollectiveKind::AllToAll {
            for (i, &from) in gpus.iter().enumerate() {
                for &to in gpus[..i].iter().chain(&gpus[i + 1..]) {
                    latency = latency.max(self.edge(from, to, 1.0 / steps, usages)?);
                }
            }
        } else {
            for (i, &from) in gpus.iter().enumerate() {
                latency = latency.max(self.edge(from, gpus[(i + 1) % n], 1.0, usages)?);
            }
        }
        for &gpu in &gpus {
            self.machine.use_memory(gpu, accesses, usages);
        }
        let step = self.fixed(library.step) + latency;
        let sms = f64::from(self.collective_sms(collective, first));
        Ok(Cost {
            alpha: start + rounds * steps * step,
            work: sent,
            bound: if sms > 0.0 {
                sms * device.sm_copy.get()
            } else {
                f64::INFINITY
            },
            weight: 1.0,
        })
    }

    /// SMs a collective holds on each member.
    pub fn collective_sms(&self, collective: &Collective, gpu: u32) -> u32 {
        match collective.sms {
            0 => self.device(gpu).library.sms,
            sms => u32::from(sms),
        }
    }

    /// One edge of a collective: uses every leg of every path at once (the library pipelines
    /// through staging buffers), less efficiently than a copy engine. Returns its latency [s].
    fn edge(
        &mut self,
        from: u32,
        to: u32,
        per_unit: f64,
        usages: &mut Vec<Usage>,
    ) -> Result<f64, SimError> {
        if from == to {
            return Ok(0.0);
        }
        let paths = self.machine.paths(from, to)?;
        let mut latency = 0f64;
        for path in &paths {
            for leg in &path.legs {
                for link in &leg.links {
                    let efficiency = self.library_efficiency(from, *link);
                    let use_per_unit = per_unit * path.share / efficiency;
                    self.machine.use_links(&[*link], use_per_unit, usages);
                }
            }
            latency = latency.max(path.legs.iter().map(|leg| leg.latency.get()).sum());
        }
        Ok(latency)
    }

    /// Share of a link's bandwidth that the collective library reaches.
    pub fn library_efficiency(&self, gpu: u32, link: LinkId) -> f64 {
        let topology = self.machine.topology;
        let kind = &topology.kinds[topology.graph[link].kind as usize];
        let library = &self.device(gpu).library;
        library
            .efficiency
            .iter()
            .find(|(name, _)| name == kind)
            .map_or(library.other, |(_, efficiency)| *efficiency)
    }
}
