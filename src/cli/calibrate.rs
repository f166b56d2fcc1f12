//! `duet calibrate`: measure this machine's GPUs, links and library, and write them as a topology;
//! or compare two calibrations.

mod lists;
mod refit;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::Value;

use super::error::Failure;
use super::gpu::{Watchdog, enter};
use super::output::{Format, OutputArgs, folder_of, write_file};
use crate::calibrate::machine::book::Book;
use crate::calibrate::machine::difference::{Difference, compare};
use crate::calibrate::machine::doubts;
use crate::calibrate::machine::file::{Machine, text};
use crate::calibrate::machine::{self, Options, SECTIONS};
use crate::device::{self, Device};
use crate::gpu::Session;
use crate::gpu::check::STEP_LIMIT;
use crate::gpu::info::{Info, info};
use crate::report::grid::Grid;
use crate::report::list::List;
use crate::topology;
use lists::{gemms, list, shapes};
use refit::refit;

/// Largest file of samples or numbers that is read \[bytes\].
const LARGEST: u64 = 64 << 20;
/// Time of all sections [s], full and quick.
const BUDGET: [f64; 2] = [170.0, 14.0];
/// Parts of a GPU's name and the profile that is started from, the longest first.
const PROFILES: [(&str, &str); 14] = [
    ("H100 PCIe", "h100-sxm"),
    ("A100-PCIE", "a100-pcie-80g"),
    ("A100 80GB PCIe", "a100-pcie-80g"),
    ("RTX A6000", "rtx-a6000"),
    ("RTX 4090", "rtx-4090"),
    ("GB200", "gb200"),
    ("B200", "b200"),
    ("H200", "h200"),
    ("H100", "h100-sxm"),
    ("H800", "h800"),
    ("H20", "h20"),
    ("A100", "a100-sxm-80g"),
    ("A800", "a800"),
    ("L40S", "l40s"),
];

#[derive(Args, Debug)]
pub struct CalibrateArgs {
    /// Compare two calibrations number by number instead of measuring; needs no GPU
    #[arg(long, num_args = 2, value_names = ["A.yaml", "B.yaml"], conflicts_with_all = ["raw", "quick", "gpus", "base", "only", "seconds", "shapes", "gemms"])]
    compare: Option<Vec<String>>,
    /// Fit the GEMMs of a calibration anew to its raw samples (`--raw`), by today's model; needs no GPU
    #[arg(long, value_name = "CALIBRATION.yaml", requires = "raw", conflicts_with_all = ["compare", "quick", "gpus", "base", "only", "seconds", "shapes", "gemms"])]
    refit: Option<PathBuf>,
    /// Write raw samples to FILE as they are taken [default: the name of `--out` with `.csv`]
    #[arg(long, value_name = "FILE", help_heading = "Calibration")]
    raw: Option<PathBuf>,
    /// With `--refit`: raw samples of a section `choices` that was measured by itself
    #[arg(
        long,
        value_name = "FILE",
        requires = "refit",
        help_heading = "Calibration"
    )]
    choices: Option<PathBuf>,
    /// With `--refit`: raw samples of other machines of the kind, for GEMMs that those before did not measure
    #[arg(
        long,
        value_name = "FILE",
        num_args = 1..,
        requires = "refit",
        help_heading = "Calibration"
    )]
    other: Vec<PathBuf>,
    /// Fewer sizes, shapes and samples: 20 seconds instead of 3 minutes
    #[arg(long, help_heading = "Calibration")]
    quick: bool,
    /// Use the first N GPUs only
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Calibration")]
    gpus: Option<u32>,
    /// The GPU profile that gives what is not measured [default: by the GPU's name]
    #[arg(long, value_name = "PROFILE", help_heading = "Calibration")]
    base: Option<String>,
    /// Only these sections, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = section, help_heading = "Calibration")]
    only: Vec<String>,
    /// Seconds for all sections together
    #[arg(long, value_name = "SECONDS", value_parser = super::gpu::read_seconds, help_heading = "Calibration")]
    seconds: Option<Duration>,
    /// Also ask the library which algorithms it takes for the GEMMs of these experiments, and time them to
    /// judge predictions by
    #[arg(long, value_name = "EXPERIMENT", num_args = 1.., help_heading = "Calibration")]
    shapes: Vec<String>,
    /// Time the GEMMs of FILE (`m,n,k`, one a line) in place of the lattice's; goes with `--only gemm`
    #[arg(
        long,
        value_name = "FILE",
        requires = "only",
        help_heading = "Calibration"
    )]
    gemms: Option<PathBuf>,
    /// List the GEMMs whose times a calibration is least sure of, for `--gemms`; those of `--shapes` are left
    /// out; needs no GPU
    #[arg(long, value_name = "CALIBRATION.yaml", conflicts_with_all = ["compare", "refit", "quick", "gpus", "base", "only", "seconds", "gemms"])]
    doubts: Option<PathBuf>,
    /// With `--doubts`: how many; a second suffices for some 30
    #[arg(long, value_name = "N", default_value_t = 3000, value_parser = clap::value_parser!(u32).range(1..=doubts::TRIED as i64), help_heading = "Calibration")]
    count: u32,
    #[command(flatten)]
    output: OutputArgs,
}

