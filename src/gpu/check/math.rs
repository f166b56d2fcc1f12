//! Random data, sums, comparisons and products against the host.

use super::LIMIT;
use super::bench::{Bench, wrong};
use crate::device::DType;
use crate::gpu::GpuError;
use crate::gpu::data::{element, round};
use crate::gpu::kernels::{COMPARE_BYTES, Kernels};
use crate::gpu::lt::{Pick, Problem, WORKSPACE, alignment};
use crate::gpu::raw::Region;

const DTYPES: [DType; 3] = [DType::Bf16, DType::Fp16, DType::Fp32];
const MIB: u64 = 1 << 20;

pub fn fill(bench: &Bench) -> Result<String, GpuError> {
    let (rows, cols, ld) = (37, 53, 64);
    for dtype in DTYPES {
        let matrix = bench.matrix(0, ld)?;
        bench
            .kernels
            .fill(bench.stream(), dtype, matrix, (rows, cols), 9, (5, 11))?;
        bench.stream().finish(LIMIT, "a fill")?;
        let found = bench.elements(dtype, 0, ld, (rows, cols))?;
        for (i, found) in found.iter().enumerate() {
            let (row, col) = (i as u64 / cols, i as u64 % cols);
            let expected = element(dtype, 9, 5 + row, 11 + col)?;
            if *found != expected {
                return Err(wrong(format!(
                    "{} element ({row}, {col}): {found}, not {expected}",
                    dtype.name()
                )));
            }
        }
    }
    Ok("the host's elements, bit by bit".to_owned())
}

pub fn add(bench: &Bench) -> Result<String, GpuError> {
    let (rows, cols) = (19, 53);
    let mut cases = 0;
    for dtype in DTYPES {
        for (count, ld) in [(1, 64), (2, 64), (3, 61), (7, 61), (16, 64)] {
            let inputs = (0..count)
                .map(|i| bench.matrix(i * MIB, ld))
                .collect::<Result<Vec<_>, _>>()?;
            for (seed, input) in inputs.iter().enumerate() {
                let seed = seed as u64;
                bench
                    .kernels
                    .fill(bench.stream(), dtype, *input, (rows, cols), seed, (0, 0))?;
            }
            // Into the last input: the output may be one of them.
            let out = inputs[inputs.len() - 1];
            let stream = bench.stream();
            bench
                .kernels
                .add(stream, dtype, &inputs, out, (rows, cols), 3)?;
            stream.finish(LIMIT, "a sum")?;
            let found = bench.elements(dtype, (count - 1) * MIB, ld, (rows, cols))?;
            for (i, found) in found.iter().enumerate() {
                let (row, col) = (i as u64 / cols, i as u64 % cols);
                let mut sum = 0.0;
                for seed in 0..count {
                    sum += element(dtype, seed, row, col)?;
                }
                let expected = round(dtype, sum)?;
                if *found != expected {
                    return Err(wrong(format!(
                        "sum of {count} {} matrices at ({row}, {col}): {found}, not {expected}",
                        dtype.name()
                    )));
                }
            }
            cases += 1;
        }
    }
    Ok(format!("{cases} cases, bit by bit"))
}

pub fn compare(bench: &Bench) -> Result<String, GpuError> {
    let (rows, cols, ld) = (301, 517, 520);
    let results = bench.at(64 * MIB, COMPARE_BYTES)?;
    for dtype in DTYPES {
        let (x, y) = (bench.matrix(0, ld)?, bench.matrix(16 * MIB, ld + 3)?);
        let (kernels, stream) = (&bench.kernels, bench.stream());
        kernels.fill(stream, dtype, x, (rows, cols), 1, (0, 0))?;
        kernels.fill(stream, dtype, y, (rows, cols), 2, (0, 0))?;
        let measure = || {
            kernels.compare(stream, dtype, (x, y), (rows, cols), results)?;
            stream.finish(LIMIT, "a comparison")?;
            let bytes = bench.bytes(64 * MIB, COMPARE_BYTES)?;
            Ok::<_, GpuError>(Kernels::difference(&bytes, cols))
        };
        let found = measure()?;
        let (mut squared, mut reference) = (0.0, 0.0);
        for (row, col) in (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))) {
            let a = f64::from(element(dtype, 1, row, col)?);
            let b = f64::from(element(dtype, 2, row, col)?);
            squared += (a - b) * (a - b);
            reference += b * b;
        }
        let expected = f64::sqrt(squared / reference);
        if (found.relative / expected - 1.0).abs() > 1e-12 || measure()? != found {
            return Err(wrong(format!(
                "relative difference {}, not {expected}",
                found.relative
            )));
        }
        // One element that is no number must be found.
        let at = (200 * ld + 100) * dtype.size();
        bench.arena.upload(at, &vec![0xFF; dtype.size() as usize])?;
        let found = measure()?;
        if !found.relative.is_nan() || !found.worst.is_infinite() || found.place != (200, 100) {
            return Err(wrong(format!("an element that is no number: {found:?}")));
        }
    }
    Ok("as in fp64 on the host, twice the same, NaN found".to_owned())
}

