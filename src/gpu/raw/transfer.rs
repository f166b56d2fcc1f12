//! Copies and fills in a stream, by copy engines where the driver uses them.

use std::ptr;

use cudarc::driver::sys::{self, CUDA_MEMCPY2D, CUmemorytype};

use super::{Region, Stream, check};
use crate::gpu::GpuError;

/// A rectangle of bytes from one region to another, on any GPUs or in pinned memory.
#[derive(Copy, Clone, Debug)]
pub struct Copy2d {
    pub from: Region,
    /// Bytes from row to row of the source.
    pub from_pitch: u64,
    pub to: Region,
    /// Bytes from row to row of the destination.
    pub to_pitch: u64,
    /// Bytes of a row.
    pub width: u64,
    pub rows: u64,
}

impl Stream {
    /// Copies as many bytes as `to` has, which must be what `from` has at least.
    ///
    /// # Errors
    /// [`GpuError::Bounds`], and the driver's.
    pub fn copy(&self, from: Region, to: Region) -> Result<(), GpuError> {
        let source = from.need("cuMemcpyAsync", to.bytes())?;
        self.gpu().enter()?;
        // SAFETY: both ranges are `to.bytes()` long.
        check("cuMemcpyAsync", unsafe {
            sys::cuMemcpyAsync(to.address(), source, to.bytes() as usize, self.raw())
        })
    }

    /// Copies a rectangle; one without gaps is copied as one run of bytes.
    ///
    /// # Errors
    /// [`GpuError::Bounds`], [`GpuError::Argument`] for a pitch below the width, and the driver's.
    pub fn copy_2d(&self, copy: &Copy2d) -> Result<(), GpuError> {
        let Copy2d {
            from,
            from_pitch,
            to,
            to_pitch,
            width,
            rows,
        } = *copy;
        if width == 0 || rows == 0 {
            return Ok(());
        }
        if rows > 1 && (from_pitch < width || to_pitch < width) {
            return Err(GpuError::Argument(format!(
                "a copy of rows of {width} bytes with pitches of {from_pitch} and {to_pitch} bytes"
            )));
        }
        let source = from.matrix("cuMemcpy2DAsync", (rows, width), from_pitch, 1)?;
        let target = to.matrix("cuMemcpy2DAsync", (rows, width), to_pitch, 1)?;
        if rows == 1 || (from_pitch == width && to_pitch == width) {
            return self.copy(from, to.cut(0, width * rows)?);
        }
        let parameters = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            srcHost: ptr::null(),
            srcDevice: source,
            srcArray: ptr::null_mut(),
            srcPitch: from_pitch as usize,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            dstHost: ptr::null_mut(),
            dstDevice: target,
            dstArray: ptr::null_mut(),
            dstPitch: to_pitch as usize,
            WidthInBytes: width as usize,
            Height: rows as usize,
        };
        self.gpu().enter()?;
        // SAFETY: both rectangles lie inside their regions; the parameters are read at the call.
        check("cuMemcpy2DAsync", unsafe {
            sys::cuMemcpy2DAsync_v2(&raw const parameters, self.raw())
        })
    }

    /// Sets every byte of `region`.
    ///
    /// # Errors
    /// The driver's.
    pub fn fill(&self, region: Region, byte: u8) -> Result<(), GpuError> {
        self.gpu().enter()?;
        // SAFETY: the region lies inside an allocation.
        check("cuMemsetD8Async", unsafe {
            sys::cuMemsetD8Async(region.address(), byte, region.bytes() as usize, self.raw())
        })
    }
}
