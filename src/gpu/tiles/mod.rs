//! Matrix products by our own kernels (`kernels/gemm_*.cu`).
//!
//! They stand beside the library's ([`lt`](super::lt)) and are used in the same way:
//! [`Tiles::choose`] once for a [`Problem`], then [`Tiles::run`] any number of times. What they can
//! do beyond a library: rows of C in an order of our own, each waiting for flags ([`Gate`]).

mod order;
mod tile;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

pub use order::{Group, order};
pub use tile::{Family, Tile};

use super::GpuError;
use super::cache::Cache;
use super::kernels::{Epoch, compiled};
use super::lt::{Pick, Problem, Trial};
use super::raw::{Args, Boxes, Event, Gpu, Kernel, Launch, Module, Region, Resources, Stream};
use crate::device::DType;

/// Rounds of a trial.
const ROUNDS: usize = 5;
/// Rows of C whose tiles blocks take at the same time, so that they share B in the cache.
const GROUP_ROWS: u64 = 2048;

/// What the rows of a product wait for.
#[derive(Copy, Clone, Debug)]
pub struct Gate {
    /// The tables that [`order`] made for the product's tile.
    pub bands: Region,
    pub waits: Region,
    /// Added to the waits' offsets.
    pub epoch: Epoch,
    /// How long a wait may take.
    pub limit: Duration,
    /// [`STATUS_WORDS`](super::kernels::STATUS_WORDS) words, zero before.
    pub status: Region,
}

/// The kernel of a problem.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Chosen {
    pub tile: Tile,
    /// Median time of the trial \[seconds\]; `None` without one.
    pub time: Option<f64>,
}

/// A compiled kernel.
type Build = (Tile, DType, bool);

/// The kernels on one GPU, compiled when first chosen.
#[derive(Debug)]
pub struct Tiles {
    gpu: Rc<Gpu>,
    cache: Cache,
    kernels: BTreeMap<Build, Kernel>,
    known: BTreeMap<Problem, Chosen>,
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
    let aligned = problem.align.iter().all(|align| align % 16 == 0)
        && problem.ld.iter().all(|ld| ld * size % 16 == 0);
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

    /// Takes a kernel for `problem`, unless one is taken: the one that should be fastest, or with
    /// [`Pick::Fastest`] and a trial the fastest of the first few.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for a problem that is refused, and the compiler's and driver's.
    pub fn choose(
        &mut self,
        problem: Problem,
        pick: Pick,
        trial: Option<&Trial<'_>>,
    ) -> Result<Chosen, GpuError> {
        if let Some(chosen) = self.known.get(&problem) {
            if chosen.time.is_some() || pick == Pick::Heuristic || trial.is_none() {
                return Ok(*chosen);
            }
        }
        if let Some(reason) = refused(&problem) {
            return Err(GpuError::Argument(reason));
        }
        let ranked = Tile::ranked(&problem, self.gpu.attributes());
        let of = match (pick, trial) {
            (Pick::Fastest { of }, Some(_)) => of as usize,
            _ => 1,
        };
        let tiles: Vec<Tile> = ranked.into_iter().take(of.max(1)).collect();
        for tile in &tiles {
            self.load(*tile, problem.dtype, problem.accumulate)?;
        }
        let chosen = match (trial, &tiles[..]) {
            (_, []) => {
                return Err(GpuError::Argument(
                    "no kernel fits this GPU's shared memory".to_owned(),
                ));
            }
            (Some(trial), [_, _, ..]) => self.fastest(&problem, &tiles, trial)?,
            (_, [tile, ..]) => Chosen {
                tile: *tile,
                time: None,
            },
        };
        self.known.insert(problem, chosen);
        Ok(chosen)
    }

    /// Compiles and loads the kernel of a tile, once.
    ///
    /// # Errors
    /// The compiler's and the driver's.
    pub fn load(
        &mut self,
        tile: Tile,
        dtype: DType,
        accumulate: bool,
    ) -> Result<Resources, GpuError> {
        let build = (tile, dtype, accumulate);
        if let Some(kernel) = self.kernels.get(&build) {
            return kernel.resources();
        }
        let options = tile.options(dtype, accumulate);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let arch = self.gpu.arch();
        let code = compiled(tile.file(), &arch, &options, &self.cache)?;
        let kernel = Module::load(&self.gpu, &code)?.kernel("gemm")?;
        kernel.allow_shared(tile.shared())?;
        let resources = kernel.resources()?;
        self.kernels.insert(build, kernel);
        Ok(resources)
    }

