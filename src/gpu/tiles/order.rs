//! The order of a product's rows, and what each waits for.

use super::Tile;
use crate::schedule::Extent;

/// Bytes of `struct Band` and of `struct Wait`.
pub(super) const BAND: u64 = 24;

/// Rows of a product that wait for the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub rows: Extent,
    /// Addresses of the flags.
    pub flags: Vec<u64>,
}

/// The tables of bands and of waits of a product of `m` rows, whose `groups` come in the order in
/// which their rows are expected. Bands of the tile need not end where groups end: one begins when
/// the last group that it touches is there, and waits for all of them. The tag of wait i is i, where
/// flags are numbered group by group. `parts` are the rows of C that go to one place each, from the
/// top without gaps; none where C is one.
pub fn order(tile: Tile, m: u32, groups: &[Group], parts: &[Extent]) -> (Vec<u8>, Vec<u8>) {
    let height = tile.band();
    let count = u64::from(m).div_ceil(height);
    let mut waits = Vec::new();
    let mut starts = Vec::with_capacity(groups.len());
    for group in groups {
        starts.push(waits.len());
        waits.extend(group.flags.iter().copied());
    }
    let mut bands: Vec<(usize, u64, Vec<usize>)> = (0..count)
        .map(|band| {
            let (begin, end) = (band * height, (band + 1) * height);
            let touched: Vec<usize> = groups
                .iter()
                .enumerate()
                .filter(|(_, group)| meets(&group.rows, begin, end))
                .map(|(i, _)| i)
                .collect();
            (touched.last().copied().unwrap_or(0), band, touched)
        })
        .collect();
    bands.sort();
    let mut table = Vec::new();
    let mut listed = Vec::new();
    for (_, band, touched) in bands {
        let first = listed.len() as u32;
        for group in touched {
            let flags = &groups[group].flags;
            let tags = starts[group] as u32..;
            listed.extend(flags.iter().copied().zip(tags));
        }
        let count = listed.len() as u32 - first;
        let (begin, end) = (band * height, (band + 1) * height);
        let touched = |part: &&Extent| meets(part, begin, end);
        let before = parts.iter().take_while(|part| !touched(part)).count();
        let own = parts.iter().filter(touched).count();
        for word in [band as u32, first, count, before as u32, own as u32, 0] {
            table.extend(word.to_le_bytes());
        }
    }
    let mut bytes = Vec::with_capacity(16 * listed.len());
    for (flag, tag) in listed {
        bytes.extend(flag.to_le_bytes());
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(tag.to_le_bytes());
    }
    (table, bytes)
}

/// Whether some of the rows are in `[begin, end)`.
pub(super) fn meets(rows: &Extent, begin: u64, end: u64) -> bool {
    let start = u64::from(rows.start);
    start < end && start + u64::from(rows.len) > begin
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::tiles::Family;

    fn words(bytes: &[u8]) -> Vec<u32> {
        let word = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        bytes.chunks_exact(4).map(word).collect()
    }

    #[test]
    fn bands_follow_the_last_group_that_they_touch() {
        let tile = Tile {
            family: Family::Sm80,
            rows: 128,
            cols: 128,
            stages: 3,
            cluster: (1, 1),
        };
        // Own rows 200-400 first, then 400-500, then 0-200.
        let group = |start, len, flags: &[u64]| Group {
            rows: Extent { start, len },
            flags: flags.to_vec(),
        };
        let groups = [
            group(200, 200, &[]),
            group(400, 100, &[70]),
            group(0, 200, &[80, 90]),
        ];
        let parts = [Extent::new(0, 300), Extent::new(300, 200)];
        let (bands, waits) = order(tile, 500, &groups, &parts);
        let bands: Vec<Vec<u32>> = words(&bands).chunks(6).map(<[u32]>::to_vec).collect();
        // Rows 256-383 wait for nothing; 384-499 for 70; 0-127 for 80 and 90; 128-255 touch both.
        assert_eq!(
            bands,
            [
                [2, 0, 0, 0, 2, 0],
                [3, 0, 1, 1, 1, 0],
                [0, 1, 2, 0, 1, 0],
                [1, 3, 2, 0, 1, 0]
            ]
        );
        let each: Vec<(u32, u32)> = words(&waits).chunks(4).map(|w| (w[0], w[3])).collect();
        assert_eq!(each, [(70, 0), (80, 1), (90, 2), (80, 1), (90, 2)]);
    }
}
