//! The folder of a run: its lock, its stamp, the growing table and the finished one.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Shard, Stamp, folder, resume};
use crate::experiment::Experiment;
use crate::experiment::results::{Results, ResultsError, Table};

/// The stem of the files of an unsharded run.
pub(in crate::experiment) const RESULTS: &str = "results";

/// The stem of a run's files.
pub(in crate::experiment) fn stem(shard: Option<Shard>) -> String {
    match shard {
        None => RESULTS.to_owned(),
        Some(Shard { index, of }) => format!("{RESULTS}.shard-{index}-of-{of}"),
    }
}

/// Why a run did not finish.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The folder cannot be made or written in.
    #[error("cannot write in the folder `{path}`: {reason}\n  help: choose another with `--out`")]
    Folder { path: String, reason: String },
    /// Another process is at work there.
    #[error(
        "another `duet` is writing `{path}`\n  help: wait for it, or choose another folder with `--out`"
    )]
    Busy { path: String },
    /// The folder holds another experiment's results.
    #[error(
        "`{path}` holds results of {what}\n  help: choose another folder with `--out`; `duet run` with `--fresh` discards them"
    )]
    Changed { path: String, what: String },
    /// Writing failed on the way.
    #[error(
        "cannot write `{path}`: {reason}\n  help: the cases written so far are kept; make room and run the same command again"
    )]
    Write { path: String, reason: String },
    /// The finished table is damaged.
    #[error("{0}\n  help: give `--fresh` to perform the experiment anew")]
    Damaged(#[from] ResultsError),
}

/// A folder with its lock held; a process that dies lets go of it.
#[derive(Debug)]
pub(in crate::experiment) struct Store {
    out: PathBuf,
    stem: String,
    _lock: File,
}

