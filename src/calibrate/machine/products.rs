//! A GEMM ready to be measured.

use super::kernels::Kernel;
use super::lab::Lab;
use crate::device::DType;
use crate::gpu::GpuError;
use crate::gpu::lt::{Pick, Problem, alignment};
use crate::gpu::raw::{Region, Stream};

pub(super) const DTYPE: DType = DType::Bf16;
/// GEMMs in a row after the first: as many as take so long \[s\], and at most so many.
const IN_A_ROW: f64 = 400e-6;
const MOST_IN_A_ROW: usize = 4;
/// A GEMM that takes longer is measured alone \[s\].
const LONG: f64 = 1e-3;
/// For how long a GEMM probably takes: operations and bytes per second.
const GUESS: [f64; 2] = [600e12, 3.5e12];
/// Elements that rows are padded to.
const PAD: u64 = 64;

/// A product with its places in memory: of A and C in turn.
pub struct Ready {
    pub problem: Problem,
    places: Vec<(Region, Region, Region)>,
    pub kernel: Option<Kernel>,
}

impl Ready {
    /// Chooses the library's first algorithm.
    pub fn new(lab: &Lab<'_>, g: usize, shape: [u64; 3]) -> Result<Self, GpuError> {
        Self::of(lab, g, problem(shape))
    }

    /// As [`Self::new`] for a problem.
    pub fn of(lab: &Lab<'_>, g: usize, mut problem: Problem) -> Result<Self, GpuError> {
        let unit = &lab.units[g];
        let Problem { m, k, ld, .. } = problem;
        let size = DTYPE.size();
        // Every place begins at a multiple of 256 bytes, as all memory of runs does.
        let whole = |bytes: u64| bytes.next_multiple_of(256);
        let (a, b, c) = (
            whole(m * ld[0] * size),
            k * ld[1] * size,
            whole(m * ld[2] * size),
        );
        let turns = (1 + MOST_IN_A_ROW as u64)
            .min(unit.most(1) / a.max(c).max(1))
            .max(1);
        let b = unit.matrix(1, b)?;
        let mut places = Vec::new();
        for turn in 0..turns {
            let part =
                |which, bytes: u64| unit.matrix(which, turns * bytes)?.cut(turn * bytes, bytes);
            places.push((part(0, a)?, b, part(2, c)?));
        }
        let least = |of: fn(&(Region, Region, Region)) -> u64| {
            let all = places.iter().map(|place| alignment(of(place)));
            all.min().unwrap_or(256)
        };
        problem.align = [
            least(|p| p.0.address()),
            least(|p| p.1.address()),
            least(|p| p.2.address()),
        ];
        let chosen = unit
            .gemms
            .borrow_mut()
            .choose(problem, Pick::Heuristic, None)?;
        let ready = Self {
            problem,
            places,
            kernel: Kernel::of(&chosen.config),
        };
        // Once by itself: the library loads its kernels at first use, which waits for whatever
        // spins on the GPU, the gate of a sample included.
        ready.run(lab, g, &unit.streams[0])?;
        lab.finish()?;
        Ok(ready)
    }

    /// Enqueues it on a stream, which alone may use the workspace.
    pub fn run(&self, lab: &Lab<'_>, g: usize, stream: &Stream) -> Result<(), GpuError> {
        self.turn(lab, g, stream, 0)
    }

    /// Enqueues it with the rows of A and C whose turn it is.
    pub fn turn(&self, lab: &Lab<'_>, g: usize, stream: &Stream, i: usize) -> Result<(), GpuError> {
        let unit = &lab.units[g];
        let gemms = unit.gemms.borrow();
        let places = self.places[i % self.places.len()];
        gemms.run(stream, &self.problem, places, unit.workspace()?)
    }

    /// GEMMs that follow the first of a sample.
    pub fn further(&self) -> usize {
        let Problem { m, n, k, .. } = self.problem;
        let [m, n, k] = [m, n, k].map(|x| x as f64);
        let compute = 2.0 * m * n * k / GUESS[0];
        let memory = (m * k + k * n + m * n) * DTYPE.size() as f64 / GUESS[1];
        let time = compute.max(memory) + 5e-6;
        match time > LONG {
            true => 0,
            false => ((IN_A_ROW / time).round() as usize).clamp(1, MOST_IN_A_ROW),
        }
    }

    /// One of a burst \[s\].
    pub fn burst(&self, lab: &Lab<'_>, burst: u32) -> Result<f64, GpuError> {
        let time = lab.time(0, |s| (0..burst).try_for_each(|_| self.run(lab, 0, s)))?;
        Ok(time / f64::from(burst))
    }
}

/// A product of dense matrices, rows padded as in a run.
pub fn problem([m, n, k]: [u64; 3]) -> Problem {
    let [n_ld, k_ld] = [n, k].map(|x| x.next_multiple_of(PAD));
    Problem {
        m,
        n,
        k,
        ld: [k_ld, n_ld, n_ld],
        align: [256; 3],
        dtype: DTYPE,
        accumulate: false,
        sms: 0,
    }
}
