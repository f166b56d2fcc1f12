//! Products whose rows wait for flags inside their kernel.

use super::Run;
use super::warm::stages;
use crate::gpu::GpuError;
use crate::gpu::kernels::STATUS_WORDS;
use crate::gpu::plan::{FlagId, Rows, Step, What};
use crate::gpu::raw::{Memory, Region};
use crate::gpu::tiles::{Beside, Does, Gate, Group, MOMENTS, Tile, order};

/// Takes the moments of the tiles of a step.
#[derive(Debug)]
pub struct Traced {
    pub tile: Tile,
    memory: Memory,
}

impl Traced {
    pub(super) fn region(&self) -> Region {
        self.memory.region()
    }

    /// What was noted, [`MOMENTS`] bytes a tile; zeros where nothing was.
    ///
    /// # Errors
    /// The driver's.
    pub fn download(&self) -> Result<Vec<u8>, GpuError> {
        let mut bytes = vec![0; self.memory.region().bytes() as usize];
        self.memory.download(0, &mut bytes)?;
        Ok(bytes)
    }
}

/// The order and the waits of a product's rows, on its GPU.
#[derive(Debug)]
pub(super) struct Tables {
    tile: Tile,
    bands: Memory,
    sections: Memory,
    waits: Memory,
    completions: Option<Memory>,
    /// How much of each group is done.
    #[expect(dead_code, reason = "kept for the kernel")]
    counters: Memory,
    /// What a wait that took too long says.
    status: Memory,
}

impl Run<'_> {
    /// By GPU: a word for each step, where kernels that copy write flags.
    pub(super) fn make_counters(&self) -> Result<Vec<Memory>, GpuError> {
        let tells = |step: &Step| matches!(step.what, What::CopyKernel { sets: Some(_), .. });
        if !self.plan.steps.iter().any(tells) {
            return Ok(Vec::new());
        }
        let zeros = vec![0; 4 * self.plan.steps.len()];
        (0..self.plan.gpus.len())
            .map(|gpu| {
                let memory = Memory::new(&self.device(gpu).gpu, zeros.len() as u64)?;
                memory.upload(0, &zeros)?;
                Ok(memory)
            })
            .collect()
    }

    /// By step: the tables of products with gates, whose kernels are chosen.
    pub(super) fn make_tables(&self) -> Result<Vec<Option<Tables>>, GpuError> {
        self.plan
            .steps
            .iter()
            .enumerate()
            .map(|(at, step)| match &step.what {
                What::Gated { groups, .. } => self.table(at, groups).map(Some),
                _ => Ok(None),
            })
            .collect()
    }

    /// The tile of a product's own kernel, if that computes it.
    pub(super) fn tile_of(&self, at: usize) -> Result<Option<Tile>, GpuError> {
        let what = &self.plan.steps[at].what;
        let Some((.., out)) = what.product() else {
            return Ok(None);
        };
        let problem = &self.problems[self.gemm(what)?];
        if !self.own(problem) {
            return Ok(None);
        }
        let tiles = self.device(out.gpu.index()).tiles.borrow();
        let chosen = tiles.chosen(problem, &stages(what)).copied();
        Ok(self.plan.tile.or(chosen.map(|chosen| chosen.tile)))
    }

    /// By step: memory for the moments of the tiles of Duet's own products, whose tracing kernels are
    /// loaded. For one performance.
    ///
    /// # Errors
    /// The compiler's and the driver's.
    pub fn traced(&self) -> Result<Vec<Option<Traced>>, GpuError> {
        let step = |at: usize| {
            let Some(tile) = self.tile_of(at)? else {
                return Ok(None);
            };
            let step = &self.plan.steps[at];
            let problem = &self.problems[self.gemm(&step.what)?];
            let gpu = self.plan.streams[step.stream.index()].gpu;
            let device = self.device(gpu.index());
            let does = Does {
                traced: true,
                ..Does::of(problem)
            };
            device.tiles.borrow_mut().load(tile, does)?;
            let bytes = MOMENTS * tile.turns(problem.m, problem.n);
            let memory = Memory::new(&device.gpu, bytes)?;
            memory.upload(0, &vec![0; bytes as usize])?;
            Ok(Some(Traced { tile, memory }))
        };
        (0..self.plan.steps.len()).map(step).collect()
    }

    fn table(&self, at: usize, groups: &[Rows]) -> Result<Tables, GpuError> {
        let step = &self.plan.steps[at];
        let problem = &self.problems[self.gemm(&step.what)?];
        let device = self.device(self.plan.streams[step.stream.index()].gpu.index());
        let Some(tile) = self.tile_of(at)? else {
            return Err(GpuError::Argument(
                "a product with gates that Duet's kernels do not compute".to_owned(),
            ));
        };
        let groups = groups
            .iter()
            .map(|group| {
                let address = |flag: &FlagId| Ok::<_, GpuError>(self.flag(*flag)?.address());
                let sets = group
                    .sets
                    .filter(|flag| self.faults.drop_flag != Some(*flag));
                Ok(Group {
                    rows: group.rows,
                    from: group.depth.start.into(),
                    flags: group.flags.iter().map(address).collect::<Result<_, _>>()?,
                    sets: sets.as_ref().map(address).transpose()?,
                })
            })
            .collect::<Result<Vec<_>, GpuError>>()?;
        let upload = |bytes: &[u8]| {
            let memory = Memory::new(&device.gpu, bytes.len() as u64)?;
            memory.upload(0, bytes)?;
            Ok::<_, GpuError>(memory)
        };
        let counters = upload(&vec![0; 4 * groups.len()])?;
        let shape = (problem.m, problem.n);
        let tables = order(tile, shape, &groups, &[], counters.region().address());
        Ok(Tables {
            tile,
            bands: upload(&tables.bands)?,
            sections: upload(&tables.sections)?,
            waits: upload(&tables.waits)?,
            completions: match tables.completions.is_empty() {
                true => None,
                false => Some(upload(&tables.completions)?),
            },
            counters,
            status: upload(&[0; 4 * STATUS_WORDS as usize])?,
        })
    }

    /// Submits the product at a step; `trace` takes the moments of its tiles.
    pub(super) fn gated(
        &self,
        at: usize,
        (parity, epoch): (u64, u32),
        trace: Option<Region>,
    ) -> Result<(), GpuError> {
        let step = &self.plan.steps[at];
        let (Some((a, b, out)), Some(Some(tables))) = (step.what.product(), self.tables.get(at))
        else {
            return Err(GpuError::Argument("a product without tables".to_owned()));
        };
        let gate = Gate {
            bands: tables.bands.region(),
            sections: tables.sections.region(),
            waits: tables.waits.region(),
            completions: tables.completions.as_ref().map(Memory::region),
            epoch: self.epoch_of(out.gpu.index(), epoch),
            // The watchdog opens the flags before.
            limit: self.machine.settings().limit * 2,
            status: tables.status.region(),
            parts: None,
        };
        let matrices = (
            self.region(a, parity)?,
            self.region(b, parity)?,
            self.region(out, parity)?,
        );
        let device = self.device(out.gpu.index());
        let problem = &self.problems[self.gemm(&step.what)?];
        let tiles = device.tiles.borrow();
        let stream = self.stream(step.stream);
        let beside = Beside {
            gate: Some(&gate),
            trace,
        };
        tiles.launch(stream, problem, tables.tile, matrices, beside)
    }
}
