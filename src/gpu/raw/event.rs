//! Events: points in a stream, with or without a time.

use std::ptr;
use std::rc::Rc;
use std::time::Duration;

use cudarc::driver::sys::{self, CUevent, CUevent_flags, CUresult};

use super::{Gpu, check, stream};
use crate::gpu::GpuError;

/// A point in a stream that others can wait for.
#[derive(Debug)]
pub struct Event {
    gpu: Rc<Gpu>,
    raw: CUevent,
    timed: bool,
}

impl Event {
    /// An event of `gpu`; `timed` ones know when they happened and cost a little more.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(gpu: &Rc<Gpu>, timed: bool) -> Result<Self, GpuError> {
        gpu.enter()?;
        let flags = match timed {
            true => CUevent_flags::CU_EVENT_DEFAULT,
            false => CUevent_flags::CU_EVENT_DISABLE_TIMING,
        };
        let mut raw = ptr::null_mut();
        // SAFETY: current context, valid pointer, known flags.
        check("cuEventCreate", unsafe {
            sys::cuEventCreate(&raw mut raw, flags as u32)
        })?;
        Ok(Self {
            gpu: Rc::clone(gpu),
            raw,
            timed,
        })
    }

    /// Whether the point has passed; true for an event never recorded.
    ///
    /// # Errors
    /// The driver's, which may come from earlier work on the GPU.
    pub fn passed(&self) -> Result<bool, GpuError> {
        self.gpu.enter()?;
        // SAFETY: a live event.
        match unsafe { sys::cuEventQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => check("cuEventQuery", code).map(|()| true),
        }
    }

    /// Polls until the point has passed.
    ///
    /// # Errors
    /// [`GpuError::Timeout`] after `limit`; the GPU is lost then.
    pub fn finish(&self, limit: Duration, what: &str) -> Result<(), GpuError> {
        stream::poll(&self.gpu, limit, what, || self.passed())
    }

    /// Seconds from `self` to `later`, both timed, of one GPU and passed.
    ///
    /// # Errors
    /// [`GpuError::Argument`] otherwise.
    pub fn seconds_to(&self, later: &Self) -> Result<f64, GpuError> {
        if !self.timed || !later.timed || self.gpu.ordinal() != later.gpu.ordinal() {
            return Err(GpuError::Argument(
                "an elapsed time needs two timed events of one GPU".to_owned(),
            ));
        }
        self.gpu.enter()?;
        let mut milliseconds = 0.0;
        // SAFETY: two live events of the current context.
        check("cuEventElapsedTime", unsafe {
            sys::cuEventElapsedTime(&raw mut milliseconds, self.raw, later.raw)
        })?;
        Ok(f64::from(milliseconds) / 1e3)
    }

    /// The GPU it belongs to.
    pub const fn gpu(&self) -> &Rc<Gpu> {
        &self.gpu
    }

    pub(super) const fn raw(&self) -> CUevent {
        self.raw
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if !self.gpu.is_lost() && self.gpu.enter().is_ok() {
            // SAFETY: a live event, destroyed once; the driver waits for its use by itself.
            let _ = unsafe { sys::cuEventDestroy_v2(self.raw) };
        }
    }
}
