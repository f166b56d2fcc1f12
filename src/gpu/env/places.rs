//! Where libraries are looked for, in order.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the search knows of the machine.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Environment variables.
    pub variables: BTreeMap<String, OsString>,
    /// Folders of the loader's cache.
    pub loader: Vec<PathBuf>,
    /// The root of the file system.
    pub root: PathBuf,
}

/// Variables that the search reads.
const VARIABLES: [&str; 10] = [
    "DUET_CUDA_DIR",
    "CUDA_HOME",
    "CUDA_PATH",
    "CONDA_PREFIX",
    "VIRTUAL_ENV",
    "PATH",
    "LD_LIBRARY_PATH",
    "HOME",
    "XDG_CACHE_HOME",
    "DUET_CACHE",
];

impl Machine {
    /// This machine.
    pub fn this() -> Self {
        let variables = VARIABLES
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), std::env::var_os(name)?)))
            .filter(|(_, value)| !value.is_empty())
            .collect();
        Self {
            variables,
            loader: loader_folders(),
            root: PathBuf::from("/"),
        }
    }

    fn folder(&self, name: &str) -> Option<PathBuf> {
        self.variables.get(name).map(PathBuf::from)
    }

    fn list(&self, name: &str) -> Vec<PathBuf> {
        self.variables
            .get(name)
            .map(|value| std::env::split_paths(value).collect())
            .unwrap_or_default()
    }
}

/// Folders named by `ldconfig -p`; none where it cannot be run.
fn loader_folders() -> Vec<PathBuf> {
    let run = |program: &str| {
        let output = Command::new(program)
            .arg("-p")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        output.status.success().then_some(output.stdout)
    };
    let text = ["ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"]
        .into_iter()
        .find_map(run)
        .unwrap_or_default();
    parse_loader(&String::from_utf8_lossy(&text))
}

/// The folders of the lines `libx.so.1 (libc6,x86-64) => /folder/libx.so.1`, each once.
fn parse_loader(text: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in text.lines() {
        let Some((_, path)) = line.split_once(" => ") else {
            continue;
        };
        if let Some(folder) = Path::new(path.trim()).parent()
            && !folders.iter().any(|known| known == folder)
        {
            folders.push(folder.to_owned());
        }
    }
    folders
}

/// A folder and why it is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub why: &'static str,
    pub folder: PathBuf,
    /// Whether the driver's own libraries may come from here.
    pub driver: bool,
    /// Whether the loader looks there anyway.
    pub loader: bool,
}

/// All places, existing ones only, each folder once, no `stubs`.
pub fn places(machine: &Machine) -> Vec<Place> {
    let mut found = Places::default();
    if let Some(folder) = machine.folder("DUET_CUDA_DIR") {
        found.toolkit("DUET_CUDA_DIR", &folder, true);
    }
    for name in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(folder) = machine.folder(name) {
            found.toolkit(name, &folder, false);
        }
    }
    if let Some(folder) = machine.folder("CONDA_PREFIX") {
        found.toolkit("CONDA_PREFIX", &folder, false);
        found.python("CONDA_PREFIX", &folder);
    }
    if let Some(folder) = machine.folder("VIRTUAL_ENV") {
        found.python("VIRTUAL_ENV", &folder);
    }
    for folder in machine.list("PATH") {
        // Not through links: a virtual environment's `python3` is a link to the system's.
        if folder.join("python3").exists()
            && let Some(prefix) = folder.parent()
        {
            found.python("python3 on PATH", prefix);
        }
    }
    if let Some(home) = machine.folder("HOME") {
        found.python("~/.local", &home.join(".local"));
    }
    for folder in machine.list("LD_LIBRARY_PATH") {
        found.add("LD_LIBRARY_PATH", folder, true, false);
    }
    for folder in &machine.loader {
        found.add("the loader's cache", folder.clone(), true, true);
    }
    let local = machine.root.join("usr/local");
    let mut versions = children(&local, |name| name.starts_with("cuda"));
    // `cuda` itself, the default, first; then the newest.
    versions.sort_by_key(|path| (path.file_name().map_or(0, |name| name.len()), path.clone()));
    let newest = versions.split_off(versions.len().min(1));
    for folder in versions.into_iter().chain(newest.into_iter().rev()) {
        found.toolkit("/usr/local/cuda*", &folder, false);
    }
    for folder in [
        "usr/local/nvidia/lib64",
        "usr/lib/wsl/lib",
        "run/opengl-driver/lib",
        "usr/lib/x86_64-linux-gnu",
        "usr/lib/aarch64-linux-gnu",
        "usr/lib64",
    ] {
        found.add("system folders", machine.root.join(folder), true, false);
    }
    found.0
}

#[derive(Default)]
struct Places(Vec<Place>);

impl Places {
    fn add(&mut self, why: &'static str, folder: PathBuf, driver: bool, loader: bool) {
        let stub = folder.iter().any(|part| part == "stubs");
        let known = self.0.iter_mut().find(|place| place.folder == folder);
        if let Some(known) = known {
            known.driver |= driver;
            known.loader |= loader;
        } else if !stub && folder.is_absolute() && folder.is_dir() {
            self.0.push(Place {
                why,
                folder,
                driver,
                loader,
            });
        }
    }

    /// The folders of a toolkit.
    fn toolkit(&mut self, why: &'static str, base: &Path, driver: bool) {
        self.add(why, base.to_owned(), driver, false);
        for name in ["lib64", "lib"] {
            self.add(why, base.join(name), driver, false);
        }
        for target in children(&base.join("targets"), |_| true) {
            self.add(why, target.join("lib"), driver, false);
        }
        self.wheels(why, base);
    }

    /// The wheels of a Python with this prefix.
    fn python(&mut self, why: &'static str, prefix: &Path) {
        for base in [prefix.to_owned(), prefix.join("local")] {
            for version in children(&base.join("lib"), |name| name.starts_with("python3")) {
                for site in ["site-packages", "dist-packages"] {
                    self.wheels(why, &version.join(site));
                }
            }
        }
    }

    /// `nvidia/*/lib` of a folder of packages.
    fn wheels(&mut self, why: &'static str, site: &Path) {
        for package in children(&site.join("nvidia"), |_| true).into_iter().rev() {
            self.add(why, package.join("lib"), false, false);
        }
    }
}

/// The folders in `folder` whose name fits, sorted.
fn children(folder: &Path, fits: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(&fits))
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_folders_are_read_off_its_cache() {
        let text = "2 libs found in cache `/etc/ld.so.cache'\n\tlibz.so.1 (libc6,x86-64) => /usr/lib/libz.so.1\n\tliba.so (libc6) => /opt/a/liba.so\n\tlibb.so (libc6) => /usr/lib/libb.so\n";
        assert_eq!(
            parse_loader(text),
            [PathBuf::from("/usr/lib"), PathBuf::from("/opt/a")]
        );
    }
}
