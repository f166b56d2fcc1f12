//! A calibration fitted anew: today's model of GEMMs for samples that were recorded earlier.
//!
//! Raw samples (see [`super::book`]) hold every measured GEMM and which algorithms the library takes, from how
//! many rows on. [`refit`] fits rates and efficiencies to them as a calibration does and
//! puts them, and how well they predict columns left out, into the text in the place of the old ones; all
//! other numbers stay as they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::book::Product;
use super::estimate::{Estimate, median};
use super::file::{self, MARK, algorithms, table};
use super::joined::{both, joined};
use super::kernels::{Beside, Choices, fit_with};
use super::told::{column, listed, told};
use super::unseen::{self, points};
use crate::device::Device;

/// Why a calibration cannot be fitted anew; in words, with a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefitError {
    /// A line of samples that cannot be read.
    #[error(
        "{line}:{column}: `{text}` is no {what}\n  help: give the file of raw samples that the calibration wrote, unchanged"
    )]
    Sample {
        /// Whose samples.
        of: Samples,
        line: usize,
        column: usize,
        text: String,
        what: &'static str,
    },
    /// Fewer GEMMs than the calibration has.
    #[error(
        "{found} GEMMs are among the samples, and the calibration has {needed}\n  help: give the raw samples of this calibration, all of them, and those of other machines that it is from with `--other`"
    )]
    Few { found: usize, needed: usize },
    /// No GEMM was recorded.
    #[error(
        "no GEMMs are among the samples\n  help: give the raw samples of a calibration with the section `gemm`"
    )]
    Empty,
    /// The calibration has no list of algorithms.
    #[error(
        "the calibration does not say which algorithms the library takes\n  help: calibrate anew; `algorithms:` of another machine do not hold"
    )]
    Unlisted,
}

/// Which file samples are of.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Samples {
    Own,
    /// [`Further::told`].
    Told,
    /// One of [`Further::others`].
    Other(usize),
}

impl RefitError {
    /// A piece of a line, counted from 0, of the calibration's own samples.
    pub(super) fn sample((at, line): (usize, &str), piece: &str, what: &'static str) -> Self {
        Self::Sample {
            of: Samples::Own,
            line: at + 1,
            column: column_of(line, piece),
            text: piece.chars().take(40).collect(),
            what,
        }
    }

    /// The same of another file.
    fn in_(self, file: Samples) -> Self {
        match self {
            Self::Sample {
                line,
                column,
                text,
                what,
                ..
            } => Self::Sample {
                of: file,
                line,
                column,
                text,
                what,
            },
            other => other,
        }
    }
}

/// Where a piece of a line begins, in characters from 1.
fn column_of(line: &str, piece: &str) -> usize {
    let before = piece.as_ptr() as usize - line.as_ptr() as usize;
    1 + line.get(..before).unwrap_or(line).chars().count()
}

/// Times that a GEMM can take \[us\].
const LEAST: f64 = 0.1;
const MOST: f64 = 1e8;

/// The slowest GPU's samples of a shape.
#[derive(Default)]
struct Slowest {
    alone: Vec<f64>,
    in_a_row: Vec<f64>,
}

fn slower(of: &mut Vec<f64>, samples: Vec<f64>) {
    if of.is_empty() || median(&samples) > median(of) {
        *of = samples;
    }
}

/// A column and the SMs that its GEMMs were told to use, 0: all; `k4096n1024`, `k4096n1024s108`.
fn column_on(text: &str) -> Option<((u64, u64), u32)> {
    match text.split_once('s') {
        None => Some((column(text)?, 0)),
        Some((text, sms)) => Some((column(text)?, sms.parse().ok().filter(|sms| *sms > 0)?)),
    }
}

