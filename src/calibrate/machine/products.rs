//! GEMM times over a grid, and what bounds them: memory, adds, clock under load.
//!
//! A sample is a burst of GEMMs in a row, so that each begins while the one before ends, as in a
//! schedule. Every round takes all shapes in a new random order, with a reference product between
//! them; a shape's times are scaled by (median of the reference) / (the reference just before), so
//! that clocks that drift with the load do not favour some shapes.

use std::time::Duration;

use super::Section;
use super::book::{Book, Product};
use super::estimate::{Estimate, median};
use super::lab::Lab;
use crate::device::DType;
use crate::gpu::GpuError;
use crate::gpu::kernels::Matrix;
use crate::gpu::lt::{Pick, Problem, alignment};
use crate::gpu::raw::{Region, Stream};

pub const SECTION: Section = Section {
    name: "gemm",
    about: "GEMMs, memory and clocks",
    share: 10,
    run,
};

const DTYPE: DType = DType::Bf16;
/// Edge of the reference product.
const EDGE: u64 = 8192;
/// GEMMs of a burst.
const BURST: u32 = 3;
/// Shapes between two references.
const BETWEEN: usize = 12;
/// Bytes of a matrix at most.
const MOST: u64 = 1 << 30;

/// `k × n` of the columns, the first three first in a quick calibration.
pub const COLUMNS: [(u64, u64); 12] = [
    (8192, 8192),
    (8192, 3584),
    (4096, 4096),
    (12288, 6144),
    (3584, 8192),
    (8192, 1024),
    (1024, 8192),
    (8192, 28672),
    (28672, 8192),
    (2048, 2048),
    (4096, 14336),
    (5120, 5120),
];
/// Rows m.
pub const ROWS: [u64; 22] = [
    64, 96, 128, 192, 256, 320, 384, 512, 640, 768, 1024, 1280, 1536, 2048, 2560, 3072, 4096, 5120,
    6144, 8192, 12288, 16384,
];

/// A product with its place in memory.
pub struct Ready {
    problem: Problem,
    matrices: (Region, Region, Region),
}

impl Ready {
    /// Chooses the library's first algorithm.
    pub fn new(lab: &Lab<'_>, g: usize, [m, n, k]: [u64; 3]) -> Result<Self, GpuError> {
        let unit = &lab.units[g];
        let size = DTYPE.size();
        let matrices = (
            unit.matrix(0, m * k * size)?,
            unit.matrix(1, k * n * size)?,
            unit.matrix(2, m * n * size)?,
        );
        let align = [matrices.0, matrices.1, matrices.2].map(|r| alignment(r.address()));
        let problem = Problem {
            m,
            n,
            k,
            ld: [k, n, n],
            align,
            dtype: DTYPE,
            accumulate: false,
            sms: 0,
        };
        unit.gemms
            .borrow_mut()
            .choose(problem, Pick::Heuristic, None)?;
        let ready = Self { problem, matrices };
        // Once by itself: the library loads its kernels at first use, which waits for whatever
        // spins on the GPU, the gate of a sample included.
        ready.run(lab, g, &unit.streams[0])?;
        lab.finish()?;
        Ok(ready)
    }

    /// Enqueues it on a stream, which alone may use the workspace.
    pub fn run(&self, lab: &Lab<'_>, g: usize, stream: &Stream) -> Result<(), GpuError> {
        let unit = &lab.units[g];
        let gemms = unit.gemms.borrow();
        gemms.run(stream, &self.problem, self.matrices, unit.workspace()?)
    }

    /// One of a burst \[s\].
    fn burst(&self, lab: &Lab<'_>, burst: u32) -> Result<f64, GpuError> {
        let time = lab.time(0, |s| (0..burst).try_for_each(|_| self.run(lab, 0, s)))?;
        Ok(time / f64::from(burst))
    }
}

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    rates(lab, book)?;
    let reference = Ready::new(lab, 0, [EDGE; 3])?;
    let mut shapes = Vec::new();
    for &(k, n) in &COLUMNS[..if lab.quick { 3 } else { COLUMNS.len() }] {
        for &m in ROWS.iter().step_by(if lab.quick { 4 } else { 1 }) {
            let fits = |a: u64, b: u64| a * b * DTYPE.size() <= MOST.min(lab.units[0].most(1));
            if fits(m, k) && fits(k, n) && fits(m, n) {
                shapes.push(Ready::new(lab, 0, [m, n, k])?);
            }
        }
    }
    tiles(lab, book)?;
    let mut rng = fastrand::Rng::with_seed(11);
    let mut order: Vec<usize> = (0..shapes.len()).collect();
    let mut references = Vec::new();
    // Times with the index of the reference before them.
    let mut times: Vec<Vec<(f64, usize)>> = vec![Vec::new(); shapes.len()];
    for round in 0..=lab.reps(3, 15) {
        rng.shuffle(&mut order);
        for (i, &shape) in order.iter().enumerate() {
            if i % BETWEEN == 0 {
                references.push(reference.burst(lab, BURST)?);
            }
            let time = shapes[shape].burst(lab, BURST)?;
            // The first round warms up.
            if round > 0 {
                times[shape].push((time, references.len() - 1));
            }
        }
        if book.spent() && round > 1 {
            book.note(format!("out of time after {round} rounds"));
            break;
        }
    }
    clocks(lab, book, &reference)?;
    let middle = median(&references).unwrap_or(1.0);
    book.times("reference 8192x8192x8192", 8192.0, &references);
    book.fact("gemm.reference", Estimate::median(&references));
    for (shape, times) in shapes.iter().zip(&times) {
        let scaled: Vec<f64> = times
            .iter()
            .map(|&(time, at)| time * middle / references[at])
            .collect();
        let Problem { m, n, k, .. } = shape.problem;
        book.times(&format!("k{k}n{n}"), m as f64, &scaled);
        if let Some(time) = Estimate::median(&scaled) {
            book.product(Product { m, n, k, time });
        }
    }
    Ok(())
}

