//! `gemm.algorithms`: which tile and split of k the GPU's library takes for many shapes, and what its
//! kernels reach; the formulas are those of [`gemm::library`](super::gemm::library).
//!
//! ```yaml
//! algorithms:
//!   dtype: bf16
//!   rates:
//!     arithmetic: 0.95          # factors on peak · sustained, hbm and overhead
//!     memory: 0.98
//!     overhead: 0.9
//!     load: 110 GB/s            # operands read by one SM
//!     epilogue: 2.5 us          # of a tile of 256 × 128
//!     partials: 2.4 TB/s        # sums of a split k
//!     latency: 1.4 ns           # least time of an element of k; this and the next may be missing: none
//!     cached: 26 MB             # of B that stay in cache for the next GEMM
//!     reduction: 1.4 us         # beginning the sum of a split k
//!   unaligned: { 2: { arithmetic: 0.2, … } }    # where rows are multiples of so many bytes, not of 16
//!   # rows x columns / parts of k + rows x columns of a cluster of tiles @ bytes: efficiency
//!   tiles: { 64x64: 0.98, 64x64/4: 1.02, 64x64/4+1x2: 0.99, 64x64/4@2: 0.9 }
//!   work: { 64x448+1x2: 2.1 }   # of tiles in clusters, whatever the parts of k: over what the rates say
//!   chosen:
//!     4096x4096: 192:0 512:2 8192:1     # k x n: at most so many rows: place among the tiles
//!   beside:                   # the same where a GEMM leaves SMs to a collective: how many it has
//!     sms: 108
//!     chosen: { 4096x4096: 192:1 8192:2 }
//!     launch: 1.5 us          # these two may be missing: GEMMs timed so, and what is part of every time
//!     us: { 4096x4096: 128:38 256:51.1 }
//! ```

mod rates;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::gemm::library::{ALIGNED, Algorithm, Choices, Library};
use super::measured::{MAX_EXTENT, MAX_TILE, pair, timed};
use super::section::{Section, filled, once, words};
use super::{DType, Device, MeasuredGemm};
use crate::input::yaml::Node;
use crate::input::{Diagnostic, Diagnostics, Fields};
use crate::units::Seconds;
use rates::{factor, read_rates};

/// Most parts that k is split into.
const MOST_PARTS: u32 = 1024;
/// Most rows or columns of a cluster.
const MOST_CLUSTER: u32 = 64;
/// Most tiles.
const MOST_TILES: usize = 4096;

/// Reads the map into `device`; `None` with a mistake pushed when it is wrong.
pub(super) fn read(node: &Node, device: &mut Device, found: &mut Diagnostics) -> Option<()> {
    let mut fields = Fields::of(node, "a list of algorithms", found)?;
    let dtype = fields.need("dtype", "bf16", found);
    let rates = fields.need("rates", "{ arithmetic: 0.95, … }", found);
    let unaligned = fields.get("unaligned");
    let tiles = fields.need("tiles", "{ 128x256: 1 }", found);
    let work = fields.get("work");
    let beside = fields.get("beside");
    let chosen = fields.need("chosen", "{ 4096x4096: 192:0 8192:1 }", found);
    fields.finish(found);
    let dtype = DType::ALL[dtype?.choice("dtype", &DType::ALL.map(DType::name), found)?];
    let rates = read_rates(rates?, found)?;
    let mut others = Vec::new();
    let mut seen = BTreeSet::new();
    if let Some(node) = unaligned {
        for (key, value) in Section::of("unaligned", node, found)?.entries {
            let align = bytes(key, key.word("an alignment", found)?, found)?;
            once(&mut seen, align, key, found)?;
            others.push((align, read_rates(value, found)?));
        }
    }
    let mut algorithms = Vec::new();
    let mut seen = BTreeSet::new();
    let name = |a: &Algorithm| (a.tile, a.split, a.cluster, a.align);
    for (key, value) in Section::of("tiles", tiles?, found)?.entries {
        let own = algorithm(key, value, found)?;
        once(&mut seen, name(&own), key, found)?;
        algorithms.push(own);
    }
    if algorithms.is_empty() || algorithms.len() > MOST_TILES {
        let message = format!("{} tiles", algorithms.len());
        found.push(node.wrong(message, format!("expected 1 to {MOST_TILES}")));
        return None;
    }
    if let Some(node) = work {
        let mut seen = BTreeSet::new();
        for (key, value) in Section::of("work", node, found)?.entries {
            let own = algorithm(key, value, found)?;
            once(&mut seen, name(&own), key, found)?;
            let like = |a: &&mut Algorithm| {
                (a.tile, a.cluster, a.align) == (own.tile, own.cluster, own.align)
            };
            let mut any = false;
            for algorithm in algorithms.iter_mut().filter(like) {
                algorithm.work = own.efficiency;
                any = true;
            }
            if !any || own.split != 1 {
                let text = key.word("a tile", found)?;
                let mistake = key.wrong(format!("`{text}` is none of the tiles"), "unknown tile");
                found.push(mistake.help("write the work of a tile of `tiles`, without parts of k"));
                return None;
            }
        }
    }
    let tiles = algorithms.len();
    let choices = choices(chosen?, tiles, found)?;
    let mut library = Library::new(dtype, rates, algorithms, choices).with_unaligned(others);
    if let Some(node) = beside {
        let mut fields = Fields::of(node, "choices beside collectives", found)?;
        let sms = fields.need("sms", "108", found);
        let chosen = fields.need("chosen", "{ 4096x4096: 192:0 8192:1 }", found);
        let launch: Option<Seconds> = fields.parse("launch", found);
        let us = fields.get("us");
        fields.finish(found);
        let sms = left(sms?, found)?;
        library = library.with_beside(sms, self::choices(chosen?, tiles, found)?);
        if let Some(node) = us {
            let launch = launch.unwrap_or_default();
            let mut fewer = Vec::new();
            for (_, [m, n, k], time) in timed(node, launch, found)? {
                fewer.push(MeasuredGemm {
                    dtype,
                    m,
                    n,
                    k,
                    time,
                    correction: 1.0,
                });
            }
            library = library.with_fewer(fewer);
        }
    }
    device.gemm_library = Some(Arc::new(library));
    Some(())
}

