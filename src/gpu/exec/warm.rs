//! What precedes the first performance: algorithms, first calls.

use super::issue::Extras;
use super::{Asked, Run, asked};
use crate::gpu::GpuError;
use crate::gpu::lt::{Problem, Trial};
use crate::gpu::plan::{Products, What};
use crate::gpu::tiles::{self, Does};

impl Run<'_> {
    /// Chooses the algorithm of every product, on memory that a run will use.
    pub(super) fn choose(&self) -> Result<(), GpuError> {
        let settings = self.machine.settings();
        for (at, step) in self.plan.steps.iter().enumerate() {
            let Some((a, b, out)) = step.what.product() else {
                continue;
            };
            let Some(Asked {
                problem,
                stages,
                joined,
            }) = asked(&self.plan, at)
            else {
                continue;
            };
            let device = self.device(out.gpu.index());
            let Some(space) = &self.workspaces[step.stream.index()] else {
                continue;
            };
            let trial = Trial {
                stream: self.stream(step.stream),
                matrices: (self.region(a, 0)?, self.region(b, 0)?, self.region(out, 0)?),
                workspace: space.region(),
                limit: settings.limit,
            };
            if self.own(&problem) {
                let mut tiles = device.tiles.borrow_mut();
                // C of joined products is no memory for a trial.
                let trial = joined.is_none().then_some(&trial);
                let tile = match self.plan.tile {
                    Some(tile) => tile,
                    None => tiles.choose(problem, &stages, settings.pick, trial)?.tile,
                };
                let does = Does {
                    gated: self.asks(at, joined),
                    ..Does::of(&problem)
                };
                tiles.load(tile, does)?;
            } else {
                let mut gemms = device.gemms.borrow_mut();
                gemms.choose(problem, settings.pick, Some(&trial))?;
            }
        }
        Ok(())
    }

    /// Whether Duet's own kernels compute a product.
    pub(super) fn own(&self, problem: &Problem) -> bool {
        self.plan.products == Products::Own && tiles::refused(problem).is_none()
    }

    /// Each kind of product and of collective once, one after another, so that whatever the
    /// libraries load or connect is there before anything waits.
    pub(super) fn warm(&self) -> Result<(), GpuError> {
        let mut seen = vec![false; self.plan.gemms.len()];
        let mut next = 0;
        while let Some(step) = self.plan.steps.get(next) {
            let count = self.together(next);
            let new = match &step.what {
                What::Gated { .. } => true,
                What::Gemm { .. } => {
                    let i = self.gemm(&step.what)?;
                    !std::mem::replace(&mut seen[i], true)
                }
                What::Collective { .. } => true,
                _ => false,
            };
            if new {
                self.step(next, count, (0, 0), &Extras::default())?;
                for step in &self.plan.steps[next..next + count] {
                    let limit = self.machine.settings().limit;
                    self.stream(step.stream)
                        .finish(limit, "the first call of a library")?;
                }
            }
            next += count;
        }
        Ok(())
    }
}
