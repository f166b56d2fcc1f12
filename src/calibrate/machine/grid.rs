//! GEMM times over a grid.
//!
//! A sample is one GEMM and then further ones in a row, as chunks of an operator follow each other:
//! the same B, other rows of A and C where memory allows, on every GPU at once.
//!
//! ```text
//! start ─ GEMM ─ mark ─ GEMM … GEMM ─ end       alone = mark − start,  in a row = (end − mark) / E
//! ```
//!
//! The first finds the launch not yet under way and B not in cache; the others are what a schedule
//! has in between. Every round takes all shapes in a new random order. A schedule ends with its
//! slowest GPU, so a shape's time is the largest of the GPUs' medians.

use super::book::{Book, Product};
use super::bounds::{clocks, rates, variants};
use super::estimate::{Estimate, median};
use super::lab::Lab;
use super::load::sustained;
use super::products::{DTYPE, Ready, problem};
use super::shapes;
use super::{Section, Wanted};
use crate::gpu::GpuError;
use crate::gpu::lt::Problem;

pub const SECTION: Section = Section {
    name: "gemm",
    about: "GEMMs, memory and clocks",
    share: 60,
    run,
};

/// Samples of a shape on one GPU \[s\].
#[derive(Clone, Default)]
pub(super) struct Times {
    alone: Vec<f64>,
    in_a_row: Vec<f64>,
}

/// The same product on every GPU.
pub(super) type Everywhere = Vec<Ready>;

/// A sample on all GPUs at once: (alone, one in a row) of each.
fn sample(lab: &Lab<'_>, shape: &Everywhere) -> Result<Vec<(f64, Option<f64>)>, GpuError> {
    let lanes: Vec<(usize, usize)> = (0..shape.len()).map(|g| (g, 0)).collect();
    let further = shape.first().map_or(0, Ready::further);
    let ends = lab.sample(&lanes, || {
        for (g, ready) in shape.iter().enumerate() {
            let (unit, stream) = (&lab.units[g], &lab.units[g].streams[0]);
            ready.turn(lab, g, stream, 0)?;
            unit.mark(stream)?;
            (1..=further).try_for_each(|i| ready.turn(lab, g, stream, i))?;
        }
        Ok(())
    })?;
    ends.iter()
        .zip(&lab.units)
        .map(|(&end, unit)| {
            let alone = unit.marked()?;
            let each = (further > 0).then(|| (end - alone) / further as f64);
            Ok((alone, each))
        })
        .collect()
}

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    if !lab.listed.is_empty() {
        let (shapes, times) = timed(lab, book, lab.listed.iter().copied())?;
        keep(book, &shapes, &times);
        return Ok(());
    }
    rates(lab, book)?;
    clocks(lab, book)?;
    variants(lab, book)?;
    let lattice = shapes::measured(lab.quick).into_iter();
    let lattice = lattice.map(|shape| Wanted { shape, sms: 0 });
    let (shapes, times) = timed(lab, book, lattice)?;
    keep(book, &shapes, &times);
    // Last, for it leaves the GPUs hot.
    sustained(lab, book)
}

/// Times shapes in rounds while the section's time lasts, two rounds at least; those that do not fit
/// into memory are left out.
pub(super) fn timed(
    lab: &Lab<'_>,
    book: &Book<'_>,
    wanted: impl Iterator<Item = Wanted>,
) -> Result<(Vec<Everywhere>, Vec<Vec<Times>>), GpuError> {
    let mut shapes: Vec<Everywhere> = Vec::new();
    for Wanted { shape, sms } in wanted {
        let [m, n, k] = shape;
        let bytes = [m * k, k * n, m * n].map(|size| size * DTYPE.size());
        // A little more than the matrices: rows are padded.
        if bytes.iter().any(|b| b + b / 8 > lab.units[0].widest()) {
            continue;
        }
        let problem = Problem {
            sms,
            ..problem(shape)
        };
        let all = (0..lab.units.len()).map(|g| Ready::of(lab, g, problem));
        shapes.push(all.collect::<Result<_, _>>()?);
    }
    let mut rng = fastrand::Rng::with_seed(11);
    let mut order: Vec<usize> = (0..shapes.len()).collect();
    let mut times = vec![vec![Times::default(); lab.units.len()]; shapes.len()];
    // A round that the time does not suffice for is left out of no shape in particular.
    'rounds: for round in 0..lab.reps(3, 30) {
        rng.shuffle(&mut order);
        for &shape in &order {
            let found = sample(lab, &shapes[shape])?;
            for (times, (alone, each)) in times[shape].iter_mut().zip(found) {
                times.alone.push(alone);
                times.in_a_row.extend(each);
            }
            if round > 0 && book.spent() {
                break 'rounds;
            }
        }
    }
    Ok((shapes, times))
}

/// Writes the samples of a shape down: of `k4096n1024`, or of `k4096n1024s108` on so many SMs.
pub(super) fn write(book: &Book<'_>, problem: &Problem, times: &[Times]) {
    let Problem { m, n, k, sms, .. } = *problem;
    let name = match sms {
        0 => format!("k{k}n{n}"),
        sms => format!("k{k}n{n}s{sms}"),
    };
    for (g, times) in times.iter().enumerate() {
        book.times(&format!("{name} gpu{g} alone"), m as f64, &times.alone);
        if !times.in_a_row.is_empty() {
            book.times(&format!("{name} gpu{g}"), m as f64, &times.in_a_row);
        }
    }
}

/// Writes samples down and keeps the shapes' times.
fn keep(book: &Book<'_>, shapes: &[Everywhere], times: &[Vec<Times>]) {
    let slowest = |of: &dyn Fn(&Times) -> Option<Estimate>, times: &[Times]| {
        let all = times.iter().filter_map(of);
        all.max_by(|a, b| a.value.total_cmp(&b.value))
    };
    let mut firsts = Vec::new();
    let mut found = Vec::new();
    for (shape, times) in shapes.iter().zip(times) {
        let Some(Ready {
            problem, kernel, ..
        }) = shape.first()
        else {
            continue;
        };
        let Problem { m, n, k, sms, .. } = *problem;
        write(book, problem, times);
        // Those on fewer SMs are fitted to with others' samples only.
        if sms > 0 {
            continue;
        }
        let alone = slowest(&|t| Estimate::median(&t.alone), times);
        let each = slowest(&|t| Estimate::median(&t.in_a_row), times);
        if let (Some(alone), Some(each)) = (alone, each) {
            firsts.push(alone.value - each.value);
        }
        found.push(([m, n, k], *kernel, alone, each));
    }
    book.fact("gemm.first.extra", Estimate::median(&firsts));
    let first = median(&firsts).unwrap_or(0.0);
    for (shape, kernel, alone, each) in found {
        if let Some(alone) = alone {
            book.product(Product::new(shape, alone, each, first, kernel));
        }
    }
    let ratio = |times: &[Times]| {
        let all: Vec<f64> = times.iter().filter_map(|t| median(&t.alone)).collect();
        let (least, most) = (
            all.iter().copied().reduce(f64::min)?,
            all.iter().copied().reduce(f64::max)?,
        );
        (all.len() > 1).then_some(most / least)
    };
    let ratios: Vec<f64> = times.iter().filter_map(|times| ratio(times)).collect();
    book.fact("gemm.slowest.gpu", Estimate::median(&ratios));
}
