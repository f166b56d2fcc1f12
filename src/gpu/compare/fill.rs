//! Inputs before a run, and poison everywhere else.

use super::seed_of;
use crate::gpu::GpuError;
use crate::gpu::exec::Run;
use crate::gpu::kernels::Matrix;
use crate::schedule::Role;

/// Fills all of a half with random numbers, for plans whose results nobody looks at: how much power a
/// product draws, and so how fast it is, depends on its numbers. Waits for it.
///
/// # Errors
/// As [`fill`].
pub fn fill_all(run: &Run<'_>, parity: u64, seed: u64) -> Result<(), GpuError> {
    let dtype = run.plan().dtype;
    for gpu in 0..run.plan().gpus.len() {
        let half = run.half(gpu, parity)?;
        let cols = half.bytes() / dtype.size();
        let matrix = Matrix {
            start: half,
            ld: cols,
        };
        let device = run.device(gpu);
        let kernels = &device.kernels;
        kernels.fill(
            &device.control,
            dtype,
            matrix,
            (1, cols),
            seed,
            (gpu as u64, 0),
        )?;
        let limit = run.machine().settings().limit;
        device.control.finish(limit, "filling memory")?;
    }
    Ok(())
}

/// The byte that memory holds before a run: NaN in every element type.
const POISON: u8 = 0xff;

/// Poisons a half of the arenas and writes the inputs into it. Waits for both; no run may be using
/// that half.
///
/// # Errors
/// [`GpuError::Argument`] for an element type that cannot be filled, and the driver's.
pub fn fill(run: &Run<'_>, parity: u64, seed: u64) -> Result<(), GpuError> {
    let (plan, schedule) = (run.plan(), run.schedule());
    let size = plan.dtype.size();
    for gpu in 0..plan.gpus.len() {
        let half = run.half(gpu, parity)?;
        if half.bytes() > 0 {
            run.device(gpu).control.fill(half, POISON)?;
        }
    }
    for (buffer, place) in schedule.buffers.iter().zip(&plan.places) {
        if !matches!(buffer.role, Role::Input | Role::InputOutput) {
            continue;
        }
        let device = run.device(place.area.gpu.index());
        let whole = run.region(&place.area, parity)?;
        let ld = u64::from(place.area.ld);
        for piece in buffer.pieces.iter().filter(|p| p.initial.len > 0) {
            if piece.initial.len > 1 {
                return Err(GpuError::Argument(format!(
                    "{}[rank {}] begins as a sum; real runs of it cannot be checked",
                    buffer.name, buffer.rank.0
                )));
            }
            let offset = u64::from(piece.rows.start) * ld + u64::from(piece.cols.start);
            let matrix = Matrix {
                start: whole.from(offset * size)?,
                ld,
            };
            device.kernels.fill(
                &device.control,
                plan.dtype,
                matrix,
                (piece.rows.len.into(), piece.cols.len.into()),
                seed_of(seed, buffer.tensor, piece.initial.start),
                (piece.global_row.into(), piece.global_col.into()),
            )?;
        }
    }
    for gpu in 0..plan.gpus.len() {
        let limit = run.machine().settings().limit;
        run.device(gpu)
            .control
            .finish(limit, "filling the inputs")?;
    }
    Ok(())
}
