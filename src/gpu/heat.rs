//! Bringing a GPU to the clock of sustained load before something is timed on it.
//!
//! A GPU that idles between measurements raises its clock and lowers it within milliseconds of
//! work: by 13 % on an H200, depending on power. What is timed right after a pause therefore runs
//! at a clock that no long program has. A [`Heater`] multiplies the same two matrices of random
//! numbers (how much power a product draws depends on its numbers) for as long as is asked,
//!
//! ```text
//! products = ⌈ time asked / time of one ⌉      time of one: mean of a first few, measured once
//! ```
//!
//! so that a measurement that follows begins in the thermal state that GEMMs leave behind, however
//! long the host took before it.

use std::rc::Rc;
use std::time::Duration;

use super::GpuError;
use super::kernels::{Kernels, Matrix};
use super::lt::{Gemms, Pick, Problem, WORKSPACE};
use super::raw::{Event, Gpu, Memory, Region, Stream};
use crate::device::DType;

/// Time of heating where nothing else is asked: twice what an 8192³ product takes on an H200.
pub const WARM: Duration = Duration::from_millis(3);
/// Edge of the matrices, if memory allows.
const EDGE: u64 = 8192;
/// Smallest edge: a product that still fills a GPU.
const LEAST: u64 = 1024;
/// Part of the free memory that the matrices may take.
const PART: u64 = 8;
/// Most products of one heating, so that no queue fills up.
const MOST: u32 = 200;
/// Products of the first timing, after one that is not counted.
const FIRST: u32 = 4;
const DTYPE: DType = DType::Bf16;

/// A product that heats one GPU, with memory of its own.
#[derive(Debug)]
pub struct Heater {
    gemms: Gemms,
    problem: Problem,
    memory: Memory,
    /// Of one product \[s\].
    time: f64,
}

impl Heater {
    /// Takes memory, of which `free` bytes are left; fills it, chooses the algorithm and times the
    /// product on `stream`, which is idle.
    ///
    /// # Errors
    /// [`GpuError::Memory`], [`GpuError::Timeout`], and the libraries'.
    pub fn new(
        gpu: &Rc<Gpu>,
        kernels: &Kernels,
        stream: &Stream,
        free: u64,
        limit: Duration,
    ) -> Result<Self, GpuError> {
        let edge = edge(free);
        let mut gemms = Gemms::new(gpu)?;
        let problem = Problem {
            m: edge,
            n: edge,
            k: edge,
            ld: [edge; 3],
            align: [256; 3],
            dtype: DTYPE,
            accumulate: false,
            sms: 0,
        };
        let memory = Memory::new(gpu, bytes(edge))?;
        let all = Matrix {
            start: memory.region(),
            ld: edge,
        };
        kernels.fill(stream, DTYPE, all, (3 * edge, edge), 1, (0, 0))?;
        gemms.choose(problem, Pick::Heuristic, None)?;
        let mut heater = Self {
            gemms,
            problem,
            memory,
            time: 0.0,
        };
        let (begin, end) = (Event::new(gpu, true)?, Event::new(gpu, true)?);
        heater.product(stream)?;
        stream.record(&begin)?;
        (0..FIRST).try_for_each(|_| heater.product(stream))?;
        stream.record(&end)?;
        stream.finish(limit, "a product that heats the GPU")?;
        heater.time = begin.seconds_to(&end)? / f64::from(FIRST);
        Ok(heater)
    }

    /// Enqueues products for about `warm`, rounded up; none for zero.
    ///
    /// # Errors
    /// The libraries'.
    pub fn heat(&self, stream: &Stream, warm: Duration) -> Result<(), GpuError> {
        (0..products(warm, self.time)).try_for_each(|_| self.product(stream))
    }

    fn product(&self, stream: &Stream) -> Result<(), GpuError> {
        let edge = self.problem.m;
        let each = edge * edge * DTYPE.size();
        let all = self.memory.region();
        let matrix = |i: u64| all.cut(i * each, each);
        let matrices: (Region, Region, Region) = (matrix(0)?, matrix(1)?, matrix(2)?);
        let workspace = all.cut(3 * each, WORKSPACE)?;
        self.gemms.run(stream, &self.problem, matrices, workspace)
    }
}

/// Bytes that a heater with matrices of this edge takes.
const fn bytes(edge: u64) -> u64 {
    3 * edge * edge * DTYPE.size() + WORKSPACE
}

/// The largest edge, halved from [`EDGE`] on, that fits into its part of `free` bytes.
const fn edge(free: u64) -> u64 {
    let mut edge = EDGE;
    while edge > LEAST && bytes(edge) > free / PART {
        edge /= 2;
    }
    edge
}

/// How many products of `time` seconds last as long as `warm`.
fn products(warm: Duration, time: f64) -> u32 {
    // A time of 0 makes the quotient infinite, which the cast saturates.
    match warm.is_zero() {
        true => 0,
        false => ((warm.as_secs_f64() / time).ceil() as u32).clamp(1, MOST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_last_at_least_as_long_as_asked() {
        let ms = Duration::from_millis;
        assert_eq!(products(ms(3), 1.6e-3), 2);
        assert_eq!(products(ms(3), 1.5e-3), 2);
        assert_eq!(products(ms(3), 1.4e-3), 3);
        assert_eq!(products(ms(3), 1.0), 1);
        assert_eq!(products(ms(3), 0.0), MOST);
        assert_eq!(products(Duration::ZERO, 1e-3), 0);
    }

    #[test]
    fn matrices_shrink_with_the_memory_that_is_left() {
        assert_eq!(edge(140 << 30), 8192);
        // 3 matrices of 128 MiB and 32 MiB of workspace are 416 MiB.
        assert_eq!(edge(8 * (416 << 20)), 8192);
        assert_eq!(edge(8 * (416 << 20) - 1), 4096);
        assert_eq!(edge(1 << 30), 4096);
        assert_eq!(edge(0), 1024);
    }
}
