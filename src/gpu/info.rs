//! What this machine has: libraries, GPUs, links.

use std::path::PathBuf;

use super::GpuError;
use super::env::{Active, Library};
use super::raw::nvml::{Links, State};
use super::raw::{self, Attributes, Peer};
use super::session::Session;
use crate::input::Fingerprint;

/// A library of the machine.
#[derive(Debug)]
pub struct LibraryInfo {
    pub library: Library,
    /// Its file and version, or why it cannot be used.
    pub state: Result<(PathBuf, String), GpuError>,
}

/// A GPU of the machine.
#[derive(Clone, Debug)]
pub struct GpuInfo {
    pub ordinal: u32,
    pub attributes: Attributes,
    /// Tells GPUs apart without naming them.
    pub uuid_hash: String,
    /// Bytes of memory that are free.
    pub free: u64,
    pub state: State,
    pub links: Links,
    /// What it can do with the memory of each GPU; `None` for its own.
    pub peers: Vec<Option<Peer>>,
}

/// Everything found.
#[derive(Debug)]
pub struct Info {
    /// The CUDA version the driver supports.
    pub cuda: String,
    /// The driver's own version, where NVML tells it.
    pub driver: Option<String>,
    pub libraries: Vec<LibraryInfo>,
    pub gpus: Vec<GpuInfo>,
}

/// Sixteen digits that tell GPUs apart without naming them.
pub fn uuid_hash(uuid: &[u8; 16]) -> String {
    format!("{:016x}", Fingerprint::of(uuid))
}

/// Looks at the machine.
///
/// # Errors
/// The driver's; missing libraries are part of the result.
pub fn info(session: &Session) -> Result<Info, GpuError> {
    let libraries = Library::ALL
        .into_iter()
        .map(|library| LibraryInfo {
            library,
            state: session.require(library).and_then(|()| {
                let file = PathBuf::from(library.file());
                let path = session.active().path(library).unwrap_or(file);
                Ok((path, version(session, library)?))
            }),
        })
        .collect();
    let gpus = session
        .gpus()
        .iter()
        .map(|gpu| {
            let attributes = gpu.attributes().clone();
            let pci = &attributes.pci;
            let peers = session
                .gpus()
                .iter()
                .map(|other| match other.ordinal() == gpu.ordinal() {
                    true => Ok(None),
                    false => gpu.peer(other).map(Some),
                })
                .collect::<Result<_, _>>()?;
            Ok(GpuInfo {
                ordinal: gpu.ordinal(),
                uuid_hash: uuid_hash(&attributes.uuid),
                free: gpu.memory()?.0,
                state: session.nvml().map(|n| n.state(pci)).unwrap_or_default(),
                links: session.nvml().map(|n| n.links(pci)).unwrap_or_default(),
                peers,
                attributes,
            })
        })
        .collect::<Result<_, GpuError>>()?;
    Ok(Info {
        cuda: session.driver().version(),
        driver: session.nvml().and_then(raw::nvml::Nvml::driver),
        libraries,
        gpus,
    })
}

/// The version of a library that is present.
fn version(session: &Session, library: Library) -> Result<String, GpuError> {
    let dotted = |number: u64| {
        let (major, minor) = (number / 10_000, number % 10_000 / 100);
        format!("{major}.{minor}.{}", number % 100)
    };
    Ok(match library {
        Library::Driver => format!("CUDA {}", session.driver().version()),
        Library::Nvrtc => {
            let (major, minor) = raw::nvrtc::version()?;
            format!("{major}.{minor}")
        }
        Library::CublasLt => dotted(raw::lt::version()),
        Library::Nccl => dotted(u64::from(raw::nccl::version()?)),
        Library::Nvml => session
            .nvml()
            .and_then(raw::nvml::Nvml::driver)
            .unwrap_or_default(),
    })
}

impl Info {
    /// What stands in the way of using all of it, in words.
    pub fn problems(&self) -> Vec<String> {
        let missing = self.libraries.iter().filter_map(|info| {
            let optional = info.library == Library::Nvml;
            match &info.state {
                Ok(_) => None,
                Err(_) if optional => Some(
                    "NVML is missing: clocks, power and links cannot be read\n  help: it comes with the driver (`libnvidia-ml.so.1`)"
                        .to_owned(),
                ),
                Err(error) => Some(error.to_string()),
            }
        });
        let closed = self.gpus.iter().flat_map(|gpu| {
            let others = gpu.peers.iter().enumerate();
            others.filter_map(|(to, peer)| {
                let closed = peer.is_some_and(|peer| !peer.access);
                closed.then(|| {
                    GpuError::NoPeer {
                        from: gpu.ordinal,
                        to: to as u32,
                    }
                    .to_string()
                })
            })
        });
        let active = (self.gpus.is_empty()).then(|| GpuError::NoGpu.to_string());
        missing.chain(closed).chain(active).collect()
    }

    /// Whether schedules can be run: the driver, the compiler and GEMMs are there.
    pub fn usable(&self) -> bool {
        let needed = [Library::Driver, Library::Nvrtc, Library::CublasLt];
        self.libraries
            .iter()
            .all(|info| info.state.is_ok() || !needed.contains(&info.library))
    }
}

/// Starts what this process was prepared for, or says what is missing.
///
/// # Errors
/// [`Session::open`]'s.
pub fn open(active: Active) -> Result<(Session, Info), GpuError> {
    let session = Session::open(active, None)?;
    let info = info(&session)?;
    Ok((session, info))
}
