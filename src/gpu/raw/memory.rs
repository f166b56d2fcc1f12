//! Memory of a GPU, and regions of any memory.

use std::ffi::c_void;
use std::ptr;
use std::rc::Rc;
use std::time::Duration;

use cudarc::driver::sys::{self, CUresult};

use super::{Gpu, check, stream};
use crate::gpu::GpuError;

/// An address inside an allocation and the bytes that are left from there on.
///
/// One address space covers all GPUs and pinned memory. A region must not outlive its memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Region {
    pub(super) address: u64,
    pub(super) bytes: u64,
}

impl Region {
    /// The address.
    pub const fn address(self) -> u64 {
        self.address
    }

    /// Bytes left.
    pub const fn bytes(self) -> u64 {
        self.bytes
    }

    /// `bytes` bytes from `offset` on.
    ///
    /// # Errors
    /// [`GpuError::Bounds`] when they reach over the end.
    pub fn cut(self, offset: u64, bytes: u64) -> Result<Self, GpuError> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(Self {
                address: self.address + offset,
                bytes,
            }),
            _ => Err(GpuError::Bounds {
                what: "a region",
                wanted: offset.saturating_add(bytes),
                left: self.bytes,
            }),
        }
    }

    /// All from `offset` on.
    ///
    /// # Errors
    /// [`GpuError::Bounds`] when it lies outside.
    pub fn from(self, offset: u64) -> Result<Self, GpuError> {
        self.cut(offset, self.bytes.saturating_sub(offset))
    }

    /// The address, if at least `bytes` are left.
    ///
    /// # Errors
    /// [`GpuError::Bounds`] if not.
    pub const fn need(self, what: &'static str, bytes: u64) -> Result<u64, GpuError> {
        match bytes <= self.bytes {
            true => Ok(self.address),
            false => Err(GpuError::Bounds {
                what,
                wanted: bytes,
                left: self.bytes,
            }),
        }
    }

    /// The address of a matrix of `rows × cols` elements of `size` bytes, `ld` elements from row to
    /// row.
    ///
    /// # Errors
    /// [`GpuError::Bounds`] when it reaches over the end.
    pub fn matrix(
        self,
        what: &'static str,
        (rows, cols): (u64, u64),
        ld: u64,
        size: u64,
    ) -> Result<u64, GpuError> {
        let elements = rows
            .saturating_sub(1)
            .saturating_mul(ld)
            .saturating_add(cols);
        self.need(what, elements.saturating_mul(size))
    }
}

/// The limit of an upload, far beyond what any takes.
const UPLOAD_LIMIT: Duration = Duration::from_secs(30);

/// Plain memory of a GPU, which peers can be allowed to reach.
#[derive(Debug)]
pub struct Memory {
    gpu: Rc<Gpu>,
    region: Region,
    /// Gives it back.
    free: fn(u64),
}

impl Memory {
    /// Takes `bytes` bytes (at least one), aligned to 256.
    ///
    /// # Errors
    /// [`GpuError::Memory`] with what is free.
    pub fn new(gpu: &Rc<Gpu>, bytes: u64) -> Result<Self, GpuError> {
        let (free, _) = gpu.memory()?;
        let short = GpuError::Memory {
            gpu: gpu.ordinal(),
            needed: bytes,
            free,
        };
        let Ok(size) = usize::try_from(bytes.max(1)) else {
            return Err(short);
        };
        let mut address = 0;
        // SAFETY: current context, valid pointer, size above 0.
        match unsafe { sys::cuMemAlloc_v2(&raw mut address, size) } {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => Err(short),
            code => check("cuMemAlloc", code).map(|()| Self {
                gpu: Rc::clone(gpu),
                region: Region {
                    address,
                    bytes: bytes.max(1),
                },
                free: free_plain,
            }),
        }
    }

    /// Memory that a library gave, and how it is given back.
    pub(super) fn given(gpu: &Rc<Gpu>, address: u64, bytes: u64, free: fn(u64)) -> Self {
        Self {
            gpu: Rc::clone(gpu),
            region: Region { address, bytes },
            free,
        }
    }

    /// All of it.
    pub const fn region(&self) -> Region {
        self.region
    }

    /// The GPU it belongs to.
    pub const fn gpu(&self) -> &Rc<Gpu> {
        &self.gpu
    }

    /// Copies `data` to `offset` and waits until it is there; not ordered with streams.
    ///
    /// # Errors
    /// [`GpuError::Bounds`], [`GpuError::Timeout`], and the driver's.
    pub fn upload(&self, offset: u64, data: &[u8]) -> Result<(), GpuError> {
        let to = self.region.cut(offset, data.len() as u64)?;
        self.gpu.enter()?;
        // SAFETY: both ranges are `data.len()` bytes long; the call returns when the source is read.
        check("cuMemcpyHtoD", unsafe {
            sys::cuMemcpyHtoD_v2(to.address, data.as_ptr().cast::<c_void>(), data.len())
        })?;
        // The call returns when the data have left `data`, which may be before they arrive, and our
        // streams are not ordered with the default stream that carries them.
        stream::poll(&self.gpu, UPLOAD_LIMIT, "an upload", || {
            self.gpu.enter()?;
            // SAFETY: null is the default stream of the current context.
            match unsafe { sys::cuStreamQuery(ptr::null_mut()) } {
                CUresult::CUDA_ERROR_NOT_READY => Ok(false),
                code => check("cuStreamQuery", code).map(|()| true),
            }
        })
    }

    /// Copies from `offset` into `data` and waits for it; not ordered with streams.
    ///
    /// # Errors
    /// [`GpuError::Bounds`], and the driver's.
    pub fn download(&self, offset: u64, data: &mut [u8]) -> Result<(), GpuError> {
        let from = self.region.cut(offset, data.len() as u64)?;
        self.gpu.enter()?;
        // SAFETY: both ranges are `data.len()` bytes long; the call returns when it is done.
        check("cuMemcpyDtoH", unsafe {
            sys::cuMemcpyDtoH_v2(data.as_mut_ptr().cast::<c_void>(), from.address, data.len())
        })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // Freeing waits for the GPU, so that a kernel that hangs would hang us.
        if !self.gpu.is_lost() && self.gpu.enter().is_ok() {
            (self.free)(self.region.address);
        }
    }
}

/// Gives back what the driver gave.
fn free_plain(address: u64) {
    // SAFETY: a live allocation of the driver's, freed once by its owner's destructor.
    let _ = unsafe { sys::cuMemFree_v2(address) };
}