impl Store {
    /// Makes the folder and takes the lock on the tables of this stem.
    pub fn open(out: &Path, stem: &str) -> Result<Self, RunError> {
        let fail = |error: io::Error| RunError::Folder {
            path: out.display().to_string(),
            reason: match out.is_file() {
                true => "it is a file".to_owned(),
                false => error.to_string(),
            },
        };
        fs::create_dir_all(out).map_err(fail)?;
        let lock = out.join(format!(".{stem}.lock"));
        let lock = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&lock)
            .map_err(fail)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(RunError::Busy {
                    path: out.join(format!("{stem}.csv")).display().to_string(),
                });
            }
            // Some network file systems have no locks; two runs at once are then the user's care.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(fail(error)),
        }
        Ok(Self {
            out: out.to_owned(),
            stem: stem.to_owned(),
            _lock: lock,
        })
    }

    pub fn path(&self, ending: &str) -> PathBuf {
        self.out.join(format!("{}.{ending}", self.stem))
    }

    fn partial(&self) -> PathBuf {
        self.path("csv.partial")
    }

    /// The error of a write to the growing table.
    pub fn failed(&self, error: &io::Error) -> RunError {
        self.unwritable(&self.partial(), error)
    }

    /// Removes what earlier runs left.
    pub fn clear(&self) -> Result<(), RunError> {
        for path in [
            self.partial(),
            self.path("csv"),
            self.path("parquet"),
            self.path("run.json"),
        ] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(RunError::Folder {
                        path: self.out.display().to_string(),
                        reason: format!("cannot remove `{}`: {error}", path.display()),
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The error of writing a file whole.
    pub fn unwritable(&self, path: &Path, error: &io::Error) -> RunError {
        // Without the temporary file's name, which would only confuse.
        let text = error.to_string();
        let reason = text.split(" at path ").next().unwrap_or(&text).to_owned();
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                RunError::Folder {
                    path: self.out.display().to_string(),
                    reason,
                }
            }
            _ => RunError::Write {
                path: path.display().to_string(),
                reason,
            },
        }
    }

    /// Refuses a folder whose tables are not of this run.
    pub fn vacant(&self, stamp: &Stamp) -> Result<(), RunError> {
        let tables = [self.partial(), self.path("csv"), self.path("parquet")];
        let Some(table) = tables.iter().find(|path| path.exists()) else {
            return Ok(());
        };
        let changed = |what: String| RunError::Changed {
            path: table.display().to_string(),
            what,
        };
        match Stamp::read(&self.path("run.json")) {
            None => Err(changed("an experiment that is not known".to_owned())),
            Some(other) if stamp.agrees(&other) => Ok(()),
            Some(other) if other.experiment != stamp.experiment => Err(changed(format!(
                "another experiment, `{}`",
                other.experiment
            ))),
            Some(other) if other.duet != stamp.duet => Err(changed(format!(
                "Duet {}, and this is {}",
                other.duet, stamp.duet
            ))),
            Some(other) if other.model != stamp.model => Err(changed(format!(
                "Duet {} with another model of the machine, whose times differ",
                other.duet
            ))),
            Some(other) => Err(changed(format!(
                "`{}` as it was before its grid or a topology changed ({} cases then, {} now)",
                other.experiment, other.cases, stamp.cases
            ))),
        }
    }

    /// The finished table of this run in the wanted form, if there is one.
    pub fn finished(&self, stamp: &Stamp, table: Table) -> Result<Option<PathBuf>, RunError> {
        self.vacant(stamp)?;
        if !self.path("csv").exists() && !self.path("parquet").exists() {
            return Ok(None);
        }
        let wanted = self.path(table.ending());
        let path = match wanted.exists() {
            true => wanted,
            false => self.convert(table)?,
        };
        let rows = Results::count(&path)?;
        if rows != stamp.rows {
            return Err(RunError::Damaged(ResultsError::Rows {
                path: path.display().to_string(),
                rows,
                expected: stamp.rows,
            }));
        }
        Ok(Some(path))
    }

    /// Opens the growing table, cut to its complete cases; also how many those are.
    pub fn resume(
        &self,
        experiment: &Experiment,
        cases: &[u32],
        stamp: &Stamp,
    ) -> Result<(File, usize), RunError> {
        let path = self.partial();
        if !path.exists() {
            // The stamp first: a table without one is nobody's.
            self.stamp(stamp)?;
        }
        let open = || -> io::Result<(File, usize)> {
            let file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .open(&path)?;
            let kept = resume::keep(&file, experiment, cases)?;
            Ok((file, kept))
        };
        open().map_err(|error| self.failed(&error))
    }

    /// Gives the growing table, now complete, its name and form.
    pub fn finish(&self, table: Table) -> Result<PathBuf, RunError> {
        let csv = self.path("csv");
        fs::rename(self.partial(), &csv).map_err(|error| self.failed(&error))?;
        match table {
            Table::Csv => Ok(csv),
            Table::Parquet => self.convert(table),
        }
    }

    /// Writes the finished table in the other form, which takes its place.
    fn convert(&self, table: Table) -> Result<PathBuf, RunError> {
        let (from, to) = match table {
            Table::Csv => (self.path("parquet"), self.path("csv")),
            Table::Parquet => (self.path("csv"), self.path("parquet")),
        };
        let results = Results::read(&from)?;
        let bytes = table.write(&results).map_err(|reason| RunError::Write {
            path: to.display().to_string(),
            reason,
        })?;
        self.replace(&to, &bytes)?;
        fs::remove_file(&from).map_err(|error| self.failed(&error))?;
        Ok(to)
    }

    /// Writes the stamp.
    pub fn stamp(&self, stamp: &Stamp) -> Result<(), RunError> {
        self.replace(&self.path("run.json"), stamp.text().as_bytes())
    }

    /// Writes a file whole by way of a temporary one beside it.
    fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), RunError> {
        let write = || -> io::Result<()> {
            let mut file = temporary(folder(path))?;
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            file.persist(path).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(|error| self.unwritable(path, &error))
    }
}

/// A temporary file that others may read once it is renamed.
pub(crate) fn temporary(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The process's umask still applies.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}
