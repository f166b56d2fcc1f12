//! Matrix products by our own kernels (`kernels/gemm_*.cu`).
//!
//! They stand beside the library's ([`lt`](super::lt)) and are used in the same way:
//! [`Tiles::choose`] once for a [`Problem`], then [`Tiles::run`] any number of times. What they can
//! do beyond a library: rows of C in an order of our own, each waiting for flags ([`Gate`]), by
//! [`Tiles::launch`].

mod cost;
mod fetch;
mod launch;
mod near;
mod order;
mod sections;
#[cfg(test)]
mod tests;
mod tile;

use std::collections::BTreeMap;
use std::rc::Rc;

pub use cost::{Stage, Waves, suits, waves};
pub use fetch::{Brought, Fetch, fetches, shares_before, waiting_bring};
pub use launch::{Beside, Gate, MOMENTS, PIECE, Part};
pub use near::Near;
pub use order::{Group, Order, Word, order};
pub use sections::early;
pub use tile::{Does, Family, Gated, Tile};

use super::GpuError;
use super::cache::Cache;
use super::kernels::compiled;
use super::lt::{Pick, Problem, Trial};
use super::raw::{Event, Gpu, Kernel, Module, Region, Resources, Stream};
use crate::device::DType;

/// Rounds of a trial.
const ROUNDS: usize = 5;
/// The kernel of a problem.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Chosen {
    pub tile: Tile,
    /// Median time of the trial \[seconds\]; `None` without one.
    pub time: Option<f64>,
}

/// A compiled kernel.
type Build = (Tile, Does);

/// The kernels on one GPU, compiled when first chosen.
#[derive(Debug)]
pub struct Tiles {
    gpu: Rc<Gpu>,
    cache: Cache,
    kernels: BTreeMap<Build, Kernel>,
    known: BTreeMap<(Problem, Vec<Stage>), Chosen>,
}

/// Why the kernels do not compute `problem`; `None` if they do.
pub fn refused(problem: &Problem) -> Option<String> {
    let size = problem.dtype.size();
    if !matches!(problem.dtype, DType::Bf16 | DType::Fp16) {
        return Some(format!(
            "Duet's kernels multiply bf16 and fp16, not {}",
            problem.dtype.name()
        ));
    }
    let aligned = problem.align.iter().all(|align| align.is_multiple_of(16))
        && problem.ld.iter().all(|ld| (ld * size).is_multiple_of(16));
    if !aligned {
        return Some("a matrix whose rows begin at no multiples of 16 bytes".to_owned());
    }
    let small = |size: u64| (1..=1 << 30).contains(&size);
    match [problem.m, problem.n, problem.k].into_iter().all(small) {
        true => None,
        false => Some("a matrix without elements or of more than 2^30 rows or columns".to_owned()),
    }
}

impl Tiles {
    /// None are compiled yet.
    pub fn new(gpu: &Rc<Gpu>, cache: &Cache) -> Self {
        Self {
            gpu: Rc::clone(gpu),
            cache: cache.clone(),
            kernels: BTreeMap::new(),
            known: BTreeMap::new(),
        }
    }

    /// The GPU they run on.
    pub const fn gpu(&self) -> &Rc<Gpu> {
        &self.gpu
    }

    /// Takes a kernel for `problem`, whose rows come in stages (none: all at once), unless one is taken:
    /// the one that should be fastest, or with [`Pick::Fastest`] and a trial, which waits for
    /// nothing, the fastest of the first few.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for a problem that is refused, and the compiler's and driver's.
    pub fn choose(
        &mut self,
        problem: Problem,
        stages: &[Stage],
        pick: Pick,
        trial: Option<&Trial<'_>>,
    ) -> Result<Chosen, GpuError> {
        let key = (problem, stages.to_vec());
        if let Some(chosen) = self.known.get(&key)
            && (chosen.time.is_some() || pick == Pick::Heuristic || trial.is_none())
        {
            return Ok(*chosen);
        }
        if let Some(reason) = refused(&problem) {
            return Err(GpuError::Argument(reason));
        }
        let ranked = Tile::ranked(&problem, self.gpu.attributes(), stages);
        let of = match (pick, trial) {
            (Pick::Fastest { of }, Some(_)) => of as usize,
            _ => 1,
        };
        let tiles: Vec<Tile> = ranked.into_iter().take(of.max(1)).collect();
        for tile in &tiles {
            self.load(*tile, Does::of(&problem))?;
        }
        let chosen = match (trial, &tiles[..]) {
            (_, []) => {
                return Err(GpuError::Argument(
                    "no kernel fits this GPU's shared memory".to_owned(),
                ));
            }
            (Some(trial), [_, _, ..]) => self.fastest(&problem, stages, &tiles, trial)?,
            (_, [tile, ..]) => Chosen {
                tile: *tile,
                time: None,
            },
        };
        self.known.insert(key, chosen);
        Ok(chosen)
    }

