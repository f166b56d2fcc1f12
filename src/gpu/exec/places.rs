//! Where what a run works on lies.

use super::Run;
use crate::gpu::GpuError;
use crate::gpu::plan::{Area, FlagId, Slot};
use crate::gpu::raw::{Memory, Region};

impl Run<'_> {
    /// The half of the arenas in which the next run works.
    pub fn next_parity(&self) -> u64 {
        u64::from(self.epoch.get().wrapping_add(1)) % 2
    }

    /// The half of an arena.
    ///
    /// # Errors
    /// [`GpuError::Bounds`].
    pub fn half(&self, gpu: usize, parity: u64) -> Result<Region, GpuError> {
        let half = self.plan.arenas[gpu].half;
        self.arenas[gpu].region().cut(parity * half, half)
    }

    /// The memory of an area.
    ///
    /// # Errors
    /// [`GpuError::Bounds`] when it leaves the half of the run.
    pub fn region(&self, area: &Area, parity: u64) -> Result<Region, GpuError> {
        let bytes = area.span() * self.plan.dtype.size();
        self.half(area.gpu.index(), parity)?.cut(area.at, bytes)
    }

    /// Copies an element of an area to the host; not ordered with streams.
    ///
    /// # Errors
    /// [`GpuError::Bounds`], and the driver's.
    pub fn element(&self, area: &Area, parity: u64, row: u64, col: u64) -> Result<f32, GpuError> {
        let size = self.plan.dtype.size();
        let half = self.plan.arenas[area.gpu.index()].half;
        let at = parity * half + area.at + (row * u64::from(area.ld) + col) * size;
        let mut bytes = vec![0; size as usize];
        self.arenas[area.gpu.index()].download(at, &mut bytes)?;
        let values = crate::gpu::data::decode_all(self.plan.dtype, &bytes);
        Ok(values.first().copied().unwrap_or(f32::NAN))
    }

    /// Copies the elements of an area to the host, without what lies between rows; not ordered with
    /// streams.
    ///
    /// # Errors
    /// [`GpuError::Bounds`], and the driver's.
    pub fn elements(&self, area: &Area, parity: u64) -> Result<Vec<u8>, GpuError> {
        let size = self.plan.dtype.size();
        let half = self.plan.arenas[area.gpu.index()].half;
        let mut bytes = vec![0; (area.span() * size) as usize];
        self.arenas[area.gpu.index()].download(parity * half + area.at, &mut bytes)?;
        let (row, pitch) = (u64::from(area.cols) * size, u64::from(area.ld) * size);
        let rows = bytes.chunks(pitch.max(1) as usize);
        Ok(rows
            .flat_map(|line| &line[..row.min(line.len() as u64) as usize])
            .copied()
            .collect())
    }

    /// Whole rows, padding included.
    pub(super) fn rows(&self, area: &Area, parity: u64) -> Result<Region, GpuError> {
        let bytes = u64::from(area.rows) * u64::from(area.ld) * self.plan.dtype.size();
        self.half(area.gpu.index(), parity)?.cut(area.at, bytes)
    }

    pub(super) fn slot(&self, slot: &Slot, bytes: u64) -> Result<Region, GpuError> {
        let ring = &self.plan.staging[slot.staging.index()];
        self.staging[slot.staging.index()]
            .region()
            .cut(ring.bytes * u64::from(slot.slot), ring.bytes.min(bytes))
    }

    /// The word of a flag.
    pub(super) fn flag(&self, flag: FlagId) -> Result<Region, GpuError> {
        let gpu = self.plan.flags[flag.index()].gpu.index();
        match &self.flags[gpu] {
            Some(memory) => memory.region().cut(4 * self.words[flag.index()], 4),
            None => Err(GpuError::Argument(format!("no flag {}", flag.0))),
        }
    }

    /// Where the epoch lies on a GPU, if it does.
    pub(super) fn epoch_at(&self, gpu: usize) -> Option<Region> {
        self.epochs.get(gpu).map(Memory::region)
    }

    /// The index of a flag's word among those of its GPU, and all of these.
    pub(super) fn words(&self, gpu: usize) -> Option<Region> {
        self.flags[gpu].as_ref().map(Memory::region)
    }

    pub(super) fn word(&self, flag: FlagId) -> u64 {
        self.words[flag.index()]
    }
}
