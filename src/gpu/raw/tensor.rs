//! How the tensor copy engine of Hopper and later GPUs sees a matrix.

use std::ffi::c_void;

use cudarc::driver::sys::{
    self, CUtensorMap, CUtensorMapDataType as DataType, CUtensorMapFloatOOBfill as Fill,
    CUtensorMapInterleave as Interleave, CUtensorMapL2promotion as Promotion,
    CUtensorMapSwizzle as Swizzle,
};

use super::{Gpu, Region, check};
use crate::device::DType;
use crate::gpu::GpuError;

/// A matrix of 16-bit elements that is copied in boxes.
#[derive(Copy, Clone, Debug)]
pub struct Boxes {
    pub start: Region,
    /// Rows and columns.
    pub shape: (u64, u64),
    /// Elements from row to row.
    pub ld: u64,
    pub dtype: DType,
    /// Rows of a box, at most 256; it has 64 columns.
    pub rows: u32,
}

impl Boxes {
    /// The 16 words that a kernel takes: boxes lie in shared memory row after row, 128 bytes each,
    /// with the 16-byte units of row r in the order unit XOR (r mod 8).
    ///
    /// # Errors
    /// [`GpuError::Bounds`], [`GpuError::Argument`] for what is no such matrix, and the driver's.
    pub fn encode(&self, gpu: &Gpu, what: &'static str) -> Result<[u64; 16], GpuError> {
        let dtype = match self.dtype {
            DType::Bf16 => DataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
            DType::Fp16 => DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            other => {
                return Err(GpuError::Argument(format!(
                    "tensor copies of {} elements; they are of bf16 or fp16",
                    other.name()
                )));
            }
        };
        let address = self
            .start
            .matrix(what, self.shape, self.ld, self.dtype.size())?;
        let pitch = self.ld * self.dtype.size();
        if !address.is_multiple_of(16) || !pitch.is_multiple_of(16) {
            return Err(GpuError::Argument(format!(
                "{what} begins at or has rows of no multiple of 16 bytes"
            )));
        }
        gpu.enter()?;
        let mut map = CUtensorMap { opaque: [0; 16] };
        let (shape, pitches) = ([self.shape.1, self.shape.0], [pitch]);
        let (size, steps) = ([64, self.rows], [1, 1]);
        // SAFETY: a map of our own, two dimensions everywhere; the driver reads the arrays now and
        // checks their values, and the matrix lies inside its region.
        check("cuTensorMapEncodeTiled", unsafe {
            sys::cuTensorMapEncodeTiled(
                &raw mut map,
                dtype,
                2,
                address as *mut c_void,
                shape.as_ptr(),
                pitches.as_ptr(),
                size.as_ptr(),
                steps.as_ptr(),
                Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
                Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        })?;
        Ok(map.opaque)
    }
}
