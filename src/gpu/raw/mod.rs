//! Thin wrappers around the calls of the CUDA driver and its libraries: the only unsafe code.
//!
//! Each wrapper owns a handle or checks the arguments of one call. Handles belong to one GPU, held
//! by `Rc`, and stay on the thread that made them. Every call that depends on the current context
//! sets it first, because libraries change it. Addresses are [`Region`]s, cut from an allocation,
//! so that copies and library calls stay inside one; a region must not outlive its memory.
//!
//! After a limit has passed ([`GpuError::Timeout`]) the GPU counts as lost: destructors leave its
//! handles to the end of the process, since freeing memory would wait for the kernels that hang.

#![allow(unsafe_code)]

mod driver;
mod event;
mod gpu;
mod graph;
pub mod lt;
mod memory;
mod module;
pub mod nccl;
pub mod nvml;
pub mod nvrtc;
mod pinned;
mod stream;
mod tensor;
mod transfer;
pub mod window;

pub use driver::{Driver, version_of};
pub use event::Event;
pub use gpu::{Attributes, Gpu, Peer};
pub use graph::{Graph, GraphExec, Launched};
pub use memory::{Memory, Region};
pub use module::{Args, Kernel, Launch, Module, Resources};
pub use pinned::Pinned;
pub use stream::{Priority, Stream, patiently};
pub use tensor::Boxes;
pub use transfer::Copy2d;

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use cudarc::driver::sys::{self, CUresult};

use super::GpuError;

unsafe extern "C" {
    fn _exit(code: c_int) -> !;
}

/// Ends the process without the libraries' own farewells, which may wait for a GPU that hangs.
pub fn exit_now(code: u8) -> ! {
    // SAFETY: takes any number and does not come back; nothing of ours needs an orderly end.
    unsafe { _exit(c_int::from(code)) }
}

/// Turns a driver's code into an error that names the call.
fn check(call: &'static str, code: CUresult) -> Result<(), GpuError> {
    if code == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut name = ptr::null();
    let mut text = ptr::null();
    // SAFETY: both take any code and store a pointer to a static string, or null.
    unsafe {
        let _ = sys::cuGetErrorName(code, &raw mut name);
        let _ = sys::cuGetErrorString(code, &raw mut text);
    }
    Err(GpuError::Cuda {
        call,
        code: code as u32,
        name: owned(name),
        text: owned(text),
        help: help(code),
    })
}

/// A copy of a C string that a library owns; empty for null.
fn owned(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, and the libraries hand out static strings that end in NUL.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// A remedy for the codes that users meet.
const fn help(code: CUresult) -> &'static str {
    match code {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
            "\n  help: choose a smaller shape, or end what else uses the GPU (`nvidia-smi` lists it)"
        }
        CUresult::CUDA_ERROR_SYSTEM_NOT_READY => {
            "\n  help: on NVSwitch machines start the fabric manager (`nvidia-fabricmanager`)"
        }
        CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => {
            "\n  help: the driver was updated under its kernel module: reload the module or reboot"
        }
        CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE => {
            "\n  help: the GPU is in exclusive mode and another process holds it"
        }
        CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
            "\n  help: the driver is older than the NVRTC found: update it, or install the older NVRTC"
        }
        _ => "",
    }
}
