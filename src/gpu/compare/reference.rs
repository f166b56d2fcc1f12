//! The complete tensors on every GPU, and the comparison with what a run left.

use super::layout::{Held, Layout};
use super::{Bound, Source, Verdict, exact, seed_of};
use crate::device::DType;
use crate::gpu::GpuError;
use crate::gpu::exec::{Device, Run};
use crate::gpu::kernels::{COMPARE_BYTES, Kernels, MOST, Matrix};
use crate::gpu::lt::{Pick, Problem, WORKSPACE};
use crate::gpu::raw::{Memory, Region};
use crate::schedule::{Role, Schedule, TensorId};

/// Elements of each output buffer that the host computes; at least one of each of its pieces.
const SPOTS: u64 = 8;

/// Memory for the references of one schedule, on each GPU of a plan.
#[derive(Debug)]
pub struct Checker {
    layout: Layout,
    /// By GPU of the plan.
    memories: Vec<Memory>,
}

impl Checker {
    /// Takes the memory.
    ///
    /// # Errors
    /// [`GpuError::Memory`], and [`GpuError::Argument`] for a schedule whose results have no
    /// reference.
    pub fn new(run: &Run<'_>) -> Result<Self, GpuError> {
        let layout = Layout::of(run.schedule())?;
        let end = layout.results + COMPARE_BYTES + WORKSPACE;
        let mut memories = Vec::new();
        for (gpu, _) in run.plan().gpus.iter().enumerate() {
            let device = run.device(gpu);
            let position = run.machine().position(device.gpu.ordinal())?;
            run.machine().need_memory(position, end)?;
            memories.push(Memory::new(&device.gpu, end)?);
        }
        Ok(Self { layout, memories })
    }

    /// Whether it serves another run as well: one with the same tensors on the same GPUs.
    pub fn serves(&self, run: &Run<'_>) -> bool {
        let gpus = 0..run.plan().gpus.len();
        let here = gpus.map(|gpu| run.device(gpu).gpu.ordinal());
        let own = self.memories.iter().map(|memory| memory.gpu().ordinal());
        here.eq(own) && Layout::of(run.schedule()).is_ok_and(|layout| layout == self.layout)
    }

    /// Bytes of memory that it takes on each GPU.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for a schedule whose results have no reference.
    pub fn memory(schedule: &Schedule) -> Result<u64, GpuError> {
        Ok(Layout::of(schedule)?.results + COMPARE_BYTES + WORKSPACE)
    }

    /// Compares the outputs that a run left in half `parity` with what `seed` makes of the inputs.
    ///
    /// # Errors
    /// The libraries'; wrong results are in the verdict.
    pub fn check(&self, run: &Run<'_>, parity: u64, seed: u64) -> Result<Verdict, GpuError> {
        let schedule = run.schedule();
        for gpu in 0..self.memories.len() {
            for &tensor in &self.layout.wanted {
                self.compute(run, gpu, tensor, seed)?;
            }
        }
        let mut verdict = Verdict::new();
        let mut spots = fastrand::Rng::with_seed(seed);
        for (buffer, place) in schedule.buffers.iter().zip(&run.plan().places) {
            if !matches!(buffer.role, Role::Output | Role::InputOutput) {
                continue;
            }
            self.buffer(run, parity, seed, (buffer, place), &mut spots, &mut verdict)?;
        }
        Ok(verdict)
    }

    /// Compares one output buffer.
    fn buffer(
        &self,
        run: &Run<'_>,
        parity: u64,
        seed: u64,
        (buffer, place): (&crate::schedule::Buffer, &crate::gpu::plan::Place),
        random: &mut fastrand::Rng,
        verdict: &mut Verdict,
    ) -> Result<(), GpuError> {
        let schedule = run.schedule();
        let (gpu, tensor) = (place.area.gpu.index(), buffer.tensor);
        let device = run.device(gpu);
        let dtype = run.plan().dtype;
        let size = dtype.size();
        let Some(held) = self.layout.held[tensor.index()] else {
            return Ok(());
        };
        let depth = match self.layout.sources[tensor.index()] {
            Source::Drawn { .. } => 0,
            Source::Product { a, .. } => schedule.tensors[a.index()].cols,
        };
        let bound = Bound::new(dtype, self.layout.sources[tensor.index()], depth);
        let whole = run.region(&place.area, parity)?;
        let reference = self.region(gpu, held.at)?;
        let name = || format!("{}[rank {}]", buffer.name, buffer.rank.0);
        for piece in &buffer.pieces {
            let ld = u64::from(place.area.ld);
            let (rows, cols) = (u64::from(piece.rows.len), u64::from(piece.cols.len));
            let (row, col) = (u64::from(piece.rows.start), u64::from(piece.cols.start));
            let (top, left) = (u64::from(piece.global_row), u64::from(piece.global_col));
            let x = Matrix {
                start: whole.from((row * ld + col) * size)?,
                ld,
            };
            let y = Matrix {
                start: reference.from((top * held.ld + left) * size)?,
                ld: held.ld,
            };
            let results = self.memories[gpu]
                .region()
                .cut(self.layout.results, COMPARE_BYTES)?;
            let kernels = &device.kernels;
            kernels.compare(&device.control, dtype, (x, y), (rows, cols), results)?;
            finish(run, device, "comparing the outputs")?;
            let mut bytes = vec![0; COMPARE_BYTES as usize];
            self.memories[gpu].download(self.layout.results, &mut bytes)?;
            let found = Kernels::difference(&bytes, cols);
            let most = bound.relative(rows * cols);
            let relative = bound.measured(&found, rows * cols);
            verdict.note(relative, most);
            // NaN fails.
            let passes = relative <= most && found.worst <= bound.element;
            if !passes {
                let (r, c) = (found.place.0 + row, found.place.1 + col);
                verdict.fault(|| {
                    format!(
                        "{}: relative error {:.3e}, at most {most:.3e}; the worst of its elements, in row {r}, column {c}, is off by {:.3e}, at most {:.3e}",
                        name(), relative, found.worst, bound.element
                    )
                });
            }
            let spots = SPOTS.div_ceil(buffer.pieces.len() as u64);
            for _ in 0..spots.min(rows * cols) {
                let (r, c) = (random.u64(..rows), random.u64(..cols));
                let value = f64::from(run.element(&place.area, parity, row + r, col + c)?);
                let right = exact(
                    schedule,
                    &self.layout.sources,
                    seed,
                    tensor,
                    (top + r, left + c),
                )?;
                verdict.spots += 1;
                let off = (value - right).abs();
                // The host's number is not rounded, and this one is.
                let right_enough = off <= bound.element;
                if !right_enough {
                    verdict.fault(|| {
                        format!(
                            "{}: row {}, column {} is {value} instead of {right:.6}",
                            name(),
                            row + r,
                            col + c
                        )
                    });
                }
            }
        }
        Ok(())
    }

