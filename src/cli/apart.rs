//! Results that would take the place of what they are from, or of one another.

use std::path::{Path, PathBuf};

use super::error::Failure;

/// The files of a command, as they are typed.
#[derive(Default)]
pub struct Files<'a> {
    /// With the option that names it.
    written: Vec<(&'static str, &'a Path)>,
    read: Vec<&'a Path>,
}

impl<'a> Files<'a> {
    /// Adds a file that is written whole, if it is asked for.
    #[must_use]
    pub fn writes<P: AsRef<Path>>(mut self, option: &'static str, path: Option<&'a P>) -> Self {
        self.written
            .extend(path.map(|path| (option, path.as_ref())));
        self
    }

    /// Adds what is read; names of what is shipped are no files.
    #[must_use]
    pub fn reads<P: AsRef<Path> + 'a>(mut self, paths: impl IntoIterator<Item = &'a P>) -> Self {
        let paths = paths.into_iter().map(|path| path.as_ref());
        self.read.extend(paths.filter(|path| path.is_file()));
        self
    }

    /// Refuses to overwrite what is read, and two results in one regular file, which would leave the
    /// last; a device or a pipe takes both.
    ///
    /// # Errors
    /// [`Failure::Usage`].
    pub fn apart(&self) -> Result<(), Failure> {
        for (k, (option, path)) in self.written.iter().enumerate() {
            if path.exists() && !path.is_file() {
                continue;
            }
            let place = resolved(path);
            let mut earlier = self.written[..k].iter();
            if let Some((other, _)) = earlier.find(|(_, other)| resolved(other) == place) {
                return Err(Failure::Usage(format!(
                    "error: `{other}` and `{option}` both name `{}`: write to different files",
                    path.display()
                )));
            }
            if self.read.iter().any(|read| resolved(read) == place) {
                return Err(Failure::Usage(format!(
                    "error: `{option}` would overwrite `{}`, which is read\n  help: name another file",
                    path.display()
                )));
            }
        }
        Ok(())
    }
}

/// One name for a file, also before it is there.
fn resolved(path: &Path) -> PathBuf {
    let there = path.canonicalize().ok();
    let folder = || {
        let folder = match path.parent()? {
            folder if folder.as_os_str().is_empty() => Path::new("."),
            folder => folder,
        };
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    };
    there.or_else(folder).unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(files: &Files<'_>) -> String {
        let words = files.apart().err().map(|error| error.to_string());
        words.unwrap_or_default()
    }

    #[test]
    fn what_is_read_is_not_overwritten_under_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("times.csv");
        std::fs::write(&path, "times").unwrap();
        let dotted = folder.path().join("./times.csv");
        let new = folder.path().join("new.csv");
        let over =
            |out: &PathBuf| words(&Files::default().writes("--out", Some(out)).reads([&path]));
        assert!(over(&path).contains("`--out` would overwrite"));
        assert!(over(&dotted).contains("help: name another file"));
        assert_eq!(over(&new), "");
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(&path, &link).unwrap();
            assert!(over(&link).contains("would overwrite"));
        }
        // The name of a shipped topology is not a file.
        let name = PathBuf::from("h200-pair");
        let files = Files::default().writes("--out", Some(&name)).reads([&name]);
        assert_eq!(words(&files), "");
    }

    #[test]
    fn two_results_go_to_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let (one, same) = (folder.path().join("a"), folder.path().join("./a"));
        let files = Files::default()
            .writes("--out", Some(&one))
            .writes("--report", Some(&same));
        assert!(words(&files).contains("`--out` and `--report` both name"));
        let null = PathBuf::from("/dev/null");
        let files = Files::default()
            .writes("--out", Some(&null))
            .writes("--report", Some(&null))
            .reads([&null]);
        assert_eq!(words(&files), "");
    }
}
