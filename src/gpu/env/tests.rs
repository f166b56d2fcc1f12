use std::fs;
use std::path::{Path, PathBuf};

use super::*;

/// A machine made of folders: a path ending in `/` is a folder, others are files.
struct Fake {
    root: tempfile::TempDir,
    machine: Machine,
}

impl Fake {
    fn new(files: &[&str]) -> Self {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "library").unwrap();
        }
        let machine = Machine {
            root: root.path().to_owned(),
            ..Machine::default()
        };
        Self { root, machine }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.root.path().join(file)
    }

    fn set(mut self, name: &str, folders: &[&str]) -> Self {
        let paths = folders.iter().map(|folder| self.path(folder));
        let value = std::env::join_paths(paths).unwrap();
        self.machine.variables.insert(name.to_owned(), value);
        self
    }

    fn loader(mut self, folders: &[&str]) -> Self {
        self.machine.loader = folders.iter().map(|folder| self.path(folder)).collect();
        self
    }

    /// Searches with a driver for this version of CUDA.
    fn search(&self, cuda: i32) -> Search {
        search(&self.machine, |_| Ok(cuda))
    }

    fn found(&self, library: Library) -> Option<(String, &'static str)> {
        let search = self.search(13_000);
        let found = search.found.into_iter().find(|f| f.library == library)?;
        let path = found.path.strip_prefix(self.root.path()).unwrap();
        Some((path.display().to_string(), found.why))
    }
}

fn sentence(search: &Search, library: Library) -> String {
    let missing = search.missing.iter().find(|(l, _)| *l == library);
    missing.expect("is missing").1.to_string()
}

#[test]
fn wheels_of_the_active_python_are_found_in_both_layouts() {
    let fake = Fake::new(&[
        "venv/bin/python3",
        "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
        "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc-builtins.so.13.0",
        "venv/lib/python3.12/site-packages/nvidia/cublas/lib/libcublasLt.so.12",
        "venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2",
        "drv/libcuda.so.1",
    ])
    .set("PATH", &["nothing", "venv/bin"])
    .loader(&["drv"]);
    let base = "venv/lib/python3.12/site-packages/nvidia";
    let at = |path: &str| Some((format!("{base}/{path}"), "python3 on PATH"));
    assert_eq!(fake.found(Library::Nvrtc), at("cu13/lib/libnvrtc.so.13"));
    assert_eq!(
        fake.found(Library::CublasLt),
        at("cublas/lib/libcublasLt.so.12")
    );
    assert_eq!(fake.found(Library::Nccl), at("nccl/lib/libnccl.so.2"));
    assert_eq!(
        fake.found(Library::Driver),
        Some(("drv/libcuda.so.1".to_owned(), "the loader's cache"))
    );
}

#[test]
fn the_named_folder_goes_before_all_others() {
    let fake = Fake::new(&[
        "mine/lib64/libnvrtc.so.12",
        "home/lib64/libnvrtc.so.13",
        "usr/local/cuda/lib64/libnvrtc.so.13",
    ])
    .set("DUET_CUDA_DIR", &["mine"])
    .set("CUDA_HOME", &["home"]);
    assert_eq!(
        fake.found(Library::Nvrtc),
        Some(("mine/lib64/libnvrtc.so.12".to_owned(), "DUET_CUDA_DIR"))
    );
}

#[test]
fn of_the_systems_toolkits_the_default_goes_first_and_then_the_newest() {
    let files = [
        "usr/local/cuda-12.4/lib64/libnvrtc.so.12",
        "usr/local/cuda-12.8/lib64/libnvrtc.so.12",
        "usr/local/cuda/lib64/libcublasLt.so.12",
        "usr/local/cuda-12.8/lib64/libcublasLt.so.12",
    ];
    let fake = Fake::new(&files);
    let why = "/usr/local/cuda*";
    assert_eq!(
        fake.found(Library::Nvrtc),
        Some(("usr/local/cuda-12.8/lib64/libnvrtc.so.12".to_owned(), why))
    );
    assert_eq!(
        fake.found(Library::CublasLt),
        Some(("usr/local/cuda/lib64/libcublasLt.so.12".to_owned(), why))
    );
}

#[test]
fn a_library_for_a_newer_driver_is_passed_over() {
    let new = "home/lib64/libnvrtc.so.13";
    let old = "usr/local/cuda/lib64/libnvrtc.so.12";
    let both = Fake::new(&[new, old, "drv/libcuda.so.1"])
        .set("CUDA_HOME", &["home"])
        .loader(&["drv"]);
    let search = both.search(12_040);
    let found = search.found.iter().find(|f| f.library == Library::Nvrtc);
    assert_eq!(found.unwrap().path, both.path(old));
    let one = Fake::new(&[new, "drv/libcuda.so.1"])
        .set("CUDA_HOME", &["home"])
        .loader(&["drv"]);
    let text = sentence(&one.search(12_040), Library::Nvrtc);
    assert!(text.contains("NVRTC was found for CUDA 13 only"), "{text}");
    assert!(text.contains("the driver supports CUDA 12.4"), "{text}");
}

