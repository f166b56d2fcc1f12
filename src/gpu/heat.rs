//! Bringing GPUs into one thermal state before something is timed on them.
//!
//! Clocks move with load. An H200 that idles runs a product at its highest clock; once the power
//! averaged over some 100 ms reaches the limit, it lowers the clock until the same product takes
//! 20 % longer. With pauses too short to cool it hunts between the two. What was seen to be the same
//! every time, to half a percent, is the state of a GPU that rests for longer than it works: the
//! highest clock. So before each measurement
//!
//! ```text
//! rest  = max(4 ms, 1.5 × time that the measurement before kept the GPUs busy)    [`Pace`]
//! heat  = ⌈ 0.4 ms / time of one ⌉ products of random matrices                    [`Heater`]
//! ```
//!
//! The products are short: they wake the GPU up, because the first kernel after a pause takes tens
//! of microseconds longer. How much slower sustained load is, is a measurement of its own.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::GpuError;
use super::kernels::{Kernels, Matrix};
use super::lt::{Gemms, Pick, Problem, WORKSPACE};
use super::raw::{Event, Gpu, Memory, Region, Stream};
use crate::device::DType;

/// Time of heating where nothing else is asked: what wakes a GPU up after a rest.
pub const WARM: Duration = Duration::from_micros(400);
/// Shortest rest before a measurement.
const REST: Duration = Duration::from_millis(4);
/// Rest by the time that GPUs were busy before.
const REST_BY_BUSY: f64 = 1.5;
/// Edge of the matrices, if memory allows.
const EDGE: u64 = 4096;
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

/// Lets GPUs rest between measurements.
#[derive(Debug, Default)]
pub struct Pace {
    /// When they have rested.
    rested: Cell<Option<Instant>>,
}

impl Pace {
    /// Sleeps until the GPUs have rested.
    pub fn rest(&self) {
        let left = self
            .rested
            .take()
            .and_then(|at| at.checked_duration_since(Instant::now()));
        if let Some(left) = left {
            std::thread::sleep(left);
        }
    }

    /// Says that GPUs were busy for so long until now.
    pub fn worked(&self, busy: Duration) {
        let rest = rest_after(busy);
        self.rested.set(Instant::now().checked_add(rest));
    }
}

/// How long GPUs rest that were busy for so long.
pub fn rest_after(busy: Duration) -> Duration {
    REST.max(busy.mul_f64(REST_BY_BUSY))
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
    fn rests_are_longer_than_work() {
        let ms = Duration::from_millis;
        assert_eq!(rest_after(ms(0)), ms(4));
        assert_eq!(rest_after(ms(2)), ms(4));
        assert_eq!(rest_after(ms(10)), ms(15));
        let pace = Pace::default();
        pace.rest(); // Nothing to wait for.
        let begin = Instant::now();
        pace.worked(ms(4));
        pace.rest();
        assert!(begin.elapsed() >= ms(6));
    }

    #[test]
    fn matrices_shrink_with_the_memory_that_is_left() {
        assert_eq!(edge(140 << 30), 4096);
        // 3 matrices of 32 MiB and 32 MiB of workspace are 128 MiB.
        assert_eq!(edge(8 * (128 << 20)), 4096);
        assert_eq!(edge(8 * (128 << 20) - 1), 2048);
        assert_eq!(edge(0), 1024);
    }
}
