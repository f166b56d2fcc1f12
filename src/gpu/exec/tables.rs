//! Products whose rows wait for flags inside their kernel.

use super::{Asked, Run, asked};
use crate::gpu::GpuError;
use crate::gpu::kernels::STATUS_WORDS;
use crate::gpu::plan::{Area, FlagId, Joined, Load, Plan, Rows, Step, What};
use crate::gpu::raw::{Memory, Region};
use crate::gpu::tiles::{
    Beside, Brought, Does, Fetch, Gate, Gated, Group, MOMENTS, Near, Part, Tile, Word, early,
    fetches, order, shares_before,
};
use crate::schedule::Extent;

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
    near: Near,
    completions: Option<Memory>,
    /// How much of each group is done.
    #[expect(dead_code, reason = "kept for the kernel")]
    counters: Memory,
    /// By parity: where rows of a product go that has no one C.
    parts: [Option<Memory>; 2],
    /// By parity: what the kernel brings itself, in the memory beside it.
    loads: [Option<(Memory, Brought)>; 2],
    #[expect(dead_code, reason = "kept for the kernel")]
    brought: Option<Memory>,
    /// What a wait that took too long says.
    status: Memory,
}

/// The steps of a product, or of those that are joined, and their rows of A.
fn steps(at: usize, joined: Option<&Joined>) -> Vec<(usize, Extent)> {
    match joined {
        Some(joined) => (joined.steps.iter().copied())
            .zip(joined.rows.iter().copied())
            .collect(),
        None => vec![(at, Extent::new(0, 0))],
    }
}

