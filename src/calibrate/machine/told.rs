//! Which algorithms the GEMM library takes, as raw samples and profiles tell it.

use std::collections::BTreeMap;

use super::kernels::{Choices, Kernel};
use super::shapes::asked_rows;
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

/// What raw samples say of the library's choices: each column's algorithm from how many rows on, for the
/// rows that were asked for.
pub(super) fn chosen(raw: &str) -> Choices {
    let mut starts: BTreeMap<(u64, u64), BTreeMap<u64, Option<Kernel>>> = BTreeMap::new();
    let mut rows: BTreeMap<(u64, u64), Vec<u64>> = BTreeMap::new();
    for line in raw.lines() {
        let cells: Vec<&str> = line.split(',').collect();
        let ["gemm", case, x, ..] = &cells[..] else {
            continue;
        };
        let Ok(m) = x.parse::<u64>() else { continue };
        let mut words = case.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some("lt"), Some(at), Some(words)) => {
                if let Some(at) = column(at) {
                    starts.entry(at).or_default().insert(m, kernel(words));
                    rows.entry(at).or_default().push(m);
                }
            }
            (Some(at), ..) => {
                if let Some(at) = column(at) {
                    rows.entry(at).or_default().push(m);
                }
            }
            _ => {}
        }
    }
    let of = |(at, starts): (&(u64, u64), &BTreeMap<u64, Option<Kernel>>)| {
        let asked = asked_rows(rows.get(at).map_or(&[], Vec::as_slice)).into_iter();
        let all = asked.filter_map(|m| Some((m, (*starts.range(..=m).next_back()?.1)?)));
        (*at, all.collect())
    };
    starts.iter().map(of).collect()
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
