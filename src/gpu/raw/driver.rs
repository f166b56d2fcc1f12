//! The driver: its library, its start, the number of its GPUs.

use std::ffi::c_int;
use std::path::Path;
use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUresult};

use super::{check, owned};
use crate::gpu::GpuError;

/// The CUDA version whose calls Duet uses: flags by stream operations (12.0).
const NEEDED: i32 = 12_000;

/// The started driver.
#[derive(Copy, Clone, Debug)]
pub struct Driver {
    version: i32,
    gpus: u32,
}

impl Driver {
    /// Starts the driver; `path` is named in messages, `visible` is `CUDA_VISIBLE_DEVICES`.
    ///
    /// # Errors
    /// In words when the library is missing, a stub, too old, does not start or shows no GPU.
    pub fn start(path: &str, visible: Option<&str>) -> Result<Self, GpuError> {
        static PRESENT: OnceLock<bool> = OnceLock::new();
        // SAFETY: loads the library by the loader's own rules; a driver's constructors are sound.
        if !*PRESENT.get_or_init(|| unsafe { sys::is_culib_present() }) {
            return Err(GpuError::NoDriver {
                searched: "the loader's folders".to_owned(),
            });
        }
        let mut version = 0;
        // SAFETY: the library is loaded, the pointer is valid.
        let code = unsafe { sys::cuDriverGetVersion(&raw mut version) };
        refuse_stub(code, path)?;
        check("cuDriverGetVersion", code)?;
        if version < NEEDED {
            return Err(GpuError::OldDriver {
                found: text(version),
                needed: "12.0",
            });
        }
        let no_gpu = || match visible {
            Some(value) => GpuError::Hidden {
                value: value.to_owned(),
            },
            None => GpuError::NoGpu,
        };
        // SAFETY: 0 is the only flag; the call may be repeated.
        match unsafe { sys::cuInit(0) } {
            CUresult::CUDA_SUCCESS => {}
            CUresult::CUDA_ERROR_NO_DEVICE => return Err(no_gpu()),
            code => {
                refuse_stub(code, path)?;
                return Err(start_error(code));
            }
        }
        let mut gpus = 0;
        // SAFETY: the driver has started, the pointer is valid.
        check("cuDeviceGetCount", unsafe {
            sys::cuDeviceGetCount(&raw mut gpus)
        })?;
        match u32::try_from(gpus) {
            Ok(gpus) if gpus > 0 => Ok(Self { version, gpus }),
            _ => Err(no_gpu()),
        }
    }

    /// GPUs that this process can see.
    pub const fn gpus(&self) -> u32 {
        self.gpus
    }

    /// The CUDA version the driver supports, e.g. `13.0`.
    pub fn version(&self) -> String {
        text(self.version)
    }

    /// As the driver writes it: 1000 · major + 10 · minor.
    pub const fn version_number(&self) -> i32 {
        self.version
    }
}

fn refuse_stub(code: CUresult, path: &str) -> Result<(), GpuError> {
    match code {
        CUresult::CUDA_ERROR_STUB_LIBRARY => Err(GpuError::Stub {
            path: path.to_owned(),
        }),
        _ => Ok(()),
    }
}

fn start_error(code: CUresult) -> GpuError {
    let help = match code {
        CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => {
            "the driver was updated under its kernel module: reload the module or reboot"
        }
        CUresult::CUDA_ERROR_SYSTEM_NOT_READY => {
            "on NVSwitch machines start the fabric manager (`nvidia-fabricmanager`)"
        }
        _ => {
            "check `nvidia-smi`: the kernel module must be loaded and `/dev/nvidia*` be accessible"
        }
    };
    match check("cuInit", code) {
        Err(GpuError::Cuda { name, text, .. }) => GpuError::Start {
            reason: format!("{name} ({text})"),
            help,
        },
        _ => GpuError::NoGpu,
    }
}

fn text(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The CUDA version that the driver library in this file supports, without starting it.
///
/// # Errors
/// [`GpuError::Stub`] for a stub, [`GpuError::Start`] for a file that is no driver.
pub fn version_of(path: &Path) -> Result<i32, GpuError> {
    type Version = unsafe extern "C" fn(*mut c_int) -> c_int;
    let broken = |reason: String| GpuError::Start {
        reason: format!("`{}`: {reason}", path.display()),
        help: "install the NVIDIA driver again, or name its folder in `DUET_CUDA_DIR`",
    };
    // SAFETY: a driver's constructors are sound; the caller found it under a driver's name.
    let library =
        unsafe { libloading::Library::new(path) }.map_err(|error| broken(error.to_string()))?;
    // SAFETY: the symbol has had this type since CUDA 2.
    let call = unsafe { library.get::<Version>(b"cuDriverGetVersion\0") }
        .map_err(|error| broken(error.to_string()))?;
    let mut version = 0;
    // SAFETY: the pointer is valid, and the call needs no start.
    let code = unsafe { call(&raw mut version) };
    // Unloading a driver is not supported; the few pages stay.
    std::mem::forget(library);
    match code {
        0 if version > 0 => Ok(version),
        34 => Err(GpuError::Stub {
            path: path.display().to_string(),
        }),
        code => Err(broken(format!("cuDriverGetVersion returned {code}"))),
    }
}

/// The name of a device as the driver writes it.
pub(super) fn name(device: sys::CUdevice) -> Result<String, GpuError> {
    let mut text = [0; 256];
    // SAFETY: the buffer is as long as stated; the driver ends the name with NUL.
    check("cuDeviceGetName", unsafe {
        sys::cuDeviceGetName(text.as_mut_ptr(), 255, device)
    })?;
    Ok(owned(text.as_ptr()))
}