pub fn gemm(bench: &Bench) -> Result<String, GpuError> {
    let mut worst: f64 = 0.0;
    let mut tiles = Vec::new();
    for dtype in [DType::Bf16, DType::Fp16] {
        for (m, n, k) in [(67, 96, 80), (256, 128, 512), (1, 8, 16), (33, 41, 7)] {
            for (accumulate, sms) in [(false, 0), (true, 0), (false, 16)] {
                let found = product(bench, dtype, (m, n, k), accumulate, sms, &mut tiles)?;
                let bound = product_bound(dtype);
                if found.is_nan() || found > bound {
                    return Err(wrong(format!(
                        "{} GEMM {m} × {n} × {k}, accumulate {accumulate}: relative error {found:.2e}, bound {bound:.2e}",
                        dtype.name()
                    )));
                }
                worst = worst.max(found);
            }
        }
    }
    tiles.sort_unstable();
    tiles.dedup();
    Ok(format!(
        "24 products, relative error at most {worst:.1e}, {} algorithms",
        tiles.len()
    ))
}

/// The relative error of one product by the library.
fn product(
    bench: &Bench,
    dtype: DType,
    shape: (u64, u64, u64),
    accumulate: bool,
    sms: u32,
    tiles: &mut Vec<u32>,
) -> Result<f64, GpuError> {
    product_error(bench, dtype, shape, accumulate, |problem, regions| {
        let problem = Problem { sms, ..problem };
        let mut gemms = bench.gemms.borrow_mut();
        let chosen = gemms.choose(problem, Pick::Heuristic, None)?;
        tiles.push(chosen.config.numbers.tile);
        let space = bench.at(128 * MIB, WORKSPACE)?;
        gemms.run(bench.stream(), &problem, regions, space)
    })
}

/// The most that the relative error of a product may be. Rounding the result to 16 bits: half a
/// unit in the last place, at worst; RMS less.
pub(super) fn product_bound(dtype: DType) -> f64 {
    match dtype {
        DType::Bf16 => 2.0_f64.powi(-8),
        _ => 2.0_f64.powi(-11),
    }
}

/// The relative error against fp64 on the host of the product that `multiply` enqueues.
pub(super) fn product_error(
    bench: &Bench,
    dtype: DType,
    (m, n, k): (u64, u64, u64),
    accumulate: bool,
    multiply: impl FnOnce(Problem, (Region, Region, Region)) -> Result<(), GpuError>,
) -> Result<f64, GpuError> {
    let pad = |cols: u64| cols.next_multiple_of(64);
    let ld = [pad(k), pad(n), pad(n)];
    let (a, b, c) = (
        bench.matrix(0, ld[0])?,
        bench.matrix(16 * MIB, ld[1])?,
        bench.matrix(32 * MIB, ld[2])?,
    );
    let (kernels, stream) = (&bench.kernels, bench.stream());
    kernels.fill(stream, dtype, a, (m, k), 1, (0, 0))?;
    kernels.fill(stream, dtype, b, (k, n), 2, (0, 0))?;
    match accumulate {
        true => kernels.fill(stream, dtype, c, (m, n), 3, (0, 0))?,
        false => stream.fill(bench.at(32 * MIB, m * ld[2] * dtype.size())?, 0xFF)?,
    }
    let regions = (a.start, b.start, c.start);
    let problem = Problem {
        m,
        n,
        k,
        ld,
        align: [a, b, c].map(|matrix| alignment(matrix.start.address())),
        dtype,
        accumulate,
        sms: 0,
    };
    multiply(problem, regions)?;
    bench.finish("a GEMM")?;
    let found = bench.elements(dtype, 32 * MIB, ld[2], (m, n))?;
    let host = |seed, rows: u64, cols: u64| {
        (0..rows * cols)
            .map(|i| element(dtype, seed, i / cols, i % cols).map(f64::from))
            .collect::<Result<Vec<_>, _>>()
    };
    let (a, b, c) = (host(1, m, k)?, host(2, k, n)?, host(3, m, n)?);
    let (n, k) = (n as usize, k as usize);
    let (mut squared, mut reference) = (0.0, 0.0);
    for (i, found) in found.iter().enumerate() {
        let (row, col) = (i / n, i % n);
        let start = if accumulate { c[i] } else { 0.0 };
        let sum: f64 = (0..k).map(|at| a[row * k + at] * b[at * n + col]).sum();
        let expected = start + sum;
        squared += (f64::from(*found) - expected).powi(2);
        reference += expected * expected;
    }
    Ok((squared / reference).sqrt())
}
