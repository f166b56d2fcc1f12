//! Joining the tables of shards into the table of the whole experiment: the same bytes as one run
//! would have written.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::run::{RESULTS, RunError, Shard, Stamp, Store, folder, stem, temporary};
use crate::units::count;

/// Why shards cannot be joined.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// Nothing to join.
    #[error(
        "no shards in `{0}`: `duet run EXPERIMENT --shard 1/2` writes `results.shard-1-of-2.csv`"
    )]
    None(String),
    /// A file is no finished shard.
    #[error("`{path}` is no finished shard: {words}")]
    NotAShard { path: String, words: String },
    /// Two files are of different experiments or numbers of shards.
    #[error("`{first}` and `{second}` do not belong together: {words}")]
    Foreign {
        first: String,
        second: String,
        words: String,
    },
    /// A shard is there twice.
    #[error("shard {shard} is there twice, in `{first}` and `{second}`: name one of them")]
    Twice {
        shard: String,
        first: String,
        second: String,
    },
    /// Some shards are not there.
    #[error(
        "{missing}: run `duet run {file} --out {out} --shard {first}`, and so on, then merge again"
    )]
    Missing {
        missing: String,
        file: String,
        out: String,
        first: String,
    },
    /// A shard's file is not as it was written.
    #[error(
        "`{path}`:{line}: {words}: perform the shard anew with `duet run … --shard {shard} --fresh`"
    )]
    Damaged {
        path: String,
        line: u64,
        words: String,
        shard: String,
    },
    /// The result cannot be written, or its place is taken.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// A finished shard.
struct Part {
    path: PathBuf,
    stamp: Stamp,
    shard: Shard,
}

impl Part {
    /// The experiment's file.
    fn experiment(&self) -> PathBuf {
        self.stamp.experiment_file(folder(&self.path))
    }

    fn shown(&self) -> String {
        self.path.display().to_string()
    }
}

/// What was joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The table of the whole experiment.
    pub path: PathBuf,
    pub shards: u32,
    pub cases: u64,
    /// The experiment's file, as the shards' runs named it.
    pub experiment: String,
}

/// Joins the shards that `paths` name (files, or folders of them) into `out`, the first one's
/// folder where it is not given.
///
/// # Errors
/// [`MergeError`]: shards that are missing, doubled, unfinished, damaged or of another experiment.
pub fn merge(paths: &[PathBuf], out: Option<&Path>) -> Result<Merged, MergeError> {
    let mut parts = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => in_folder(path, &mut parts)?,
            false => parts.push(part(path)?),
        }
    }
    let Some(first) = parts.first() else {
        let shown = paths.first().map(|path| path.display().to_string());
        return Err(MergeError::None(shown.unwrap_or_default()));
    };
    let out = out.unwrap_or_else(|| folder(&first.path)).to_owned();
    parts.sort_by_key(|part| part.shard.index);
    complete(&parts)?;
    let stamp = Stamp {
        shard: None,
        rows: (parts.iter()).fold(0, |rows, part| part.stamp.rows.saturating_add(rows)),
        file: crate::input::between(&out, &parts[0].experiment()),
        ..parts[0].stamp.clone()
    };
    let store = Store::open(&out, RESULTS)?;
    store.vacant(&stamp)?;
    let path = store.path("csv");
    let mut whole = temporary(folder(&path)).map_err(|error| store.unwritable(&path, &error))?;
    join(&parts, whole.as_file_mut(), |error| {
        store.unwritable(&path, &error)
    })?;
    let synced = whole.as_file().sync_all();
    synced.map_err(|error| store.unwritable(&path, &error))?;
    // The stamp first: a table without one is nobody's.
    store.stamp(&stamp)?;
    let placed = whole.persist(&path);
    placed.map_err(|error| store.unwritable(&path, &error.error))?;
    Ok(Merged {
        path,
        shards: parts[0].shard.of,
        cases: stamp.cases,
        experiment: parts[0].experiment().display().to_string(),
    })
}

/// All shards in a folder, in the order of their names.
fn in_folder(folder: &Path, parts: &mut Vec<Part>) -> Result<(), MergeError> {
    let fail = |error: io::Error| MergeError::NotAShard {
        path: folder.display().to_string(),
        words: error.to_string(),
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        if name.starts_with("results.shard-") && name.ends_with(".csv") {
            found.push(path);
        }
    }
    found.sort();
    for path in found {
        parts.push(part(&path)?);
    }
    Ok(())
}

/// A shard's file with its stamp.
fn part(path: &Path) -> Result<Part, MergeError> {
    let fail = |words: &str| MergeError::NotAShard {
        path: path.display().to_string(),
        words: words.to_owned(),
    };
    if !path.exists() {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        return Err(fail(match Path::new(&partial).exists() {
            true => "its run was stopped; run the same `duet run` again",
            false => "there is no such file; name `results.shard-I-of-N.csv`",
        }));
    }
    let stamp = Stamp::beside(path)
        .ok_or_else(|| fail("its `.run.json` is missing beside it; copy it there too"))?;
    let shard = stamp.shard.as_deref().and_then(|text| text.parse().ok());
    let shard: Shard = shard.ok_or_else(|| fail("it holds a whole experiment"))?;
    Ok(Part {
        path: path.to_owned(),
        stamp,
        shard,
    })
}

