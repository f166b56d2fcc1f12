//! The files of a measurement: a table of times and one of tasks, group after group.
//!
//! The tasks of a group are written first, then its rows by one write; what a kill leaves is a prefix
//! of both. Whoever opens the table next cuts the last group if it is torn, and the tasks of groups
//! that are not whole.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::Measured;
use crate::experiment::Measure;
use crate::input::decode;
use crate::validate::TableError;
use crate::validate::cases::Planned;
use crate::validate::{table, tasks};

/// Why a table is not used or not written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be made or opened.
    #[error("cannot write `{path}`: {reason}\n  help: name another file with `--rows`")]
    Open { path: String, reason: String },
    /// Another process is at work on it.
    #[error(
        "another `duet` is writing `{path}`\n  help: wait for it, or name another file with `--rows`"
    )]
    Busy { path: String },
    /// It has mistakes; rendered.
    #[error("{0}")]
    Damaged(#[from] TableError),
    /// It belongs to another experiment, or to this one before it changed.
    #[error(
        "`{path}` {what}\n  help: name another file with `--rows`, or give `--fresh` to start over"
    )]
    Changed { path: String, what: String },
    /// Tasks of a group without rows lie before those of groups that are kept.
    #[error(
        "line {line} of `{path}` is the first of `{group}`, whose rows are gone, and tasks that are kept follow\n  help: remove the tasks of this group, too, and run the same command again"
    )]
    Orphaned {
        path: String,
        line: usize,
        group: String,
    },
    /// Writing failed on the way.
    #[error(
        "cannot write `{path}`: {reason}\n  help: the groups written so far are kept; make room and run the same command again"
    )]
    Write { path: String, reason: String },
}

/// Largest table that is read \[bytes\].
const LARGEST: u64 = 256 << 20;
const EDITED: &str = "has been edited: its lines are not as Duet writes them, so none can be added";

/// The tables of a run, locked; a process that dies lets go of them.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    rows: File,
    tasks: File,
    /// Names of the groups that are whole.
    done: BTreeSet<String>,
}

/// The table of tasks beside a table of times: `NAME-tasks.csv`.
pub fn tasks_beside(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-tasks.csv"))
}

impl Store {
    /// Opens the tables at `path`, which hold groups of `groups` measured as `measure` says, or
    /// begins them. `fresh`: whatever they hold is forgotten.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(
        path: &Path,
        groups: &[Planned],
        measure: &Measure,
        fresh: bool,
    ) -> Result<Self, StoreError> {
        let fail = |path: &Path| {
            let path = path.display().to_string();
            move |error: io::Error| StoreError::Open {
                path,
                reason: error.to_string(),
            }
        };
        if let Some(folder) = path.parent().filter(|folder| *folder != Path::new("")) {
            fs::create_dir_all(folder).map_err(fail(path))?;
        }
        let open = |path: &Path| {
            let mut options = OpenOptions::new();
            options.create(true).truncate(false).read(true).write(true);
            options.open(path).map_err(fail(path))
        };
        let mut rows = open(path)?;
        match rows.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Busy {
                    path: path.display().to_string(),
                });
            }
            // Some network file systems have no locks; two runs at once are then the user's care.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(fail(path)(error)),
        }
        let beside = tasks_beside(path);
        let mut tasks = open(&beside)?;
        if fresh {
            rows.set_len(0).map_err(fail(path))?;
            tasks.set_len(0).map_err(fail(&beside))?;
        }
        // Both are read before one is cut.
        let held = bytes(&mut rows).map_err(fail(path))?;
        let (length, done) = whole(path, &held, groups, measure)?;
        let held = bytes(&mut tasks).map_err(fail(&beside))?;
        let known = known(&beside, &held, &done)?;
        cut(&mut rows, length, &table::header()).map_err(fail(path))?;
        cut(&mut tasks, known, &tasks::header()).map_err(fail(&beside))?;
        Ok(Self {
            path: path.to_owned(),
            rows,
            tasks,
            done,
        })
    }

    /// Whether the group is there.
    pub fn has(&self, planned: &Planned) -> bool {
        self.done.contains(&planned.group.to_string())
    }

    /// Appends a group.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn append(&mut self, planned: &Planned, measured: &Measured) -> Result<(), StoreError> {
        let tasks: String = measured.tasks.iter().map(tasks::Task::line).collect();
        let rows: String = measured.rows.iter().map(table::Row::line).collect();
        let mut write = || {
            self.tasks.write_all(tasks.as_bytes())?;
            self.tasks.sync_data()?;
            self.rows.write_all(rows.as_bytes())?;
            self.rows.sync_data()
        };
        write().map_err(|error: io::Error| StoreError::Write {
            path: self.path.display().to_string(),
            reason: error.to_string(),
        })?;
        self.done.insert(planned.group.to_string());
        Ok(())
    }
}

