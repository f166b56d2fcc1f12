//! Products by our own kernels that bring rows of A themselves.

use std::time::Duration;

use super::bench::Bench;
use super::math::product_error;
use super::tiles::{FLAGS, SOURCE, WORDS, gate, gated_by, in_time, plain, right};
use crate::device::DType;
use crate::gpu::GpuError;
use crate::gpu::raw::Copy2d;
use crate::gpu::tiles::{Fetch, Group, Tile, fetches, order};
use crate::schedule::Extent;

/// Counters of what is brought, and the table.
const COUNTS: u64 = WORDS + 2048;
const TABLE: u64 = WORDS + 229_376;
/// Rows that come together, no multiples of a tile, and the columns of their slabs, whole units and not.
const CHUNK: u32 = 100;
const SLABS: [(u32, u32); 3] = [(0, 64), (64, 77), (141, 59)];
/// Chunks in the order in which their rows are computed; the first is there.
const ORDER: [u32; 5] = [2, 3, 4, 0, 1];

/// Rows that are not there when the kernel begins, in slabs; twice, as counters must be as before.
pub fn brought(bench: &Bench) -> Result<String, GpuError> {
    let dtype = DType::Bf16;
    let tiles = Tile::all(bench.gpu.attributes());
    for &tile in &tiles {
        bench.tiles.borrow_mut().load(tile, plain(dtype))?;
        bench.zero(bench.at(WORDS, 4096)?)?;
        for epoch in [5, 6] {
            let found = one(bench, tile, dtype, epoch)?;
            in_time(tile, &bench.words(WORDS, 4)?)?;
            right(tile, dtype, found)?;
        }
    }
    Ok(format!(
        "{} kernels: rows that they bring themselves, in slabs",
        tiles.len()
    ))
}

fn one(bench: &Bench, tile: Tile, dtype: DType, epoch: u32) -> Result<f64, GpuError> {
    let shape = (500, 136, 200);
    let [first, _] = &bench.streams;
    let pieces: Vec<(u32, Extent)> = ORDER[1..]
        .iter()
        .flat_map(|&chunk| SLABS.map(|(start, len)| (chunk, Extent::new(start, len))))
        .collect();
    let start = bench.arena.region().address() + FLAGS;
    let group = |chunk: u32, from: u32, flags| Group {
        rows: Extent::new(chunk * CHUNK, CHUNK),
        from: from.into(),
        flags,
        sets: None,
    };
    let mut groups = vec![group(ORDER[0], 0, Vec::new())];
    groups.extend(
        (pieces.iter().zip(0_u64..))
            .map(|(&(chunk, columns), i)| group(chunk, columns.start, vec![start + 4 * i])),
    );
    let tables = order(tile, (shape.0, shape.1), &groups, &[], 0);
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
        let table = fetches(&all_of.collect::<Result<Vec<_>, _>>()?)?;
        bench.arena.upload(TABLE, &table)?;
        gate.fetches = Some(bench.at(TABLE, table.len() as u64)?);
        first.copy(a, source)?;
        // What has not arrived is no number.
        first.fill(a, 0xFF)?;
        first.copy_2d(&rectangle(ORDER[0], Extent::new(0, 200))?)?;
        first.finish(super::LIMIT, "rows for a product that brings them")?;
        let tiles = bench.tiles.borrow();
        tiles.launch(first, &problem, tile, regions, gated_by(&gate))
    })
}
