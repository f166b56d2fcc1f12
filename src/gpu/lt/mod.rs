//! Matrix products by cuBLASLt, each with an algorithm that stays the same.
//!
//! The library's choice can change with free memory and version, so it is asked once per
//! [`Problem`] and the answer is pinned: [`Gemms::choose`], then [`Gemms::run`] any number of
//! times. Pins can be written to a file and read again ([`Gemms::pins`], [`Gemms::pin`]).

mod config;
mod pins;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

pub use config::Config;
pub use pins::{Pin, Pins};

use super::GpuError;
use super::raw::lt::{Algo, Handle, Matmul};
use super::raw::{Event, Gpu, Region, Stream};

pub use super::raw::lt::{Problem, present, version};

/// Workspace that algorithms may use, one per stream: what the library's vendor advises on Hopper.
pub const WORKSPACE: u64 = 32 << 20;
/// Rounds of a trial.
const ROUNDS: usize = 5;

/// How an algorithm is chosen.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The library's first guess, as frameworks do.
    Heuristic,
    /// The fastest of its first guesses, timed.
    Fastest { of: u32 },
}

/// Where a trial runs: a stream, the matrices A, B and C, a workspace.
#[derive(Copy, Clone, Debug)]
pub struct Trial<'a> {
    pub stream: &'a Stream,
    pub matrices: (Region, Region, Region),
    pub workspace: Region,
    pub limit: Duration,
}

/// A pinned algorithm.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Chosen {
    pub algo: Algo,
    pub config: Config,
    /// Median time of the trial \[seconds\]; `None` without one.
    pub time: Option<f64>,
}

/// What is known of a problem.
#[derive(Debug)]
struct Known {
    matmul: Matmul,
    chosen: Chosen,
    /// From a file.
    fixed: bool,
}

/// The products of one GPU.
#[derive(Debug)]
pub struct Gemms {
    handle: Handle,
    known: BTreeMap<Problem, Known>,
}

impl Gemms {
    /// Starts the library on `gpu`.
    ///
    /// # Errors
    /// The library's.
    pub fn new(gpu: &Rc<Gpu>) -> Result<Self, GpuError> {
        Ok(Self {
            handle: Handle::new(gpu)?,
            known: BTreeMap::new(),
        })
    }

    /// The GPU it works on.
    pub const fn gpu(&self) -> &Rc<Gpu> {
        self.handle.gpu()
    }

    /// Pins an algorithm for `problem`, unless one is pinned. [`Pick::Fastest`] needs a `trial`, and
    /// replaces a guess that was never timed, so that all products of a comparison are chosen alike;
    /// what a file held stays.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for a shape or type that cannot be, and the library's.
    pub fn choose(
        &mut self,
        problem: Problem,
        pick: Pick,
        trial: Option<&Trial<'_>>,
    ) -> Result<Chosen, GpuError> {
        if let Some(Known { chosen, fixed, .. }) = self.known.get(&problem) {
            let timed = chosen.time.is_some() || pick == Pick::Heuristic || trial.is_none();
            if timed || *fixed {
                return Ok(*chosen);
            }
        }
        let matmul = Matmul::new(problem)?;
        let of = match pick {
            Pick::Heuristic => 1,
            Pick::Fastest { of } => of,
        };
        let algos = self.handle.heuristics(&matmul, WORKSPACE, of)?;
        let (algo, time) = match trial {
            Some(trial) if algos.len() > 1 => self.fastest(&matmul, &algos, trial)?,
            _ => (algos[0], None),
        };
        Ok(self.keep(matmul, algo, time, false))
    }

    fn keep(&mut self, matmul: Matmul, algo: Algo, time: Option<f64>, fixed: bool) -> Chosen {
        let chosen = Chosen {
            algo,
            config: Config::of(&algo),
            time,
        };
        let known = Known {
            matmul,
            chosen,
            fixed,
        };
        self.known.insert(*known.matmul.problem(), known);
        chosen
    }

