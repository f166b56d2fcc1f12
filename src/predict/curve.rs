//! [`crate::device::gemm`] with everything that does not depend on the shape worked out once, for
//! a selector that may not take more than some tens of nanoseconds per GEMM.
//!
//! The result is the same to rounding; a property test holds the two against each other.

use crate::device::gemm::{self, GemmTime};
use crate::device::{DType, Device};

/// GEMM time on one GPU, for one element type.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    device: Device,
    dtype: DType,
}

impl Curve {
    /// `None` when the GPU lacks `dtype`.
    pub fn new(device: &Device, dtype: DType) -> Option<Self> {
        device.rate(dtype)?;
        Some(Self {
            device: device.clone(),
            dtype,
        })
    }

    /// The time of `m × k` times `k × n` on `sms` SMs.
    pub fn time(&self, m: u64, n: u64, k: u64, sms: u32) -> GemmTime {
        gemm::gemm(&self.device, self.dtype, m, n, k, sms).unwrap_or_default()
    }
}