/// The GEMMs of raw samples as the calibration kept them, with the kernels of `choices`; of the section
/// `gemm`, or of `judged`.
///
/// # Errors
/// [`RefitError::Sample`], [`RefitError::Empty`].
pub fn products(raw: &str, section: &str, choices: &Choices) -> Result<Vec<Product>, RefitError> {
    let all = products_on(raw, section, choices, 0)?;
    match all.is_empty() {
        true => Err(RefitError::Empty),
        false => Ok(all),
    }
}

/// The same of those that were told to use so many SMs, 0: all; there may be none.
///
/// # Errors
/// [`RefitError::Sample`].
pub fn products_on(
    raw: &str,
    section: &str,
    choices: &Choices,
    sms: u32,
) -> Result<Vec<Product>, RefitError> {
    let mut shapes: BTreeMap<(u64, u64, u64), Slowest> = BTreeMap::new();
    for (line, text) in raw.lines().enumerate() {
        let cells: Vec<&str> = text.split(',').collect();
        let [own, case, rest @ ..] = &cells[..] else {
            continue;
        };
        if *own != section {
            continue;
        }
        let mut words = case.splitn(3, ' ');
        let (Some(((k, n), on)), Some(_gpu)) = (words.next().and_then(column_on), words.next())
        else {
            continue;
        };
        if on != sms {
            continue;
        }
        let wrong = |piece: &str, what| RefitError::sample((line, text), piece, what);
        let [x, unit, samples] = rest else {
            return Err(wrong(text, "whole line of samples"));
        };
        let m = x.parse().map_err(|_| wrong(x, "number of rows"))?;
        if *unit != "us" {
            return Err(wrong(unit, "unit of times: they are in `us`"));
        }
        let time = |sample: &str| {
            let time = sample.parse::<f64>().ok();
            let time = time.filter(|us| (LEAST..=MOST).contains(us));
            time.map(|us| us * 1e-6)
                .ok_or_else(|| wrong(sample, "time in microseconds"))
        };
        let times = samples
            .split(' ')
            .map(time)
            .collect::<Result<Vec<_>, _>>()?;
        let shape = shapes.entry((k, n, m)).or_default();
        match words.next() {
            Some(_) => slower(&mut shape.alone, times),
            None => slower(&mut shape.in_a_row, times),
        }
    }
    let more = |s: &Slowest| Some(median(&s.alone)? - median(&s.in_a_row)?);
    let first = median(&shapes.values().filter_map(more).collect::<Vec<_>>()).unwrap_or(0.0);
    let product = |(&(k, n, m), shape): (&(u64, u64, u64), &Slowest)| {
        let alone = Estimate::median(&shape.alone)?;
        let in_a_row = Estimate::median(&shape.in_a_row);
        let kernel = choices
            .get(&(k, n))
            .and_then(|rows| rows.range(m..).next().or(rows.last_key_value()))
            .map(|(_, kernel)| *kernel);
        Some(Product::new([m, n, k], alone, in_a_row, first, kernel))
    };
    Ok(shapes.iter().filter_map(product).collect())
}

/// The GEMMs of raw samples on the SMs that collectives leave, where the library was asked what it takes there.
fn on_fewer(raw: &str, beside: &Beside) -> Result<Vec<Product>, RefitError> {
    match beside.sms {
        0 => Ok(Vec::new()),
        sms => products_on(raw, "gemm", &beside.choices, sms),
    }
}

/// Further samples, of files of their own; each may be empty.
#[derive(Copy, Clone, Debug, Default)]
pub struct Further<'t> {
    /// What the library was asked for: it goes before what the samples and the calibration say.
    pub told: &'t str,
    /// GEMMs of other machines of the kind, one after another: see `joined`.
    pub others: &'t [&'t str],
}

