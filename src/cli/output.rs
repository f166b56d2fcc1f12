//! Where results go: standard output or a file that appears whole or not at all.

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::error::Failure;
use crate::experiment::run::temporary;
use crate::input::{decode, read_file};
use crate::report::grid::{self, Grid, Look};
use crate::report::list::List;

/// Width of tables where there is no terminal to ask.
const DEFAULT_WIDTH: usize = 100;
/// Narrower than this nothing is readable; such terminals wrap.
const LEAST_WIDTH: usize = 40;

/// How results are written.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// Documented and stable, times in seconds.
    Json,
    /// One line per row, for spreadsheets.
    Csv,
}

/// When to use colour.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    Always,
    Never,
}

/// Options on output.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// How to write the result
    #[arg(long, value_enum, default_value = "table", value_name = "FORMAT")]
    pub format: Format,
    /// Write the result to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// When to use colour
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: ColorChoice,
}

impl OutputArgs {
    /// How tables are to look.
    pub fn look(&self) -> Look {
        let terminal = self.out.is_none() && std::io::stdout().is_terminal();
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let color = match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => terminal && !set("NO_COLOR") && !dumb,
        };
        Look {
            width: width(terminal),
            color,
        }
    }

    /// Writes a drawing with its colour marks turned into codes.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn draw(&self, drawing: &str) -> Result<(), Failure> {
        self.write(grid::finish(drawing, self.look().color).as_bytes())
    }

    /// Writes a list: `grid` for people, `list` for programs.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn list(&self, list: &List, grid: &Grid) -> Result<(), Failure> {
        match self.format {
            Format::Table => self.draw(&grid.draw(&self.look())),
            Format::Json => self.write(list.json()?.as_bytes()),
            Format::Csv => self.write(list.csv().as_bytes()),
        }
    }

    /// Writes a JSON value, indented.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn json(&self, value: &serde_json::Value) -> Result<(), Failure> {
        self.write(format!("{value:#}\n").as_bytes())
    }

    /// Writes the result.
    ///
    /// # Errors
    /// [`Failure::Closed`] when the reader has gone, [`Failure::Input`] when the file cannot be
    /// written.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        match &self.out {
            Some(path) => write_file(path, bytes),
            None => print(bytes),
        }
    }
}

fn width(terminal: bool) -> usize {
    let columns = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok());
    let asked = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    terminal
        .then(asked)
        .flatten()
        .or(columns)
        .unwrap_or(DEFAULT_WIDTH)
        .max(LEAST_WIDTH)
}

/// Writes to standard output.
///
/// # Errors
/// [`Failure::Closed`] when the reader has gone.
pub fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::Internal(format!("error: cannot write to standard output: {error}")),
        })
}

/// Writes a line to standard error, for people to read beside the result; a reader that has gone is
/// nobody's error.
pub fn tell(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// The text of a file of at most `most` bytes.
///
/// # Errors
/// [`Failure::Input`] with the place of what is no UTF-8.
pub fn read_text(path: &Path, most: u64) -> Result<String, Failure> {
    let name = path.display().to_string();
    let bytes = read_file(path, most)
        .map_err(|error| Failure::Input(format!("error: cannot read `{name}`: {error}\n  help: name a file that is there and can be read")))?;
    let text = decode(&name, &bytes).map_err(|error| Failure::input(&error))?;
    Ok(text.to_owned())
}

/// Refuses a file that cannot be written later since its folder is missing.
///
/// # Errors
/// [`Failure::Input`].
pub fn folder_of(file: &Path) -> Result<(), Failure> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => return Ok(()),
    };
    match folder.is_dir() {
        true => Ok(()),
        false => Err(Failure::Input(format!(
            "error: cannot write `{}`: there is no folder `{}`\n  help: create it, or name a file in a folder that exists",
            file.display(),
            folder.display()
        ))),
    }
}

/// Writes a file by way of a temporary one beside it, so that no reader sees half of it.
///
/// # Errors
/// [`Failure::Input`] when the file cannot be written, [`Failure::Internal`] when there is no room.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let fail = |error: std::io::Error| {
        // The plain reason: the temporary file's name, which `tempfile` adds, would only confuse.
        let text = error.to_string();
        let reason = text.split(" at path ").next().unwrap_or(&text);
        let text = format!(
            "error: cannot write `{}`: {reason}\n  help: ",
            path.display()
        );
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                Failure::Internal(text + "make room and run the same command again")
            }
            _ => Failure::Input(text + "name a file in a folder that exists and is writable"),
        }
    };
    // Renaming onto a device or a pipe would replace it; those are written in place.
    if path.exists() && !path.is_file() {
        return std::fs::write(path, bytes).map_err(fail);
    }
    // What a link names is written, not the link's place.
    let named = path.canonicalize();
    let target = named.as_deref().unwrap_or(path);
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = temporary(folder).map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    file.persist(target).map_err(|error| fail(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_and_replaces_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        write_file(&path, b"first").unwrap();
        write_file(&path, b"2nd").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"2nd");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink("out.json", &link).unwrap();
            write_file(&link, b"third").unwrap();
            assert!(link.is_symlink());
            assert_eq!(std::fs::read(&path).unwrap(), b"third");
        }
        let missing = folder.path().join("no/such/out.json");
        let error = write_file(&missing, b"").unwrap_err();
        assert!(error.to_string().contains("help: name a file in a folder"));
    }
}
