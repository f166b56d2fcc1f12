//! Which algorithms the GEMM library takes, as raw samples and profiles tell it.

use std::collections::{BTreeMap, BTreeSet};

use super::kernels::{Beside, Choices, Kernel, MOST_PARTS};
use super::recorded::RefitError;
use super::shapes::asked_once;
use crate::device::gemm::library::{self, Library};

/// Largest extent of a column, and of a tile or a cluster.
const LARGEST: u64 = 1 << 32;
const WIDEST: u32 = 4096;
/// What is wrong of an algorithm in words.
const ALGORITHM: &str = "extent of a tile or cluster, nor a number of parts";

/// `k4096n1024`.
pub(super) fn column(text: &str) -> Option<(u64, u64)> {
    let (k, n) = text.strip_prefix('k')?.split_once('n')?;
    let extent = |text: &str| text.parse().ok().filter(|x| (1..=LARGEST).contains(x));
    Some((extent(k)?, extent(n)?))
}

/// `128×256`.
fn pair(text: &str) -> Option<(u32, u32)> {
    let (one, two) = text.split_once('×')?;
    let extent = |text: &str| text.parse().ok().filter(|x| (1..=WIDEST).contains(x));
    Some((extent(one)?, extent(two)?))
}

/// The kernel of an algorithm in words, `tile 16×64; stages of 64; k in 4 parts; clusters of 1×2`; the wrong
/// piece where an extent cannot be.
fn kernel(words: &str) -> Result<Option<Kernel>, &str> {
    let part = |begin: &str| {
        let found = words.split("; ").find_map(|part| part.strip_prefix(begin));
        found.map(|rest| rest.split(' ').next().unwrap_or(rest))
    };
    let extents = |begin: &str| match part(begin) {
        Some(text) if text.contains('×') => pair(text).map(Some).ok_or(text),
        _ => Ok(None),
    };
    let (tile, cluster) = (extents("tile ")?, extents("clusters of ")?);
    let split = match part("k in ") {
        Some(zero @ "0") => return Err(zero),
        Some(parts) => parts.parse().ok().filter(|parts| *parts <= MOST_PARTS),
        None => Some(1),
    };
    let both = |(tile, split)| Kernel {
        tile,
        split,
        cluster: cluster.unwrap_or((1, 1)),
    };
    Ok(tile.zip(split).map(both))
}

/// A column's algorithms as samples tell them.
#[derive(Default)]
struct Told {
    /// From how many rows on.
    starts: BTreeMap<u64, Option<Kernel>>,
    /// Rows it was asked for besides those of all columns.
    further: Vec<u64>,
}

/// What raw samples say of the library's choices on all SMs.
///
/// # Errors
/// [`RefitError::Sample`].
#[cfg(test)]
pub(super) fn chosen(raw: &str) -> Result<Choices, RefitError> {
    told(raw).map(|told| told.0)
}

