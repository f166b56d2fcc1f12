//! Reading a file whole, but not without end.

use std::io::{self, Read};
use std::path::Path;

/// The bytes of a file of at most `most` bytes. Counts what is read, since a device or a pipe has
/// no size.
///
/// # Errors
/// Whatever opening and reading gives, or that the file is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("larger than {} MiB", most >> 20),
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, [7; 1 << 20]).unwrap();
        assert_eq!(read(&path, 1 << 20).unwrap().len(), 1 << 20);
        std::fs::write(&path, [7; (1 << 20) + 1]).unwrap();
        let error = read(&path, 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "larger than 1 MiB");
    }

    /// A device without end and without a size.
    #[cfg(unix)]
    #[test]
    fn a_device_without_end_is_refused() {
        let error = read(Path::new("/dev/zero"), 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "larger than 1 MiB");
    }
}
