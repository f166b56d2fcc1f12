//! The folder for what need not be made again: compiled kernels, links to libraries.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::GpuError;
use super::env::Machine;
use crate::input::Fingerprint;

/// `DUET_CACHE`, else `duet` in `XDG_CACHE_HOME` or `~/.cache`, else in the temporary folder.
pub fn folder(machine: &Machine) -> PathBuf {
    let get = |name: &str| machine.variables.get(name).map(PathBuf::from);
    get("DUET_CACHE")
        .or_else(|| Some(get("XDG_CACHE_HOME")?.join("duet")))
        .or_else(|| Some(get("HOME")?.join(".cache/duet")))
        .unwrap_or_else(|| std::env::temp_dir().join("duet-cache"))
}

/// FNV-1a over the parts, 128 bits; each part is closed by a byte that no UTF-8 text has.
pub fn hash(parts: &[&str]) -> u128 {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013B;
    let mut hash: u128 = 0x6C62_272E_07BB_0142_62B8_2175_6295_C58D;
    for part in parts {
        for byte in part.bytes().chain([0xFF]) {
            hash = (hash ^ u128::from(byte)).wrapping_mul(PRIME);
        }
    }
    hash
}

/// Compiled kernels on disk.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// A cache in `folder`, which need not exist.
    pub const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The file `name` whose content depends on `key` alone: read, or made by `make` and kept.
    /// A cache that cannot be read or written is only slower.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get(
        &self,
        name: &str,
        key: &[&str],
        make: impl FnOnce() -> Result<Vec<u8>, GpuError>,
    ) -> Result<Vec<u8>, GpuError> {
        let path = self.folder.join(format!("{name}-{:032x}", hash(key)));
        if let Some(data) = fs::read(&path).ok().and_then(unseal) {
            return Ok(data);
        }
        let data = make()?;
        let _ = self.keep(&path, &data);
        Ok(data)
    }

    fn keep(&self, path: &Path, data: &[u8]) -> std::io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(&seal(data))?;
        file.persist(path)?;
        Ok(())
    }
}

/// The checksum of `data` and `data`.
fn seal(data: &[u8]) -> Vec<u8> {
    let mut sealed = Fingerprint::of(data).to_le_bytes().to_vec();
    sealed.extend_from_slice(data);
    sealed
}

/// What was sealed, if it is whole.
fn unseal(sealed: Vec<u8>) -> Option<Vec<u8>> {
    let (sum, data) = sealed.split_first_chunk::<8>()?;
    (u64::from_le_bytes(*sum) == Fingerprint::of(data)).then(|| data.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_once_is_read_and_what_is_broken_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().join("new"));
        let made = |text: &str| Ok(text.as_bytes().to_vec());
        assert_eq!(cache.get("k", &["a"], || made("one")).unwrap(), b"one");
        assert_eq!(cache.get("k", &["a"], || made("two")).unwrap(), b"one");
        assert_eq!(cache.get("k", &["b"], || made("two")).unwrap(), b"two");
        let path = fs::read_dir(folder.path().join("new")).unwrap();
        for entry in path.flatten() {
            let mut data = fs::read(entry.path()).unwrap();
            data.truncate(data.len() - 1);
            fs::write(entry.path(), data).unwrap();
        }
        assert_eq!(cache.get("k", &["a"], || made("new")).unwrap(), b"new");
    }

    #[test]
    fn a_cache_without_a_folder_is_only_slower() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let cache = Cache::new(file.join("below"));
        assert_eq!(cache.get("k", &[], || Ok(vec![1])).unwrap(), [1]);
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
    }
}