/// What raw samples say of the library's choices, and of those beside collectives: each column's algorithm from
/// how many rows on, for the rows that were asked for. What the section `choices` says goes before what `gemm`
/// said in earlier calibrations.
///
/// # Errors
/// [`RefitError::Sample`].
pub(super) fn told(raw: &str) -> Result<(Choices, Beside), RefitError> {
    let mut left = None;
    let mut fewer: BTreeMap<(u64, u64), Told> = BTreeMap::new();
    let mut rows: Vec<u64> = Vec::new();
    let mut places: BTreeMap<u64, Option<Kernel>> = BTreeMap::new();
    let mut told: BTreeMap<(u64, u64), Told> = BTreeMap::new();
    let mut earlier: BTreeMap<(u64, u64), Told> = BTreeMap::new();
    for (at, line) in raw.lines().enumerate() {
        let wrong = |piece: &str, what| RefitError::sample((at, line), piece, what);
        let mut cells = line.split(',');
        let (section, case, x) = (cells.next(), cells.next(), cells.next());
        let (Some(section), Some(case)) = (section, case) else {
            continue;
        };
        let Some(x) = x.and_then(|x| x.parse::<u64>().ok()) else {
            if section == "choices" {
                return Err(wrong(x.unwrap_or(case), "whole number"));
            }
            continue;
        };
        let text = cells.nth(1).unwrap_or_default();
        let samples = text.split(' ');
        let numbers = || -> Result<Vec<u64>, RefitError> {
            let number = |m: &str| m.parse().ok().filter(|m| (1..=LARGEST).contains(m));
            let all = samples.clone();
            all.map(|m| number(m).ok_or_else(|| wrong(m, "number of rows")))
                .collect()
        };
        let (word, rest) = case.split_once(' ').unwrap_or((case, ""));
        match (section, word) {
            ("choices", "rows") if rest.is_empty() => rows.extend(numbers()?),
            ("choices", "rows") => {
                let at = column(rest).ok_or_else(|| wrong(rest, "column, `k4096n1024`"))?;
                told.entry(at).or_default().further.extend(numbers()?);
            }
            ("choices", "algorithm") => {
                places.insert(x, kernel(rest).map_err(|piece| wrong(piece, ALGORITHM))?);
            }
            ("choices", "sms") => {
                left = u32::try_from(x).ok().filter(|left| *left > 0);
                left.ok_or_else(|| wrong(text, "number of SMs"))?;
            }
            ("choices", "lt" | "beside") => {
                let at = column(rest).ok_or_else(|| wrong(rest, "column, `k4096n1024`"))?;
                let all = if word == "lt" { &mut told } else { &mut fewer };
                let of = |start: &str| {
                    let (m, place) = start.split_once(':')?;
                    let kernel = places.get(&place.parse().ok()?)?;
                    Some((m.parse().ok()?, *kernel))
                };
                let what = "choice, rows and the place of an algorithm above, `512:3`";
                let starts = samples.map(|start| of(start).ok_or_else(|| wrong(start, what)));
                let starts: Vec<(u64, Option<Kernel>)> = starts.collect::<Result<_, _>>()?;
                all.entry(at).or_default().starts.extend(starts);
            }
            ("gemm", "lt") => {
                let (at, words) = rest.split_once(' ').unwrap_or((rest, ""));
                if let Some(at) = column(at) {
                    let told = earlier.entry(at).or_default();
                    let kernel = kernel(words).map_err(|piece| wrong(piece, ALGORITHM))?;
                    told.starts.insert(x, kernel);
                    told.further.push(x);
                }
            }
            ("gemm", at) => {
                if let Some(at) = column(at) {
                    earlier.entry(at).or_default().further.push(x);
                }
            }
            _ => {}
        }
    }
    rows.sort_unstable();
    rows.dedup();
    let of = |told: &Told, rows: BTreeSet<u64>| -> BTreeMap<u64, Kernel> {
        let rows = rows.into_iter();
        rows.filter_map(|m| Some((m, (*told.starts.range(..=m).next_back()?.1)?)))
            .collect()
    };
    let mut choices = Choices::new();
    for (at, told) in earlier.iter().filter(|(_, t)| !t.starts.is_empty()) {
        choices.insert(
            *at,
            of(told, asked_once(&told.further).into_iter().collect()),
        );
    }
    let mut beside = Choices::new();
    for (all, into) in [(&told, &mut choices), (&fewer, &mut beside)] {
        for (at, own) in all {
            // Rows asked for besides are the same for both.
            let further = told.get(at).into_iter().flat_map(|told| &told.further);
            let more = further.chain(own.starts.keys());
            into.insert(*at, of(own, rows.iter().chain(more).copied().collect()));
        }
    }
    let sms = left.unwrap_or(0);
    let choices_beside = Beside {
        sms,
        choices: beside,
    };
    Ok((choices, choices_beside))
}

/// The choices of a profile's list, and those beside collectives.
pub(super) fn listed(library: &Library) -> (Choices, Beside) {
    let beside = Beside {
        sms: library.left,
        choices: of(library, &library.beside),
    };
    (of(library, &library.choices), beside)
}

