//! The order of a product's rows, and what each waits for.

use super::Tile;
use super::sections::{Section, sections};
use crate::schedule::Extent;

/// Bytes of `struct Band`.
pub(super) const BAND: u64 = 24;
/// Bytes of `struct Wait`.
pub(super) const WAIT: usize = 24;
/// Bytes of `struct Completion`.
pub(super) const COMPLETION: usize = 24;

/// A word that rows wait for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub address: u64,
    /// Whether shares of what the kernel brings itself are counted there, as [`Fetch`](super::Fetch) says; else
    /// it is a flag.
    pub counts: bool,
}

impl Word {
    /// A flag.
    pub const fn flag(address: u64) -> Self {
        let counts = false;
        Self { address, counts }
    }
}

/// Rows of a product that wait for the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub rows: Extent,
    /// The first of k that waits: what is computed before needs none of the flags.
    pub from: u64,
    pub flags: Vec<Word>,
    /// Address of the flag that says that these rows and those of all groups before are there.
    pub sets: Option<u64>,
}

/// What a product goes by: the tables of `struct Gate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub bands: Vec<u8>,
    pub sections: Vec<u8>,
    pub waits: Vec<u8>,
    pub completions: Vec<u8>,
    /// Tiles of clusters that wait for nothing before the first that waits.
    pub ready: u64,
}