/// Which algorithm the library names over a denser grid; asking takes no GPU time.
fn tiles(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let gemms = lab.units[0].gemms.borrow();
    for &(k, n) in &COLUMNS[..if lab.quick { 1 } else { COLUMNS.len() }] {
        let mut last = String::new();
        // Steps of half a tile up to 2048 rows, then of an eighth.
        let small = (1..=32).map(|i| 64 * i);
        let large = (1..=24).map(|i| 2048 + 256 * i);
        for m in small.chain(large) {
            let problem = Problem {
                m,
                n,
                k,
                ld: [k, n, n],
                align: [256; 3],
                dtype: DTYPE,
                accumulate: false,
                sms: 0,
            };
            let Some(guess) = gemms.guesses(problem, 1)?.into_iter().next() else {
                continue;
            };
            let words = guess.config.to_string().replace(',', ";");
            // Rows with the algorithm of the row before are left out.
            if words != last {
                let waves = f64::from(guess.algo.waves);
                book.raw(&format!("lt k{k}n{n} {words}"), m as f64, "waves", &[waves]);
                last = words;
            }
        }
    }
    Ok(())
}

/// Rates of what memory bounds: sums, and GEMMs of few rows.
fn rates(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let unit = &lab.units[0];
    let (rows, cols) = (8192, 8192);
    let bytes = rows * cols * DTYPE.size();
    let matrix = |i: u64| {
        unit.matrix(i, bytes)
            .map(|start| Matrix { start, ld: cols })
    };
    let (x, y, out) = (matrix(0)?, matrix(1)?, matrix(2)?);
    let add = |s: &Stream| unit.kernels.add(s, DTYPE, &[x, y], out, (rows, cols), 0);
    let skinny = Ready::new(lab, 0, [16, 16384, 16384])?;
    let skinny_bytes = (16384 * 16384 + 2 * 16 * 16384) * DTYPE.size();
    let (mut sums, mut floors) = (Vec::new(), Vec::new());
    for rep in 0..=lab.reps(3, 9) {
        let sum = lab.time(0, |s| (0..4).try_for_each(|_| add(s)))? / 4.0;
        let floor = skinny.burst(lab, 4)?;
        if rep > 0 {
            sums.push(3.0 * bytes as f64 / sum);
            floors.push(skinny_bytes as f64 / floor);
        }
    }
    book.raw("sum of two", bytes as f64, "bytes/s", &sums);
    book.raw("GEMM of 16 rows", skinny_bytes as f64, "bytes/s", &floors);
    book.fact("add.rate", Estimate::median(&sums));
    book.fact("gemm.floor", Estimate::median(&floors));
    Ok(())
}

/// Clock and power after sustained GEMMs.
fn clocks(lab: &Lab<'_>, book: &Book<'_>, reference: &Ready) -> Result<(), GpuError> {
    let unit = &lab.units[0];
    let pci = &unit.gpu.attributes().pci;
    let (mut clocks, mut watts, mut counted) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..lab.reps(3, 12) {
        let stream = &unit.streams[0];
        for _ in 0..20 {
            reference.run(lab, 0, stream)?;
        }
        // Under way by now.
        std::thread::sleep(Duration::from_millis(15));
        if let Some(nvml) = lab.session.nvml() {
            let state = nvml.state(pci);
            clocks.extend(state.sm_mhz.map(|mhz| f64::from(mhz) * 1e6));
            watts.extend(state.power_w);
        }
        let out = unit.stage.region().cut(0, 16)?;
        unit.kernels
            .clock_rate(stream, Duration::from_micros(200), out)?;
        lab.finish()?;
        let word = |i| Ok::<f64, GpuError>(f64::from(unit.stage.load(i)?));
        counted.push(word(0)? / word(2)?.max(1.0) * 1e9);
    }
    book.raw("clock under GEMMs", 0.0, "Hz", &clocks);
    book.raw("clock counted right after", 0.0, "Hz", &counted);
    book.raw("power under GEMMs", 0.0, "W", &watts);
    book.fact("clock.load", Estimate::median(&clocks));
    book.fact("clock.after", Estimate::median(&counted));
    book.fact("power.load", Estimate::median(&watts));
    Ok(())
}
