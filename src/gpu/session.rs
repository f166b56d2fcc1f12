//! The GPUs of this process, opened.

use std::rc::Rc;

use super::GpuError;
use super::cache::{self, Cache};
use super::env::{Active, Library, Machine};
use super::raw::nvml::Nvml;
use super::raw::{self, Driver, Gpu};

/// 10000 · major + 100 · minor + patch.
const OLDEST_NCCL: u32 = 22_200;

/// That NCCL has every function that is called; false never.
fn new_enough() -> Result<bool, GpuError> {
    match raw::nccl::version()? {
        found if found < OLDEST_NCCL => Err(GpuError::OldLibrary {
            library: "NCCL",
            found: format!("{}.{}", found / 10_000, found / 100 % 100),
            needed: "2.22",
        }),
        _ => Ok(true),
    }
}

/// The driver, the GPUs it shows, and where things are kept.
#[derive(Debug)]
pub struct Session {
    active: Active,
    driver: Driver,
    gpus: Vec<Rc<Gpu>>,
    nvml: Option<Nvml>,
    cache: Cache,
}

impl Session {
    /// Starts the driver and opens its first `count` GPUs, all for `None`.
    ///
    /// # Errors
    /// In words: [`Driver::start`]'s and [`Gpu::open`]'s.
    pub fn open(active: Active, count: Option<u32>) -> Result<Self, GpuError> {
        let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
        let path = active.path(Library::Driver).map_or_else(
            || "libcuda.so".to_owned(),
            |path| path.display().to_string(),
        );
        let driver = Driver::start(&path, visible.as_deref())?;
        let gpus = (0..count.unwrap_or_else(|| driver.gpus()))
            .map(|ordinal| Gpu::open(&driver, ordinal))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            active,
            driver,
            gpus,
            nvml: Nvml::start(),
            cache: Cache::new(cache::folder(&Machine::this())),
        })
    }

    /// That a library can be called; otherwise why not, in words.
    ///
    /// # Errors
    /// [`GpuError::Missing`], [`GpuError::NewLibrary`].
    pub fn require(&self, library: Library) -> Result<(), GpuError> {
        let present = match library {
            Library::Driver => true,
            Library::Nvrtc => raw::nvrtc::present(),
            Library::CublasLt => raw::lt::present(),
            Library::Nccl => raw::nccl::present() && new_enough()?,
            Library::Nvml => self.nvml.is_some(),
        };
        match present {
            true => Ok(()),
            false => Err(Active::missing(library)),
        }
    }

    /// Lets the GPUs reach each other's memory, in pairs where the machine allows it.
    ///
    /// # Errors
    /// The driver's.
    pub fn open_peers(&self) -> Result<(), GpuError> {
        for from in &self.gpus {
            for to in self.gpus.iter().filter(|to| to.ordinal() != from.ordinal()) {
                match from.open_peer(to) {
                    Err(GpuError::NoPeer { .. }) | Ok(()) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// The libraries it was started with.
    pub const fn active(&self) -> &Active {
        &self.active
    }

    /// The driver.
    pub const fn driver(&self) -> &Driver {
        &self.driver
    }

    /// The GPUs that were opened.
    pub fn gpus(&self) -> &[Rc<Gpu>] {
        &self.gpus
    }

    /// The management library, where there is one.
    pub const fn nvml(&self) -> Option<&Nvml> {
        self.nvml.as_ref()
    }

    /// Compiled kernels.
    pub const fn cache(&self) -> &Cache {
        &self.cache
    }
}
