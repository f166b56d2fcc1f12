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
/// Columns of the product.
const COLUMNS: u64 = 136;
/// Rows that come together, no multiples of a tile, and the columns of their slabs: not all of whole units, and all.
const CHUNK: u32 = 100;
const SLABS: [[(u32, u32); 3]; 2] = [
    [(0, 64), (64, 77), (141, 59)],
    [(0, 64), (64, 80), (144, 56)],
];
const DTYPE: DType = DType::Bf16;

/// Rows of a product, of which some are there.
struct Rows {
    all: u64,
    /// Computed first.
    there: Extent,
    /// Chunks that are not, in the order in which they are computed.
    brought: &'static [u32],
}

impl Rows {
    /// Chunks and columns in the order in which they are brought.
    fn pieces(&self, slabs: [(u32, u32); 3]) -> Vec<(u32, Extent)> {
        let of = |&chunk: &u32| slabs.map(|(start, len)| (chunk, Extent::new(start, len)));
        self.brought.iter().flat_map(of).collect()
    }

    /// What the rows wait for, where pieces are counted in words from an address on.
    fn groups(&self, pieces: &[(u32, Extent)], counts: u64) -> Vec<Group> {
        let group = |rows, from: u32, flags| Group {
            rows,
            from: from.into(),
            flags,
            sets: None,
        };
        let mut groups = vec![group(self.there, 0, Vec::new())];
        groups.extend((pieces.iter().zip(0_u64..)).map(|(&(chunk, columns), i)| {
            let word = Word {
                address: counts + 4 * i,
                counts: true,
            };
            let rows = Extent::new(chunk * CHUNK, CHUNK);
            group(rows, columns.start, vec![word])
        }));
        groups
    }
}

/// Few blocks have something to do before they wait: on Hopper those that wait bring. And nearly all: a warp of each.
const CASES: [Rows; 2] = [
    Rows {
        all: 500,
        there: Extent::new(200, 100),
        brought: &[3, 4, 0, 1],
    },
    Rows {
        all: 2100,
        there: Extent::new(0, 1900),
        brought: &[20, 19],
    },
];

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
        for rows in &CASES {
            bench.zero(bench.at(WORDS, 4096)?)?;
            // A word for each slab of each chunk.
            let words = rows.brought.len() * SLABS[0].len();
            let before = shares_before(5).to_le_bytes().repeat(words);
            bench.arena.upload(COUNTS, &before)?;
            for (epoch, slabs) in (5..).zip([SLABS[0], SLABS[0], SLABS[1], SLABS[1]]) {
                let found = one(bench, tile, rows, epoch, slabs)?;
                in_time(tile, &bench.words(WORDS, 4)?)?;
                right(tile, dtype, found)?;
            }
        }
    }
    Ok(format!(
        "{} kernels: rows that they bring themselves, in slabs",
        tiles.len()
    ))
}

fn one(
    bench: &Bench,
    tile: Tile,
    rows: &Rows,
    epoch: u32,
    slabs: [(u32, u32); 3],
) -> Result<f64, GpuError> {
    let (dtype, shape) = (DTYPE, (rows.all, COLUMNS, 200));
    let [first, _] = &bench.streams;
    let pieces = rows.pieces(slabs);
    let groups = rows.groups(&pieces, bench.arena.region().address() + COUNTS);
    let tables = order(tile, (shape.0, shape.1), &groups, &[], 0, None);
    let mut gate = gate(bench, &tables, Duration::from_secs(3), epoch)?;
    product_error(bench, dtype, shape, false, |problem, regions| {
        let size = dtype.size();
        let row = problem.ld[0] * size;
        let all = shape.0 * row;
        let (source, a) = (bench.at(SOURCE, all)?, regions.0.cut(0, all)?);
        let rectangle = |rows: Extent, columns: Extent| {
            let at = u64::from(rows.start) * row + u64::from(columns.start) * size;
            Ok::<_, GpuError>(Copy2d {
                from: source.from(at)?,
                from_pitch: row,
                to: a.from(at)?,
                to_pitch: row,
                width: u64::from(columns.len) * size,
                rows: rows.len.into(),
            })
        };
        let fetch = |(&(chunk, columns), i): (&(u32, Extent), u64)| {
            Ok::<_, GpuError>(Fetch {
                copy: rectangle(Extent::new(chunk * CHUNK, CHUNK), columns)?,
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
        first.copy_2d(&rectangle(rows.there, Extent::new(0, 200))?)?;
        first.finish(super::LIMIT, "rows for a product that brings them")?;
        let tiles = bench.tiles.borrow();
        tiles.launch(first, &problem, tile, regions, gated_by(&gate))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::tiles::{Family, waiting_bring};

    #[test]
    fn both_ways_of_hopper_are_taken() {
        for tile in Tile::of(Family::Sm90, 227 << 10) {
            let ways = CASES.each_ref().map(|rows| {
                let groups = rows.groups(&rows.pieces(SLABS[0]), 0);
                let ready = order(tile, (rows.all, COLUMNS), &groups, &[], 0, None).ready;
                let (bands, columns) = tile.grid(rows.all, COLUMNS);
                let clusters = 132 / (tile.cluster.0 * tile.cluster.1);
                waiting_bring(ready, u64::from(clusters).min(bands * columns))
            });
            assert_eq!(ways, [true, false], "{tile}");
        }
    }
}
