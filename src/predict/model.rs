//! What a closed form is a function of: a [`Site`], the link graph in numbers and the shape.

use super::network::Network;
use super::site::Site;
use crate::device::gemm::{Column, Curve, GemmTime};
use crate::operator::{Kind, Operator, Shape};
use crate::strategy::Choice;

/// What is to be computed, as one rank sees it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Case {
    /// A rank's GEMM; zeros for a bare collective.
    pub gemm: [u64; 3],
    /// The message S \[bytes\].
    pub message: f64,
}

impl Case {
    #[inline]
    pub fn new(operator: &Operator) -> Self {
        let gemm = operator.rank_gemm().unwrap_or_default();
        Self {
            gemm: [gemm.0, gemm.1, gemm.2],
            message: match operator.shape {
                Shape::Bytes(bytes) => bytes.as_f64(),
                Shape::Gemm { .. } => operator.message_bytes() as f64,
            },
        }
    }

    /// GEMM times of its columns and depth; `None` for a bare collective.
    #[inline]
    pub fn column<'c>(&self, curve: Option<&'c Curve>) -> Option<Column<'c>> {
        let [m, n, k] = self.gemm;
        Some(curve.filter(|_| m > 0)?.at(n, k))
    }
}

/// The settings of a strategy, those that a closed form knows.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Setting {
    /// Pieces of the operator.
    pub d: u32,
    /// Pieces of a shard; as a number, and the inverse.
    pub chunks: u32,
    pub parts: f64,
    pub part: f64,
    /// Copies between all pairs in place of the library.
    pub direct: bool,
    /// Whether GEMMs leave the library its SMs.
    pub margin: bool,
}

impl Setting {
    pub fn new(choice: &Choice, kind: Kind) -> Self {
        let params = choice.params();
        let chunks = params.count("chunks");
        Self {
            d: params.count("d"),
            chunks,
            parts: f64::from(chunks),
            part: 1.0 / f64::from(chunks),
            direct: params.is("comm", "direct"),
            margin: params.is("margin", "yes")
                || (params.is("margin", "auto") && kind != Kind::AgGemm),
        }
    }
}

/// Everything that a closed form is a function of.
#[derive(Clone, Debug)]
pub(super) struct Model<'a> {
    pub site: &'a Site,
    pub net: &'a Network,
    /// GEMM times of the operator's columns and depth; `None` for a bare collective.
    column: Option<&'a Column<'a>>,
    /// The unsplit GEMM, and its arithmetic without corrections \[s\].
    pub whole: GemmTime,
    arithmetic: f64,
    pub case: Case,
    /// A rank's part of the message \[bytes\].
    pub shard: f64,
}

/// What GEMMs take at least, in however many pieces \[s\].
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Least {
    /// The arithmetic of all on all SMs.
    pub arithmetic: f64,
    /// The overhead of each.
    pub each: f64,
    /// Reading B, once in each; the rows of A and C of all.
    pub weights: f64,
    pub moved: f64,
}

impl<'a> Model<'a> {
    #[inline(always)]
    pub fn new(
        site: &'a Site,
        net: &'a Network,
        column: Option<&'a Column<'a>>,
        case: Case,
    ) -> Self {
        let [m, ..] = case.gemm;
        let (whole, arithmetic) = match column {
            Some(column) => column.time_and_arithmetic(m),
            None => Default::default(),
        };
        Self {
            site,
            net,
            column,
            whole,
            arithmetic,
            case,
            shard: case.message * site.part,
        }
    }

    /// The GEMM of `rows` of the rank's rows on all SMs, and on those that a library collective
    /// leaves where contention counts.
    #[inline]
    pub fn gemms(&self, rows: u64) -> [GemmTime; 2] {
        let Some(column) = self.column else {
            return [GemmTime::default(); 2];
        };
        match self.site.taken > 0 {
            true => column.time_with_and_beside(rows),
            false => [column.time(rows); 2],
        }
    }

    /// No way of cutting the rank's GEMM takes less.
    #[inline]
    pub fn least(&self) -> Least {
        match self.column {
            Some(column) if self.site.terms.gemm_curve => {
                let (weights, moved) = column.least_memory(self.case.gemm[0]);
                Least {
                    arithmetic: column.least(self.case.gemm[0]),
                    each: column.least_overhead(),
                    weights,
                    moved,
                }
            }
            _ => Least {
                arithmetic: self.whole.seconds,
                each: 0.0,
                weights: 0.0,
                moved: 0.0,
            },
        }
    }

    /// For pieces of so many rows: how much longer GEMMs take than [`Self::least`] says at least, and
    /// the least arithmetic of all of them \[s\]; `None` where nothing more is known.
    #[inline(always)]
    pub fn pieces(&self, rows: u64) -> Option<(f64, f64)> {
        let column = self.column.filter(|_| self.site.terms.gemm_curve)?;
        let [factor, ratio] = column.correction(rows)?;
        Some((ratio, self.arithmetic * factor))
    }
}
