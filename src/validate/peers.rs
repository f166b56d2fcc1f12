//! Other programs in turns with Duet on the same GPUs: the table that
//! `benches/peers/torch/overlap.py` writes, one row per round and shape, times in seconds.
//!
//! Of each shape the median over rounds of the other's time over Duet's, then geometric means.

use std::collections::BTreeMap;
use std::path::Path;

use super::cells::{Format, Line, TableError};
use super::table::median;
use crate::experiment::analysis::statistics::geomean;
use crate::input::Diagnostics;
use crate::operator::Kind;

const COLUMNS: [&str; 9] = [
    "round",
    "op",
    "m",
    "n",
    "k",
    "duet_strategy",
    "duet_s",
    "nccl_s",
    "fused_s",
];

const FORMAT: Format = Format {
    what: "a table of other programs' times",
    columns: &COLUMNS,
    optional: &[],
    remedy: "`benches/peers/torch/overlap.py` writes such tables: run it again",
};

/// The others, by column: what they are.
const OTHERS: [(&str, &str); 2] = [
    ("nccl_s", "NCCL and cuBLAS, one after the other"),
    ("fused_s", "PyTorch's fused call"),
];
/// Rows from which on shapes have entries of their own.
const MANY: u64 = 1024;

/// Duet's chosen strategy beside one other program, on one operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    pub operator: Kind,
    pub over: &'static str,
    /// Whether of m ≥ 1024 alone.
    pub many: bool,
    pub shapes: usize,
    /// Shapes on which Duet is faster.
    pub faster: usize,
    /// Geometric mean of the other's time over Duet's.
    pub speedup: f64,
}

/// Rounds by shape: the ratios over each of [`OTHERS`].
type Rounds = BTreeMap<(Kind, [u64; 3]), [Vec<f64>; 2]>;

/// Reads a file.
///
/// # Errors
/// [`TableError`] with everything that is wrong, up to ten mistakes.
pub fn read(path: &Path) -> Result<Vec<Peer>, TableError> {
    let mut rounds = Rounds::new();
    FORMAT.read(path, |line, found| {
        row(line, &mut rounds, found);
    })?;
    Ok(peers(&rounds))
}

/// Reads a text; `file` is its name in messages.
///
/// # Errors
/// [`TableError::Invalid`] with everything that is wrong, up to ten mistakes.
pub fn parse(file: &str, text: &str) -> Result<Vec<Peer>, TableError> {
    let mut rounds = Rounds::new();
    FORMAT.parse(file, text, |line, found| {
        row(line, &mut rounds, found);
    })?;
    Ok(peers(&rounds))
}

fn row(line: &Line<'_, '_>, rounds: &mut Rounds, found: &mut Diagnostics) -> Option<()> {
    let kind: Kind = line.parse("op", "an operator", found)?;
    let mut shape = [0; 3];
    for (size, name) in shape.iter_mut().zip(["m", "n", "k"]) {
        *size = line.parse(name, "a whole number", found)?;
    }
    let seconds = |name: &'static str, found: &mut Diagnostics| {
        let value = line.number(name, found)?;
        let value = value.filter(|value| *value > 0.0);
        if value.is_none() {
            line.wrong(name, "no time above 0", found);
        }
        value
    };
    let duet = seconds("duet_s", found)?;
    let mut ratios = [0.0; 2];
    for (ratio, (name, _)) in ratios.iter_mut().zip(OTHERS) {
        *ratio = seconds(name, found)? / duet;
    }
    let all = rounds.entry((kind, shape)).or_default();
    for (all, ratio) in all.iter_mut().zip(ratios) {
        all.push(ratio);
    }
    Some(())
}

fn peers(rounds: &Rounds) -> Vec<Peer> {
    let mut peers = Vec::new();
    for operator in Kind::ALL {
        for (at, (_, over)) in OTHERS.into_iter().enumerate() {
            for many in [false, true] {
                let shapes = rounds
                    .iter()
                    .filter(|((kind, [m, ..]), _)| *kind == operator && (!many || *m >= MANY));
                let ratios: Vec<f64> = shapes.filter_map(|(_, all)| median(&all[at])).collect();
                peers.extend(geomean(ratios.iter().copied()).map(|speedup| Peer {
                    operator,
                    over,
                    many,
                    shapes: ratios.len(),
                    faster: ratios.iter().filter(|ratio| **ratio > 1.0).count(),
                    speedup,
                }));
            }
        }
    }
    peers
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "round,op,m,n,k,duet_strategy,duet_s,nccl_s,fused_s,fused_error\n";

    #[test]
    fn speed_ups_are_medians_over_rounds_and_geometric_means_over_shapes() {
        let rows = "1,ag-gemm,512,8,8,fusion-ring,1e-3,2e-3,1e-3,0\n\
                    2,ag-gemm,512,8,8,fusion-ring,1e-3,2e-3,1e-3,0\n\
                    3,ag-gemm,512,8,8,fusion-ring,1e-3,9e-3,5e-4,0\n\
                    1,ag-gemm,1024,8,8,fusion-ring,1e-3,8e-3,5e-4,0\n";
        let found = parse("p.csv", &(HEAD.to_owned() + rows)).unwrap();
        let speedups: Vec<f64> = found.iter().map(|peer| peer.speedup).collect();
        let expected = [4.0, 8.0, 0.5f64.sqrt(), 0.5];
        let near = |(a, b): (&f64, f64)| (a - b).abs() < 1e-12;
        assert!(speedups.iter().zip(expected).all(near), "{speedups:?}");
        let first = &found[0];
        assert_eq!((first.shapes, first.faster, found[1].shapes), (2, 2, 1));
        let over_fused = (found[2].faster, found[2].many, found[3].many);
        assert_eq!(over_fused, (0, false, true));
    }

    #[test]
    fn mistakes_have_a_place() {
        let says = |row: &str| {
            let error = parse("p.csv", &(HEAD.to_owned() + row));
            error.unwrap_err().to_string()
        };
        let text = says("1,ag-gemm,512,8,8,fusion-ring,0,2e-3,1e-3,0\n");
        assert!(
            text.contains("no time above 0") && text.contains("p.csv:2:"),
            "{text}"
        );
        assert!(says("1,ag-gem,512,8,8,x,1,1,1,0\n").contains("`ag-gem` is not an operator"));
    }
}
