//! Pinned memory of the host.

use std::ffi::c_void;
use std::ptr;
use std::rc::Rc;

use cudarc::driver::sys;

use super::{Gpu, Region, check};
use crate::gpu::GpuError;

/// Pinned memory of the host, which every GPU reaches at the same address.
#[derive(Debug)]
pub struct Pinned {
    gpu: Rc<Gpu>,
    start: *mut u8,
    region: Region,
}

impl Pinned {
    /// Takes `bytes` bytes (at least one), zeroed.
    ///
    /// # Errors
    /// [`GpuError::Pinned`] when the host gives none.
    pub fn new(gpu: &Rc<Gpu>, bytes: u64) -> Result<Self, GpuError> {
        gpu.enter()?;
        let bytes = bytes.max(1);
        let fail = |reason: String| GpuError::Pinned { bytes, reason };
        let size = usize::try_from(bytes).map_err(|error| fail(error.to_string()))?;
        let mut start = ptr::null_mut();
        // SAFETY: current context, valid pointer.
        let code =
            unsafe { sys::cuMemHostAlloc(&raw mut start, size, sys::CU_MEMHOSTALLOC_PORTABLE) };
        check("cuMemHostAlloc", code).map_err(|error| fail(error.to_string()))?;
        let start = start.cast::<u8>();
        let mut address = 0;
        // SAFETY: `size` bytes of ours, written before any use.
        unsafe {
            ptr::write_bytes(start, 0, size);
            check(
                "cuMemHostGetDevicePointer",
                sys::cuMemHostGetDevicePointer_v2(&raw mut address, start.cast(), 0),
            )?;
        }
        Ok(Self {
            gpu: Rc::clone(gpu),
            start,
            region: Region { address, bytes },
        })
    }

    /// All of it, as GPUs see it.
    pub const fn region(&self) -> Region {
        self.region
    }

    /// Writes `data` at `offset`.
    ///
    /// # Errors
    /// [`GpuError::Bounds`].
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<(), GpuError> {
        self.region.cut(offset, data.len() as u64)?;
        // SAFETY: inside the allocation; `data` cannot overlap it, since no slice of it exists.
        unsafe {
            ptr::copy_nonoverlapping(data.as_ptr(), self.start.add(offset as usize), data.len());
        }
        Ok(())
    }

    /// Reads from `offset` into `data`.
    ///
    /// # Errors
    /// [`GpuError::Bounds`].
    pub fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), GpuError> {
        self.region.cut(offset, data.len() as u64)?;
        // SAFETY: as in `write`.
        unsafe {
            ptr::copy_nonoverlapping(
                self.start.add(offset as usize),
                data.as_mut_ptr(),
                data.len(),
            );
        }
        Ok(())
    }

    /// Reads a word that a GPU may be writing.
    ///
    /// # Errors
    /// [`GpuError::Bounds`].
    pub fn load(&self, word: u64) -> Result<u32, GpuError> {
        self.region.cut(word.saturating_mul(4), 4)?;
        // SAFETY: inside the allocation and aligned; volatile, because a GPU may write it.
        Ok(unsafe { ptr::read_volatile(self.start.cast::<u32>().add(word as usize)) })
    }

    /// Writes a word that a GPU may be reading.
    ///
    /// # Errors
    /// [`GpuError::Bounds`].
    pub fn store(&self, word: u64, value: u32) -> Result<(), GpuError> {
        self.region.cut(word.saturating_mul(4), 4)?;
        // SAFETY: inside the allocation and aligned; volatile, because a GPU may read it.
        unsafe { ptr::write_volatile(self.start.cast::<u32>().add(word as usize), value) };
        Ok(())
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if !self.gpu.is_lost() && self.gpu.enter().is_ok() {
            // SAFETY: a live allocation, freed once.
            let _ = unsafe { sys::cuMemFreeHost(self.start.cast::<c_void>()) };
        }
    }
}
