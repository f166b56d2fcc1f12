//! Finding each library among the places.

use std::fs;
use std::path::{Path, PathBuf};

use super::library::{Library, major};
use super::places::{Machine, Place, places};
use crate::gpu::GpuError;

/// A library that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub library: Library,
    /// Its file.
    pub path: PathBuf,
    /// Why it was looked for there.
    pub why: &'static str,
    /// Whether the loader looks in its folder anyway.
    pub loader: bool,
}

/// What the search came to: each library with its file, or what is wrong with it.
#[derive(Debug)]
pub struct Search {
    pub found: Vec<Found>,
    pub missing: Vec<(Library, GpuError)>,
}

/// Looks for every library on `machine`. `version` says which CUDA version a driver's file
/// supports (1000 · major + 10 · minor); libraries for a later major version are passed over.
pub fn search(machine: &Machine, version: impl Fn(&Path) -> Result<i32, GpuError>) -> Search {
    let places = places(machine);
    let mut result = Search {
        found: Vec::new(),
        missing: Vec::new(),
    };
    let mut cuda = None;
    for library in Library::ALL {
        let fitting: Vec<&Place> = places
            .iter()
            .filter(|place| place.driver || !library.of_driver())
            .collect();
        let candidates = fitting.iter().flat_map(|place| {
            files(&place.folder, library)
                .into_iter()
                .map(|path| (*place, path))
        });
        let mut wrong = None;
        for (place, path) in candidates {
            let verdict = match library {
                Library::Driver => version(&path).map(|version| cuda = Some(version)),
                _ => fits(library, &path, cuda),
            };
            match verdict {
                Ok(()) => {
                    result.found.push(Found {
                        library,
                        path,
                        why: place.why,
                        loader: place.loader,
                    });
                    wrong = None;
                    break;
                }
                Err(error) => wrong = wrong.or(Some(error)),
            }
        }
        if result.found.last().is_none_or(|f| f.library != library) {
            let error = wrong.or_else(|| stub(machine, library));
            let error = error.unwrap_or_else(|| library.missing(&searched(&fitting)));
            result.missing.push((library, error));
        }
    }
    result
}

/// Refuses a library that is newer than the driver.
fn fits(library: Library, path: &Path, cuda: Option<i32>) -> Result<(), GpuError> {
    let Some(cuda) = cuda.filter(|_| library.has_cuda_version()) else {
        return Ok(());
    };
    match major(path) {
        Some(found) if i64::from(found) > i64::from(cuda / 1000) => Err(GpuError::NewLibrary {
            library: library.name(),
            path: path.display().to_string(),
            found,
            driver: format!("{}.{}", cuda / 1000, cuda % 1000 / 10),
        }),
        _ => Ok(()),
    }
}

/// That only the stub of the driver is there.
fn stub(machine: &Machine, library: Library) -> Option<GpuError> {
    if library != Library::Driver {
        return None;
    }
    let list = machine.variables.get("LD_LIBRARY_PATH")?;
    std::env::split_paths(list)
        .filter(|folder| folder.iter().any(|part| part == "stubs"))
        .find_map(|folder| files(&folder, library).into_iter().next())
        .map(|path| GpuError::Stub {
            path: path.display().to_string(),
        })
}

/// The files of a library in a folder, newest version first; empty files are placeholders.
fn files(folder: &Path, library: Library) -> Vec<PathBuf> {
    let mut found: Vec<(Vec<u32>, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let rest = name.to_str()?.strip_prefix(library.file())?;
            let version = match rest.strip_prefix('.') {
                Some(version) => version.split('.').map(|n| n.parse().unwrap_or(0)).collect(),
                None if rest.is_empty() => Vec::new(),
                None => return None,
            };
            let path = entry.path();
            let real = fs::metadata(&path).is_ok_and(|data| data.is_file() && data.len() > 0);
            real.then_some((version, path))
        })
        .collect();
    // By the first number only: `.so.13` and `.so.13.0.88` are one file.
    found.sort_by(|(a, _), (b, _)| b.first().cmp(&a.first()).then(a.cmp(b)));
    found.into_iter().map(|(_, path)| path).collect()
}

/// The places in words: the reasons in order, with their folders where they are few.
fn searched(places: &[&Place]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut at = 0;
    while at < places.len() {
        let why = places[at].why;
        let same = places[at..]
            .iter()
            .take_while(|place| place.why == why)
            .count();
        let shown: Vec<String> = places[at..at + same]
            .iter()
            .take(4)
            .map(|place| place.folder.display().to_string())
            .collect();
        let more = match same > 4 {
            true => format!(" and {} more", same - 4),
            false => String::new(),
        };
        parts.push(format!("{why} ({}{more})", shown.join(", ")));
        at += same;
    }
    match parts.is_empty() {
        true => "any folder that libraries are kept in".to_owned(),
        false => parts.join(", "),
    }
}
