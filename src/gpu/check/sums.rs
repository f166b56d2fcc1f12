//! One product by our own kernels whose rows go to several places, some of them sums onto what arrives late.

use std::time::Duration;

use super::bench::Bench;
use super::math::product_error;
use super::tiles::{FLAGS, MIB, PARTS, SOURCE, WORDS, asked, gate, gated_by, in_time, right};
use crate::device::DType;
use crate::gpu::GpuError;
use crate::gpu::kernels::Matrix;
use crate::gpu::tiles::{Does, Gated, Group, Part, Tile, Word, order};
use crate::schedule::Extent;

/// Where rows go that are added to nothing.
const PLACE: u64 = 80 * MIB;
/// Rows of the product: parts of whole bands of every tile, as a band that is stored with what it waits for would
/// wait for itself, and a last one that is shorter.
const ROWS: u32 = 1000;
const PART: u32 = Tile::BANDS;

/// Every second part is stored apart and told of by a flag; the others are added to rows that come when that
/// has been told. C begins as no numbers.
pub fn summed(bench: &Bench) -> Result<String, GpuError> {
    let dtype = DType::Bf16;
    let tiles = Tile::all(bench.gpu.attributes());
    for &tile in &tiles {
        let does = Does {
            accumulate: true,
            ..asked(
                dtype,
                Gated {
                    parted: true,
                    ..Gated::default()
                },
            )
        };
        bench.tiles.borrow_mut().load(tile, does)?;
        // Whole units of 16 bytes, and a row that ends within one.
        for (epoch, n) in [(7, 136), (8, 131)] {
            bench.zero(bench.at(WORDS, 4096)?)?;
            let found = one(bench, tile, dtype, n, epoch)?;
            in_time(tile, &bench.words(WORDS, 4)?)?;
            right(tile, dtype, found)?;
        }
    }
    Ok(format!(
        "{} kernels: rows in four places, half of them added to what comes late",
        tiles.len()
    ))
}

fn one(bench: &Bench, tile: Tile, dtype: DType, n: u64, epoch: u32) -> Result<f64, GpuError> {
    let [first, second] = &bench.streams;
    let shape = (u64::from(ROWS), n, 96);
    let start = bench.arena.region().address() + FLAGS;
    product_error(bench, dtype, shape, true, |problem, regions| {
        let ld = problem.ld[2];
        let row = ld * dtype.size();
        let extent = |i: u32| Extent::new(i * PART, PART.min(ROWS - i * PART));
        let rows = |place: u64, i: u32| {
            let extent = extent(i);
            let bytes = u64::from(extent.len) * row;
            bench.at(place + u64::from(extent.start) * row, bytes)
        };
        let c = 32 * MIB;
        let adds = |i: u32| i.is_multiple_of(2);
        let parts = (0..4)
            .map(|i| {
                Ok(Part {
                    rows: extent(i),
                    to: rows(if adds(i) { c } else { PLACE }, i)?,
                    ld,
                    here: None,
                    adds: adds(i),
                })
            })
            .collect::<Result<Vec<_>, GpuError>>()?;
        // Parts 1 and 3 set flags, 0 and 2 wait for one each.
        let flag = |i: u32| start + 4 * u64::from(i);
        let groups = [1, 3, 0, 2].map(|i| Group {
            rows: extent(i),
            from: 0,
            flags: (adds(i).then(|| Word::flag(flag(i)))).into_iter().collect(),
            sets: (!adds(i)).then_some(flag(i)),
        });
        let of: Vec<Extent> = parts.iter().map(|part| part.rows).collect();
        let counters = bench.arena.region().address() + WORDS + 1024;
        let tables = order(tile, (shape.0, n), &groups, &of, counters, None);
        let mut gate = gate(bench, &tables, Duration::from_secs(3), epoch)?;
        let tiles = bench.tiles.borrow();
        let table = tiles.parts(&problem, tile, &parts)?;
        bench.arena.upload(PARTS, &table)?;
        gate.parts = Some(bench.at(PARTS, table.len() as u64)?);
        let all = shape.0 * row;
        first.copy(bench.at(c, all)?, bench.at(SOURCE, all)?)?;
        first.fill(bench.at(c, all)?, 0xFF)?;
        first.fill(bench.at(PLACE, all)?, 0xFF)?;
        first.finish(super::LIMIT, "matrices for a summed GEMM")?;
        tiles.launch(first, &problem, tile, regions, gated_by(&gate))?;
        for i in [0, 2] {
            second.wait_value(bench.at(FLAGS + 4 * u64::from(i + 1), 4)?, epoch)?;
            bench.kernels.delay(second, Duration::from_micros(50))?;
            second.copy(rows(SOURCE, i)?, rows(c, i)?)?;
            second.write_value(bench.at(FLAGS + 4 * u64::from(i), 4)?, epoch)?;
        }
        // What was stored apart is added by another kernel, so that all of C is what is expected.
        for i in [1, 3] {
            let matrix = |place| {
                Ok::<_, GpuError>(Matrix {
                    start: rows(place, i)?,
                    ld,
                })
            };
            let inputs = [matrix(SOURCE)?, matrix(PLACE)?];
            let size = (extent(i).len.into(), n);
            (bench.kernels).add(first, dtype, &inputs, matrix(c)?, size, 0)?;
        }
        Ok(())
    })
}
