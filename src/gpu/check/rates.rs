//! A few rates, to see at a glance that the machine is sound; calibration measures properly.

use std::time::Duration;

use super::LIMIT;
use super::bench::{Bench, Benches};
use crate::device::DType;
use crate::gpu::GpuError;
use crate::gpu::kernels::Matrix;
use crate::gpu::lt::{Pick, Problem, Trial, WORKSPACE, alignment};
use crate::gpu::raw::{Copy2d, Event, Memory, Region};

const ROUNDS: usize = 7;
const BYTES: u64 = 64 << 20;

/// Median time of `work` in the bench's first stream \[seconds\].
fn time(bench: &Bench, work: impl Fn() -> Result<(), GpuError>) -> Result<f64, GpuError> {
    let (begin, end) = (Event::new(&bench.gpu, true)?, Event::new(&bench.gpu, true)?);
    let mut times = Vec::new();
    for round in 0..=ROUNDS {
        // A short hold, so that the host's submission is not measured.
        bench
            .kernels
            .delay(bench.stream(), Duration::from_micros(30))?;
        bench.stream().record(&begin)?;
        work()?;
        bench.stream().record(&end)?;
        end.finish(LIMIT, "a rate")?;
        if round > 0 {
            times.push(begin.seconds_to(&end)?);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[ROUNDS / 2])
}

fn run(from: Region, to: Region) -> Copy2d {
    Copy2d {
        from,
        from_pitch: BYTES,
        to,
        to_pitch: BYTES,
        width: BYTES,
        rows: 1,
    }
}

/// A large product by the library's first guess and by the fastest of eight, local copies, clock.
pub fn single(bench: &Bench) -> Result<String, GpuError> {
    let edge = 8192;
    let dtype = DType::Bf16;
    let bytes = edge * edge * dtype.size();
    let memory = (0..3)
        .map(|_| Memory::new(&bench.gpu, bytes))
        .collect::<Result<Vec<_>, _>>()?;
    let regions = [0, 1, 2].map(|i: usize| memory[i].region());
    let shape = (edge, edge);
    for (seed, start) in regions.iter().take(2).enumerate() {
        let matrix = Matrix {
            start: *start,
            ld: edge,
        };
        bench
            .kernels
            .fill(bench.stream(), dtype, matrix, shape, seed as u64, (0, 0))?;
    }
    let matrices = (regions[0], regions[1], regions[2]);
    let problem = Problem {
        m: edge,
        n: edge,
        k: edge,
        ld: [edge; 3],
        align: regions.map(|region| alignment(region.address())),
        dtype,
        accumulate: false,
        sms: 0,
    };
    let workspace = bench.at(128 << 20, WORKSPACE)?;
    let mut gemms = bench.gemms.borrow_mut();
    let guess = gemms.guesses(problem, 1)?[0];
    let trial = Trial {
        stream: bench.stream(),
        matrices,
        workspace,
        limit: LIMIT,
    };
    let chosen = gemms.choose(problem, Pick::Fastest { of: 8 }, Some(&trial))?;
    let gemm = time(bench, || {
        gemms.run(bench.stream(), &problem, matrices, workspace)
    })?;
    let all = bench.gpu.attributes().sms;
    let half = Problem {
        sms: all / 2,
        ..problem
    };
    gemms.choose(half, Pick::Heuristic, None)?;
    let fewer = time(bench, || {
        gemms.run(bench.stream(), &half, matrices, workspace)
    })?;
    let (from, to) = (bench.at(0, BYTES)?, bench.at(BYTES, BYTES)?);
    let rate = |seconds: f64| BYTES as f64 / seconds / 1e9;
    let engine = time(bench, || bench.stream().copy(from, to))?;
    let mut kernels = Vec::new();
    for blocks in [1, 8, all] {
        let seconds = time(bench, || {
            bench.kernels.copy(bench.stream(), &run(from, to), blocks)
        })?;
        kernels.push(format!("{blocks}: {:.0}", rate(seconds)));
    }
    let out = bench.at(0, 16)?;
    bench
        .kernels
        .clock_rate(bench.stream(), Duration::from_micros(500), out)?;
    bench.stream().finish(LIMIT, "a clock")?;
    let words = bench.words(0, 4)?;
    let megahertz = f64::from(words[0]) / f64::from(words[2].max(1)) * 1e3;
    let flops = 2.0 * (edge as f64).powi(3);
    Ok(format!(
        "8192³ bf16 {:.0} µs = {:.0} TFLOP/s ({}; first guess {}; asked for {} of {all} SMs {:.2} × as long); local copy {:.0} GB/s by the driver, by blocks {} GB/s; {megahertz:.0} MHz",
        gemm * 1e6,
        flops / gemm / 1e12,
        chosen.config,
        guess.config,
        half.sms,
        fewer / gemm,
        rate(engine),
        kernels.join(", "),
    ))
}

/// One-way copies from the first GPU to the second.
pub fn peer(benches: &Benches<'_>) -> Result<String, GpuError> {
    let (a, b) = (&benches.all[0], &benches.all[1]);
    let rate = |seconds: f64| BYTES as f64 / seconds / 1e9;
    let (from, to) = (a.at(0, BYTES)?, b.at(0, BYTES)?);
    let engine = time(a, || a.stream().copy(from, to))?;
    let small = time(a, || a.stream().copy(from.cut(0, 4096)?, to.cut(0, 4096)?))?;
    let mut kernels = Vec::new();
    if a.gpu.peer(&b.gpu)?.access {
        for blocks in [1, 8, 32] {
            let push = time(a, || a.kernels.copy(a.stream(), &run(from, to), blocks))?;
            let back = run(b.at(0, BYTES)?, a.at(BYTES, BYTES)?);
            let pull = time(a, || a.kernels.copy(a.stream(), &back, blocks))?;
            kernels.push(format!(
                "{blocks}: {:.0} push {:.0} pull",
                rate(push),
                rate(pull)
            ));
        }
    }
    Ok(format!(
        "64 MiB at {:.0} GB/s by copy engine (4 KiB in {:.1} µs); by blocks {} GB/s",
        rate(engine),
        small * 1e6,
        kernels.join(", ")
    ))
}
