//! `duet calibrate --refit`: recorded GEMMs fitted anew.

use std::path::{Path, PathBuf};

use super::{CalibrateArgs, LARGEST, as_path, known};
use crate::calibrate::machine::recorded::{self, Further, RefitError, Samples};
use crate::cli::error::Failure;
use crate::cli::output::read_text;
use crate::topology;

/// Columns of raw samples: section, case, x, unit, samples.
const COLUMNS: usize = 5;

/// Raw samples, of which some are of this section and all lines are whole.
fn of_section(file: &Path, section: &str) -> Result<String, Failure> {
    let text = read_text(file, LARGEST)?;
    let name = file.display();
    if let Some(line) = (text.lines()).position(|line| line.split(',').count() != COLUMNS) {
        return Err(Failure::Input(format!(
            "error: {name}:{}:1: this is no line of raw samples, which have {COLUMNS} columns\n  help: give the file that `duet calibrate --raw` wrote, whole and unchanged",
            line + 1
        )));
    }
    let of = |line: &str| line.split(',').next() == Some(section);
    match text.lines().any(of) {
        true => Ok(text),
        false => Err(Failure::Input(format!(
            "error: no sample of `{name}` is of the section `{section}`\n  help: give what `duet calibrate --only {section} --raw FILE` wrote"
        ))),
    }
}

/// Fits recorded GEMMs anew.
pub(super) fn refit(args: &CalibrateArgs, old: &Path, raw: &Path) -> Result<(), Failure> {
    let name = known(old);
    let topology = topology::load(&name, &[]).map_err(|error| Failure::input(&error))?;
    let old = topology::text(&name).map_err(|error| Failure::input(&error))?;
    let samples = read_text(raw, LARGEST)?;
    let told = match &args.choices {
        Some(file) => of_section(file, "choices")?,
        None => String::new(),
    };
    let others = args.other.iter().map(|file| of_section(file, "gemm"));
    let others = others.collect::<Result<Vec<_>, _>>()?;
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    let further = Further {
        told: &told,
        others: &others,
    };
    let text = recorded::refit(&old, topology.device(0), &samples, further).map_err(|error| {
        Failure::Input(match &error {
            RefitError::Sample { of, .. } => {
                let file = match *of {
                    Samples::Own => Some(raw),
                    Samples::Told => args.choices.as_deref(),
                    Samples::Other(at) => args.other.get(at).map(PathBuf::as_path),
                };
                format!("error: {}:{error}", file.unwrap_or(raw).display())
            }
            _ => format!("error: `{}`: {error}", raw.display()),
        })
    })?;
    // A profile is looked for beside the file that is written.
    let (folder, file) = match &args.output.out {
        Some(out) => (out.parent(), as_path(out)),
        None => (Path::new(&name).parent(), "stdout".to_owned()),
    };
    topology::of_text(&text, &file, folder.unwrap_or(Path::new(""))).map_err(|error| {
        Failure::Input(format!(
            "error: what these samples say cannot be read back, so nothing is written\n  help: give samples as `duet calibrate` took them\n{error}"
        ))
    })?;
    args.output.write(text.as_bytes())
}