/// A number of SMs.
fn left(node: &Node, found: &mut Diagnostics) -> Option<u32> {
    let text = node.word("a number of SMs", found)?;
    let number = text.parse::<u32>().ok();
    let number = number.filter(|sms| *sms >= 1);
    if number.is_none() {
        let label = "expected a whole number from 1 on";
        found.push(node.wrong(format!("`{text}` are not SMs that are left"), label));
    }
    number
}

/// Columns with what is taken for their rows.
fn choices(node: &Node, tiles: usize, found: &mut Diagnostics) -> Option<Vec<Choices>> {
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    let columns = Section::of("chosen", node, found)?.entries;
    filled(
        node,
        "chosen",
        columns,
        "{ 4096x4096: 192:0 8192:1 }",
        found,
    )?;
    for (key, value) in columns {
        let column = pair(key, "a column (k x n)", MAX_EXTENT, found)?;
        once(&mut seen, column, key, found)?;
        let (k, n) = column;
        let rows = rows(value, tiles, found)?;
        all.push(Choices { n, k, rows });
    }
    Some(all)
}

/// `64x128/4: 0.98`.
fn algorithm(key: &Node, value: &Node, found: &mut Diagnostics) -> Option<Algorithm> {
    let whole = key.word("a tile", found)?;
    let (text, align) = match whole.split_once('@') {
        None => (whole, ALIGNED),
        Some((text, align)) => (text, bytes(key, align, found)?),
    };
    let (text, cluster) = match text.split_once('+') {
        None => (text, Some((1, 1))),
        Some((text, cluster)) => (text, both(cluster, MOST_CLUSTER)),
    };
    let (tile, split) = match text.split_once('/') {
        None => (text, Some(1)),
        Some((tile, parts)) => {
            let parts = parts.parse::<u32>().ok();
            (tile, parts.filter(|parts| (1..=MOST_PARTS).contains(parts)))
        }
    };
    let (Some(tile), Some(split), Some(cluster)) = (both(tile, MAX_TILE), split, cluster) else {
        let label = format!(
            "expected rows x columns up to {MAX_TILE}, parts up to {MOST_PARTS}, and clusters up to {MOST_CLUSTER}"
        );
        let mistake = key.wrong(format!("`{whole}` is not a tile"), label);
        found.push(mistake.help("write e.g. `64x128`, `64x128/4` with k in 4 parts, or `64x128/4+1x2` in clusters of 1x2"));
        return None;
    };
    let efficiency = factor(value, value.word("an efficiency", found)?, found)?;
    Some(Algorithm {
        tile,
        split,
        cluster,
        align,
        work: 1.0,
        efficiency,
    })
}

/// `1x2`: two numbers from 1 up to the most.
fn both(text: &str, most: u32) -> Option<(u32, u32)> {
    let extent = |text: &str| {
        let number = text.parse::<u32>().ok();
        number.filter(|number| (1..=most).contains(number))
    };
    let (one, two) = text.split_once('x')?;
    Some((extent(one)?, extent(two)?))
}

/// A power of two below [`ALIGNED`].
fn bytes(node: &Node, text: &str, found: &mut Diagnostics) -> Option<u32> {
    let number = text.parse::<u32>().ok();
    let number = number.filter(|bytes| bytes.is_power_of_two() && *bytes < ALIGNED);
    if number.is_none() {
        let label = format!("expected a power of two below {ALIGNED}");
        let mistake = node.wrong(format!("`{text}` is no alignment"), label);
        found.push(mistake.help("write the bytes that rows are multiples of, e.g. `2`"));
    }
    number
}

/// `192:0 512:2`.
fn rows(node: &Node, tiles: usize, found: &mut Diagnostics) -> Option<Vec<(u64, u16)>> {
    let mut all: Vec<(u64, u16)> = Vec::new();
    for (place, word) in words(node, node.word("choices", found)?) {
        let entry = word.split_once(':').and_then(|(most, tile)| {
            let most = most.parse::<u64>().ok()?;
            let tile = tile.parse::<u16>().ok()?;
            let after = all.last().is_none_or(|(before, _)| *before < most);
            let known = usize::from(tile) < tiles && (1..=MAX_EXTENT).contains(&most);
            (after && known).then_some((most, tile))
        });
        let Some(entry) = entry else {
            let label =
                format!("expected growing numbers of rows, each with a place below {tiles}");
            let mistake = Diagnostic::new(place, format!("`{word}` is no choice"), label);
            found.push(mistake.help("write e.g. `192:0 512:2`"));
            return None;
        };
        all.push(entry);
    }
    if all.is_empty() {
        let mistake = node.wrong(
            "a column without choices",
            "expected numbers of rows and places",
        );
        found.push(mistake.help("write e.g. `192:0 512:2`, or leave the column out"));
        return None;
    }
    Some(all)
}

#[cfg(test)]
mod tests;
