//! What bounds GEMMs and what changes them: memory, the clock, accumulating, SMs that others hold.

use std::time::Duration;

use super::book::Book;
use super::estimate::{Estimate, median};
use super::lab::Lab;
use super::products::{DTYPE, Ready, problem};
use crate::gpu::GpuError;
use crate::gpu::kernels::Matrix;
use crate::gpu::lt::Problem;
use crate::gpu::raw::Stream;

/// What accumulating onto C and leaving SMs to others do to a GEMM, against the plain one of the same
/// round.
pub fn variants(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let shapes = [
        [1024, 8192, 8192],
        [4096, 8192, 4096],
        [8192, 12_288, 3072],
        [512, 4096, 4096],
    ];
    let sms = lab.units[0].gpu.attributes().sms;
    let mut more = Vec::new();
    let fewer = [8, 16, 32].map(|taken| sms.saturating_sub(taken).max(1));
    for shape in shapes.into_iter().take(if lab.quick { 1 } else { 4 }) {
        let [m, n, k] = shape;
        if [m * k, k * n, m * n]
            .iter()
            .any(|size| 2 * size > lab.units[0].most(1))
        {
            continue;
        }
        let plain = problem(shape);
        let mut all = vec![("plain".to_owned(), Ready::of(lab, 0, plain)?)];
        let accumulate = Problem {
            accumulate: true,
            ..plain
        };
        all.push(("accumulate".to_owned(), Ready::of(lab, 0, accumulate)?));
        for sms in fewer {
            all.push((
                format!("sms{sms}"),
                Ready::of(lab, 0, Problem { sms, ..plain })?,
            ));
        }
        let mut times = vec![Vec::new(); all.len()];
        for rep in 0..=lab.reps(3, 15) {
            for ((_, ready), times) in all.iter().zip(&mut times) {
                let time = ready.burst(lab, 3)?;
                if rep > 0 {
                    times.push(time);
                }
            }
        }
        let plain = median(&times[0]).unwrap_or(1.0);
        let bytes = (m * n * DTYPE.size()) as f64;
        more.extend(times[1].iter().map(|time| (time - plain) / bytes));
        for ((name, _), times) in all.iter().zip(&times) {
            book.times(&format!("{name} k{k}n{n}"), m as f64, times);
            let ratio = Estimate::median(times).map(|t| t.map(|t| t / plain));
            if name != "plain" {
                book.fact(&format!("gemm.{name}.k{k}n{n}m{m}"), ratio);
            }
        }
    }
    // Seconds for each byte of C; an interval that reaches below 0 says that nothing is seen.
    let each = Estimate::median(&more).filter(|each| each.low > 0.0);
    book.fact("gemm.accumulate.rate", each.map(|e| e.map(f64::recip)));
    Ok(())
}

/// Rates of what memory bounds: sums, and GEMMs of few rows.
pub fn rates(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let unit = &lab.units[0];
    let (rows, cols) = (8192, 8192);
    let bytes = rows * cols * DTYPE.size();
    let matrix = |i: u64| {
        let start = unit.matrix(i, bytes);
        start.map(|start| Matrix { start, ld: cols })
    };
    let (x, y, out) = (matrix(0)?, matrix(1)?, matrix(2)?);
    let add = |s: &Stream| unit.kernels.add(s, DTYPE, &[x, y], out, (rows, cols), 0);
    let skinny = Ready::new(lab, 0, [16, 16384, 16384])?;
    let skinny_bytes = (16384 * 16384 + 2 * 16 * 16384) * DTYPE.size();
    let (mut sums, mut floors) = (Vec::new(), Vec::new());
    for rep in 0..=lab.reps(3, 9) {
        let sum = lab.time(0, |s| (0..4).try_for_each(|_| add(s)))? / 4.0;
        let floor = skinny.burst(lab, 4)?;
        if rep > 0 {
            sums.push(3.0 * bytes as f64 / sum);
            floors.push(skinny_bytes as f64 / floor);
        }
    }
    book.raw("sum of two", bytes as f64, "bytes/s", &sums);
    book.raw("GEMM of 16 rows", skinny_bytes as f64, "bytes/s", &floors);
    book.fact("add.rate", Estimate::median(&sums));
    book.fact("gemm.floor", Estimate::median(&floors));
    Ok(())
}

/// The clock of samples.
pub fn clocks(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let unit = &lab.units[0];
    let mut rested = Vec::new();
    for _ in 0..lab.reps(3, 12) {
        let out = unit.stage.region().cut(0, 16)?;
        let count = Duration::from_micros(200);
        lab.time(0, |s| unit.kernels.clock_rate(s, count, out))?;
        rested.push(clock(lab)?);
    }
    book.raw("clock of a sample", 0.0, "Hz", &rested);
    book.fact("clock.rested", Estimate::median(&rested));
    Ok(())
}

/// What the kernel that counts cycles left in pinned memory \[Hz\].
fn clock(lab: &Lab<'_>) -> Result<f64, GpuError> {
    let word = |i| Ok::<f64, GpuError>(f64::from(lab.units[0].stage.load(i)?));
    Ok(word(0)? / word(2)?.max(1.0) * 1e9)
}
