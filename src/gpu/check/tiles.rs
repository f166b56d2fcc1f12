//! Products by our own kernels, and kernels that wait for their rows.

use std::time::Duration;

use super::bench::{Bench, STATUS, wrong};
use super::math::{product_bound, product_error};
use crate::device::DType;
use crate::gpu::GpuError;
use crate::gpu::kernels::Epoch;
use crate::gpu::raw::{Copy2d, Region};
use crate::gpu::tiles::{Gate, Group, Part, Tile, order};
use crate::schedule::Extent;

const MIB: u64 = 1 << 20;
/// Places in the arena: A before it arrives, status words, flags, tables.
const SOURCE: u64 = 48 * MIB;
const WORDS: u64 = 64 * MIB;
const FLAGS: u64 = WORDS + 256;
const BANDS: u64 = WORDS + 4096;
const WAITS: u64 = WORDS + 65536;
const PARTS: u64 = WORDS + 131_072;

/// Every kernel on shapes that are no multiples of its tile, with sums onto C and without.
pub fn products(bench: &Bench) -> Result<String, GpuError> {
    let kinds = [(DType::Bf16, false), (DType::Fp16, true)];
    let shapes = [(67, 96, 80), (1, 8, 16), (33, 41, 7), (300, 520, 200)];
    let tiles = Tile::all(bench.gpu.attributes());
    let mut worst: f64 = 0.0;
    let (mut most, mut spilling) = (0, 0);
    for &tile in &tiles {
        for (dtype, accumulate) in kinds {
            let used = bench.tiles.borrow_mut().load(tile, dtype, accumulate)?;
            most = most.max(used.registers);
            spilling += u32::from(used.local > 0);
            for shape in shapes {
                let found = product_error(bench, dtype, shape, accumulate, |problem, regions| {
                    let tiles = bench.tiles.borrow();
                    tiles.launch(bench.stream(), &problem, tile, regions, None)
                })?;
                right(tile, dtype, found)?;
                worst = worst.max(found);
            }
        }
    }
    Ok(format!(
        "{} kernels, relative error at most {worst:.1e}, up to {most} registers, {spilling} of {} with spills",
        tiles.len(),
        kinds.len() * tiles.len()
    ))
}

fn right(tile: Tile, dtype: DType, found: f64) -> Result<(), GpuError> {
    let bound = product_bound(dtype);
    match found <= bound {
        true => Ok(()),
        false => Err(wrong(format!(
            "{tile}, {}: relative error {found:.2e}, bound {bound:.2e}",
            dtype.name()
        ))),
    }
}

/// Rows that arrive late, in another order than they lie, in chunks that are no multiples of a tile;
/// then a chunk that never comes.
pub fn gated(bench: &Bench) -> Result<String, GpuError> {
    let shape = (500, 136, 96);
    let (dtype, chunk) = (DType::Bf16, 100);
    let tiles = Tile::all(bench.gpu.attributes());
    let [first, second] = &bench.streams;
    for &tile in &tiles {
        bench.tiles.borrow_mut().load(tile, dtype, false)?;
        for lost in [false, true] {
            bench.zero(bench.at(WORDS, 4096)?)?;
            let order_of_rows = [2, 3, 4, 0, 1];
            let groups: Vec<Group> = order_of_rows
                .iter()
                .map(|&i| Group {
                    rows: Extent::new(i * chunk, chunk),
                    // The first chunk is there.
                    flags: match i {
                        2 => Vec::new(),
                        _ => vec![bench.arena.region().address() + FLAGS + 4 * u64::from(i)],
                    },
                })
                .collect();
            let (bands, waits) = order(tile, 500, &groups, &[]);
            bench.arena.upload(BANDS, &bands)?;
            bench.arena.upload(WAITS, &waits)?;
            let gate = Gate {
                bands: bench.at(BANDS, bands.len() as u64)?,
                waits: bench.at(WAITS, waits.len() as u64)?,
                epoch: Epoch::fixed(9),
                limit: match lost {
                    true => Duration::from_millis(20),
                    false => Duration::from_secs(3),
                },
                status: bench.at(WORDS, STATUS)?,
                parts: None,
            };
            let found = product_error(bench, dtype, shape, false, |problem, regions| {
                let ld = problem.ld[0];
                let row = ld * dtype.size();
                let rows = |start: Region, i: u32| {
                    start.cut(u64::from(i * chunk) * row, u64::from(chunk) * row)
                };
                let source = bench.at(SOURCE, 500 * row)?;
                first.copy(regions.0.cut(0, 500 * row)?, source)?;
                // What has not arrived is no number.
                first.fill(regions.0.cut(0, 500 * row)?, 0xFF)?;
                first.copy(rows(source, 2)?, rows(regions.0, 2)?)?;
                first.finish(super::LIMIT, "rows for a gated GEMM")?;
                let tiles = bench.tiles.borrow();
                tiles.launch(first, &problem, tile, regions, Some(&gate))?;
                for &i in &order_of_rows[1..] {
                    bench.kernels.delay(second, Duration::from_micros(50))?;
                    second.copy_2d(&Copy2d {
                        from: rows(source, i)?,
                        from_pitch: row,
                        to: rows(regions.0, i)?,
                        to_pitch: row,
                        width: row,
                        rows: chunk.into(),
                    })?;
                    if !(lost && i == 4) {
                        second.write_value(bench.at(FLAGS + 4 * u64::from(i), 4)?, 9)?;
                    }
                }
                Ok(())
            })?;
            let status = bench.words(WORDS, 4)?;
            if lost {
                // The second wait in the order of the groups, numbered from 0.
                if status != [1, 1, 9, 0] {
                    return Err(wrong(format!("{tile}: status {status:?} of a lost flag")));
                }
            } else {
                if status[0] != 0 {
                    return Err(wrong(format!(
                        "{tile}: a wait passed its limit: {status:?}"
                    )));
                }
                right(tile, dtype, found)?;
            }
        }
    }
    Ok(format!(
        "{} kernels: rows that arrive late and in another order; a lost flag ends at its limit",
        tiles.len()
    ))
}

