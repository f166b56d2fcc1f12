//! Finding the CUDA libraries on the machine, and the environment in which they load.
//!
//! The loader reads its variables when a process starts, and CUDA its own when the driver starts,
//! so Duet runs itself once more in the right environment: [`Environment::prepare`] says which,
//! [`active`] whether that has happened. Libraries are looked for in `DUET_CUDA_DIR`, `CUDA_HOME`
//! and `CUDA_PATH`, the conda environment, the wheels of the active Python, `LD_LIBRARY_PATH`, the
//! loader's cache and `/usr/local/cuda*`, in this order. They are linked into a folder of their own
//! under the plain names that are loaded.

mod library;
mod places;
mod search;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

pub use library::Library;
pub use places::Machine;
pub use search::{Found, Search, search};

use super::{GpuError, cache, raw};

/// Names the folder of links in the process that runs in it.
const GUARD: &str = "DUET_GPU_LIBRARIES";

/// The environment that Duet must run in to use GPUs.
#[derive(Debug)]
pub struct Environment {
    search: Search,
    folder: PathBuf,
    variables: Vec<(&'static str, OsString)>,
}

impl Environment {
    /// Looks for the libraries and links them.
    ///
    /// # Errors
    /// [`GpuError::NoDriver`], [`GpuError::Stub`] or [`GpuError::Start`] without a driver, and
    /// [`GpuError::File`] when no folder can be made; other libraries may be missing.
    pub fn prepare(machine: &Machine) -> Result<Self, GpuError> {
        let mut search = search(machine, raw::version_of);
        let driver = |(library, _): &(Library, GpuError)| *library == Library::Driver;
        if let Some(at) = search.missing.iter().position(driver) {
            return Err(search.missing.swap_remove(at).1);
        }
        let folder = link(&cache::folder(machine), &search.found)
            .or_else(|_| link(&std::env::temp_dir(), &search.found))?;
        let variables = variables(machine, &search.found, &folder);
        Ok(Self {
            search,
            folder,
            variables,
        })
    }

    /// The variables to set, beside those of this process.
    pub fn variables(&self) -> &[(&'static str, OsString)] {
        &self.variables
    }

    /// What was found and what was not.
    pub const fn search(&self) -> &Search {
        &self.search
    }

    /// The folder of links.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// The libraries that this process was started with, if it runs in a prepared environment.
pub fn active() -> Option<Active> {
    let folder = PathBuf::from(std::env::var_os(GUARD).filter(|value| !value.is_empty())?);
    Some(Active { folder })
}

/// A process in a prepared environment.
#[derive(Clone, Debug)]
pub struct Active {
    folder: PathBuf,
}

impl Active {
    /// The file of a library, through all links.
    pub fn path(&self, library: Library) -> Option<PathBuf> {
        self.folder.join(library.file()).canonicalize().ok()
    }

    /// That a library is missing, with where it was looked for.
    pub fn missing(library: Library) -> GpuError {
        let search = search(&Machine::this(), raw::version_of);
        search
            .missing
            .into_iter()
            .find(|(missing, _)| *missing == library)
            .map_or_else(
                || library.missing("the loader's folders"),
                |(_, error)| error,
            )
    }
}

/// Makes the folder of links; its name depends on what is linked, so that it is made once.
fn link(base: &Path, found: &[Found]) -> Result<PathBuf, GpuError> {
    let mut links: Vec<(PathBuf, PathBuf)> = Vec::new();
    for Found { library, path, .. } in found {
        let names = [Some(library.file()), library.soname()];
        for name in names.into_iter().flatten() {
            links.push((PathBuf::from(name), path.clone()));
        }
        if *library == Library::Nvrtc {
            links.extend(builtins(path));
        }
    }
    let text: Vec<String> = links
        .iter()
        .map(|(name, path)| format!("{} {}\n", name.display(), path.display()))
        .collect();
    let folder = base.join(format!("libraries-{:032x}", cache::hash(&[&text.concat()])));
    let fail = |reason: &std::io::Error| GpuError::File {
        what: "cannot make the links to the libraries in",
        path: folder.display().to_string(),
        reason: reason.to_string(),
    };
    fs::create_dir_all(&folder).map_err(|error| fail(&error))?;
    for (name, path) in &links {
        let link = folder.join(name);
        if fs::read_link(&link).is_ok_and(|there| there == *path) {
            continue;
        }
        // Another process may be making the same link: each renames its own into place.
        let temporary = folder.join(format!(".{}-{}", name.display(), std::process::id()));
        let _ = fs::remove_file(&temporary);
        symlink(path, &temporary)
            .and_then(|()| fs::rename(&temporary, &link))
            .map_err(|error| fail(&error))?;
    }
    Ok(folder)
}

/// The compiler's second half, which it loads by name from the loader's folders.
fn builtins(nvrtc: &Path) -> Vec<(PathBuf, PathBuf)> {
    let folders = [
        nvrtc.parent().map(Path::to_owned),
        nvrtc
            .canonicalize()
            .ok()
            .and_then(|path| path.parent().map(Path::to_owned)),
    ];
    let mut found: Vec<(PathBuf, PathBuf)> = folders
        .into_iter()
        .flatten()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            name.to_str()
                .is_some_and(|name| name.starts_with("libnvrtc-builtins.so"))
        })
        .map(|entry| (PathBuf::from(entry.file_name()), entry.path()))
        .collect();
    found.sort();
    found.dedup_by(|a, b| a.0 == b.0);
    found
}

#[cfg(unix)]
fn symlink(to: &Path, at: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(to, at)
}

#[cfg(not(unix))]
fn symlink(to: &Path, at: &Path) -> std::io::Result<()> {
    fs::copy(to, at).map(|_| ())
}

fn variables(machine: &Machine, found: &[Found], folder: &Path) -> Vec<(&'static str, OsString)> {
    let mut folders = vec![folder.to_owned()];
    let real = found
        .iter()
        .filter(|found| !found.loader)
        .filter_map(|found| found.path.parent().map(Path::to_owned));
    let old = machine.variables.get("LD_LIBRARY_PATH");
    let old = old.into_iter().flat_map(std::env::split_paths);
    for next in real.chain(old) {
        let stub = next.iter().any(|part| part == "stubs");
        if !stub && !folders.contains(&next) && !next.as_os_str().is_empty() {
            folders.push(next);
        }
    }
    let mut variables = vec![
        (GUARD, folder.as_os_str().to_owned()),
        // One hardware queue per stream, as far as there are any.
        ("CUDA_DEVICE_MAX_CONNECTIONS", "32".into()),
        // A module loaded while a kernel spins would wait for that kernel.
        ("CUDA_MODULE_LOADING", "EAGER".into()),
    ];
    if let Ok(path) = std::env::join_paths(&folders) {
        variables.push(("LD_LIBRARY_PATH", path));
    }
    if std::env::var_os("NCCL_NVLS_ENABLE").is_none() {
        // Multicast needs rights that many machines do not give, and is not modelled.
        variables.push(("NCCL_NVLS_ENABLE", "0".into()));
    }
    variables
}
