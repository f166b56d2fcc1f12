//! Kernels that compute: GEMMs, tile groups of fused kernels, elementwise kernels.

mod elementwise;

use super::{Cost, Costs};
use crate::device::gemm::{GemmTime, gemm};
use crate::schedule::{Compute, Launch, TaskId, Via, Work};
use crate::sim::fluid::Usage;
use crate::sim::slabs::Slabs;
use crate::sim::stored::Stores;
use crate::sim::sums::Sums;
use crate::sim::{Fused, Rows, SimError, Tiled, Tiling};

/// What a kernel runs on.
#[derive(Copy, Clone, Debug)]
pub struct On<'w> {
    /// SMs that it holds.
    pub sms: u32,
    /// For a tile group of a fused kernel: the kernel as one GEMM, and the group's share of it.
    pub fused: Option<(&'w GemmTime, f64)>,
    /// Whether a GEMM has to read its B from memory.
    pub cold: bool,
    /// Whether it is a slab of k whose sums so far are in registers.
    pub slab: bool,
}

impl Costs<'_> {
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
            time.wave = 0.0;
        }
        if !self.options.terms.sync_and_launch {
            time.seconds = (time.seconds - time.overhead).max(0.0);
            time.overhead = 0.0;
        }
        Ok(time)
    }

    /// SMs that a GEMM uses at most.
    pub fn gemm_tiles(&self, gpu: u32, shape: [u64; 3], sms: u32) -> Result<u32, SimError> {
        let tiles = self.gemm_time(gpu, shape, sms)?.tiles;
        // Rates without limit come without tiles.
        Ok(if tiles >= 1.0 { tiles as u32 } else { sms })
    }

    /// Blocks of a cluster of a GEMM, 0 if not known, and what a tile takes beside no other \[s\], if that is.
    pub fn gemm_blocks(
        &self,
        gpu: u32,
        shape: [u64; 3],
        sms: u32,
    ) -> Result<(u32, Option<f64>), SimError> {
        let time = self.gemm_time(gpu, shape, sms)?;
        Ok((time.cluster, (time.cluster > 0).then_some(time.alone)))
    }

    /// Fixed time at the start of fused kernel `launch` on `sms` SMs [s].
    pub fn launch_start(&self, launch: &Launch, whole: &GemmTime) -> f64 {
        let gpu = self.schedule.placement[launch.rank.0 as usize];
        self.kernel_start(gpu) + whole.overhead
    }

    /// All GEMMs of a fused kernel as one: the slabs of some rows are one, and groups that agree in two
    /// dimensions are stacked along the third, so that waves are quantised once.
    pub fn launch_gemm(
        &self,
        tasks: &[u32],
        slabs: &Slabs,
        (gpu, sms): (u32, u32),
    ) -> Result<GemmTime, SimError> {
        let mut shapes: Vec<[u64; 3]> = Vec::new();
        for &task in tasks {
            let Some(shape) = self.gemm_shape(task) else {
                continue;
            };
            match shapes.last_mut() {
                Some(rows) if slabs.of(task).before > 0.0 => rows[2] += shape[2],
                _ => shapes.push(shape),
            }
        }
        let Some(&first) = shapes.first() else {
            return Ok(GemmTime::default());
        };
        for along in 0..3 {
            let alike = |s: &[u64; 3]| (0..3).all(|d| d == along || s[d] == first[d]);
            if shapes.iter().all(alike) {
                let mut whole = first;
                whole[along] = shapes.iter().map(|s| s[along]).sum();
                // It has not been there before, so that B is read from memory.
                let mut time = self.gemm_time(gpu, whole, sms)?;
                time.seconds += time.cold;
                return Ok(time);
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
            sum.wave = sum.wave.max(one.wave);
        }
        Ok(sum)
    }

    /// What a fused kernel's own tiles make of its time on so many SMs, where they are known.
    pub fn tiled(
        &self,
        tasks: &[u32],
        slabs: &Slabs,
        (sums, stores): (&Sums, &Stores),
        (gpu, sms): (u32, u32),
    ) -> Option<Tiled> {
        let Tiling { find, tile, .. } = self.options.tiling?;
        let (mut rows, mut shape): (Vec<Rows>, [u64; 3]) = Default::default();
        for &task in tasks {
            let [m, n, k] = self.gemm_shape(task)?;
            if slabs.of(task).before > 0.0 {
                shape[2] += k;
                continue;
            }
            let deps = self.schedule.deps(TaskId(task));
            let waits = deps.iter().any(|dep| dep.via == Via::KernelFlag);
            rows.push(Rows {
                rows: m,
                // Rows that come in slabs begin with the first.
                waits: waits && !slabs.of(task).is_part(),
                adds: sums.adds(task),
                leaves: stores.leaves(task),
            });
            shape = [shape[0] + m, n, k];
        }
        let fused = Fused {
            device: self.device(gpu),
            dtype: self.schedule.operator.dtype,
            shape,
            sms,
            rows,
        };
        find(&fused, tile)
    }

    /// The time of a product that is a kernel of its own on so many SMs.
    fn product_time(&self, gpu: u32, shape: [u64; 3], sms: u32) -> Result<GemmTime, SimError> {
        let (device, dtype) = (self.device(gpu), self.schedule.operator.dtype);
        let tiled =
            (self.options.tiling).and_then(|tiling| tiling.alone(device, dtype, (shape, sms)));
        match tiled {
            None => self.gemm_time(gpu, shape, sms),
            Some(tiled) => {
                let whole = self.gemm_time(gpu, shape, self.device(gpu).sms)?;
                Ok(whole.tiled(tiled.time, tiled.wave))
            }
        }
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

    /// SM work.
    pub fn compute(
        &mut self,
        task: u32,
        compute: &Compute,
        On {
            sms,
            fused,
            cold,
            slab,
        }: On<'_>,
        usages: &mut Vec<Usage>,
    ) -> Result<Cost, SimError> {
        usages.clear();
        let gpu = self.gpu(task);
        if !self.options.terms.compute {
            return Ok(Cost::instant(0.0));
        }
        let start = self.kernel_start(gpu);
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
                        let mut time = self.product_time(gpu, shape, sms)?;
                        if cold {
                            time.seconds += time.cold;
                        }
                        if let Some(rate) = self.device(gpu).gemm_accumulate.filter(|_| *accumulate)
                        {
                            time.seconds += self.schedule.bytes(out) as f64 / rate.get();
                        }
                        (time, 1.0, start + time.overhead)
                    }
                };
                let seconds = (time.seconds - time.overhead) * share;
                let mut bytes = time.hbm_bytes * share;
                if *accumulate && !slab {
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
}
