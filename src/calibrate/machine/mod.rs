//! Measuring this machine: what `duet calibrate` does.
//!
//! [`run`] goes through [`SECTIONS`], each a file of microbenchmarks with a share of the time; raw
//! samples are written as they are taken ([`book`]), and each number is a median or a fit with its
//! interval ([`estimate`]). [`profile`] turns these *facts* into the numbers that the simulator
//! uses, by the simulator's own formulas, and [`mod@file`] writes them as a topology; [`difference`]
//! sets two calibrations against each other.
//!
//! To add a microbenchmark: a file with a `SECTION`, and a line in [`SECTIONS`].

mod beside;
mod between;
mod blocks;
pub mod book;
mod bounds;
mod choices;
mod copies;
mod crowd;
pub mod difference;
pub mod doubts;
pub mod estimate;
mod extras;
pub mod file;
mod graphs;
mod grid;
mod held;
mod host;
mod joined;
mod judged;
pub mod kernels;
mod lab;
pub mod lattice;
mod library;
mod load;
mod margin;
mod products;
pub mod profile;
mod race;
mod rates;
pub mod recorded;
mod relay;
pub mod shapes;
mod signals;
mod submit;
mod told;
pub mod unseen;
mod waves;
mod works;

use std::time::{Duration, Instant};

use crate::gpu::{GpuError, Session};
use book::Book;
use lab::Lab;

/// A group of microbenchmarks.
#[derive(Copy, Clone, Debug)]
pub struct Section {
    pub name: &'static str,
    /// What is measured.
    pub about: &'static str,
    /// Share of the time, relative to the sections not yet measured.
    share: u32,
    run: fn(&Lab<'_>, &Book<'_>) -> Result<(), GpuError>,
}

/// All sections in the order of measurement: the graphs' kernels are captured by others too, and
/// GEMMs come last, for they use whatever time is left.
pub const SECTIONS: [Section; 17] = [
    graphs::SECTION,
    copies::SECTION,
    blocks::SECTION,
    host::SECTION,
    signals::SECTION,
    between::SECTION,
    relay::SECTION,
    submit::SECTION,
    library::SECTION,
    beside::SECTION,
    crowd::SECTION,
    margin::SECTION,
    race::SECTION,
    held::SECTION,
    choices::SECTION,
    judged::SECTION,
    grid::SECTION,
];

/// A GEMM `[m, n, k]` that is to be timed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub shape: [u64; 3],
    /// SMs that it is told to use; 0: all.
    pub sms: u32,
}

/// How to calibrate.
#[derive(Clone, Debug)]
pub struct Options {
    /// Fewer sizes, shapes and samples.
    pub quick: bool,
    /// Time for all sections together; opening the GPUs comes on top.
    pub budget: Duration,
    /// Only these sections; empty: all.
    pub only: Vec<String>,
    /// Further GEMMs `[m, n, k]` that the library is asked its algorithm for, and that are timed to judge
    /// predictions, not to make them.
    pub shapes: Vec<[u64; 3]>,
    /// GEMMs that the section `gemm` times in place of the lattice's, and nothing else; empty: the lattice.
    pub listed: Vec<Wanted>,
    /// SMs that a collective of the library takes: GEMMs beside it are told to leave them.
    pub collective: u32,
}

/// Measures; `begin` is told of each section and the time it has, `done` when it has ended. A
/// section that fails is noted and the next one begins, unless the GPUs are lost.
///
/// # Errors
/// When the GPUs cannot be prepared, or are lost.
pub fn run(
    session: &Session,
    book: &Book<'_>,
    options: &Options,
    mut begin: impl FnMut(&Section, Duration),
    mut done: impl FnMut(&Section),
) -> Result<(), GpuError> {
    let chosen: Vec<&Section> = SECTIONS
        .iter()
        .filter(|s| options.only.is_empty() || options.only.iter().any(|name| name == s.name))
        .collect();
    let mut shares: u32 = chosen.iter().map(|section| section.share).sum();
    let mut lab = Lab::open(session, options.quick)?;
    lab.asked.clone_from(&options.shapes);
    lab.listed.clone_from(&options.listed);
    lab.collective = options.collective;
    let end = Instant::now() + options.budget;
    for section in chosen {
        // What a section leaves is the others'.
        let left = end.saturating_duration_since(Instant::now());
        let budget = left * section.share / shares.max(1);
        shares -= section.share;
        begin(section, budget);
        book.begin(section.name, budget);
        match (section.run)(&lab, book) {
            Ok(()) => {}
            Err(error) if lab.units.iter().any(|unit| unit.gpu.is_lost()) => return Err(error),
            Err(error) => book.note(format!("ended early: {error}")),
        }
        done(section);
    }
    Ok(())
}