#[test]
fn a_driver_is_not_taken_from_a_toolkit() {
    let fake = Fake::new(&["home/lib64/libcuda.so.1"]).set("CUDA_HOME", &["home"]);
    assert_eq!(fake.found(Library::Driver), None);
}

#[test]
fn stubs_and_empty_files_are_no_drivers() {
    let fake = Fake::new(&["cuda/lib64/stubs/libcuda.so", "drv/libcuda.so.1"])
        .set("LD_LIBRARY_PATH", &["cuda/lib64/stubs"]);
    let text = sentence(&fake.search(13_000), Library::Driver);
    assert!(text.contains("is the stub of the driver"), "{text}");
    assert!(text.contains("stubs/libcuda.so"), "{text}");
    let fake = fake.loader(&["drv"]);
    assert!(fake.found(Library::Driver).is_some());
    fs::write(fake.path("drv/libcuda.so.1"), "").unwrap();
    assert_eq!(fake.found(Library::Driver), None);
}

#[test]
fn a_driver_that_is_a_stub_inside_gives_way_to_a_real_one() {
    let fake = Fake::new(&["a/libcuda.so", "b/libcuda.so.1"]).loader(&["a", "b"]);
    let version = |path: &Path| match path.ends_with("a/libcuda.so") {
        true => Err(GpuError::Stub {
            path: path.display().to_string(),
        }),
        false => Ok(13_000),
    };
    let search = search(&fake.machine, version);
    assert_eq!(search.found[0].path, fake.path("b/libcuda.so.1"));
}

#[test]
fn what_is_missing_is_said_with_the_places_searched() {
    let fake = Fake::new(&["drv/libcuda.so.1", "home/lib64/other.so"])
        .set("CUDA_HOME", &["home"])
        .loader(&["drv"]);
    let search = fake.search(13_000);
    for (library, words) in [
        (Library::Nvrtc, ["NVRTC is missing", "libnvrtc.so.12"]),
        (Library::CublasLt, ["cuBLASLt is missing", "nvidia-cublas"]),
        (Library::Nccl, ["NCCL is missing", "libnccl.so.2"]),
    ] {
        let text = sentence(&search, library);
        for word in words.into_iter().chain(["CUDA_HOME (", "help: "]) {
            assert!(text.contains(word), "no `{word}` in {text}");
        }
    }
    let bare = Fake::new(&[]).search(13_000);
    let text = sentence(&bare, Library::Driver);
    assert!(text.contains("no NVIDIA driver"), "{text}");
}

#[cfg(unix)]
#[test]
fn libraries_are_linked_under_the_names_that_are_loaded() {
    let fake = Fake::new(&[
        "drv/libcuda.so.1",
        "home/lib64/libnvrtc.so.13",
        "home/lib64/libnvrtc-builtins.so.13.0",
        "home/lib64/libnccl.so.2",
    ])
    .set("CUDA_HOME", &["home"])
    .set("LD_LIBRARY_PATH", &["cuda/stubs", "other"])
    .loader(&["drv"]);
    let found = fake.search(13_000).found;
    let folder = link(&fake.path("cache"), &found).unwrap();
    for name in [
        "libcuda.so",
        "libcuda.so.1",
        "libnvrtc.so",
        "libnvrtc-builtins.so.13.0",
        "libnccl.so",
    ] {
        assert!(folder.join(name).is_file(), "{name}");
    }
    assert_eq!(link(&fake.path("cache"), &found).unwrap(), folder);
    let variables = variables(&fake.machine, &found, &folder);
    let path = &variables
        .iter()
        .find(|v| v.0 == "LD_LIBRARY_PATH")
        .unwrap()
        .1;
    let folders: Vec<PathBuf> = std::env::split_paths(path).collect();
    // The links first; what the loader knows is not repeated; stubs are dropped.
    assert_eq!(
        folders,
        [folder, fake.path("home/lib64"), fake.path("other")]
    );
    let active = Active {
        folder: folders[0].clone(),
    };
    assert_eq!(
        active.path(Library::Nccl),
        fake.path("home/lib64/libnccl.so.2").canonicalize().ok()
    );
    assert_eq!(active.path(Library::CublasLt), None);
}
