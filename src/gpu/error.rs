//! What can be wrong with a machine's GPUs, each a sentence with a remedy.

use std::time::Duration;

use crate::units::Bytes;

/// Why the GPUs cannot be used, or what went wrong on them.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    /// No `libcuda` was found.
    #[error(
        "no NVIDIA driver: there is no `libcuda.so.1` in {searched}\n  help: install the driver, or start the container with its GPUs (`--gpus all`); for a driver in another folder set `DUET_CUDA_DIR` to it"
    )]
    NoDriver { searched: String },
    /// The library found is the one to link against, not a driver.
    #[error(
        "`{path}` is the stub of the driver, made for linking only\n  help: take `stubs` folders out of `LD_LIBRARY_PATH`, and install the driver if there is none"
    )]
    Stub { path: String },
    /// The driver refuses to start.
    #[error("the driver does not start: {reason}\n  help: {help}")]
    Start { reason: String, help: &'static str },
    /// The driver is older than what Duet calls.
    #[error(
        "the driver supports CUDA {found}, and Duet needs {needed} or newer\n  help: update the NVIDIA driver"
    )]
    OldDriver { found: String, needed: &'static str },
    /// The driver runs and shows no GPU.
    #[error(
        "the driver runs but shows no GPU\n  help: check `nvidia-smi`; a container needs its GPUs handed in (`--gpus all`)"
    )]
    NoGpu,
    /// The GPUs are hidden by the environment.
    #[error(
        "`CUDA_VISIBLE_DEVICES={value}` hides every GPU\n  help: unset it, or name GPUs that exist, e.g. `CUDA_VISIBLE_DEVICES=0,1`"
    )]
    Hidden { value: String },
    /// Fewer GPUs than asked for.
    #[error(
        "{needed} GPUs are needed and {found} can be seen{hidden}\n  help: use fewer GPUs; several ranks can share one"
    )]
    TooFew {
        needed: u32,
        found: u32,
        /// A remark on `CUDA_VISIBLE_DEVICES`, or nothing.
        hidden: String,
    },
    /// A library was not found.
    #[error(
        "{library} is missing: there is no `{file}` in {searched}\n  help: install it, e.g. `pip install {wheel}` in the active Python, or set `DUET_CUDA_DIR` to its folder"
    )]
    Missing {
        library: &'static str,
        file: &'static str,
        wheel: &'static str,
        searched: String,
    },
    /// A library was found, but only for a newer driver.
    #[error(
        "{library} was found for CUDA {found} only (`{path}`), and the driver supports CUDA {driver}\n  help: install the library for CUDA {driver} or older, or update the driver"
    )]
    NewLibrary {
        library: &'static str,
        path: String,
        found: u32,
        driver: String,
    },
    /// A library is there and too old to have all functions that Duet calls.
    #[error(
        "{library} is {found}, and {needed} or newer is needed\n  help: install a newer {library}"
    )]
    OldLibrary {
        library: &'static str,
        found: String,
        needed: &'static str,
    },
    /// The GPU's memory does not suffice.
    #[error(
        "GPU {gpu} has {} of memory free, and {} are needed\n  help: choose a smaller shape or more GPUs, or end what else uses the GPU (`nvidia-smi` lists it)",
        Bytes::new(*free), Bytes::new(*needed)
    )]
    Memory { gpu: u32, needed: u64, free: u64 },
    /// The host gives no pinned memory.
    #[error(
        "the host gives no {} of pinned memory: {reason}\n  help: raise the memory limit of the container, or choose smaller chunks for the `host` path",
        Bytes::new(*bytes)
    )]
    Pinned { bytes: u64, reason: String },
    /// Two GPUs cannot reach each other.
    #[error(
        "GPU {from} cannot reach the memory of GPU {to}\n  help: choose the path `host`, which is staged through pinned memory"
    )]
    NoPeer { from: u32, to: u32 },
    /// The GPU is older than our kernels.
    #[error(
        "GPU {gpu} ({name}) has compute capability {major}.{minor}, and Duet's kernels need 8.0 or newer\n  help: use an Ampere GPU or a later one"
    )]
    OldGpu {
        gpu: u32,
        name: String,
        major: u32,
        minor: u32,
    },
    /// A call of the driver failed.
    #[error("{call}: {name} ({text}){help}")]
    Cuda {
        call: &'static str,
        code: u32,
        name: String,
        text: String,
        help: &'static str,
    },
    /// A call of another library failed.
    #[error("{library}: {call}: {text}")]
    Library {
        library: &'static str,
        call: &'static str,
        text: String,
    },
    /// A kernel does not compile.
    #[error("kernel `{name}` does not compile for {arch}:\n{log}")]
    Compile {
        name: String,
        arch: String,
        log: String,
    },
    /// An address range outside an allocation.
    #[error("{what}: {wanted} bytes wanted at an address with {left} bytes left")]
    Bounds {
        what: &'static str,
        wanted: u64,
        left: u64,
    },
    /// Arguments that a wrapper refuses.
    #[error("{0}")]
    Argument(String),
    /// The GPU did not finish in time; it may hang, so nothing more is asked of it.
    #[error(
        "{what} did not end within {} s\n  help: raise the limit if the work may take longer; else this is a deadlock",
        limit.as_secs_f64()
    )]
    Timeout { what: String, limit: Duration },
    /// A run did not end: what it waits for.
    #[error(
        "{what} did not end within {} s\n  note: {report}\n  help: raise the limit (`--limit`) if the work may take longer; else a wait is never met",
        limit.as_secs_f64()
    )]
    Hang {
        what: String,
        limit: Duration,
        report: String,
    },
    /// A run did not end earlier on, so nothing more is asked of these GPUs.
    #[error("the GPUs are no longer used, because earlier {reason}")]
    Unusable { reason: String },
    /// A file of the cache or of the environment.
    #[error("{what} `{path}`: {reason}\n  help: set `DUET_CACHE` to a folder that can be written")]
    File {
        what: &'static str,
        path: String,
        reason: String,
    },
    /// A result is wrong.
    #[error("wrong result: {0}")]
    Wrong(String),
}
