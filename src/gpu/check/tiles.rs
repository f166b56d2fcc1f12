//! Products by our own kernels, and kernels that wait for their rows.

use std::time::Duration;

use super::bench::{Bench, STATUS, wrong};
use super::math::{product_bound, product_error};
use crate::device::DType;
use crate::gpu::GpuError;
use crate::gpu::kernels::Epoch;
use crate::gpu::raw::{Copy2d, Stream};
use crate::gpu::tiles::{Beside, Does, Gate, Gated, Group, Near, Order, Part, Tile, Word, order};
use crate::schedule::Extent;

pub(super) const MIB: u64 = 1 << 20;
/// Places in the arena: A before it arrives, status words, flags, tables.
pub(super) const SOURCE: u64 = 48 * MIB;
pub(super) const WORDS: u64 = 64 * MIB;
pub(super) const FLAGS: u64 = WORDS + 256;
const BANDS: u64 = WORDS + 4096;
const WAITS: u64 = WORDS + 65536;
pub(super) const PARTS: u64 = WORDS + 131_072;
const SECTIONS: u64 = WORDS + 163_840;
const COMPLETIONS: u64 = WORDS + 196_608;

/// Every kernel on shapes that are no multiples of its tile, with sums onto C and without.
pub fn products(bench: &Bench) -> Result<String, GpuError> {
    let kinds = [(DType::Bf16, false), (DType::Fp16, true)];
    let shapes = [(67, 96, 80), (1, 8, 16), (33, 41, 7), (300, 520, 200)];
    let tiles = Tile::all(bench.gpu.attributes());
    let mut worst: f64 = 0.0;
    let (mut most, mut spilling) = (0, 0);
    for &tile in &tiles {
        for (dtype, accumulate) in kinds {
            let does = Does {
                accumulate,
                ..plain(dtype)
            };
            let used = bench.tiles.borrow_mut().load(tile, does)?;
            most = most.max(used.registers);
            spilling += u32::from(used.local > 0);
            for shape in shapes {
                let found = product_error(bench, dtype, shape, accumulate, |problem, regions| {
                    let tiles = bench.tiles.borrow();
                    tiles.launch(bench.stream(), &problem, tile, regions, Beside::default())
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

/// A product and nothing else.
pub(super) const fn plain(dtype: DType) -> Does {
    Does {
        dtype,
        accumulate: false,
        traced: false,
        gated: None,
    }
}

/// A product for a gate.
pub(super) fn asked(dtype: DType, gated: Gated) -> Does {
    Does {
        gated: Some(gated),
        ..plain(dtype)
    }
}

pub(super) fn gated_by(gate: &Gate) -> Beside<'_> {
    Beside {
        gate: Some(gate),
        ..Beside::default()
    }
}

pub(super) fn right(tile: Tile, dtype: DType, found: f64) -> Result<(), GpuError> {
    let bound = product_bound(dtype);
    match found <= bound {
        true => Ok(()),
        false => Err(wrong(format!(
            "{tile}, {}: relative error {found:.2e}, bound {bound:.2e}",
            dtype.name()
        ))),
    }
}

/// Chunks of rows in the order in which they arrive; the first is there.
const ARRIVALS: [u32; 5] = [2, 3, 4, 0, 1];
/// Rows of a chunk, which are no multiple of a tile.
const CHUNK: u32 = 100;

/// A part of A: its chunk of rows, its columns and the address of its flag.
#[derive(Copy, Clone)]
struct Piece {
    chunk: u32,
    columns: Extent,
    flag: u64,
}

/// Rows that arrive late, in another order than they lie, in chunks that are no multiples of a tile, whole
/// or in slabs of columns; then a piece that never comes.
pub fn gated(bench: &Bench) -> Result<String, GpuError> {
    let dtype = DType::Bf16;
    let tiles = Tile::all(bench.gpu.attributes());
    for &tile in &tiles {
        let does = asked(dtype, Gated::default());
        bench.tiles.borrow_mut().load(tile, does)?;
        // Of 200 columns, the second at no multiple of what kernels take at a time.
        for slabs in [&[(0, 200)][..], &[(0, 64), (64, 72), (136, 64)]] {
            for lost in [false, true] {
                late(bench, tile, slabs, lost)?;
            }
        }
    }
    Ok(format!(
        "{} kernels: rows that arrive late, in another order and in slabs; a lost flag ends at its limit",
        tiles.len()
    ))
}

/// One product whose rows arrive late, each in `slabs`; the last piece of the third chunk may be lost.
fn late(bench: &Bench, tile: Tile, slabs: &[(u32, u32)], lost: bool) -> Result<(), GpuError> {
    let shape = (500, 136, 200);
    let dtype = DType::Bf16;
    let [first, second] = &bench.streams;
    bench.zero(bench.at(WORDS, 4096)?)?;
    let flags = bench.arena.region().address() + FLAGS;
    let pieces: Vec<Piece> = ARRIVALS[1..]
        .iter()
        .flat_map(|&chunk| slabs.iter().map(move |&(start, len)| (chunk, start, len)))
        .zip(0_u64..)
        .map(|((chunk, start, len), number)| Piece {
            chunk,
            columns: Extent::new(start, len),
            flag: flags + 4 * number,
        })
        .collect();
    let group = |chunk, from: u32, flags| Group {
        rows: Extent::new(chunk * CHUNK, CHUNK),
        from: from.into(),
        flags,
        sets: None,
    };
    let mut groups = vec![group(ARRIVALS[0], 0, Vec::new())];
    let flags_of = |p: &Piece| vec![Word::flag(p.flag)];
    groups.extend((pieces.iter()).map(|p| group(p.chunk, p.columns.start, flags_of(p))));
    // Some columns of all rows before the others, where tiles are narrow enough.
    let early = (slabs.len() > 1).then_some(1);
    let tables = order(tile, (shape.0, shape.1), &groups, &[], 0, early);
    let limit = match lost {
        true => Duration::from_millis(20),
        false => Duration::from_secs(3),
    };
    let gate = gate(bench, &tables, limit, 9)?;
    let absent = 2 * slabs.len() - 1;
    let found = product_error(bench, dtype, shape, false, |problem, regions| {
        let size = dtype.size();
        let row = problem.ld[0] * size;
        let all = 500 * row;
        let source = bench.at(SOURCE, all)?;
        let a = regions.0.cut(0, all)?;
        let copy = |stream: &Stream, chunk: u32, columns: Extent| {
            let at = u64::from(chunk * CHUNK) * row + u64::from(columns.start) * size;
            let width = u64::from(columns.len) * size;
            stream.copy_2d(&Copy2d {
                from: source.from(at)?,
                from_pitch: row,
                to: a.from(at)?,
                to_pitch: row,
                width,
                rows: CHUNK.into(),
            })
        };
        first.copy(a, source)?;
        // What has not arrived is no number.
        first.fill(a, 0xFF)?;
        copy(first, ARRIVALS[0], Extent::new(0, 200))?;
        first.finish(super::LIMIT, "rows for a gated GEMM")?;
        let tiles = bench.tiles.borrow();
        tiles.launch(first, &problem, tile, regions, gated_by(&gate))?;
        for (number, piece) in pieces.iter().enumerate() {
            bench.kernels.delay(second, Duration::from_micros(50))?;
            copy(second, piece.chunk, piece.columns)?;
            if !(lost && number == absent) {
                second.write_value(bench.at(piece.flag - flags + FLAGS, 4)?, 9)?;
            }
        }
        Ok(())
    })?;
    let status = bench.words(WORDS, 4)?;
    if lost {
        // Waits are numbered from 0 in the order of the groups.
        return match status == [1, absent as u32, 9, 0] {
            true => Ok(()),
            false => Err(wrong(format!("{tile}: status {status:?} of a lost flag"))),
        };
    }
    in_time(tile, &status)?;
    right(tile, dtype, found)
}

/// Whether no wait of a kernel passed its limit, by its status words.
pub(super) fn in_time(tile: Tile, status: &[u32]) -> Result<(), GpuError> {
    match status[0] {
        0 => Ok(()),
        _ => Err(wrong(format!(
            "{tile}: a wait passed its limit: {status:?}"
        ))),
    }
}

/// Uploads the tables of a product.
pub(super) fn gate(
    bench: &Bench,
    tables: &Order,
    limit: Duration,
    epoch: u32,
) -> Result<Gate, GpuError> {
    let table = |place: u64, bytes: &[u8]| {
        bench.arena.upload(place, bytes)?;
        bench.at(place, bytes.len() as u64)
    };
    Ok(Gate {
        bands: table(BANDS, &tables.bands)?,
        sections: table(SECTIONS, &tables.sections)?,
        waits: table(WAITS, &tables.waits)?,
        near: Near::of(tables),
        completions: match tables.completions.is_empty() {
            true => None,
            false => Some(table(COMPLETIONS, &tables.completions)?),
        },
        epoch: Epoch::fixed(epoch),
        limit,
        status: bench.at(WORDS, STATUS)?,
        parts: None,
        fetches: None,
    })
}

/// Rows that go to places of their own, in parts that are no multiples of a tile, and in another order
/// than they lie: another stream takes each away as soon as its flag is set.
pub fn parted(bench: &Bench) -> Result<String, GpuError> {
    let (dtype, chunk) = (DType::Bf16, 100);
    let tiles = Tile::all(bench.gpu.attributes());
    let [first, second] = &bench.streams;
    let start = bench.arena.region().address();
    for &tile in &tiles {
        for parted in [false, true] {
            let gated = Gated {
                parted,
                ..Gated::default()
            };
            let does = asked(dtype, gated);
            bench.tiles.borrow_mut().load(tile, does)?;
        }
        bench.zero(bench.at(WORDS, 4096)?)?;
        // Twice, since what counts the tiles must be as before; the first time C is one.
        for (epoch, n) in [(7, 136), (8, 131)] {
            let mut taken = 0;
            let found = product_error(bench, dtype, (500, n, 96), false, |problem, regions| {
                let ld = problem.ld[2];
                let bytes = u64::from(chunk) * ld * dtype.size();
                let part = |i: u32| regions.2.from(u64::from(i) * bytes);
                let parts = (0..5)
                    .map(|i| {
                        Ok(Part {
                            rows: Extent::new(i * chunk, chunk),
                            to: part(i)?,
                            ld,
                            here: None,
                            adds: false,
                        })
                    })
                    .collect::<Result<Vec<_>, GpuError>>()?;
                let groups = [3, 4, 0, 2, 1].map(|i| Group {
                    rows: Extent::new(i * chunk, chunk),
                    from: 0,
                    flags: Vec::new(),
                    sets: Some(start + FLAGS + 4 * u64::from(i)),
                });
                let rows: Vec<Extent> = match epoch {
                    7 => Vec::new(),
                    _ => parts.iter().map(|part| part.rows).collect(),
                };
                let tables = order(tile, (500, n), &groups, &rows, start + WORDS + 1024, None);
                let mut gate = gate(bench, &tables, Duration::from_secs(3), epoch)?;
                let mut regions = regions;
                let tiles = bench.tiles.borrow();
                if epoch == 8 {
                    let table = tiles.parts(&problem, tile, &parts)?;
                    bench.arena.upload(PARTS, &table)?;
                    gate.parts = Some(bench.at(PARTS, table.len() as u64)?);
                    // Where C would be if it were one.
                    regions.2 = bench.arena.region().from(80 * MIB)?;
                }
                first.finish(super::LIMIT, "matrices for a parted GEMM")?;
                for i in [3, 4, 0, 2, 1] {
                    second.wait_value(bench.at(FLAGS + 4 * u64::from(i), 4)?, epoch)?;
                    let to = bench.at(SOURCE + u64::from(i) * bytes, bytes)?;
                    second.copy(part(i)?, to)?;
                }
                taken = 5 * bytes;
                tiles.launch(first, &problem, tile, regions, gated_by(&gate))
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
        "{} kernels: rows taken away as their flags are set, also from five places",
        tiles.len()
    ))
}
