//! `duet calibrate`: measure this machine's GPUs, links and library, and write them as a topology;
//! or compare two calibrations.

mod compared;
mod described;
mod lists;
mod refit;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;

use super::apart::Files;
use super::error::Failure;
use super::gpu::{Watchdog, enter};
use super::output::{OutputArgs, folder_of, tell, write_file};
use crate::calibrate::machine::book::Book;
use crate::calibrate::machine::doubts;
use crate::calibrate::machine::file::{Machine, text};
use crate::calibrate::machine::{self, Options, SECTIONS};
use crate::device::{self, Device};
use crate::gpu::Session;
use crate::gpu::check::STEP_LIMIT;
use crate::gpu::info::info;
use crate::topology;
use compared::show;
pub(super) use described::today;
use described::{base, describe};
use lists::{gemms, list, shapes};
use refit::refit;

/// Largest file of samples or numbers that is read \[bytes\].
const LARGEST: u64 = 64 << 20;
/// Time of all sections [s], full and quick.
const BUDGET: [f64; 2] = [170.0, 14.0];
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
    // A calibration may be fitted anew in its place; its samples and all else are not overwritten.
    Files::default()
        .writes("--out", args.output.out.as_ref())
        .reads(args.refit.as_ref().and(args.raw.as_ref()))
        .reads(&args.choices)
        .reads(&args.other)
        .reads(&args.gemms)
        .reads(&args.shapes)
        .reads(&args.doubts)
        .reads(args.compare.iter().flatten())
        .apart()?;
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
    Files::default()
        .writes("--out", Some(&out))
        .writes("--raw", Some(&raw))
        .reads(&args.gemms)
        .reads(&args.shapes)
        .apart()?;
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
            tell(&format!(
                "{:5.1} s  {}: {}",
                since(),
                section.name,
                section.about
            ));
            // A section looks at the time between measurements, each of which has a limit.
            watchdog.step(format!("section `{}`", section.name), budget + STEP_LIMIT);
        },
        |_| {
            // After each section, so that an end in the middle leaves what was measured.
            written = save(&machine, &base, &book, out);
        },
    );
    tell(&format!("{:5.1} s  done", since()));
    for note in book.notes().into_iter().chain(written?) {
        tell(&format!("note: {note}"));
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
