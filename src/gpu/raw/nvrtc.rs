//! The run-time compiler: CUDA C++ to machine code.

use std::ffi::{CString, c_char};
use std::ptr;

use cudarc::nvrtc::sys::{self, nvrtcProgram, nvrtcResult};

use super::owned;
use crate::gpu::GpuError;

/// Whether the library can be loaded.
pub fn present() -> bool {
    // SAFETY: loads the library by the loader's own rules; its constructors are sound.
    unsafe { sys::is_culib_present() }
}

/// The version of the compiler, e.g. `(13, 0)`.
///
/// # Errors
/// The library's.
pub fn version() -> Result<(u32, u32), GpuError> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: valid pointers.
    check("nvrtcVersion", unsafe {
        sys::nvrtcVersion(&raw mut major, &raw mut minor)
    })?;
    Ok((
        u32::try_from(major).unwrap_or(0),
        u32::try_from(minor).unwrap_or(0),
    ))
}

fn check(call: &'static str, code: nvrtcResult) -> Result<(), GpuError> {
    match code {
        nvrtcResult::NVRTC_SUCCESS => Ok(()),
        code => Err(GpuError::Library {
            library: "NVRTC",
            call,
            // SAFETY: takes any code, returns a static string.
            text: owned(unsafe { sys::nvrtcGetErrorString(code) }),
        }),
    }
}

/// A program, destroyed at the end.
struct Program(nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: a live program, destroyed once.
        let _ = unsafe { sys::nvrtcDestroyProgram(&raw mut self.0) };
    }
}

/// Compiles `source` to machine code for `arch` (`sm_90a`), with further `options`.
///
/// # Errors
/// [`GpuError::Compile`] with the compiler's log.
pub fn compile(
    name: &str,
    source: &str,
    arch: &str,
    options: &[&str],
) -> Result<Vec<u8>, GpuError> {
    let text = |text: &str| {
        CString::new(text).map_err(|_| GpuError::Argument(format!("NUL in the source of {name}")))
    };
    let (source, title) = (text(source)?, text(name)?);
    let options: Vec<CString> = [format!("--gpu-architecture={arch}").as_str()]
        .iter()
        .chain(options)
        .map(|option| text(option))
        .collect::<Result<_, _>>()?;
    let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    let mut raw = ptr::null_mut();
    // SAFETY: strings that end in NUL and outlive the program; no headers.
    check("nvrtcCreateProgram", unsafe {
        sys::nvrtcCreateProgram(
            &raw mut raw,
            source.as_ptr(),
            title.as_ptr(),
            0,
            ptr::null(),
            ptr::null(),
        )
    })?;
    let program = Program(raw);
    let count = i32::try_from(pointers.len()).unwrap_or(i32::MAX);
    // SAFETY: a live program and as many options as stated.
    let code = unsafe { sys::nvrtcCompileProgram(program.0, count, pointers.as_ptr()) };
    if code == nvrtcResult::NVRTC_ERROR_COMPILATION {
        return Err(GpuError::Compile {
            name: name.to_owned(),
            arch: arch.to_owned(),
            log: log(&program)?,
        });
    }
    check("nvrtcCompileProgram", code)?;
    let mut size = 0;
    // SAFETY: a compiled program, a valid pointer.
    check("nvrtcGetCUBINSize", unsafe {
        sys::nvrtcGetCUBINSize(program.0, &raw mut size)
    })?;
    let mut cubin = vec![0_u8; size];
    // SAFETY: the buffer is as long as the library said.
    check("nvrtcGetCUBIN", unsafe {
        sys::nvrtcGetCUBIN(program.0, cubin.as_mut_ptr().cast())
    })?;
    Ok(cubin)
}

fn log(program: &Program) -> Result<String, GpuError> {
    let mut size = 0;
    // SAFETY: a live program, a valid pointer.
    check("nvrtcGetProgramLogSize", unsafe {
        sys::nvrtcGetProgramLogSize(program.0, &raw mut size)
    })?;
    let mut text = vec![0_u8; size];
    // SAFETY: the buffer is as long as the library said.
    check("nvrtcGetProgramLog", unsafe {
        sys::nvrtcGetProgramLog(program.0, text.as_mut_ptr().cast())
    })?;
    text.retain(|&byte| byte != 0);
    Ok(String::from_utf8_lossy(&text).into_owned())
}