/// Whether rows come by copy engines, or by the product's own kernel, over direct links alone.
fn direct(plan: &Plan) -> bool {
    plan.steps.iter().all(|step| {
        !matches!(
            step.what,
            What::CopyKernel { .. } | What::ToHost { .. } | What::FromHost { .. }
        )
    })
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
                What::Gated { .. } => self.table(at),
                _ => Ok(None),
            })
            .collect()
    }

    /// The tile of a product's own kernel, if that computes it, and computes it at this step.
    pub(super) fn tile_of(&self, at: usize) -> Result<Option<Tile>, GpuError> {
        let Some((.., out)) = self.plan.steps[at].what.product() else {
            return Ok(None);
        };
        let Some(asked) = asked(&self.plan, at) else {
            return Ok(None);
        };
        if !self.own(&asked.problem) {
            return Ok(None);
        }
        let tiles = self.device(out.gpu.index()).tiles.borrow();
        let chosen = tiles.chosen(&asked.problem, &asked.stages).copied();
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
            let Some(Asked {
                problem, joined, ..
            }) = asked(&self.plan, at)
            else {
                return Ok(None);
            };
            let gpu = self.plan.streams[self.plan.steps[at].stream.index()].gpu;
            let device = self.device(gpu.index());
            let does = Does {
                traced: true,
                gated: self.asks(at, joined),
                ..Does::of(&problem)
            };
            device.tiles.borrow_mut().load(tile, does)?;
            let bytes = MOMENTS * tile.turns(problem.m, problem.n);
            let memory = Memory::new(&device.gpu, bytes)?;
            memory.upload(0, &vec![0; bytes as usize])?;
            Ok(Some(Traced { tile, memory }))
        };
        (0..self.plan.steps.len()).map(step).collect()
    }

    /// What the kernel of a product, or of those that are joined, does for its gate; `None` for one without.
    pub(super) fn asks(&self, at: usize, joined: Option<&Joined>) -> Option<Gated> {
        let What::Gated { .. } = self.plan.steps[at].what else {
            return None;
        };
        Some(Gated {
            brings: !self.loads(at, joined).is_empty(),
            parted: self.parted(at, joined),
        })
    }

    /// Whether its rows go to several places.
    fn parted(&self, at: usize, joined: Option<&Joined>) -> bool {
        joined.is_some()
            || self
                .groups(at, joined)
                .iter()
                .any(|group| group.to.is_some())
    }

    fn table(&self, at: usize) -> Result<Option<Tables>, GpuError> {
        let Some(Asked {
            problem, joined, ..
        }) = asked(&self.plan, at)
        else {
            return Ok(None);
        };
        let step = &self.plan.steps[at];
        let device = self.device(self.plan.streams[step.stream.index()].gpu.index());
        let Some(tile) = self.tile_of(at)? else {
            return Err(GpuError::Argument(
                "a product with gates that Duet's kernels do not compute".to_owned(),
            ));
        };
        let upload = |bytes: &[u8]| {
            let memory = Memory::new(&device.gpu, bytes.len() as u64)?;
            memory.upload(0, bytes)?;
            Ok::<_, GpuError>(memory)
        };
        let brings = self.loads(at, joined);
        // The first performance, which warms up, is of epoch 0.
        let counts = match brings.len() {
            0 => None,
            some => Some(upload(&shares_before(0).to_le_bytes().repeat(some))?),
        };
        let groups = (self.groups(at, joined).into_iter())
            .map(|group| {
                let address = |flag: &FlagId| Ok::<_, GpuError>(self.flag(*flag)?.address());
                let sets = group
                    .sets
                    .filter(|flag| self.faults.drop_flag != Some(*flag));
                let word = |flag: &FlagId| {
                    let brought = brings.iter().position(|load| load.sets == *flag);
                    match brought.zip(counts.as_ref()) {
                        Some((i, counts)) => Ok(Word {
                            address: counts.region().address() + 4 * i as u64,
                            counts: true,
                        }),
                        None => address(flag).map(Word::flag),
                    }
                };
                Ok(Group {
                    rows: group.rows,
                    from: group.depth.start.into(),
                    flags: group.flags.iter().map(word).collect::<Result<_, _>>()?,
                    sets: sets.as_ref().map(address).transpose()?,
                })
            })
            .collect::<Result<Vec<_>, GpuError>>()?;
        let counters = upload(&vec![0; 4 * groups.len()])?;
        let shape = (problem.m, problem.n);
        let tiles = device.tiles.borrow();
        let (mut rows, mut parts) = (Vec::new(), [None, None]);
        for (parity, table) in parts.iter_mut().enumerate() {
            if !self.parted(at, joined) {
                continue;
            }
            let places = self.places(at, joined, parity as u64)?;
            *table = Some(upload(&tiles.parts(&problem, tile, &places)?)?);
            rows = places.iter().map(|part| part.rows).collect();
        }
        let early = match direct(&self.plan) {
            true => early(tile, &problem, device.gpu.attributes(), &groups),
            false => None,
        };
        let counted = counters.region().address();
        let tables = order(tile, shape, &groups, &rows, counted, early);
        let mut loads = [None, None];
        if let Some(counts) = &counts {
            for (parity, table) in loads.iter_mut().enumerate() {
                let one = |(i, load): (usize, &Load)| {
                    Ok::<_, GpuError>(Fetch {
                        copy: self.rectangle(&load.from, &load.to, parity as u64)?,
                        done: counts.region().cut(4 * i as u64, 4)?,
                        flag: self.flag(load.sets)?,
                    })
                };
                let all: Result<Vec<_>, _> = brings.iter().enumerate().map(one).collect();
                let all = all?;
                let bytes = fetches(&all)?;
                let memory = upload(&bytes)?;
                let brought = Brought::new((memory.region(), &bytes), tables.ready);
                *table = Some((memory, brought));
            }
        }
        Ok(Some(Tables {
            parts,
            tile,
            bands: upload(&tables.bands)?,
            sections: upload(&tables.sections)?,
            waits: upload(&tables.waits)?,
            near: Near::of(&tables),
            completions: match tables.completions.is_empty() {
                true => None,
                false => Some(upload(&tables.completions)?),
            },
            counters,
            loads,
            brought: counts,
            status: upload(&[0; 4 * STATUS_WORDS as usize])?,
        }))
    }

    /// The groups of a product, or of those that are joined, in their order.
    fn groups(&self, at: usize, joined: Option<&Joined>) -> Vec<Rows> {
        let mut all = Vec::new();
        for (step, rows) in steps(at, joined) {
            if let What::Gated { groups, .. } = &self.plan.steps[step].what {
                all.extend(groups.iter().map(|group| Rows {
                    rows: Extent::new(rows.start + group.rows.start, group.rows.len),
                    ..group.clone()
                }));
            }
        }
        all
    }

    /// What the kernel of a product, or of those that are joined, brings itself.
    fn loads(&self, at: usize, joined: Option<&Joined>) -> Vec<Load> {
        let mut all = Vec::new();
        for (step, _) in steps(at, joined) {
            if let What::Gated { loads, .. } = &self.plan.steps[step].what {
                let kept = |load: &&Load| self.faults.drop_flag != Some(load.sets);
                all.extend(loads.iter().filter(kept));
            }
        }
        all
    }

    /// Where the rows of a product, or of those that are joined, go, from the top.
    fn places(
        &self,
        at: usize,
        joined: Option<&Joined>,
        parity: u64,
    ) -> Result<Vec<Part>, GpuError> {
        let size = self.plan.dtype.size();
        // Rows, their place, whether they are added to what it holds, and where they may lie on the way.
        let mut places: Vec<(Extent, Area, bool, Option<Area>)> = Vec::new();
        for (step, rows) in steps(at, joined) {
            if let What::Gated {
                out,
                groups,
                accumulate,
                ..
            } = &self.plan.steps[step].what
            {
                let begin = groups.iter().filter(|group| group.depth.start == 0);
                places.extend(begin.map(|group| {
                    let here = Area {
                        at: out.at + u64::from(group.rows.start) * u64::from(out.ld) * size,
                        rows: group.rows.len,
                        ..*out
                    };
                    let start = rows.start + group.rows.start;
                    let rows = Extent::new(start, group.rows.len);
                    let to = group.to.unwrap_or(here);
                    (rows, to, *accumulate, group.to.map(|_| here))
                }));
            }
        }
        places.sort_by_key(|(rows, ..)| rows.start);
        // Rows that follow one another there as here are one part.
        places.dedup_by(|(next, to, adds, from), (rows, area, added, first)| {
            let end = |area: &Area| area.at + u64::from(area.rows) * u64::from(area.ld) * size;
            let behind =
                |to: &Area, area: &Area| (to.gpu, to.at, to.ld) == (area.gpu, end(area), area.ld);
            let both = match (&*from, &*first) {
                (Some(from), Some(first)) => behind(from, first),
                (from, first) => from.is_none() && first.is_none(),
            };
            let follows = behind(to, area) && adds == added && both;
            if follows {
                rows.len += next.len;
                area.rows += to.rows;
                if let Some(area) = first {
                    area.rows += to.rows;
                }
            }
            follows
        });
        let part = |(rows, to, adds, here): (Extent, Area, bool, Option<Area>)| {
            let region = |area: Area| Ok((self.region(&area, parity)?, area.ld.into()));
            Ok(Part {
                rows,
                to: self.region(&to, parity)?,
                ld: to.ld.into(),
                here: here.map(region).transpose()?,
                adds,
            })
        };
        places.into_iter().map(part).collect()
    }

    /// Submits the product at a step.
    pub(super) fn gated(
        &self,
        at: usize,
        (parity, epoch): (u64, u32),
        beside: Beside<'_>,
    ) -> Result<(), GpuError> {
        let step = &self.plan.steps[at];
        let Some(Asked {
            problem, joined, ..
        }) = asked(&self.plan, at)
        else {
            // Its kernel was handed over before.
            return Ok(());
        };
        let (Some((a, b, out)), Some(Some(tables))) = (step.what.product(), self.tables.get(at))
        else {
            return Err(GpuError::Argument("a product without tables".to_owned()));
        };
        let a = joined.map_or(a, |joined| &joined.a);
        let gate = Gate {
            bands: tables.bands.region(),
            sections: tables.sections.region(),
            waits: tables.waits.region(),
            near: tables.near,
            completions: tables.completions.as_ref().map(Memory::region),
            epoch: self.epoch_of(out.gpu.index(), epoch),
            // The watchdog opens the flags before; counts of rows that the kernel brings end by this limit.
            limit: self.machine.settings().limit * 2,
            status: tables.status.region(),
            fetches: (tables.loads[parity as usize % 2].as_ref()).map(|(_, brought)| *brought),
            parts: tables.parts[parity as usize % 2]
                .as_ref()
                .map(Memory::region),
        };
        let matrices = (
            self.region(a, parity)?,
            self.region(b, parity)?,
            self.region(out, parity)?,
        );
        let device = self.device(out.gpu.index());
        let tiles = device.tiles.borrow();
        let stream = self.stream(step.stream);
        let beside = Beside {
            gate: Some(&gate),
            ..beside
        };
        tiles.launch(stream, &problem, tables.tile, matrices, beside)
    }
}
