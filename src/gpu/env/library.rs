//! The libraries that Duet calls, and how their files are named.

use std::path::Path;

use crate::gpu::GpuError;

/// A library of the CUDA stack.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Library {
    Driver,
    Nvrtc,
    CublasLt,
    Nccl,
    Nvml,
}

impl Library {
    /// All of them, in the order they are reported.
    pub const ALL: [Self; 5] = [
        Self::Driver,
        Self::Nvrtc,
        Self::CublasLt,
        Self::Nccl,
        Self::Nvml,
    ];

    /// The name users know.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Nvrtc => "NVRTC",
            Self::CublasLt => "cuBLASLt",
            Self::Nccl => "NCCL",
            Self::Nvml => "NVML",
        }
    }

    /// The file the loader is asked for; others have a version behind it.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Driver => "libcuda.so",
            Self::Nvrtc => "libnvrtc.so",
            Self::CublasLt => "libcublasLt.so",
            Self::Nccl => "libnccl.so",
            Self::Nvml => "libnvidia-ml.so",
        }
    }

    /// The name under which other libraries load it, where that matters.
    pub const fn soname(self) -> Option<&'static str> {
        match self {
            Self::Driver => Some("libcuda.so.1"),
            Self::Nvml => Some("libnvidia-ml.so.1"),
            Self::Nccl => Some("libnccl.so.2"),
            Self::Nvrtc | Self::CublasLt => None,
        }
    }

    /// Whether it comes with the kernel module, not with a toolkit.
    pub const fn of_driver(self) -> bool {
        matches!(self, Self::Driver | Self::Nvml)
    }

    /// Whether its file's version is CUDA's, which must not be newer than the driver.
    pub const fn has_cuda_version(self) -> bool {
        matches!(self, Self::Nvrtc | Self::CublasLt)
    }

    /// That it is missing, in words.
    pub fn missing(self, searched: &str) -> GpuError {
        let searched = searched.to_owned();
        let (file, wheel) = match self {
            Self::Driver | Self::Nvml => return GpuError::NoDriver { searched },
            Self::Nvrtc => ("libnvrtc.so.12 (or .13)", "nvidia-cuda-nvrtc"),
            Self::CublasLt => ("libcublasLt.so.12 (or .13)", "nvidia-cublas"),
            Self::Nccl => ("libnccl.so.2", "nvidia-nccl-cu13"),
        };
        GpuError::Missing {
            library: self.name(),
            file,
            wheel,
            searched,
        }
    }
}

/// The first number behind `.so.` of what the path leads to: `13` for `libnvrtc.so.13.0.88`.
pub fn major(path: &Path) -> Option<u32> {
    let number = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        let (_, version) = name.split_once(".so.")?;
        version.split('.').next()?.parse().ok()
    };
    number(path).or_else(|| number(&path.canonicalize().ok()?))
}