/// Whether the parts, sorted, are every shard of one experiment.
fn complete(parts: &[Part]) -> Result<(), MergeError> {
    let first = &parts[0];
    for pair in parts.windows(2) {
        if pair[0].shard == pair[1].shard && pair[0].stamp == pair[1].stamp {
            return Err(MergeError::Twice {
                shard: pair[0].shard.to_string(),
                first: pair[0].shown(),
                second: pair[1].shown(),
            });
        }
    }
    for part in parts {
        let (a, b) = (&first.stamp, &part.stamp);
        let words = if first.shard.of != part.shard.of {
            format!(
                "one is of {} shards, the other of {}",
                first.shard.of, part.shard.of
            )
        } else if a.experiment != b.experiment {
            format!(
                "one is of `{}`, the other of `{}`",
                a.experiment, b.experiment
            )
        } else if a.duet != b.duet {
            format!("one is by Duet {}, the other by {}", a.duet, b.duet)
        } else if a.fingerprint != b.fingerprint || a.cases != b.cases {
            format!("`{}` or a topology was changed between them", a.experiment)
        } else {
            continue;
        };
        return Err(MergeError::Foreign {
            first: first.shown(),
            second: part.shown(),
            words,
        });
    }
    let has = |index: u32| {
        parts
            .binary_search_by_key(&index, |part| part.shard.index)
            .is_ok()
    };
    let missing: Vec<u32> = (1..=first.shard.of).filter(|index| !has(*index)).collect();
    let Some(&one) = missing.first() else {
        return Ok(());
    };
    let names: Vec<String> = missing.iter().map(u32::to_string).collect();
    let names = crate::input::list(names.iter().map(String::as_str)).replace('`', "");
    let of = first.shard.of;
    let stopped: Vec<u32> = missing
        .iter()
        .copied()
        .filter(|&index| {
            let stem = stem(Some(Shard { index, of }));
            folder(&first.path)
                .join(format!("{stem}.csv.partial"))
                .exists()
        })
        .collect();
    let (noun, verb) = match missing.len() {
        1 => ("shard", "is"),
        _ => ("shards", "are"),
    };
    let why = match stopped.len() == missing.len() {
        true => "not finished",
        false => "missing",
    };
    Err(MergeError::Missing {
        missing: format!("{noun} {names} of {of} {verb} {why}"),
        file: first.experiment().display().to_string(),
        out: folder(&first.path).display().to_string(),
        first: format!("{one}/{of}"),
    })
}

/// Lines of a shard, the next one at hand.
struct Lines<'p> {
    part: &'p Part,
    reader: BufReader<File>,
    line: Vec<u8>,
    number: u64,
}

impl Lines<'_> {
    fn advance(&mut self) -> io::Result<()> {
        self.line.clear();
        self.number += 1;
        self.reader.read_until(b'\n', &mut self.line).map(|_| ())
    }

    /// The number of the case, the second field; grids' names need no quotes.
    fn case(&self) -> Option<u64> {
        let field = self.line.split(|byte| *byte == b',').nth(1)?;
        std::str::from_utf8(field).ok()?.parse().ok()
    }

    fn damaged(&self, words: &str) -> MergeError {
        MergeError::Damaged {
            path: self.part.shown(),
            line: self.number,
            words: words.to_owned(),
            shard: self.part.shard.to_string(),
        }
    }
}

/// Writes the rows of all parts in the order of the cases.
fn join(
    parts: &[Part],
    to: &mut File,
    unwritable: impl Fn(io::Error) -> RunError,
) -> Result<(), MergeError> {
    let mut to = BufWriter::new(to);
    let mut sources = Vec::with_capacity(parts.len());
    for part in parts {
        let opened = File::open(&part.path).and_then(|file| {
            let mut lines = Lines {
                part,
                reader: BufReader::new(file),
                line: Vec::new(),
                number: 0,
            };
            lines.advance()?;
            Ok(lines)
        });
        sources.push(opened.map_err(|error| unreadable(part, &error))?);
    }
    let header = sources[0].line.clone();
    to.write_all(&header).map_err(&unwritable)?;
    for lines in &mut sources {
        if lines.line != header {
            return Err(lines.damaged("the header is not the other shards'"));
        }
        lines
            .advance()
            .map_err(|error| unreadable(lines.part, &error))?;
    }
    for case in 0..parts[0].stamp.cases {
        let lines = &mut sources[(case % parts.len() as u64) as usize];
        let mut rows = 0;
        while lines.case() == Some(case + 1) && lines.line.ends_with(b"\n") {
            to.write_all(&lines.line).map_err(&unwritable)?;
            lines
                .advance()
                .map_err(|error| unreadable(lines.part, &error))?;
            rows += 1;
        }
        if rows == 0 {
            return Err(lines.damaged(&format!("case {} should stand here", case + 1)));
        }
    }
    for lines in &sources {
        if !lines.line.is_empty() || lines.number != lines.part.stamp.rows.saturating_add(2) {
            return Err(lines.damaged(&format!(
                "the shard should have {}",
                count(lines.part.stamp.rows, "row")
            )));
        }
    }
    to.flush().map_err(unwritable)?;
    Ok(())
}

fn unreadable(part: &Part, error: &io::Error) -> MergeError {
    MergeError::NotAShard {
        path: part.shown(),
        words: error.to_string(),
    }
}