/// The text of a calibration with its GEMMs and its list of algorithms fitted to `raw`; `device` is what
/// the text says of the GPU.
///
/// # Errors
/// [`RefitError`].
pub fn refit(
    text: &str,
    device: &Device,
    raw: &str,
    Further { told, others }: Further<'_>,
) -> Result<String, RefitError> {
    let old = device.gemm_library.as_deref().ok_or(RefitError::Unlisted)?;
    let (mut choices, mut beside) = listed(old);
    for (samples, of) in [(raw, Samples::Own), (told, Samples::Told)] {
        let (newer, fewer) = self::told(samples).map_err(|error| error.in_(of))?;
        choices.extend(newer);
        if !fewer.choices.is_empty() {
            beside = fewer;
        }
    }
    let mut products = self::products(raw, "gemm", &choices)?;
    let mut fewer = on_fewer(raw, &beside)?;
    for (at, text) in others.iter().enumerate() {
        let of = |error: RefitError| error.in_(Samples::Other(at));
        let other = self::products(text, "gemm", &choices).map_err(of)?;
        let there = on_fewer(text, &beside).map_err(of)?;
        // Machines differ by what both have measured on all SMs.
        let both = both(&products, &other);
        fewer = joined(&both, fewer, there);
        products = joined(&both, products, other);
    }
    let (found, needed) = (
        products.len() + fewer.len(),
        device.gemm_table.len() + old.fewer.len(),
    );
    if found < needed {
        return Err(RefitError::Few { found, needed });
    }
    let mut device = device.clone();
    device.gemm_table.clear();
    device.gemm_library = None;
    let launch = device.costs.lane.get() + device.costs.kernel_start.get();
    let library = fit_with(&device, &products, (&choices, &beside), launch);
    device.gemm_library =
        library.map(|library| Arc::new(library.with_fewer(points(&fewer, launch))));
    let (mut block, mut sources) = (String::new(), BTreeMap::new());
    algorithms::write(&mut block, &device, products.len(), &mut sources);
    let mut times = String::new();
    let all: Vec<_> = products
        .iter()
        .map(|p| ([p.m, p.n, p.k], p.time.value))
        .collect();
    table::times(&mut times, &all, Some(launch));
    let source = sources.get("algorithms").ok_or(RefitError::Unlisted)?;
    let unseen = unseen::facts(&device, &products, &choices, launch);
    let mut unseen: Vec<String> = unseen.iter().map(|(n, e)| file::fact(n, e)).collect();
    unseen.sort_unstable();
    let (told, mut unseen) = (format!("{MARK}gemm.unseen."), Some(unseen));
    let words = format!("{}{}", table::measured_words(&products), from(others));
    // The blocks below `gemm:`, each to the next key that is indented alike, and their sources.
    let (mut out, mut inside, mut gemm) = (String::with_capacity(text.len()), false, false);
    for line in text.split_inclusive('\n') {
        if line.starts_with("  ") && !line.starts_with("   ") {
            gemm = line.trim_end() == "  gemm:";
        }
        if line.starts_with(&told) {
            out.extend(unseen.take().into_iter().flatten());
            continue;
        }
        inside &= line.starts_with("     ");
        match line.trim_end() {
            "    algorithms:" => {
                inside = true;
                out.push_str(&block);
            }
            "    table:" if gemm => {
                inside = true;
                out.push_str(&times);
            }
            _ if inside => {}
            _ if gemm && line.starts_with("      algorithms: \"") => {
                out.push_str(&format!("      algorithms: \"{source}\"\n"));
            }
            _ if gemm && line.starts_with("      table: \"") => {
                // Which machine was measured stays.
                let at = line
                    .find(", on the machine of ")
                    .map_or("\"\n", |at| &line[at..]);
                out.push_str(&format!("      table: \"{words}{at}"));
            }
            _ => out.push_str(line),
        }
    }
    Ok(out)
}

/// What is said of another machine's samples, if there are any.
const fn from(others: &[&str]) -> &'static str {
    match others.len() {
        0 => "",
        1 => ", some of another machine times the ratio of what both measured",
        _ => ", some of other machines times the ratio of what both measured",
    }
}

#[cfg(test)]
mod tests;
