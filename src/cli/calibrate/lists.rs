//! Lists of GEMMs: of experiments, of files, and of what a calibration is in doubt of.

use std::path::Path;

use super::{CalibrateArgs, LARGEST, known};
use crate::calibrate::machine::{Wanted, doubts};
use crate::cli::error::Failure;
use crate::cli::output::read_text;
use crate::cli::products;
use crate::topology;
use crate::validate::cases::groups;
use crate::validate::measure;

/// Largest extent of a GEMM that is timed.
const LONGEST: u64 = 1 << 20;
/// Most SMs that a GEMM is told to use.
const MOST_SMS: u64 = 1 << 12;

/// Lists what is in doubt.
pub(super) fn list(args: &CalibrateArgs, file: &Path) -> Result<(), Failure> {
    let name = known(file);
    let topology = topology::load(&name, &[]).map_err(|error| Failure::input(&error))?;
    let without = shapes(&args.shapes)?;
    let without = without.iter().map(|[_, n, k]| (*k, *n)).collect();
    let all = doubts::doubted(topology.device(0), args.count as usize, &without);
    if all.is_empty() {
        return Err(Failure::Input(format!(
            "error: `{name}` does not say which algorithms its GEMM library takes\n  help: give what `duet calibrate` wrote"
        )));
    }
    let lines: String = all
        .iter()
        .map(|[m, n, k]| format!("{m},{n},{k}\n"))
        .collect();
    args.output.write(lines.as_bytes())
}

/// The GEMMs of experiments.
pub(super) fn shapes(experiments: &[String]) -> Result<Vec<[u64; 3]>, Failure> {
    let mut all = Vec::new();
    for name in experiments {
        let experiment = products::read(Path::new(name))?;
        let groups = groups(&experiment)
            .map_err(|error| Failure::Input(format!("error: `{name}`: {error}")))?;
        all.extend(measure::products(&experiment, &groups));
    }
    Ok(all)
}

/// The GEMMs of a list, `m,n,k` each, or `m,n,k,SMs` that it is told to use.
pub(super) fn gemms(file: &Path) -> Result<Vec<Wanted>, Failure> {
    let text = read_text(file, LARGEST)?;
    let of = |line: &str| -> Option<Wanted> {
        let numbers: Option<Vec<u64>> = line.split(',').map(|x| x.trim().parse().ok()).collect();
        let (shape, sms) = match numbers?[..] {
            [m, n, k] => ([m, n, k], 0),
            [m, n, k, sms] if (1..=MOST_SMS).contains(&sms) => ([m, n, k], sms as u32),
            _ => return None,
        };
        let some = shape.iter().all(|x| (1..=LONGEST).contains(x));
        some.then_some(Wanted { shape, sms })
    };
    let text = text.trim_start_matches('\u{feff}');
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty());
    let all = lines.map(|(at, line)| {
        of(line).ok_or_else(|| {
            Failure::Input(format!(
                "error: {}:{at}:1: `{}` is no GEMM\n  help: write its rows, columns and k, `4096,8192,1024`, each 1 to {LONGEST}, and the SMs that it is told to use, if not all",
                file.display(),
                line.chars().take(40).collect::<String>()
            ))
        })
    });
    let all: Vec<_> = all.collect::<Result<_, _>>()?;
    if all.is_empty() {
        return Err(Failure::Input(format!(
            "error: `{}` lists no GEMM\n  help: `duet calibrate --doubts CALIBRATION.yaml` writes a list",
            file.display()
        )));
    }
    Ok(all)
}