/// The tables of a product of `m` × `n` by kernels of `tile`, whose `groups` come in the order in which their rows are
/// expected. Bands of the tile need not end where groups end: one begins when the last group that it touches is there,
/// waits for all of them, in the order of k, and counts towards the flags of the first and of all that follow. Bands
/// that begin with one group are a section: tiles of other bands are not taken among theirs, so that rows that are
/// there never wait behind rows that are not; with `early` that is their first columns, and the others of all bands
/// are the last section. The tag of a wait is its place, where flags are numbered group by group.
/// `parts` are the rows of C that go to one place each, from the top without gaps; none where C is one. `counters` is
/// the address of a word for each group, zero before.
pub fn order(
    tile: Tile,
    (m, n): (u64, u64),
    groups: &[Group],
    parts: &[Extent],
    counters: u64,
    early: Option<u64>,
) -> Order {
    let height = tile.band();
    let (count, columns) = tile.grid(m, n);
    let mut starts = Vec::with_capacity(groups.len());
    let mut flags = 0;
    for group in groups {
        starts.push(flags);
        flags += group.flags.len();
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
    let sections = sections(&runs(groups, &bands), columns, early);
    let waits = |(.., touched): &(usize, u64, Vec<usize>)| {
        touched.iter().any(|&group| !groups[group].flags.is_empty())
    };
    let there = |section: &&Section| {
        let first = section.first as usize;
        !bands[first..first + section.bands as usize]
            .iter()
            .any(waits)
    };
    let ready = sections.iter().take_while(there);
    let ready = ready.map(|section| section.bands * section.columns).sum();
    // Groups that set flags; which of them a band is the first to count for.
    let setting: Vec<usize> = (0..groups.len())
        .filter(|&g| groups[g].sets.is_some())
        .collect();
    let counts_from = |touched: &[usize]| {
        let first = touched.first().copied().unwrap_or(0);
        setting.partition_point(|&g| g < first)
    };
    let (mut table, mut listed) = (Vec::new(), Vec::new());
    for (_, band, touched) in &bands {
        let first = listed.len() as u32;
        for &group in touched {
            let flags = &groups[group].flags;
            let from = groups[group].from as u32;
            let tags = starts[group] as u32..;
            listed.extend(flags.iter().zip(tags).map(|(&flag, tag)| (from, flag, tag)));
        }
        // A band may touch several rows that come in slabs.
        listed[first as usize..].sort_by_key(|&(from, ..)| from);
        let count = listed.len() as u32 - first;
        let (begin, end) = (band * height, (band + 1) * height);
        let of_band = |part: &&Extent| meets(part, begin, end);
        let before = parts.iter().take_while(|part| !of_band(part)).count();
        let own = parts.iter().filter(of_band).count();
        let done = counts_from(touched) as u32;
        for word in [*band as u32, first, count, before as u32, own as u32, done] {
            table.extend(word.to_le_bytes());
        }
    }
    let mut waits = Vec::with_capacity(WAIT * listed.len());
    for (from, flag, tag) in listed {
        waits.extend(flag.address.to_le_bytes());
        for word in [from, tag, u32::from(flag.counts), 0] {
            waits.extend(word.to_le_bytes());
        }
    }
    let mut completions = Vec::with_capacity(COMPLETION * setting.len());
    for (i, &group) in setting.iter().enumerate() {
        let counted = bands
            .iter()
            .filter(|(.., touched)| counts_from(touched) <= i);
        let total = counted.count() as u64 * columns * tile.writers();
        let flag = groups[group].sets.unwrap_or(0);
        for word in [counters + 4 * i as u64, total, flag] {
            completions.extend(word.to_le_bytes());
        }
    }
    let sections = sections.iter().flat_map(|section| section.words(height));
    Order {
        bands: table,
        sections: sections.flat_map(u32::to_le_bytes).collect(),
        waits,
        completions,
        ready,
    }
}

/// How many bands in a row begin with one group, or with groups that wait for nothing and tell nobody; of each band in
/// order, the last group that it touches comes first.
fn runs(groups: &[Group], bands: &[(usize, u64, Vec<usize>)]) -> Vec<u64> {
    let signals = |g: usize| {
        groups
            .get(g)
            .is_some_and(|g| !g.flags.is_empty() || g.sets.is_some())
    };
    let joins = |a: usize, b: usize| a == b || !signals(a) && !signals(b);
    let runs = bands.chunk_by(|(a, ..), (b, ..)| joins(*a, *b));
    runs.map(|run| run.len() as u64).collect()
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

    const TILE: Tile = Tile {
        family: Family::Sm80,
        rows: 128,
        cols: 128,
        stages: 3,
        cluster: (1, 1),
    };

    fn words(bytes: &[u8]) -> Vec<u32> {
        let word = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        bytes.chunks_exact(4).map(word).collect()
    }

    #[test]
    fn bands_follow_the_last_group_that_they_touch() {
        // Own rows 200-400 first, then 400-500, then 0-200; the first and the last set flags.
        let group = |start, len, flags: &[u64], sets| Group {
            rows: Extent { start, len },
            from: 0,
            flags: flags.iter().map(|&at| Word::flag(at)).collect(),
            sets,
        };
        let groups = [
            group(200, 200, &[], Some(60)),
            group(400, 100, &[70], None),
            group(0, 200, &[80, 90], Some(61)),
        ];
        let parts = [Extent::new(0, 300), Extent::new(300, 200)];
        let order = order(TILE, (500, 200), &groups, &parts, 1000, None);
        let bands = words(&order.bands);
        let bands: Vec<&[u32]> = bands.chunks(6).collect();
        // Rows 256-383 wait for nothing; 384-499 for 70; 0-127 for 80 and 90; 128-255 touch both, and
        // so count for the first group as do the others that touch it.
        assert_eq!(
            bands,
            [
                [2, 0, 0, 0, 2, 0],
                [3, 0, 1, 1, 1, 0],
                [0, 1, 2, 0, 1, 1],
                [1, 3, 2, 0, 1, 0]
            ]
        );
        assert_eq!(order.ready, 2);
        // Bands 2, 3 and the two that end with the last group; tiles in two columns.
        let sections = words(&order.sections);
        let sections: Vec<&[u32]> = sections.chunks(6).collect();
        assert_eq!(
            sections,
            [[0, 0, 1, 1, 0, 2], [2, 1, 1, 1, 0, 2], [4, 2, 2, 2, 0, 2]]
        );
        let waits = words(&order.waits);
        let each: Vec<(u32, u32)> = waits.chunks(6).map(|w| (w[0], w[3])).collect();
        assert_eq!(each, [(70, 0), (80, 1), (90, 2), (80, 1), (90, 2)]);
        assert!(waits.chunks(6).all(|w| w[2] == 0 && w[4] == 0));
        // Two columns of tiles: three bands, then all four.
        let done = words(&order.completions);
        let each: Vec<(u32, u32, u32)> = done.chunks(6).map(|w| (w[0], w[2], w[4])).collect();
        assert_eq!(each, [(1000, 6, 60), (1004, 8, 61)]);
    }

    #[test]
    fn slabs_are_awaited_in_the_order_of_k() {
        let counts = true;
        let counted = |at: u64| {
            (at > 0).then_some(Word {
                address: at,
                counts,
            })
        };
        // Own rows 0-99; then 100-199 and 200-299, each in two slabs with a flag of its own.
        let group = |start, from, flag| Group {
            rows: Extent { start, len: 100 },
            from,
            flags: counted(flag).into_iter().collect(),
            sets: None,
        };
        let groups = [
            group(0, 0, 0),
            group(100, 0, 10),
            group(100, 64, 20),
            group(200, 0, 30),
            group(200, 64, 40),
        ];
        let order = order(TILE, (300, 128), &groups, &[], 0, None);
        let bands = words(&order.bands);
        let bands: Vec<&[u32]> = bands.chunks(6).map(|band| &band[..3]).collect();
        // Rows 0-127 touch the first three groups, 128-255 both pairs of slabs.
        assert_eq!(bands, [[0, 0, 2], [1, 2, 4], [2, 6, 2]]);
        assert_eq!(order.ready, 0);
        let waits = words(&order.waits);
        let each: Vec<(u32, u32, u32)> = waits.chunks(6).map(|w| (w[0], w[2], w[3])).collect();
        assert!(waits.chunks(6).all(|w| w[4] == 1));
        let first = [(10, 0, 0), (20, 64, 1)];
        let both = [(10, 0, 0), (30, 0, 2), (20, 64, 1), (40, 64, 3)];
        let last = [(30, 0, 2), (40, 64, 3)];
        assert_eq!(each, [&first[..], &both[..], &last[..]].concat());
    }
}