    /// Makes the reference of `tensor` on a GPU.
    fn compute(
        &self,
        run: &Run<'_>,
        gpu: usize,
        tensor: TensorId,
        seed: u64,
    ) -> Result<(), GpuError> {
        let device = run.device(gpu);
        let dtype = run.plan().dtype;
        match self.layout.sources[tensor.index()] {
            Source::Drawn { contributions: 1 } => {
                self.draw(device, dtype, gpu, tensor, seed_of(seed, tensor, 0))?;
            }
            Source::Drawn { contributions } => {
                self.sum(device, dtype, gpu, tensor, seed, contributions)?;
            }
            Source::Product { a, b, .. } => {
                for input in [a, b] {
                    self.draw(device, dtype, gpu, input, seed_of(seed, input, 0))?;
                }
                let [Some(a), Some(b), Some(c)] =
                    [a, b, tensor].map(|tensor| self.layout.held[tensor.index()])
                else {
                    return Ok(());
                };
                let problem = Problem {
                    m: c.rows,
                    n: c.cols,
                    k: a.cols,
                    ld: [a.ld, b.ld, c.ld],
                    align: [256; 3],
                    dtype,
                    accumulate: false,
                    sms: 0,
                };
                let matrices = (
                    self.region(gpu, a.at)?,
                    self.region(gpu, b.at)?,
                    self.region(gpu, c.at)?,
                );
                let space = self.region(gpu, self.layout.results + COMPARE_BYTES)?;
                let mut gemms = device.gemms.borrow_mut();
                gemms.choose(problem, Pick::Heuristic, None)?;
                gemms.run(&device.control, &problem, matrices, space)?;
            }
        }
        finish(run, device, "computing the reference")
    }

    /// Draws a tensor into its place.
    fn draw(
        &self,
        device: &Device,
        dtype: DType,
        gpu: usize,
        tensor: TensorId,
        seed: u64,
    ) -> Result<(), GpuError> {
        let Some(held) = self.layout.held[tensor.index()] else {
            return Ok(());
        };
        let matrix = self.matrix(gpu, held, held.at)?;
        let shape = (held.rows, held.cols);
        let kernels = &device.kernels;
        kernels.fill(&device.control, dtype, matrix, shape, seed, (0, 0))
    }

    /// Draws the contributions and adds them up, as many at a time as a kernel takes.
    fn sum(
        &self,
        device: &Device,
        dtype: DType,
        gpu: usize,
        tensor: TensorId,
        seed: u64,
        contributions: u32,
    ) -> Result<(), GpuError> {
        let Some(held) = self.layout.held[tensor.index()] else {
            return Ok(());
        };
        let shape = (held.rows, held.cols);
        let bytes = held.rows * held.ld * dtype.size();
        let out = self.matrix(gpu, held, held.at)?;
        let each = MOST as u32 - 1;
        for first in (0..contributions).step_by(each as usize) {
            let mut inputs = Vec::new();
            if first > 0 {
                inputs.push(out);
            }
            for c in first..contributions.min(first + each) {
                let at = self.layout.scratch + u64::from(c - first) * bytes;
                let matrix = self.matrix(gpu, held, at)?;
                let seed = seed_of(seed, tensor, c);
                let kernels = &device.kernels;
                kernels.fill(&device.control, dtype, matrix, shape, seed, (0, 0))?;
                inputs.push(matrix);
            }
            device
                .kernels
                .add(&device.control, dtype, &inputs, out, shape, 0)?;
        }
        Ok(())
    }

    /// The matrix of a tensor's shape that lies at `at`.
    fn matrix(&self, gpu: usize, held: Held, at: u64) -> Result<Matrix, GpuError> {
        Ok(Matrix {
            start: self.region(gpu, at)?,
            ld: held.ld,
        })
    }

    fn region(&self, gpu: usize, at: u64) -> Result<Region, GpuError> {
        self.memories[gpu].region().from(at)
    }
}

fn finish(run: &Run<'_>, device: &Device, what: &str) -> Result<(), GpuError> {
    let limit = run.machine().settings().limit;
    device.control.finish(limit, what)
}
