//! Which tiles of a product are taken before which: `struct Section` of `kernels/gemm.cuh`.

use super::order::Group;
use super::{Family, Tile};
use crate::gpu::lt::Problem;
use crate::gpu::raw::Attributes;

/// Rows of C whose tiles blocks take at the same time, so that they share B in the cache.
const GROUP_ROWS: u64 = 2048;
/// What copies are slower than assumed at most: rows that are taken early must be there.
const LATE: f64 = 1.5;

/// Some columns of bands that follow one another in an order.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// The tiles of clusters before it.
    pub begin: u64,
    pub first: u64,
    pub bands: u64,
    pub column: u64,
    pub columns: u64,
}

impl Section {
    /// Bytes of `struct Section`.
    pub const BYTES: usize = 24;

    /// The structure, of a tile of so many rows.
    pub fn words(&self, height: u64) -> [u32; Self::BYTES / 4] {
        let group = grouped(self.bands, height);
        let words = [
            self.begin,
            self.first,
            self.bands,
            group,
            self.column,
            self.columns,
        ];
        words.map(|word| word as u32)
    }
}

/// The sections of bands that come in runs of so many: run after run, or the first `early` columns of each run and then
/// the others of all bands.
pub(super) fn sections(runs: &[u64], columns: u64, early: Option<u64>) -> Vec<Section> {
    let mut sections = Vec::with_capacity(runs.len() + 1);
    let (mut begin, mut first) = (0, 0);
    let early = early.filter(|&early| early < columns);
    for &bands in runs {
        let columns = early.unwrap_or(columns);
        sections.push(Section {
            begin,
            first,
            bands,
            column: 0,
            columns,
        });
        begin += bands * columns;
        first += bands;
    }
    if let Some(column) = early {
        sections.push(Section {
            begin,
            first: 0,
            bands: first,
            column,
            columns: columns - column,
        });
    }
    sections
}

/// Bands whose tiles are taken at the same time, of `bands` in a row: as many as share B well, and
/// in groups of about the same size.
pub(super) fn grouped(bands: u64, height: u64) -> u64 {
    let groups = groups(bands, height);
    bands.div_ceil(groups).max(1)
}

/// How often so many bands in a row take B from its first column to its last.
fn groups(bands: u64, height: u64) -> u64 {
    let most = (GROUP_ROWS / height).max(1);
    bands.div_ceil(most).max(1)
}

/// Columns of clusters that rows get which are there, then rows that wait, before all rows together get the others; for
/// [`order`](super::order()). Each of the former reads B once more than a product in one piece, where that is larger
/// than the cache. As few as keep every SM from waiting: a band takes its first tiles with whole waves before it,
/// whose time is that in which copies by engines over a direct link have brought its rows. `None` where the order of
/// the groups alone reads B as rarely, or somebody is told of rows, who would be told late.
pub fn early(tile: Tile, problem: &Problem, gpu: &Attributes, groups: &[Group]) -> Option<u64> {
    let (bands, columns) = tile.grid(problem.m, problem.n);
    let told = problem.accumulate || groups.iter().any(|group| group.sets.is_some());
    // Links of others were not measured.
    let known = tile.family == Family::Sm90;
    if told || !known || problem.k * problem.n * problem.dtype.size() <= gpu.l2 {
        return None;
    }
    let sms = match problem.sms {
        0 => gpu.sms,
        some => some.min(gpu.sms),
    };
    let (at_once, wave) = (tile.at_once(sms), tile.wave(problem.k));
    // Rows that wait, by the bands before them and the waves until they are there.
    let (mut rows, mut brought, mut waits) = (0, 0, Vec::new());
    let (mut runs, mut before) = (0, 0);
    for group in groups.iter().filter(|group| group.from == 0) {
        let here = rows / tile.band();
        if !group.flags.is_empty() {
            brought += u64::from(group.rows.len);
            let arrival = tile.arrival(brought * problem.k, sms);
            waits.push((here, (LATE * arrival.0 + arrival.1) / wave));
            runs += self::groups(here - before, tile.band());
            before = here;
        }
        rows += u64::from(group.rows.len);
    }
    runs += self::groups(bands - before, tile.band());
    if waits.is_empty() || runs <= self::groups(bands, tile.band()) {
        return None;
    }
    (1..columns).find(|early| {
        let there = |&(bands, waves): &(u64, f64)| (bands * early / at_once) as f64 >= waves;
        waits.iter().all(there)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DType;
    use crate::gpu::tiles::order::Word;
    use crate::gpu::tiles::tests::gpu;
    use crate::schedule::Extent;

    #[test]
    fn bands_share_groups_evenly() {
        let groups = [1, 7, 8, 9, 16, 17].map(|n| grouped(n, 256));
        assert_eq!(groups, [1, 7, 8, 5, 8, 6]);
        assert_eq!(grouped(3, 4096), 1);
    }

    #[test]
    fn sections_are_all_tiles_once() {
        for early in [None, Some(1), Some(3), Some(6), Some(7), Some(9)] {
            let (runs, columns) = ([2, 1, 4], 7);
            let sections = sections(&runs, columns, early);
            let mut tiles = [0; 7 * 7];
            let mut begin = 0;
            for section in &sections {
                assert_eq!(section.begin, begin);
                begin += section.bands * section.columns;
                for band in section.first..section.first + section.bands {
                    for column in section.column..section.column + section.columns {
                        tiles[(band * columns + column) as usize] += 1;
                    }
                }
            }
            assert!(tiles.iter().all(|&count| count == 1), "{early:?}");
        }
    }

    fn early_of(m: u64, n: u64, k: u64, chunks: u32) -> Option<u64> {
        let mut gpu = gpu(9, 132, 232_448);
        gpu.l2 = 50_000_000;
        let problem = Problem {
            m,
            n,
            k,
            ld: [k, n, n],
            align: [256; 3],
            dtype: DType::Bf16,
            accumulate: false,
            sms: 0,
        };
        let half = m as u32 / 2;
        let group = |start, len, flags| Group {
            rows: Extent { start, len },
            from: 0,
            flags,
            sets: None,
        };
        let mut groups = vec![group(0, half, Vec::new())];
        let len = half / chunks;
        groups.extend((0..chunks).map(|i| group(half + i * len, len, vec![Word::flag(1)])));
        early(Tile::all(&gpu)[0], &problem, &gpu, &groups)
    }

    #[test]
    fn rows_wait_for_a_wave_where_b_is_read_twice() {
        // 66 clusters at once, four bands there: 17 columns are a wave.
        assert_eq!(early_of(2048, 8192, 8192, 1), Some(17));
        assert_eq!(early_of(2048, 8192, 8192, 4), Some(17));
        // One wave is all of the first rows; 8 bands of 16 share B as well; B stays in the cache.
        assert_eq!(early_of(1024, 8192, 8192, 1), None);
        assert_eq!(early_of(4096, 8192, 8192, 1), None);
        assert_eq!(early_of(2048, 4096, 4096, 1), None);
    }

    #[test]
    fn rows_that_come_later_take_more_columns_before() {
        // Little arithmetic for what is copied: two waves.
        assert_eq!(early_of(2048, 16384, 2048, 1), Some(33));
    }
}