    /// Compiles and loads the kernel of a tile, once.
    ///
    /// # Errors
    /// The compiler's and the driver's.
    pub fn load(&mut self, tile: Tile, does: Does) -> Result<Resources, GpuError> {
        let build = (tile, does);
        if let Some(kernel) = self.kernels.get(&build) {
            return kernel.resources();
        }
        let options = tile.options(does);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let arch = self.gpu.arch();
        let code = compiled(tile.file(), &arch, &options, &self.cache)?;
        let kernel = Module::load(&self.gpu, &code)?.kernel("gemm")?;
        kernel.allow_shared(tile.shared())?;
        let resources = kernel.resources()?;
        self.kernels.insert(build, kernel);
        Ok(resources)
    }

    /// Times the kernels in rounds, each once a round, and takes the least median; where rows come in
    /// stages, with what these should add.
    fn fastest(
        &self,
        problem: &Problem,
        stages: &[Stage],
        tiles: &[Tile],
        trial: &Trial<'_>,
    ) -> Result<Chosen, GpuError> {
        let (begin, end) = (Event::new(&self.gpu, true)?, Event::new(&self.gpu, true)?);
        let mut times = vec![Vec::with_capacity(ROUNDS); tiles.len()];
        // The first round warms up and is not counted.
        for round in 0..=ROUNDS {
            for (&tile, times) in tiles.iter().zip(&mut times) {
                trial.stream.record(&begin)?;
                self.launch(
                    trial.stream,
                    problem,
                    tile,
                    trial.matrices,
                    Beside::default(),
                )?;
                trial.stream.record(&end)?;
                end.finish(trial.limit, "a trial of a GEMM")?;
                if round > 0 {
                    times.push(begin.seconds_to(&end)?);
                }
            }
        }
        let mut best = Chosen {
            tile: tiles[0],
            time: None,
        };
        for (&tile, times) in tiles.iter().zip(&mut times) {
            times.sort_by(f64::total_cmp);
            let sms = match problem.sms {
                0 => self.gpu.attributes().sms,
                some => some,
            };
            let stretched = tile.cost_in_stages(problem, sms, stages) / tile.cost(problem, sms);
            let median = times[ROUNDS / 2] * stretched;
            if best.time.is_none_or(|time| median < time) {
                let time = Some(median);
                best = Chosen { tile, time };
            }
        }
        Ok(best)
    }

    /// What is taken for `problem`, whose rows come in stages.
    pub fn chosen(&self, problem: &Problem, stages: &[Stage]) -> Option<&Chosen> {
        self.known.get(&(*problem, stages.to_vec()))
    }

    /// Enqueues a product whose kernel is chosen, all rows at once.
    ///
    /// # Errors
    /// [`GpuError::Argument`] when none is chosen, [`GpuError::Bounds`], and the driver's.
    pub fn run(
        &self,
        stream: &Stream,
        problem: &Problem,
        matrices: (Region, Region, Region),
    ) -> Result<(), GpuError> {
        let Some(Chosen { tile, .. }) = self.chosen(problem, &[]) else {
            return Err(GpuError::Argument(format!(
                "no kernel was chosen for {problem:?}"
            )));
        };
        self.launch(stream, problem, *tile, matrices, Beside::default())
    }
}
