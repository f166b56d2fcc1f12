//! Memory and copies.

use std::cell::Cell;

use super::LIMIT;
use super::bench::{Bench, wrong};
use crate::gpu::GpuError;
use crate::gpu::kernels::{Epoch, Tells};
use crate::gpu::raw::Copy2d;

/// Half of the arena: sources lie below, destinations above.
const HALF: u64 = 128 << 20;
/// Words for copies that tell, between both.
const COUNT: u64 = 100 << 20;

pub fn memory(bench: &Bench) -> Result<String, GpuError> {
    let bytes = 1 << 20;
    let sent = bench.pattern(12_345, bytes, 1)?;
    if bench.bytes(12_345, bytes)? != sent {
        return Err(wrong("memory does not come back as it was sent"));
    }
    let over = bench.arena.region().cut(bench.arena.region().bytes(), 1);
    match over {
        Err(GpuError::Bounds { .. }) => {}
        _ => return Err(wrong("a region beyond the allocation")),
    }
    let (free, total) = bench.gpu.memory()?;
    Ok(format!(
        "{:.1} of {:.1} GB free",
        free as f64 / 1e9,
        total as f64 / 1e9
    ))
}

pub fn resources(bench: &Bench) -> Result<String, GpuError> {
    let all = bench.kernels.resources()?;
    let registers = all.iter().map(|(_, r)| r.registers).max().unwrap_or(0);
    if let Some((name, spilled)) = all.iter().find(|(_, r)| r.local > 0) {
        return Err(wrong(format!(
            "kernel {name} keeps {} bytes of each thread in memory",
            spilled.local
        )));
    }
    Ok(format!(
        "{} kernels for {}, at most {registers} registers, none spilled",
        all.len(),
        bench.gpu.arch()
    ))
}

/// Rows, bytes of a row, pitches and offsets of source and destination.
type Rectangle = (u64, u64, (u64, u64), (u64, u64));

const RECTANGLES: [Rectangle; 10] = [
    (1, 1, (1, 1), (0, 3)),
    (1, 65_536, (65_536, 65_536), (0, 0)),
    (1, 1_000_003, (1_000_003, 1_000_003), (0, 0)),
    (64, 4096, (8192, 8192), (0, 0)),
    (37, 1000, (1024, 2048), (0, 16)),
    (37, 1002, (1024, 1152), (2, 4)),
    (5, 7, (16, 32), (0, 0)),
    (129, 258, (640, 384), (6, 10)),
    (3, 4100, (4224, 4352), (4, 8)),
    (300, 24, (24, 128), (8, 8)),
];

pub fn copy_kernel(bench: &Bench) -> Result<String, GpuError> {
    let sms = bench.gpu.attributes().sms;
    for blocks in [1, 7, sms] {
        rectangles(bench, |copy| {
            bench.kernels.copy(bench.stream(), copy, blocks)
        })?;
    }
    // Kernels that then set a flag, each to the next number, alone and in pairs.
    bench.zero(bench.at(COUNT, 512)?)?;
    let epoch = Cell::new(0);
    for blocks in [1, 7, 8, sms - sms % 2] {
        rectangles(bench, |copy| {
            epoch.set(epoch.get() + 1);
            let tells = Tells {
                done: bench.at(COUNT, 4)?,
                flag: bench.at(COUNT + 256, 4)?,
                epoch: Epoch::fixed(epoch.get()),
            };
            let kernels = &bench.kernels;
            kernels.copy_and_tell(bench.stream(), copy, blocks, &tells)
        })?;
        let (count, flag) = (bench.words(COUNT, 1)?, bench.words(COUNT + 256, 1)?);
        if (&count[..], &flag[..]) != (&[0], &[epoch.get()]) {
            return Err(wrong(format!(
                "copies by {blocks} blocks left the flag {flag:?} and the count {count:?}, not [{}] and [0]",
                epoch.get()
            )));
        }
    }
    Ok(format!(
        "{} rectangles with 1, 7 and {sms} blocks, also with a flag at the end",
        RECTANGLES.len()
    ))
}

pub fn copy_engine(bench: &Bench) -> Result<String, GpuError> {
    rectangles(bench, |copy| bench.stream().copy_2d(copy))?;
    Ok(format!("{} rectangles", RECTANGLES.len()))
}

/// Copies each rectangle and compares it, and what is around it, with a copy by the host.
fn rectangles(
    bench: &Bench,
    perform: impl Fn(&Copy2d) -> Result<(), GpuError>,
) -> Result<(), GpuError> {
    for (rows, width, (from_pitch, to_pitch), (from, to)) in RECTANGLES {
        let bytes = |pitch: u64, offset: u64| offset + rows * pitch.max(width) + 256;
        let source = bench.pattern(0, bytes(from_pitch, from), 2)?;
        let mut expected = bench.pattern(HALF, bytes(to_pitch, to), 3)?;
        for row in 0..rows {
            let (s, d) = (from + row * from_pitch, to + row * to_pitch);
            expected[d as usize..(d + width) as usize]
                .copy_from_slice(&source[s as usize..(s + width) as usize]);
        }
        perform(&Copy2d {
            from: bench.arena.region().from(from)?,
            from_pitch,
            to: bench.arena.region().from(HALF + to)?,
            to_pitch,
            width,
            rows,
        })?;
        bench.stream().finish(LIMIT, "a copy")?;
        let found = bench.bytes(HALF, expected.len() as u64)?;
        if let Some(at) = (0..found.len()).find(|&i| found[i] != expected[i]) {
            return Err(wrong(format!(
                "byte {at} of a copy of {rows} rows of {width} bytes, pitches {from_pitch} and {to_pitch}, offsets {from} and {to}"
            )));
        }
    }
    Ok(())
}