fn of(library: &Library, choices: &[library::Choices]) -> Choices {
    let kernel = |place: u16| {
        let algorithm = library.algorithms.get(usize::from(place))?;
        Some(Kernel {
            tile: algorithm.tile,
            split: algorithm.split,
            cluster: algorithm.cluster,
        })
    };
    let rows = |rows: &[(u64, u16)]| {
        let all = rows.iter();
        all.filter_map(|&(m, place)| Some((m, kernel(place)?)))
            .collect()
    };
    let all = choices.iter();
    all.map(|c| ((c.k, c.n), rows(&c.rows))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_algorithm_in_words_is_read() {
        let words = "tile 16×64; stages of 64; k in 4 parts; clusters of 1×2; swizzle 0";
        let wanted = Kernel {
            tile: (16, 64),
            split: 4,
            cluster: (1, 2),
        };
        assert_eq!(kernel(words), Ok(Some(wanted)));
        let alone = Kernel {
            split: 1,
            cluster: (1, 1),
            ..wanted
        };
        assert_eq!(kernel("tile 16×64; 4 stages of 64"), Ok(Some(alone)));
        for bad in [
            "tile no. 700; stages of 64",
            "tile 16x64",
            "tile 16×64; k in x parts",
            "tile 16×64; k in 4294967295 parts",
            "",
        ] {
            assert_eq!(kernel(bad), Ok(None), "{bad}");
        }
        for (words, piece) in [
            ("tile 0×64; stages of 64", "0×64"),
            ("tile 64×8192", "64×8192"),
            ("tile 64×64; clusters of 0×0", "0×0"),
            ("tile 64×64; k in 0 parts", "0"),
        ] {
            assert_eq!(kernel(words), Err(piece));
        }
    }

    /// A line holds from its rows on; rows between that were measured have the algorithm before them.
    #[test]
    fn choices_of_raw_samples() {
        let raw = "section,case,x,unit,samples
gemm,lt k512n256 tile 16×64; stages of 64,16,rows,16
gemm,lt k512n256 tile 64×64; stages of 64; clusters of 2×1,64,rows,64
gemm,lt k512n256 tile no. 700; stages of 64,2048,rows,2048
gemm,k512n256 gpu0,1000,us,5 6
copies,lt k1n1 tile 16×64,16,rows,16
";
        let later = "choices,rows,3,rows,16 32 48
choices,algorithm tile 16×64; stages of 64,0,place,0
choices,algorithm tile 64×64; stages of 64,1,place,1
choices,rows k512n256,1,rows,40
choices,lt k512n256,2,rows:place,16:0 48:1
choices,sms,108,sms,108
choices,beside k512n256,2,rows:place,16:1 40:0
";
        let after = chosen(&format!("{raw}{later}")).unwrap();
        let rows: Vec<(u64, u32)> = after[&(512, 256)]
            .iter()
            .map(|(m, kernel)| (*m, kernel.tile.0))
            .collect();
        assert_eq!(rows, [(16, 16), (32, 16), (40, 16), (48, 64)]);
        let (whole, beside) = told(&format!("{raw}{later}")).unwrap();
        assert_eq!((whole, beside.sms), (after, 108));
        let rows: Vec<(u64, u32)> = beside.choices[&(512, 256)]
            .iter()
            .map(|(m, kernel)| (*m, kernel.tile.0))
            .collect();
        assert_eq!(rows, [(16, 64), (32, 64), (40, 16), (48, 16)]);
        let all = chosen(raw).unwrap();
        let [(column, rows)] = &all.into_iter().collect::<Vec<_>>()[..] else {
            panic!()
        };
        assert_eq!(*column, (512, 256));
        let at = |m| rows.get(&m).map(|kernel| (kernel.tile, kernel.cluster));
        assert_eq!(at(48), Some(((16, 64), (1, 1))));
        assert_eq!(at(64), Some(((64, 64), (2, 1))));
        assert_eq!(at(1000), at(64));
        assert_eq!((at(2048), at(1001)), (None, None));
    }
}
