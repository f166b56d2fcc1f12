//! Windows of NCCL: memory of which every member of a communicator knows where the others' lies.
//!
//! Collectives on windows are performed by kernels that read and write the others' memory in place
//! (symmetric kernels), or, where the communicator's policy leaves them no SMs, by copy engines. They
//! use multicast (NVLS) only where the communicator does, which `NCCL_NVLS_ENABLE=0` forbids.

use std::ffi::c_void;
use std::ptr;
use std::rc::Rc;

use cudarc::nccl::sys::{self, ncclWindow_t};

use super::nccl::{Comms, check, version};
use super::{Gpu, Memory, Region};
use crate::gpu::GpuError;

/// The first version with windows: 10000 · major + 100 · minor + patch.
const FIRST: u32 = 22_700;
/// Memory that NCCL gives is a multiple of this many bytes.
const GRANULE: u64 = 2 << 20;
/// `NCCL_WIN_COLL_SYMMETRIC`: all members have the same layout.
const SYMMETRIC: i32 = 1;

/// That the library has windows.
///
/// # Errors
/// [`GpuError::OldLibrary`].
pub fn supported() -> Result<(), GpuError> {
    let version = version()?;
    match version >= FIRST {
        true => Ok(()),
        false => Err(GpuError::OldLibrary {
            library: "NCCL",
            found: format!(
                "{}.{}.{}",
                version / 10_000,
                version / 100 % 100,
                version % 100
            ),
            needed: "2.27 (with windows, for `nccl-window`)",
        }),
    }
}

/// Memory of a GPU that can become a window, and that peers reach like any other.
///
/// # Errors
/// [`supported`]'s, [`GpuError::Memory`], and the library's.
pub fn memory(gpu: &Rc<Gpu>, bytes: u64) -> Result<Memory, GpuError> {
    supported()?;
    let (free, _) = gpu.memory()?;
    let needed = bytes.max(1).next_multiple_of(GRANULE);
    if needed > free {
        return Err(GpuError::Memory {
            gpu: gpu.ordinal(),
            needed,
            free,
        });
    }
    let mut address: *mut c_void = ptr::null_mut();
    // SAFETY: current context, valid pointer, size above 0.
    check("ncclMemAlloc", unsafe {
        sys::ncclMemAlloc(&raw mut address, needed as usize)
    })?;
    Ok(Memory::given(
        gpu,
        address as u64,
        bytes.max(1),
        free_memory,
    ))
}

/// Gives back what [`memory`] took.
fn free_memory(address: u64) {
    // SAFETY: a live allocation of the library's, freed once by its owner's destructor.
    let _ = unsafe { sys::ncclMemFree(address as *mut c_void) };
}

/// One window of every member, until dropped; their memory must live longer.
#[derive(Debug)]
pub struct Windows {
    comms: Rc<Comms>,
    windows: Vec<ncclWindow_t>,
}

impl Windows {
    /// Makes the members' memory, by member and all of one size, windows of each other.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for another number of members or unequal sizes, [`GpuError::Wrong`] where
    /// the library takes the memory and makes no window of it; and the library's.
    pub fn new(comms: &Rc<Comms>, memory: &[Region]) -> Result<Self, GpuError> {
        supported()?;
        let bytes = memory.first().map_or(0, |region| region.bytes());
        let alike = memory.iter().all(|region| region.bytes() == bytes);
        if memory.len() != comms.gpus().len() || !alike || bytes == 0 {
            return Err(GpuError::Argument(format!(
                "windows of {} members with {} regions, which must have one size",
                comms.gpus().len(),
                memory.len()
            )));
        }
        let mut windows: Vec<ncclWindow_t> = vec![ptr::null_mut(); memory.len()];
        // SAFETY: paired with the end below on every path.
        check("ncclGroupStart", unsafe { sys::ncclGroupStart() })?;
        let members = comms.gpus().iter().zip(comms.handles());
        let result = members.zip(memory).zip(&mut windows).try_for_each(
            |(((gpu, &raw), region), window)| {
                gpu.enter()?;
                let start = region.address() as *mut c_void;
                let size = region.bytes() as usize;
                // SAFETY: a live communicator; memory that the library gave and that outlives this; the
                // window is written by the end of the group, until which the vector stays.
                check("ncclCommWindowRegister", unsafe {
                    sys::ncclCommWindowRegister(raw, start, size, window, SYMMETRIC)
                })
            },
        );
        // SAFETY: a group was started.
        let end = check("ncclGroupEnd", unsafe { sys::ncclGroupEnd() });
        result.and(end)?;
        let made = Self {
            comms: Rc::clone(comms),
            windows,
        };
        match made.windows.iter().all(|window| !window.is_null()) {
            true => Ok(made),
            false => Err(GpuError::Wrong(
                "NCCL makes no windows of this memory: it needs its virtual memory (`NCCL_CUMEM_ENABLE=1`) and GPUs that all reach each other"
                    .to_owned(),
            )),
        }
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        if self.comms.gpus().iter().any(|gpu| gpu.is_lost()) {
            return;
        }
        let members = self.comms.gpus().iter().zip(self.comms.handles());
        for ((gpu, &raw), &window) in members.zip(&self.windows) {
            if !window.is_null() && gpu.enter().is_ok() {
                // SAFETY: a live communicator and a window of it, given back once.
                let _ = unsafe { sys::ncclCommWindowDeregister(raw, window) };
            }
        }
    }
}
