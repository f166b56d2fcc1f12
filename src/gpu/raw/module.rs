//! Modules and kernels.

use std::ffi::{CString, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::rc::Rc;

use cudarc::driver::sys::{
    self, CUfunction, CUfunction_attribute as Attribute, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchAttributeValue, CUlaunchConfig, CUmodule,
};

use super::{Gpu, Region, Stream, check};
use crate::gpu::GpuError;

/// Machine code loaded on one GPU, kept to the end of the process.
#[derive(Debug)]
pub struct Module {
    gpu: Rc<Gpu>,
    raw: CUmodule,
}

impl Module {
    /// Loads a cubin.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for what is no ELF file, and the driver's.
    pub fn load(gpu: &Rc<Gpu>, cubin: &[u8]) -> Result<Self, GpuError> {
        if !cubin.starts_with(b"\x7fELF") {
            return Err(GpuError::Argument(
                "machine code for a GPU begins with the ELF mark".to_owned(),
            ));
        }
        gpu.enter()?;
        let mut raw = ptr::null_mut();
        // SAFETY: an ELF image, which states its own length; the driver copies it.
        check("cuModuleLoadData", unsafe {
            sys::cuModuleLoadData(&raw mut raw, cubin.as_ptr().cast::<c_void>())
        })?;
        Ok(Self {
            gpu: Rc::clone(gpu),
            raw,
        })
    }

    /// The kernel of this name, loaded at once.
    ///
    /// # Errors
    /// The driver's when there is none.
    pub fn kernel(&self, name: &str) -> Result<Kernel, GpuError> {
        self.gpu.enter()?;
        let text = CString::new(name)
            .map_err(|_| GpuError::Argument(format!("a kernel's name has no NUL: {name:?}")))?;
        let mut raw = ptr::null_mut();
        // SAFETY: a live module, a string that ends in NUL.
        check("cuModuleGetFunction", unsafe {
            sys::cuModuleGetFunction(&raw mut raw, self.raw, text.as_ptr())
        })?;
        Ok(Kernel {
            gpu: Rc::clone(&self.gpu),
            raw,
        })
    }
}

/// What a kernel takes of an SM.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a thread: spilled registers and stack.
    pub local: u32,
    /// Bytes of static shared memory of a block.
    pub shared: u32,
    /// Most threads of a block.
    pub threads: u32,
}

/// The size of a launch.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks in x and y.
    pub grid: (u32, u32),
    /// Threads of a block.
    pub block: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
}

impl Launch {
    /// `blocks` blocks of `threads` threads in a row.
    pub const fn row(blocks: u32, threads: u32) -> Self {
        Self {
            grid: (blocks, 1),
            block: threads,
            shared: 0,
        }
    }
}

/// Arguments of a kernel, in order; each takes 8-byte words of its own.
#[derive(Clone, Debug, Default)]
pub struct Args {
    words: Vec<u64>,
    starts: Vec<usize>,
}

impl Args {
    /// A 32-bit number.
    #[must_use]
    pub fn u32(self, value: u32) -> Self {
        self.u64(u64::from(value))
    }

    /// A 64-bit number.
    #[must_use]
    pub fn u64(mut self, value: u64) -> Self {
        self.starts.push(self.words.len());
        self.words.push(value);
        self
    }

    /// An address.
    #[must_use]
    pub fn region(self, region: Region) -> Self {
        self.u64(region.address())
    }

    /// These, and then others.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        let base = self.words.len();
        self.starts
            .extend(others.starts.iter().map(|start| base + start));
        self.words.extend(others.words);
        self
    }

    /// A structure passed by value that is made of 8-byte words.
    #[must_use]
    pub fn words(mut self, values: &[u64]) -> Self {
        self.starts.push(self.words.len());
        self.words.extend_from_slice(values);
        self
    }
}

/// A kernel on one GPU.
#[derive(Debug)]
pub struct Kernel {
    gpu: Rc<Gpu>,
    raw: CUfunction,
}