    /// The library's first guesses for `problem`, best first; asking takes no GPU time.
    ///
    /// # Errors
    /// As [`Self::choose`].
    pub fn guesses(&self, problem: Problem, count: u32) -> Result<Vec<Chosen>, GpuError> {
        let algos = self
            .handle
            .heuristics(&Matmul::new(problem)?, WORKSPACE, count)?;
        Ok(algos
            .into_iter()
            .map(|algo| Chosen {
                config: Config::of(&algo),
                algo,
                time: None,
            })
            .collect())
    }

    /// Times the algorithms in rounds, each once a round, and takes the least median.
    fn fastest(
        &self,
        matmul: &Matmul,
        algos: &[Algo],
        trial: &Trial<'_>,
    ) -> Result<(Algo, Option<f64>), GpuError> {
        let gpu = self.gpu();
        let (begin, end) = (Event::new(gpu, true)?, Event::new(gpu, true)?);
        let mut times = vec![Vec::with_capacity(ROUNDS); algos.len()];
        // The first round warms up and is not counted.
        for round in 0..=ROUNDS {
            for (algo, times) in algos.iter().zip(&mut times) {
                trial.stream.record(&begin)?;
                self.handle
                    .run(trial.stream, matmul, algo, trial.matrices, trial.workspace)?;
                trial.stream.record(&end)?;
                end.finish(trial.limit, "a trial of a GEMM")?;
                if round > 0 {
                    times.push(begin.seconds_to(&end)?);
                }
            }
        }
        let best = times
            .iter_mut()
            .map(|times| {
                times.sort_by(f64::total_cmp);
                times[ROUNDS / 2]
            })
            .enumerate()
            .min_by(|(_, a), (_, b)| a.total_cmp(b));
        Ok(best.map_or((algos[0], None), |(at, time)| (algos[at], Some(time))))
    }

    /// What is pinned for `problem`.
    pub fn chosen(&self, problem: &Problem) -> Option<&Chosen> {
        self.known.get(problem).map(|known| &known.chosen)
    }

    /// Enqueues a product whose algorithm is pinned; `workspace` belongs to the stream alone.
    ///
    /// # Errors
    /// [`GpuError::Argument`] when none is pinned, [`GpuError::Bounds`], and the library's.
    pub fn run(
        &self,
        stream: &Stream,
        problem: &Problem,
        matrices: (Region, Region, Region),
        workspace: Region,
    ) -> Result<(), GpuError> {
        let Some(Known { matmul, chosen, .. }) = self.known.get(problem) else {
            return Err(GpuError::Argument(format!(
                "no algorithm was chosen for {problem:?}"
            )));
        };
        for (region, align) in [matrices.0, matrices.1, matrices.2]
            .iter()
            .zip(problem.align)
        {
            if region.address() % u64::from(align.max(1)) != 0 {
                return Err(GpuError::Argument(format!(
                    "a matrix at an address that is no multiple of {align}"
                )));
            }
        }
        self.handle
            .run(stream, matmul, &chosen.algo, matrices, workspace)
    }

    /// Everything pinned, to be kept in a file.
    pub fn pins(&self) -> Vec<Pin> {
        self.known
            .iter()
            .map(|(problem, known)| Pin::new(*problem, &known.chosen))
            .collect()
    }

    /// Pins what a file held, if the library still takes it.
    ///
    /// # Errors
    /// The library's when the algorithm does not fit, [`GpuError::Argument`] for a broken pin.
    pub fn pin(&mut self, pin: &Pin) -> Result<(), GpuError> {
        let (problem, mut algo) = pin.parts()?;
        let matmul = Matmul::new(problem)?;
        algo.workspace = self.handle.fits(&matmul, &algo)?;
        self.keep(matmul, algo, pin.time_s, true);
        Ok(())
    }
}

/// What all addresses are multiples of, at most 256 bytes: [`Problem::align`].
pub const fn alignment(address: u64) -> u32 {
    1 << (if address == 0 {
        8
    } else if address.trailing_zeros() < 8 {
        address.trailing_zeros()
    } else {
        8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_is_a_power_of_two_up_to_256() {
        assert_eq!(alignment(0), 256);
        assert_eq!(alignment(4096), 256);
        assert_eq!(alignment(4096 + 128), 128);
        assert_eq!(alignment(4096 + 6), 2);
        assert_eq!(alignment(1), 1);
    }
}
