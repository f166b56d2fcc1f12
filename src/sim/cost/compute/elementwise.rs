//! Elementwise kernels, and what kernels read or write of other GPUs directly.

use crate::device::DType;
use crate::schedule::{Compute, Slice, TaskId, Work};
use crate::sim::SimError;
use crate::sim::cost::{Cost, Costs};
use crate::sim::fluid::Usage;
use crate::sim::machine::Way;

impl Costs<'_> {
    /// An elementwise kernel: bound by memory traffic or by its arithmetic, whichever is slower.
    pub(super) fn elementwise(
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
        let peak = device.peak.iter().find(|(dtype, _)| *dtype == DType::Fp32);
        let arithmetic = match peak {
            Some((_, peak)) if flops > 0.0 => bytes * peak.get() / flops,
            _ => f64::INFINITY,
        };
        Ok(Cost {
            alpha: self.kernel_start(gpu),
            work: bytes,
            bound: device.elementwise.get().min(arithmetic) * share,
            weight: 1.0,
        })
    }

    /// Use of the links by a kernel that touches another GPU's slice directly; returns the slice's
    /// share of the kernel's traffic (0 for a slice of its own GPU).
    pub(super) fn remote(
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
}