impl Kernel {
    /// What it takes of an SM.
    ///
    /// # Errors
    /// The driver's.
    pub fn resources(&self) -> Result<Resources, GpuError> {
        self.gpu.enter()?;
        let get = |attribute| {
            let mut value = 0;
            // SAFETY: a live function, a valid pointer.
            check("cuFuncGetAttribute", unsafe {
                sys::cuFuncGetAttribute(&raw mut value, attribute, self.raw)
            })?;
            Ok::<u32, GpuError>(u32::try_from(value).unwrap_or(0))
        };
        Ok(Resources {
            registers: get(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local: get(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            shared: get(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            threads: get(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        })
    }

    /// Blocks of `threads` threads that one SM holds at once.
    ///
    /// # Errors
    /// The driver's.
    pub fn blocks_per_sm(&self, threads: u32, shared: u32) -> Result<u32, GpuError> {
        self.gpu.enter()?;
        let mut blocks = 0;
        // SAFETY: a live function, a valid pointer.
        check("cuOccupancyMaxActiveBlocksPerMultiprocessor", unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                self.raw,
                threads as c_int,
                shared as usize,
            )
        })?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// Clusters of `cluster` blocks of `threads` threads that the GPU holds at once.
    ///
    /// # Errors
    /// The driver's, for GPUs without clusters too.
    pub fn clusters(&self, cluster: u32, threads: u32, shared: u32) -> Result<u32, GpuError> {
        self.gpu.enter()?;
        let mut attribute = together(cluster);
        let config = CUlaunchConfig {
            gridDimX: cluster,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: shared,
            hStream: ptr::null_mut(),
            attrs: &raw mut attribute,
            numAttrs: 1,
        };
        let mut clusters = 0;
        // SAFETY: a live function, valid pointers; the default stream is only looked at.
        check("cuOccupancyMaxActiveClusters", unsafe {
            sys::cuOccupancyMaxActiveClusters(&raw mut clusters, self.raw, &raw const config)
        })?;
        Ok(u32::try_from(clusters).unwrap_or(0))
    }

    /// Lets it be launched with up to `bytes` of dynamic shared memory.
    ///
    /// # Errors
    /// The driver's for more than an SM gives a block.
    pub fn allow_shared(&self, bytes: u32) -> Result<(), GpuError> {
        self.gpu.enter()?;
        // SAFETY: a live function.
        check("cuFuncSetAttribute", unsafe {
            sys::cuFuncSetAttribute(
                self.raw,
                Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                bytes as c_int,
            )
        })
    }

    /// Launches it in `stream`, a stream of the same GPU. The arguments must be the kernel's own;
    /// `gpu::kernels` has a typed function for each.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for a stream of another GPU, and the driver's.
    pub fn launch(&self, stream: &Stream, size: Launch, args: &Args) -> Result<(), GpuError> {
        self.launch_together(stream, size, 1, args)
    }

    /// As [`Self::launch`], in clusters of so many blocks, if more than one, each in one group of SMs.
    ///
    /// # Errors
    /// As [`Self::launch`].
    pub fn launch_together(
        &self,
        stream: &Stream,
        size: Launch,
        cluster: u32,
        args: &Args,
    ) -> Result<(), GpuError> {
        if stream.gpu().ordinal() != self.gpu.ordinal() {
            return Err(GpuError::Argument(format!(
                "a kernel of GPU {} in a stream of GPU {}",
                self.gpu.ordinal(),
                stream.gpu().ordinal()
            )));
        }
        self.gpu.enter()?;
        let mut pointers: Vec<*mut c_void> = args
            .starts
            .iter()
            .map(|&start| ptr::from_ref(&args.words[start]).cast_mut().cast())
            .collect();
        let mut attribute = together(cluster);
        let config = CUlaunchConfig {
            gridDimX: size.grid.0,
            gridDimY: size.grid.1,
            gridDimZ: 1,
            blockDimX: size.block,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: size.shared,
            hStream: stream.raw(),
            attrs: &raw mut attribute,
            numAttrs: u32::from(cluster > 1),
        };
        // SAFETY: live handles; each pointer leads to at least 8 bytes that the driver copies now, as it does
        // the attribute; the kernels are ours and check their sizes in the functions that call this.
        check("cuLaunchKernelEx", unsafe {
            sys::cuLaunchKernelEx(
                &raw const config,
                self.raw,
                pointers.as_mut_ptr(),
                ptr::null_mut(),
            )
        })
    }
}

/// That so many blocks begin together.
fn together(cluster: u32) -> CUlaunchAttribute {
    let mut value = MaybeUninit::<CUlaunchAttributeValue>::zeroed();
    // SAFETY: a union of plain numbers, all of whose bytes are set.
    let value = unsafe {
        let value = value.assume_init_mut();
        value.clusterDim.x = cluster;
        value.clusterDim.y = 1;
        value.clusterDim.z = 1;
        *value
    };
    CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        pad: Default::default(),
        value,
    }
}
