//! Where the complete tensors lie that results are compared with.

use super::{Source, sources};
use crate::gpu::GpuError;
use crate::gpu::kernels::MOST;
use crate::gpu::plan::LEADING;
use crate::schedule::{Role, Schedule, TensorId};

/// A tensor in the memory of a GPU.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    /// Bytes from the start.
    pub at: u64,
    pub ld: u64,
    pub rows: u64,
    pub cols: u64,
}

/// Where everything lies.
#[derive(Debug, PartialEq)]
pub(super) struct Layout {
    pub sources: Vec<Source>,
    pub wanted: Vec<TensorId>,
    pub held: Vec<Option<Held>>,
    /// Where contributions are drawn.
    pub scratch: u64,
    /// Where results begin.
    pub results: u64,
}

impl Layout {
    pub fn of(schedule: &Schedule) -> Result<Self, GpuError> {
        let sources = sources(schedule)?;
        let mut wanted: Vec<TensorId> = schedule
            .buffers
            .iter()
            .filter(|b| matches!(b.role, Role::Output | Role::InputOutput))
            .map(|b| b.tensor)
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut held = vec![None; sources.len()];
        let mut end = 0;
        let mut summed = 0;
        for tensor in &wanted {
            match sources[tensor.index()] {
                Source::Drawn { contributions } => {
                    let bytes = hold(schedule, *tensor, &mut held, &mut end);
                    if contributions > 1 {
                        let each = u64::from(contributions).min(MOST as u64 - 1);
                        summed = summed.max(bytes * each);
                    }
                }
                Source::Product { a, b, .. } => {
                    for tensor in [a, b, *tensor] {
                        hold(schedule, tensor, &mut held, &mut end);
                    }
                }
            }
        }
        Ok(Self {
            sources,
            wanted,
            held,
            scratch: end,
            results: end.saturating_add(summed).next_multiple_of(256),
        })
    }
}

/// Reserves memory for a tensor; its bytes.
fn hold(schedule: &Schedule, tensor: TensorId, held: &mut [Option<Held>], end: &mut u64) -> u64 {
    let shape = &schedule.tensors[tensor.index()];
    let (rows, cols) = (u64::from(shape.rows), u64::from(shape.cols));
    let ld = cols.next_multiple_of(LEADING);
    let bytes = rows.saturating_mul(ld * schedule.operator.dtype.size());
    let place = &mut held[tensor.index()];
    if place.is_none() {
        *place = Some(Held {
            at: *end,
            ld,
            rows,
            cols,
        });
        *end = end.saturating_add(bytes).next_multiple_of(256);
    }
    bytes
}
