//! Which algorithms the GEMM library takes, as raw samples and profiles tell it.

use std::collections::{BTreeMap, BTreeSet};

use super::kernels::{Choices, Kernel};
use super::shapes::asked_once;
use crate::device::gemm::library::Library;

/// `k4096n1024`.
pub(super) fn column(text: &str) -> Option<(u64, u64)> {
    let (k, n) = text.strip_prefix('k')?.split_once('n')?;
    Some((k.parse().ok()?, n.parse().ok()?))
}

/// `128×256`.
fn pair(text: &str) -> Option<(u32, u32)> {
    let (one, two) = text.split_once('×')?;
    Some((one.parse().ok()?, two.parse().ok()?))
}

/// The kernel of an algorithm in words, `tile 16×64; stages of 64; k in 4 parts; clusters of 1×2`.
fn kernel(words: &str) -> Option<Kernel> {
    let part = |begin: &str| {
        let found = words.split("; ").find_map(|part| part.strip_prefix(begin));
        found.map(|rest| rest.split(' ').next().unwrap_or(rest))
    };
    Some(Kernel {
        tile: pair(part("tile ")?)?,
        split: part("k in ").map_or(Some(1), |parts| parts.parse().ok())?,
        cluster: part("clusters of ").and_then(pair).unwrap_or((1, 1)),
    })
}

/// A column's algorithms as samples tell them.
#[derive(Default)]
struct Told {
    /// From how many rows on.
    starts: BTreeMap<u64, Option<Kernel>>,
    /// Rows it was asked for besides those of all columns.
    further: Vec<u64>,
}

/// What raw samples say of the library's choices: each column's algorithm from how many rows on, for the
/// rows that were asked for. What the section `choices` says goes before what `gemm` said in earlier
/// calibrations.
pub(super) fn chosen(raw: &str) -> Choices {
    let mut rows: Vec<u64> = Vec::new();
    let mut told: BTreeMap<(u64, u64), Told> = BTreeMap::new();
    let mut earlier: BTreeMap<(u64, u64), Told> = BTreeMap::new();
    for line in raw.lines() {
        let mut cells = line.split(',');
        let (Some(section), Some(case), Some(x)) = (cells.next(), cells.next(), cells.next())
        else {
            continue;
        };
        let all = match section {
            "choices" => &mut told,
            "gemm" => &mut earlier,
            _ => continue,
        };
        let numbers = || {
            let last = cells.clone().next_back().unwrap_or_default();
            last.split(' ').filter_map(|m| m.parse::<u64>().ok())
        };
        let Ok(m) = x.parse::<u64>() else { continue };
        let mut words = case.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some("rows"), None, _) => rows.extend(numbers()),
            (Some("rows"), Some(at), _) => {
                if let Some(at) = column(at) {
                    all.entry(at).or_default().further.extend(numbers());
                }
            }
            (Some("lt"), Some(at), Some(words)) => {
                if let Some(at) = column(at) {
                    let told = all.entry(at).or_default();
                    told.starts.insert(m, kernel(words));
                    told.further.push(m);
                }
            }
            (Some(at), ..) => {
                if let Some(at) = column(at) {
                    all.entry(at).or_default().further.push(m);
                }
            }
            _ => {}
        }
    }
    rows.sort_unstable();
    rows.dedup();
    let of = |told: Told, rows: BTreeSet<u64>| -> BTreeMap<u64, Kernel> {
        let rows = rows.into_iter();
        rows.filter_map(|m| Some((m, (*told.starts.range(..=m).next_back()?.1)?)))
            .collect()
    };
    let mut choices = Choices::new();
    for (at, told) in earlier.into_iter().filter(|(_, t)| !t.starts.is_empty()) {
        let rows = asked_once(&told.further).into_iter().collect();
        choices.insert(at, of(told, rows));
    }
    for (at, told) in told {
        let rows = rows.iter().chain(&told.further).copied().collect();
        choices.insert(at, of(told, rows));
    }
    choices
}

/// The choices of a profile's list.
pub(super) fn listed(library: &Library) -> Choices {
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
    let all = library.choices.iter();
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
        assert_eq!(kernel(words), Some(wanted));
        let alone = Kernel {
            split: 1,
            cluster: (1, 1),
            ..wanted
        };
        assert_eq!(kernel("tile 16×64; 4 stages of 64"), Some(alone));
        for bad in [
            "tile no. 700; stages of 64",
            "tile 16x64",
            "tile 16×64; k in x parts",
            "",
        ] {
            assert_eq!(kernel(bad), None, "{bad}");
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
choices,rows k512n256,1,rows,40
choices,lt k512n256 tile 16×64; stages of 64,16,rows,16
choices,lt k512n256 tile 64×64; stages of 64,48,rows,48
";
        let after = chosen(&format!("{raw}{later}"));
        let rows: Vec<(u64, u32)> = after[&(512, 256)]
            .iter()
            .map(|(m, kernel)| (*m, kernel.tile.0))
            .collect();
        assert_eq!(rows, [(16, 16), (32, 16), (40, 16), (48, 64)]);
        let all = chosen(raw);
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