fn section(name: &str) -> Result<String, String> {
    let names: Vec<&str> = SECTIONS.iter().map(|section| section.name).collect();
    match names.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(format!("`{name}` is no section; use {}", names.join(", "))),
    }
}

pub fn run(args: &CalibrateArgs) -> Result<(), Failure> {
    if let (Some(old), Some(raw)) = (&args.refit, &args.raw) {
        return refit(args, old, raw);
    }
    if let Some(file) = &args.doubts {
        return list(args, file);
    }
    match (args.compare.as_deref(), &args.output.out) {
        (Some([one, two]), _) => show(args, one, two),
        (_, Some(out)) => measure(args, out),
        _ => Err(Failure::Usage(
            "error: a calibration needs a file to be written to\n  help: name it, e.g. `duet calibrate --out my-box.yaml`"
                .to_owned(),
        )),
    }
}

/// A file's name such that it is not taken for the name of a topology.
fn as_path(file: &Path) -> String {
    match file.to_string_lossy() {
        name if name.contains(['/', '.']) => name.into_owned(),
        name => format!("./{name}"),
    }
}

/// The name of a shipped topology, or of a file.
fn known(file: &Path) -> String {
    match topology::names()
        .iter()
        .find(|name| file == Path::new(name))
    {
        Some(shipped) => (*shipped).to_owned(),
        None => as_path(file),
    }
}

fn measure(args: &CalibrateArgs, out: &Path) -> Result<(), Failure> {
    let used = args
        .only
        .iter()
        .any(|name| name == "gemm" || name == "choices");
    if args.gemms.is_some() && !used {
        return Err(Failure::Usage(
            "error: no section of `--only` times the GEMMs of `--gemms`\n  help: write `--only gemm`, or `--only choices,gemm` to ask for their algorithms too"
                .to_owned(),
        ));
    }
    let listed = match &args.gemms {
        Some(file) => gemms(file)?,
        None => Vec::new(),
    };
    let shapes = shapes(&args.shapes)?;
    let named = args.base.as_deref().map(device::load).transpose();
    let named = named.map_err(|error| Failure::input(&error))?;
    let raw = args
        .raw
        .clone()
        .unwrap_or_else(|| out.with_extension("csv"));
    for file in [out, &raw] {
        folder_of(file)?;
    }
    let active = enter()?;
    let watchdog = Watchdog::new("starting the driver", STEP_LIMIT);
    let session = Session::open(active, args.gpus)?;
    let info = info(&session)?;
    let base = match named {
        Some(base) => base,
        None => base(&info)?,
    };
    let machine = describe(&info, out);
    let file = File::create(&raw).map_err(|error| {
        Failure::Input(format!(
            "error: cannot write `{}`: {error}\n  help: name a file in a folder that exists and is writable",
            raw.display()
        ))
    })?;
    let book = Book::new(file);
    let options = Options {
        quick: args.quick,
        budget: args
            .seconds
            .unwrap_or(Duration::from_secs_f64(BUDGET[usize::from(args.quick)])),
        only: args.only.clone(),
        shapes,
        listed,
        collective: base.library.sms,
    };
    watchdog.step("preparing the GPUs".to_owned(), STEP_LIMIT);
    let begin = Instant::now();
    let since = || begin.elapsed().as_secs_f64();
    let mut written = Ok(Vec::new());
    let result = machine::run(
        &session,
        &book,
        &options,
        |section, budget| {
            eprintln!("{:5.1} s  {}: {}", since(), section.name, section.about);
            // A section looks at the time between measurements, each of which has a limit.
            watchdog.step(format!("section `{}`", section.name), budget + STEP_LIMIT);
        },
        |_| {
            // After each section, so that an end in the middle leaves what was measured.
            written = save(&machine, &base, &book, out);
        },
    );
    eprintln!("{:5.1} s  done", since());
    for note in book.notes().into_iter().chain(written?) {
        eprintln!("note: {note}");
    }
    if let Some(error) = book.failed() {
        return Err(Failure::Internal(format!(
            "error: cannot write `{}`: {error}",
            raw.display()
        )));
    }
    Ok(result?)
}

/// Writes what is known so far, after it has been read back.
fn save(
    machine: &Machine,
    base: &Device,
    book: &Book<'_>,
    out: &Path,
) -> Result<Vec<String>, Failure> {
    let (text, refused) = text(
        machine,
        base,
        &book.facts(),
        (&book.products(), &book.choices(), &book.beside()),
        &book.notes(),
    );
    write_file(out, text.as_bytes())?;
    topology::load(&as_path(out), &[]).map_err(|error| {
        Failure::Internal(format!(
            "error: the calibration cannot be read back\n{error}"
        ))
    })?;
    Ok(refused)
}