/// All of a file.
fn bytes(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    // Counts what is read: a device has no size.
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > LARGEST {
        true => Err(io::ErrorKind::FileTooLarge.into()),
        false => Ok(bytes),
    }
}

/// The lines that are whole: one is written whole or torn, and a torn one has no end.
fn lines<'b>(path: &Path, bytes: &'b [u8]) -> Result<&'b str, TableError> {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    let whole = &bytes[..end.map_or(0, |end| end + 1)];
    decode(&path.display().to_string(), whole).map_err(TableError::Invalid)
}

/// Cuts a file to its first `length` bytes, or to `header` where nothing is kept.
fn cut(file: &mut File, length: usize, header: &str) -> io::Result<()> {
    file.set_len(length as u64)?;
    file.seek(SeekFrom::End(0))?;
    if length == 0 {
        file.write_all(header.as_bytes())?;
        file.sync_data()?;
    }
    Ok(())
}

/// How many bytes of a table hold whole groups, and which; 0 where not even the header is whole.
fn whole(
    path: &Path,
    bytes: &[u8],
    groups: &[Planned],
    measure: &Measure,
) -> Result<(usize, BTreeSet<String>), StoreError> {
    let mut done = BTreeSet::new();
    let header = table::header();
    if is_torn(bytes, &header) {
        return Ok((0, done));
    }
    let lines = lines(path, bytes)?;
    let rows = table::parse(&path.display().to_string(), lines)?;
    let changed = |what: String| StoreError::Changed {
        path: path.display().to_string(),
        what,
    };
    // Where a group ends is counted in bytes as they are written.
    let written = rows.iter().map(table::Row::line);
    if std::iter::once(header.clone())
        .chain(written)
        .collect::<String>()
        != lines
    {
        return Err(changed(EDITED.to_owned()));
    }
    let mut length = header.len();
    let mut rest = rows.as_slice();
    while let Some(first) = rest.first() {
        let name = first.case.group.to_string();
        let Some(planned) = groups.iter().find(|p| p.group.to_string() == name) else {
            return Err(changed(format!(
                "holds the group `{name}`, which the experiment does not have"
            )));
        };
        let here = planned.rows().min(rest.len());
        for (row, case) in rest.iter().zip(planned.cases()) {
            if row.case != case {
                return Err(changed(format!(
                    "holds `{}` in the place of `{case}`",
                    row.case
                )));
            }
            let (rounds, seed) = (row.rounds, row.conditions.seed);
            if row.excluded.is_none() && (rounds, seed) != (measure.rounds, measure.seed) {
                return Err(changed(format!(
                    "was measured in {rounds} rounds with seed {seed}, and {} rounds with seed {} are asked for",
                    measure.rounds, measure.seed
                )));
            }
        }
        if here < planned.rows() {
            break;
        }
        let group = rest.iter().take(here);
        length += group.map(|row| row.line().len()).sum::<usize>();
        done.insert(name);
        rest = &rest[here..];
    }
    Ok((length, done))
}

/// Whether not even the header is whole.
fn is_torn(bytes: &[u8], header: &str) -> bool {
    header.as_bytes().starts_with(bytes) && bytes.len() < header.len()
}

/// How many bytes of a table of tasks belong to groups that are whole; 0 where not even the header is
/// whole.
fn known(path: &Path, bytes: &[u8], done: &BTreeSet<String>) -> Result<usize, StoreError> {
    let header = tasks::header();
    if is_torn(bytes, &header) {
        return Ok(0);
    }
    let lines = lines(path, bytes)?;
    let Some(rest) = lines.strip_prefix(&header) else {
        return Err(StoreError::Changed {
            path: path.display().to_string(),
            what: match lines.starts_with(header.trim_end()) {
                true => EDITED.to_owned(),
                false => "is no table of tasks, and those measured go there".to_owned(),
            },
        });
    };
    // A case without its strategy is its group; a case with commas is quoted.
    fn group(line: &str) -> &str {
        let case = line.trim_start_matches('"');
        let end = case.match_indices('/').nth(5);
        end.map_or(case, |(end, _)| &case[..end])
    }
    let is_done = |line: &&str| done.contains(group(line));
    let kept: Vec<&str> = rest.split_inclusive('\n').take_while(is_done).collect();
    let length = header.len() + kept.iter().map(|line| line.len()).sum::<usize>();
    let gone = &lines[length..];
    match gone.split_inclusive('\n').any(|line| is_done(&line)) {
        false => Ok(length),
        true => Err(StoreError::Orphaned {
            path: path.display().to_string(),
            line: kept.len() + 2,
            group: group(gone.lines().next().unwrap_or_default()).to_owned(),
        }),
    }
}
