//! One GPU: its primary context, what it can do, its peers.

use std::cell::Cell;
use std::ffi::c_int;
use std::fmt;
use std::ptr;
use std::rc::Rc;

use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdevice_P2PAttribute as P2p, CUdevice_attribute as Attribute,
    CUresult,
};

use super::{Driver, check, driver, owned};
use crate::gpu::GpuError;

/// What a GPU is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes {
    pub name: String,
    /// Compute capability.
    pub major: u32,
    pub minor: u32,
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of level-2 cache.
    pub l2: u64,
    /// Most bytes of shared memory of a block.
    pub shared: u32,
    /// Copy engines that work at once.
    pub copy_engines: u32,
    /// Whether error correction is on.
    pub ecc: bool,
    /// PCI address, `0000:00:00.0`.
    pub pci: String,
    /// The GPU's unique id.
    pub uuid: [u8; 16],
}

/// What one GPU can do with another's memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Whether it can be mapped.
    pub access: bool,
    /// Whether atomics work across the link.
    pub atomics: bool,
    /// The driver's rank of the link; lower is faster.
    pub rank: u32,
}

/// A GPU whose primary context this process holds to its end.
pub struct Gpu {
    ordinal: u32,
    device: CUdevice,
    context: CUcontext,
    attributes: Attributes,
    lost: Cell<bool>,
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GPU {} ({})", self.ordinal, self.attributes.name)
    }
}

impl Gpu {
    /// Opens GPU `ordinal`, counted among those this process can see.
    ///
    /// # Errors
    /// [`GpuError::TooFew`] when there is no such GPU, [`GpuError::OldGpu`], and the driver's.
    pub fn open(driver: &Driver, ordinal: u32) -> Result<Rc<Self>, GpuError> {
        if ordinal >= driver.gpus() {
            return Err(GpuError::TooFew {
                needed: ordinal.saturating_add(1),
                found: driver.gpus(),
                hidden: std::env::var("CUDA_VISIBLE_DEVICES").map_or_else(
                    |_| String::new(),
                    |v| format!(" (`CUDA_VISIBLE_DEVICES={v}`)"),
                ),
            });
        }
        let mut device = 0;
        // SAFETY: the driver has started; the ordinal is below its count, so it fits.
        check("cuDeviceGet", unsafe {
            sys::cuDeviceGet(&raw mut device, ordinal as c_int)
        })?;
        let attributes = attributes(device)?;
        if attributes.major < 8 {
            return Err(GpuError::OldGpu {
                gpu: ordinal,
                name: attributes.name,
                major: attributes.major,
                minor: attributes.minor,
            });
        }
        let mut context = ptr::null_mut();
        // SAFETY: a valid device; the context is kept to the end of the process.
        check("cuDevicePrimaryCtxRetain", unsafe {
            sys::cuDevicePrimaryCtxRetain(&raw mut context, device)
        })?;
        let gpu = Self {
            ordinal,
            device,
            context,
            attributes,
            lost: Cell::new(false),
        };
        gpu.enter()?;
        Ok(Rc::new(gpu))
    }

    /// Number of this GPU among those this process can see.
    pub const fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// What it is.
    pub const fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The architecture to compile for, with its own instructions where it has such: `sm_90a`.
    pub fn arch(&self) -> String {
        let Attributes { major, minor, .. } = self.attributes;
        let own = if major >= 9 { "a" } else { "" };
        format!("sm_{major}{minor}{own}")
    }

    /// Free and total bytes of memory.
    ///
    /// # Errors
    /// The driver's.
    pub fn memory(&self) -> Result<(u64, u64), GpuError> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: valid pointers, current context.
        check("cuMemGetInfo", unsafe {
            sys::cuMemGetInfo_v2(&raw mut free, &raw mut total)
        })?;
        Ok((free as u64, total as u64))
    }

    /// What this GPU can do with the memory of `other`.
    ///
    /// # Errors
    /// The driver's.
    pub fn peer(&self, other: &Self) -> Result<Peer, GpuError> {
        let get = |attribute| {
            let mut value = 0;
            // SAFETY: two valid devices, a valid pointer.
            check("cuDeviceGetP2PAttribute", unsafe {
                sys::cuDeviceGetP2PAttribute(&raw mut value, attribute, self.device, other.device)
            })?;
            Ok::<c_int, GpuError>(value)
        };
        Ok(Peer {
            access: get(P2p::CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED)? != 0,
            atomics: get(P2p::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)? != 0,
            rank: u32::try_from(get(P2p::CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK)?).unwrap_or(0),
        })
    }

    /// Opens the memory of `other` to this GPU: to its kernels, its copies, its flags.
    ///
    /// # Errors
    /// [`GpuError::NoPeer`] where the machine does not allow it.
    pub fn open_peer(&self, other: &Self) -> Result<(), GpuError> {
        let refused = GpuError::NoPeer {
            from: self.ordinal,
            to: other.ordinal,
        };
        if !self.peer(other)?.access {
            return Err(refused);
        }
        self.enter()?;
        // SAFETY: a live context of another device; 0 is the only flag.
        match unsafe { sys::cuCtxEnablePeerAccess(other.context, 0) } {
            CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(()),
            CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED => Err(refused),
            code => check("cuCtxEnablePeerAccess", code),
        }
    }

    /// Makes this GPU's context the thread's current one.
    pub(super) fn enter(&self) -> Result<(), GpuError> {
        // SAFETY: the primary context is held to the end of the process.
        check("cuCtxSetCurrent", unsafe {
            sys::cuCtxSetCurrent(self.context)
        })
    }

    /// Whether a limit has passed on this GPU, after which nothing is freed any more.
    pub const fn is_lost(&self) -> bool {
        self.lost.get()
    }

    /// Counts this GPU as lost.
    pub fn lose(&self) {
        self.lost.set(true);
    }
}

fn attributes(device: CUdevice) -> Result<Attributes, GpuError> {
    let get = |attribute| {
        let mut value = 0;
        // SAFETY: a valid device and pointer.
        check("cuDeviceGetAttribute", unsafe {
            sys::cuDeviceGetAttribute(&raw mut value, attribute, device)
        })?;
        Ok::<u32, GpuError>(u32::try_from(value).unwrap_or(0))
    };
    let mut memory = 0;
    let mut uuid = sys::CUuuid { bytes: [0; 16] };
    let mut pci = [0; 32];
    // SAFETY: a valid device; the buffers are as long as stated.
    unsafe {
        check(
            "cuDeviceTotalMem",
            sys::cuDeviceTotalMem_v2(&raw mut memory, device),
        )?;
        check(
            "cuDeviceGetUuid",
            sys::cuDeviceGetUuid_v2(&raw mut uuid, device),
        )?;
        check(
            "cuDeviceGetPCIBusId",
            sys::cuDeviceGetPCIBusId(pci.as_mut_ptr(), 31, device),
        )?;
    }
    Ok(Attributes {
        name: driver::name(device)?,
        major: get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        minor: get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        sms: get(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        memory: memory as u64,
        l2: u64::from(get(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        shared: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        copy_engines: get(Attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT)?,
        ecc: get(Attribute::CU_DEVICE_ATTRIBUTE_ECC_ENABLED)? != 0,
        pci: owned(pci.as_ptr()),
        uuid: uuid.bytes.map(|byte| byte as u8),
    })
}
