//! NVML, the management library: clocks, power, temperature, links. Optional.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr;

use libloading::Library;

use super::owned;

type Device = *mut c_void;

/// What a GPU does just now; `None` for what the library does not tell.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Clock of the SMs \[MHz\].
    pub sm_mhz: Option<u32>,
    /// Clock of the memory \[MHz\].
    pub memory_mhz: Option<u32>,
    /// Power drawn \[W\].
    pub power_w: Option<f64>,
    /// Limit of the power \[W\].
    pub limit_w: Option<f64>,
    /// Temperature \[°C\].
    pub celsius: Option<u32>,
    /// Why the clock is low, as NVML's bits.
    pub throttle: Option<u64>,
}

/// How a GPU is connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// NVLinks that are up, with the PCI address of the other end.
    pub nvlinks: Vec<(u32, String)>,
    /// Version of NVLink.
    pub nvlink_version: Option<u32>,
    /// Generation and width of PCIe, at most.
    pub pcie: Option<(u32, u32)>,
}

/// NVML's structure of a PCI address, version 3 of the call.
#[repr(C)]
struct PciInfo {
    legacy: [c_char; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    id: c_uint,
    subsystem: c_uint,
    bus_id: [c_char; 32],
}

/// The started library.
#[derive(Debug)]
pub struct Nvml {
    library: Library,
}

impl Nvml {
    /// Loads and starts the library; `None` where there is none.
    pub fn start() -> Option<Self> {
        // SAFETY: NVML's constructors are sound.
        let library = unsafe { Library::new("libnvidia-ml.so.1") }.ok()?;
        let nvml = Self { library };
        // SAFETY: the symbol has this type since NVML 5.
        let init = unsafe {
            nvml.library
                .get::<unsafe extern "C" fn() -> c_int>(b"nvmlInit_v2\0")
        }
        .ok()?;
        // SAFETY: takes nothing; it may be repeated.
        (unsafe { init() } == 0).then_some(())?;
        Some(nvml)
    }

    /// The driver's version, `580.159.04`.
    pub fn driver(&self) -> Option<String> {
        type Call = unsafe extern "C" fn(*mut c_char, c_uint) -> c_int;
        let mut text = [0; 96];
        // SAFETY: the symbol has this type.
        let call = unsafe { self.library.get::<Call>(b"nvmlSystemGetDriverVersion\0") }.ok()?;
        // SAFETY: the buffer is as long as stated, the library ends it with NUL.
        (unsafe { call(text.as_mut_ptr(), 95) } == 0).then(|| owned(text.as_ptr()))
    }

    /// The state of the GPU at this PCI address.
    pub fn state(&self, pci: &str) -> State {
        let Some(device) = self.device(pci) else {
            return State::default();
        };
        let watts = |milliwatts: u32| f64::from(milliwatts) / 1e3;
        State {
            sm_mhz: self.number_of(b"nvmlDeviceGetClockInfo\0", device, 1),
            memory_mhz: self.number_of(b"nvmlDeviceGetClockInfo\0", device, 2),
            power_w: self.number(b"nvmlDeviceGetPowerUsage\0", device).map(watts),
            limit_w: self
                .number(b"nvmlDeviceGetEnforcedPowerLimit\0", device)
                .map(watts),
            celsius: self.number_of(b"nvmlDeviceGetTemperature\0", device, 0),
            throttle: self.throttle(device),
        }
    }

    /// The links of the GPU at this PCI address.
    pub fn links(&self, pci: &str) -> Links {
        let Some(device) = self.device(pci) else {
            return Links::default();
        };
        let up =
            |&link: &u32| self.number_of(b"nvmlDeviceGetNvLinkState\0", device, link) == Some(1);
        let nvlinks: Vec<u32> = (0..MAX_LINKS).filter(up).collect();
        let generation = self.number(b"nvmlDeviceGetMaxPcieLinkGeneration\0", device);
        let width = self.number(b"nvmlDeviceGetMaxPcieLinkWidth\0", device);
        Links {
            nvlink_version: nvlinks
                .first()
                .and_then(|&link| self.number_of(b"nvmlDeviceGetNvLinkVersion\0", device, link)),
            nvlinks: nvlinks
                .into_iter()
                .map(|link| (link, self.remote(device, link).unwrap_or_default()))
                .collect(),
            pcie: generation.zip(width),
        }
    }

    fn device(&self, pci: &str) -> Option<Device> {
        type Call = unsafe extern "C" fn(*const c_char, *mut Device) -> c_int;
        let pci = CString::new(pci).ok()?;
        let mut device = ptr::null_mut();
        // SAFETY: the symbol has this type.
        let call = unsafe {
            self.library
                .get::<Call>(b"nvmlDeviceGetHandleByPciBusId_v2\0")
        }
        .ok()?;
        // SAFETY: a string that ends in NUL, a valid pointer.
        (unsafe { call(pci.as_ptr(), &raw mut device) } == 0).then_some(device)
    }

    /// A call that gives one number of a device.
    fn number(&self, name: &[u8], device: Device) -> Option<u32> {
        type Call = unsafe extern "C" fn(Device, *mut c_uint) -> c_int;
        let mut value = 0;
        // SAFETY: every name given here has this type.
        let call = unsafe { self.library.get::<Call>(name) }.ok()?;
        // SAFETY: a live device, a valid pointer.
        (unsafe { call(device, &raw mut value) } == 0).then_some(value)
    }

    /// A call that gives one number of a device and a kind or link.
    fn number_of(&self, name: &[u8], device: Device, which: u32) -> Option<u32> {
        type Call = unsafe extern "C" fn(Device, c_uint, *mut c_uint) -> c_int;
        let mut value = 0;
        // SAFETY: every name given here has this type.
        let call = unsafe { self.library.get::<Call>(name) }.ok()?;
        // SAFETY: a live device, a valid pointer.
        (unsafe { call(device, which, &raw mut value) } == 0).then_some(value)
    }

    fn throttle(&self, device: Device) -> Option<u64> {
        type Call = unsafe extern "C" fn(Device, *mut u64) -> c_int;
        let mut value = 0;
        // SAFETY: the symbol has this type.
        let call = unsafe {
            self.library
                .get::<Call>(b"nvmlDeviceGetCurrentClocksThrottleReasons\0")
        }
        .ok()?;
        // SAFETY: a live device, a valid pointer.
        (unsafe { call(device, &raw mut value) } == 0).then_some(value)
    }

    fn remote(&self, device: Device, link: u32) -> Option<String> {
        type Call = unsafe extern "C" fn(Device, c_uint, *mut PciInfo) -> c_int;
        let mut info = PciInfo {
            legacy: [0; 16],
            domain: 0,
            bus: 0,
            device: 0,
            id: 0,
            subsystem: 0,
            bus_id: [0; 32],
        };
        // SAFETY: the symbol has this type.
        let call = unsafe {
            self.library
                .get::<Call>(b"nvmlDeviceGetNvLinkRemotePciInfo_v2\0")
        }
        .ok()?;
        // SAFETY: a live device, a valid pointer; the library ends the text with NUL.
        (unsafe { call(device, link, &raw mut info) } == 0).then(|| owned(info.bus_id.as_ptr()))
    }
}

/// Links that NVML can number on one GPU.
const MAX_LINKS: u32 = 18;
