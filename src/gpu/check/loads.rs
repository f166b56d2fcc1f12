//! Products by our own kernels that bring rows of A themselves.

use std::time::Duration;

use super::bench::Bench;
use super::math::product_error;
use super::tiles::{FLAGS, SOURCE, WORDS, asked, gate, gated_by, in_time, right};
use crate::device::DType;
use crate::gpu::GpuError;
use crate::gpu::raw::Copy2d;
use crate::gpu::tiles::{Brought, Fetch, Gated, Group, Tile, Word, fetches, order, shares_before};
use crate::schedule::Extent;

/// Counters of what is brought, and the table.
const COUNTS: u64 = WORDS + 2048;
const TABLE: u64 = WORDS + 229_376;
/// Rows that come together, no multiples of a tile, and the columns of their slabs: not all of whole units, and all.
const CHUNK: u32 = 100;
const SLABS: [[(u32, u32); 3]; 2] = [
    [(0, 64), (64, 77), (141, 59)],
    [(0, 64), (64, 80), (144, 56)],
];
const DTYPE: DType = DType::Bf16;
/// Chunks in the order in which their rows are computed; the first is there.
const ORDER: [u32; 5] = [2, 3, 4, 0, 1];

/// Rows that are not there when the kernel begins, in slabs; each twice, as counters go on.
pub fn brought(bench: &Bench) -> Result<String, GpuError> {
    let dtype = DTYPE;
    let tiles = Tile::all(bench.gpu.attributes());
    for &tile in &tiles {
        let gated = Gated {
            brings: true,
            ..Gated::default()
        };
        bench.tiles.borrow_mut().load(tile, asked(dtype, gated))?;
        bench.zero(bench.at(WORDS, 4096)?)?;
        // A word for each slab of each chunk.
        let before = shares_before(5).to_le_bytes().repeat(4 * SLABS[0].len());
        bench.arena.upload(COUNTS, &before)?;
        for (epoch, slabs) in (5..).zip([SLABS[0], SLABS[0], SLABS[1], SLABS[1]]) {
            let found = one(bench, tile, epoch, slabs)?;
            in_time(tile, &bench.words(WORDS, 4)?)?;
            right(tile, dtype, found)?;
        }
    }
    Ok(format!(
        "{} kernels: rows that they bring themselves, in slabs",
        tiles.len()
    ))
}

fn one(bench: &Bench, tile: Tile, epoch: u32, slabs: [(u32, u32); 3]) -> Result<f64, GpuError> {
    let (dtype, shape) = (DTYPE, (500, 136, 200));
    let [first, _] = &bench.streams;
    let pieces: Vec<(u32, Extent)> = ORDER[1..]
        .iter()
        .flat_map(|&chunk| slabs.map(|(start, len)| (chunk, Extent::new(start, len))))
        .collect();
    let start = bench.arena.region().address() + COUNTS;
    let word = |i: u64| Word {
        address: start + 4 * i,
        counts: true,
    };
    let group = |chunk: u32, from: u32, flags| Group {
        rows: Extent::new(chunk * CHUNK, CHUNK),
        from: from.into(),
        flags,
        sets: None,
    };
    let mut groups = vec![group(ORDER[0], 0, Vec::new())];
    groups.extend(
        (pieces.iter().zip(0_u64..))
            .map(|(&(chunk, columns), i)| group(chunk, columns.start, vec![word(i)])),
    );
    let tables = order(tile, (shape.0, shape.1), &groups, &[], 0, None);
    let mut gate = gate(bench, &tables, Duration::from_secs(3), epoch)?;
    product_error(bench, dtype, shape, false, |problem, regions| {
        let size = dtype.size();
        let row = problem.ld[0] * size;
        let all = shape.0 * row;
        let (source, a) = (bench.at(SOURCE, all)?, regions.0.cut(0, all)?);
        let rectangle = |chunk: u32, columns: Extent| {
            let at = u64::from(chunk * CHUNK) * row + u64::from(columns.start) * size;
            Ok::<_, GpuError>(Copy2d {
                from: source.from(at)?,
                from_pitch: row,
                to: a.from(at)?,
                to_pitch: row,
                width: u64::from(columns.len) * size,
                rows: CHUNK.into(),
            })
        };
        let fetch = |(&(chunk, columns), i): (&(u32, Extent), u64)| {
            Ok::<_, GpuError>(Fetch {
                copy: rectangle(chunk, columns)?,
                done: bench.at(COUNTS + 4 * i, 4)?,
                flag: bench.at(FLAGS + 4 * i, 4)?,
            })
        };
        let all_of = pieces.iter().zip(0..).map(fetch);
        let all_of: Vec<Fetch> = all_of.collect::<Result<_, _>>()?;
        let table = fetches(&all_of)?;
        bench.arena.upload(TABLE, &table)?;
        let place = bench.at(TABLE, table.len() as u64)?;
        gate.fetches = Some(Brought::new((place, &table), tables.ready));
        first.copy(a, source)?;
        // What has not arrived is no number.
        first.fill(a, 0xFF)?;
        first.copy_2d(&rectangle(ORDER[0], Extent::new(0, 200))?)?;
        first.finish(super::LIMIT, "rows for a product that brings them")?;
        let tiles = bench.tiles.borrow();
        tiles.launch(first, &problem, tile, regions, gated_by(&gate))
    })
}