/// The profile to start from, by the GPU's name.
fn base(info: &Info) -> Result<Device, Failure> {
    let model = info
        .gpus
        .first()
        .map_or("", |gpu| gpu.attributes.name.as_str());
    let name = match PROFILES.iter().find(|(part, _)| model.contains(part)) {
        Some((_, profile)) => profile,
        None => {
            return Err(Failure::Usage(format!(
                "error: no profile is known for `{model}`\n  help: say which one is nearest, e.g. `--base h100-sxm` (`duet gpus` lists them)"
            )));
        }
    };
    device::load(name).map_err(|error| Failure::input(&error))
}

fn describe(info: &Info, out: &Path) -> Machine {
    let stem = out.file_stem().map(|stem| stem.to_string_lossy());
    let name: String = stem
        .unwrap_or_default()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '-'
            }
        })
        .collect();
    let first = info.gpus.first();
    let attributes = first.map(|gpu| &gpu.attributes);
    let versions = info.libraries.iter().filter_map(|library| {
        let (_, version) = library.state.as_ref().ok()?;
        Some(format!("{:?} {version}", library.library))
    });
    Machine {
        name: if name.is_empty() {
            "calibrated".to_owned()
        } else {
            name
        },
        gpus: info.gpus.len() as u32,
        model: attributes.map_or_else(String::new, |a| a.name.clone()),
        hashes: info.gpus.iter().map(|gpu| gpu.uuid_hash.clone()).collect(),
        peers: info
            .gpus
            .iter()
            .all(|gpu| gpu.peers.iter().flatten().all(|p| p.access)),
        nvlink: first.is_some_and(|gpu| !gpu.links.nvlinks.is_empty()),
        sms: attributes.map_or(1, |a| a.sms),
        memory: attributes.map_or(1, |a| a.memory),
        l2: attributes.map_or(1, |a| a.l2),
        software: versions.collect::<Vec<_>>().join(", "),
        date: today(),
    }
}

/// The date in UTC, `2026-11-30`.
pub(super) fn today() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    date(now.map_or(0, |now| now.as_secs() / 86_400))
}

/// The date so many days after 1970-01-01 (the algorithm of H. Hinnant's `civil_from_days`).
fn date(days: u64) -> String {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

fn show(args: &CalibrateArgs, one: &str, two: &str) -> Result<(), Failure> {
    let rows = compare(one, two).map_err(|error| Failure::input(&error))?;
    let mut list = List::new(&["name", "first", "second", "relative"]);
    let mut grid = Grid::default()
        .left("number", 0)
        .right("first", 0)
        .right("second", 0)
        .right("difference", 0);
    let number = |value: Option<f64>| value.map_or_else(|| "·".to_owned(), |v| format!("{v:.5e}"));
    for row in &rows {
        let json = |value: Option<f64>| value.map_or(Value::Null, Value::from);
        let [first, second] = row.values;
        list.row(vec![
            row.name.as_str().into(),
            json(first),
            json(second),
            json(row.relative()),
        ]);
        let relative = row
            .relative()
            .map_or_else(|| "·".to_owned(), |r| format!("{:+.1} %", 100.0 * r));
        grid.row(vec![
            row.name.clone(),
            number(first),
            number(second),
            relative,
        ]);
    }
    match args.output.format {
        Format::Table => {
            let mut drawing = grid.draw(&args.output.look());
            drawing.push_str(&summary(&rows));
            args.output.draw(&drawing)
        }
        Format::Json => args.output.write(list.json()?.as_bytes()),
        Format::Csv => args.output.write(list.csv().as_bytes()),
    }
}

fn summary(rows: &[Difference]) -> String {
    let mut all: Vec<f64> = rows
        .iter()
        .filter_map(Difference::relative)
        .map(f64::abs)
        .collect();
    all.sort_by(f64::total_cmp);
    let at = |share: f64| all.get((share * all.len() as f64) as usize).or(all.last());
    match (at(0.5), at(0.9), all.last()) {
        (Some(median), Some(most), Some(worst)) => format!(
            "\n{} numbers in both: median difference {:.2} %, nine in ten within {:.2} %, largest {:.1} %\n",
            all.len(),
            100.0 * median,
            100.0 * most,
            100.0 * worst
        ),
        _ => "\nno number is in both\n".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        for (days, text) in [
            (0, "1970-01-01"),
            (11_016, "2000-02-29"),
            (20_787, "2026-11-30"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date(days), text);
        }
    }

    #[test]
    fn every_profile_by_name_exists() {
        for (_, profile) in PROFILES {
            assert!(device::load(profile).is_ok(), "{profile}");
        }
    }
}
