//! When the tiles of Duet's own products began, waited, were multiplied and stored.

use std::fmt::Write;

use super::Timer;
use crate::gpu::GpuError;
use crate::gpu::raw::{Memory, Region};
use crate::gpu::tiles::MOMENTS;
use crate::schedule::{Rank, TaskId};

/// A tile that a block computed. Times are from the common start of all GPUs \[seconds\].
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Tiled {
    /// The product's step in the plan and its (first) task.
    pub step: usize,
    pub task: TaskId,
    pub rank: Rank,
    /// The multiprocessor.
    pub sm: u32,
    /// Of its first element, in the product.
    pub row: u32,
    pub column: u32,
    /// Its block turned to it; what its rows wait for was there; the first of A and B was there; all
    /// of k was added; what it is added to was there; it was in memory. `None`: there was no such
    /// moment.
    pub moments: [Option<f64>; 6],
}

/// A performance, tile by tile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TileTrace {
    pub tiles: Vec<Tiled>,
    /// By rank: when its last stream ended.
    pub ends: Vec<f64>,
}

/// The moments' names, which are columns.
const NAMES: [&str; 6] = ["begun", "opened", "fed", "multiplied", "summable", "stored"];

/// Performs the run twice more, the second time to be kept, with kernels that note the moments of their tiles. Noting costs
/// them about a microsecond a tile, most of it because a tile's stores are waited for.
///
/// The timers of two GPUs are not one: each counts from its own start event, and these follow a
/// barrier, so that times of different GPUs are comparable within the microsecond that the barrier takes.
///
/// # Errors
/// The compiler's, and as [`Timer::once`].
pub fn tile_trace(timer: &Timer<'_>) -> Result<TileTrace, GpuError> {
    let run = timer.run();
    let plan = run.plan();
    let traced = run.traced()?;
    let stamps = (0..plan.gpus.len())
        .map(|gpu| {
            let memory = Memory::new(&run.device(gpu).gpu, 8)?;
            memory.upload(0, &[0; 8])?;
            Ok(memory)
        })
        .collect::<Result<Vec<Memory>, GpuError>>()?;
    let places: Vec<Region> = stamps.iter().map(Memory::region).collect();
    // The first time wakes links and caches; the moments of the second are later and take their places.
    timer.traced(&traced, &places)?;
    let sample = timer.traced(&traced, &places)?;
    let mut tiles = Vec::new();
    for (step, traced) in traced.iter().enumerate() {
        let Some(traced) = traced else { continue };
        let at = &plan.steps[step];
        let mut start = [0; 8];
        stamps[plan.streams[at.stream.index()].gpu.index()].download(0, &mut start)?;
        let rank = run.schedule().task(at.task).rank;
        let read = |bytes: &[u8]| tiled(bytes, (step, at.task, rank), u64::from_le_bytes(start));
        let bytes = traced.download()?;
        tiles.extend(bytes.chunks_exact(MOMENTS as usize).filter_map(read));
    }
    Ok(TileTrace {
        tiles,
        ends: sample.ranks,
    })
}

/// What a kernel noted of a tile; `None` where it noted nothing.
fn tiled(bytes: &[u8], (step, task, rank): (usize, TaskId, Rank), start: u64) -> Option<Tiled> {
    let words = bytes.chunks_exact(8).map(|word| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(word);
        u64::from_le_bytes(bytes)
    });
    let words: Vec<u64> = words.collect();
    let [times @ .., sm, place] = &words[..] else {
        return None;
    };
    let mut moments = [None; 6];
    for (moment, &time) in moments.iter_mut().zip(times) {
        // Nanoseconds, which may lie before the start by what the start itself takes.
        let since = time.wrapping_sub(start).cast_signed();
        *moment = (time > 0).then_some(since as f64 * 1e-9);
    }
    moments[0]?;
    Some(Tiled {
        step,
        task,
        rank,
        sm: *sm as u32,
        row: *place as u32,
        column: (*place >> 32) as u32,
        moments,
    })
}

impl TileTrace {
    /// A line for each tile, and one for each rank's end, whose other columns are empty.
    pub fn csv(&self) -> String {
        let mut text = String::from("rank,step,task,row,column,sm");
        for name in NAMES {
            let _ = write!(text, ",{name}_us");
        }
        text.push_str(",end_us\n");
        for tile in &self.tiles {
            let Tiled {
                rank,
                step,
                task,
                row,
                column,
                sm,
                ..
            } = tile;
            let _ = write!(text, "{},{step},{},{row},{column},{sm}", rank.0, task.0);
            for moment in tile.moments {
                match moment {
                    Some(time) => {
                        let _ = write!(text, ",{:.3}", time * 1e6);
                    }
                    None => text.push(','),
                }
            }
            text.push_str(",\n");
        }
        for (rank, end) in self.ends.iter().enumerate() {
            let _ = writeln!(text, "{rank},,,,,,,,,,,,{:.3}", end * 1e6);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_read_from_the_start_on() {
        let words = [1_000_500, 1_001_000, 1_002_000, 1_050_000, 0, 999_900];
        let place = [17, 256 | 512 << 32];
        let bytes: Vec<u8> = (words.iter().chain(&place))
            .flat_map(|word: &u64| word.to_le_bytes())
            .collect();
        let tile = tiled(&bytes, (3, TaskId(5), Rank(1)), 1_000_000).unwrap();
        assert_eq!((tile.sm, tile.row, tile.column), (17, 256, 512));
        assert_eq!(tiled(&[0; 64], (3, TaskId(5), Rank(1)), 1_000_000), None);
        let trace = TileTrace {
            tiles: vec![tile],
            ends: vec![52e-6],
        };
        let header = "rank,step,task,row,column,sm,begun_us,opened_us,fed_us,multiplied_us,summable_us,stored_us,end_us";
        let lines = "1,3,5,256,512,17,0.500,1.000,2.000,50.000,,-0.100,\n0,,,,,,,,,,,,52.000\n";
        assert_eq!(trace.csv(), format!("{header}\n{lines}"));
    }
}