/// Rows that go to places of their own, in parts that are no multiples of a tile: another stream takes
/// each away as soon as its flag is set.
pub fn parted(bench: &Bench) -> Result<String, GpuError> {
    let (dtype, chunk) = (DType::Bf16, 100);
    let tiles = Tile::all(bench.gpu.attributes());
    let [first, second] = &bench.streams;
    for &tile in &tiles {
        bench.tiles.borrow_mut().load(tile, dtype, false)?;
        // Twice, since what counts the tiles must be as before.
        for (epoch, n) in [(7, 136), (8, 131)] {
            let mut taken = 0;
            if epoch == 7 {
                bench.zero(bench.at(WORDS, 4096)?)?;
            }
            let found = product_error(bench, dtype, (500, n, 96), false, |problem, regions| {
                let ld = problem.ld[2];
                let bytes = u64::from(chunk) * ld * dtype.size();
                let parts = (0..5)
                    .map(|i: u32| {
                        Ok(Part {
                            rows: Extent::new(i * chunk, chunk),
                            to: regions.2.from(u64::from(i) * bytes)?,
                            ld,
                            flag: bench.at(FLAGS + 4 * u64::from(i), 4)?,
                        })
                    })
                    .collect::<Result<Vec<_>, GpuError>>()?;
                let tiles = bench.tiles.borrow();
                let counters = bench.at(WORDS + 1024, 64)?;
                let table = tiles.parts(&problem, tile, &parts, counters)?;
                let all = Group {
                    rows: Extent::new(0, 500),
                    flags: Vec::new(),
                };
                let rows: Vec<Extent> = parts.iter().map(|part| part.rows).collect();
                let (bands, waits) = order(tile, 500, &[all], &rows);
                bench.arena.upload(BANDS, &bands)?;
                bench.arena.upload(PARTS, &table)?;
                let gate = Gate {
                    bands: bench.at(BANDS, bands.len() as u64)?,
                    waits: bench.at(WAITS, waits.len() as u64)?,
                    epoch: Epoch::fixed(epoch),
                    limit: Duration::from_secs(3),
                    status: bench.at(WORDS, STATUS)?,
                    parts: Some(bench.at(PARTS, table.len() as u64)?),
                };
                first.finish(super::LIMIT, "matrices for a parted GEMM")?;
                for (i, part) in parts.iter().enumerate() {
                    second.wait_value(part.flag, epoch)?;
                    second.copy(part.to, bench.at(SOURCE + i as u64 * bytes, bytes)?)?;
                }
                taken = 5 * bytes;
                // Where C would be if it were one.
                let nowhere = bench.arena.region().from(80 * MIB)?;
                let regions = (regions.0, regions.1, nowhere);
                tiles.launch(first, &problem, tile, regions, Some(&gate))
            })?;
            right(tile, dtype, found)?;
            if bench.bytes(SOURCE, taken)? != bench.bytes(32 * MIB, taken)? {
                return Err(wrong(format!(
                    "{tile}: a flag was set before its rows were there"
                )));
            }
        }
    }
    Ok(format!(
        "{} kernels: rows to five places, each taken away when its flag was set",
        tiles.len()
    ))
}
