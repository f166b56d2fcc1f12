//! Where buffers lie: one arena per GPU, buffers one after another.

use super::{Area, Arena, Gpu, LowerError, Place};
use crate::schedule::{Schedule, Slice};

/// Leading dimensions are multiples of this many elements, so that every row of a bf16 matrix
/// begins at a multiple of 128 bytes.
pub const LEADING: u64 = 64;
/// Buffers begin at multiples of this many bytes, as the driver's allocations do.
pub const ALIGNMENT: u64 = 256;

/// The layout of all buffers.
#[derive(Debug)]
pub(super) struct Layout {
    pub arenas: Vec<Arena>,
    pub places: Vec<Place>,
    /// Bytes of an element.
    element: u64,
}

impl Layout {
    /// Lays the buffers of `schedule` out on `gpus`, which are ascending.
    pub(super) fn new(schedule: &Schedule, gpus: &[u32]) -> Result<Self, LowerError> {
        let element = schedule.operator.dtype.size();
        let mut arenas = vec![Arena { half: 0 }; gpus.len()];
        let mut places = Vec::with_capacity(schedule.buffers.len());
        for buffer in &schedule.buffers {
            let number = schedule.placement[usize::from(buffer.rank.0)];
            let gpu = gpus.partition_point(|&g| g < number);
            let too_large = || LowerError::TooLarge {
                buffer: buffer.name.clone(),
                rank: buffer.rank.0,
                gpu: number,
            };
            let ld = u64::from(buffer.cols).next_multiple_of(LEADING);
            let stride = (u64::from(buffer.rows).checked_mul(ld))
                .and_then(|elements| elements.checked_mul(element))
                .and_then(|bytes| bytes.checked_next_multiple_of(ALIGNMENT))
                .ok_or_else(too_large)?;
            let at = arenas[gpu].half;
            arenas[gpu].half = stride
                .checked_mul(u64::from(buffer.slots))
                .and_then(|bytes| bytes.checked_add(at))
                // Both halves must have addresses.
                .filter(|&half| half <= u64::MAX / 4)
                .ok_or_else(too_large)?;
            places.push(Place {
                area: Area {
                    gpu: Gpu(gpu as u32),
                    at,
                    ld: u32::try_from(ld).map_err(|_| too_large())?,
                    rows: buffer.rows,
                    cols: buffer.cols,
                },
                slots: buffer.slots,
                stride,
            });
        }
        Ok(Self {
            arenas,
            places,
            element,
        })
    }

    /// Where a slice lies.
    pub(super) fn area(&self, slice: &Slice) -> Area {
        let place = &self.places[slice.buffer.index()];
        let elements =
            u64::from(slice.rows.start) * u64::from(place.area.ld) + u64::from(slice.cols.start);
        Area {
            at: place.area.at + u64::from(slice.slot) * place.stride + elements * self.element,
            rows: slice.rows.len,
            cols: slice.cols.len,
            ..place.area
        }
    }
}