    /// Times the kernels in rounds, each once a round, and takes the least median.
    fn fastest(
        &self,
        problem: &Problem,
        tiles: &[Tile],
        trial: &Trial<'_>,
    ) -> Result<Chosen, GpuError> {
        let (begin, end) = (Event::new(&self.gpu, true)?, Event::new(&self.gpu, true)?);
        let mut times = vec![Vec::with_capacity(ROUNDS); tiles.len()];
        // The first round warms up and is not counted.
        for round in 0..=ROUNDS {
            for (&tile, times) in tiles.iter().zip(&mut times) {
                trial.stream.record(&begin)?;
                self.launch(trial.stream, problem, tile, trial.matrices, None)?;
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
            let median = times[ROUNDS / 2];
            if best.time.is_none_or(|time| median < time) {
                let time = Some(median);
                best = Chosen { tile, time };
            }
        }
        Ok(best)
    }

    /// What is taken for `problem`.
    pub fn chosen(&self, problem: &Problem) -> Option<&Chosen> {
        self.known.get(problem)
    }

    /// Enqueues a product whose kernel is chosen; with a gate, its rows wait for flags.
    ///
    /// # Errors
    /// [`GpuError::Argument`] when none is chosen, [`GpuError::Bounds`], and the driver's.
    pub fn run(
        &self,
        stream: &Stream,
        problem: &Problem,
        matrices: (Region, Region, Region),
        gate: Option<&Gate>,
    ) -> Result<(), GpuError> {
        let Some(Chosen { tile, .. }) = self.known.get(problem) else {
            return Err(GpuError::Argument(format!(
                "no kernel was chosen for {problem:?}"
            )));
        };
        self.launch(stream, problem, *tile, matrices, gate)
    }

    /// The same by the kernel of `tile`, which is loaded.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn launch(
        &self,
        stream: &Stream,
        problem: &Problem,
        tile: Tile,
        matrices: (Region, Region, Region),
        gate: Option<&Gate>,
    ) -> Result<(), GpuError> {
        let build = (tile, problem.dtype, problem.accumulate);
        let Some(kernel) = self.kernels.get(&build) else {
            return Err(GpuError::Argument(format!("{tile} was not compiled")));
        };
        let (bands, columns) = tile.grid(problem.m, problem.n);
        let [a, b, c] = addresses(problem, matrices)?;
        let ld = problem.ld;
        let mut words = match tile.family {
            Family::Sm90 => self.tensors(problem, tile, matrices)?,
            Family::Sm80 => vec![a, b, c, ld[0], ld[1], ld[2]],
        };
        words.extend(gate_words(gate, bands)?);
        // C in one piece.
        words.push(0);
        if tile.family == Family::Sm90 {
            words.extend([c, ld[2]]);
        }
        let pair = |low: u64, high: u64| low | high << 32;
        let group = (GROUP_ROWS / tile.band()).max(1);
        words.extend([pair(problem.m, problem.n), pair(problem.k, group)]);
        if tile.family == Family::Sm90 {
            // The structure's alignment of 64 bytes counts at its end too.
            words.resize(words.len().next_multiple_of(8), 0);
        }
        let sms = match problem.sms {
            0 => self.gpu.attributes().sms,
            some => some.min(self.gpu.attributes().sms),
        };
        let held = match tile.family {
            Family::Sm90 => 1,
            Family::Sm80 => kernel.blocks_per_sm(tile.threads(), tile.shared())?,
        };
        let cluster = tile.cluster.0 * tile.cluster.1;
        let clusters = u64::from(sms * held.max(1) / cluster).clamp(1, (bands * columns).max(1));
        let size = Launch {
            grid: (clusters as u32 * cluster, 1),
            block: tile.threads(),
            shared: tile.shared(),
        };
        kernel.launch(stream, size, &Args::default().words(&words))
    }

    /// The matrices as the tensor copy engine sees them.
    fn tensors(
        &self,
        problem: &Problem,
        tile: Tile,
        (a, b, c): (Region, Region, Region),
    ) -> Result<Vec<u64>, GpuError> {
        let Problem { m, n, k, ld, .. } = *problem;
        let encode = |what, start, shape, ld, rows| {
            let dtype = problem.dtype;
            Boxes {
                start,
                shape,
                ld,
                dtype,
                rows,
            }
            .encode(&self.gpu, what)
        };
        let mut words = Vec::with_capacity(64);
        words.extend(encode("A", a, (m, k), ld[0], tile.rows / tile.cluster.1)?);
        words.extend(encode("B", b, (k, n), ld[1], 64)?);
        words.extend(encode("C", c, (m, n), ld[2], 64)?);
        Ok(words)
    }
}

/// Where the matrices begin.
fn addresses(problem: &Problem, (a, b, c): (Region, Region, Region)) -> Result<[u64; 3], GpuError> {
    let Problem { m, n, k, ld, .. } = *problem;
    let size = problem.dtype.size();
    Ok([
        a.matrix("A", (m, k), ld[0], size)?,
        b.matrix("B", (k, n), ld[1], size)?,
        c.matrix("C", (m, n), ld[2], size)?,
    ])
}

/// `struct Gate`.
fn gate_words(gate: Option<&Gate>, bands: u64) -> Result<[u64; 6], GpuError> {
    let Some(gate) = gate else {
        return Ok([0; 6]);
    };
    let counter = match gate.epoch.counter {
        Some(counter) => counter.need("an epoch", 4)?,
        None => 0,
    };
    let status = 4 * super::kernels::STATUS_WORDS;
    Ok([
        gate.bands.need("a table of bands", bands * order::BAND)?,
        gate.waits.address(),
        counter,
        u64::try_from(gate.limit.as_nanos()).unwrap_or(u64::MAX),
        gate.status.need("a status", status)?,
        u64::from(gate.epoch.offset),
    ])
}
