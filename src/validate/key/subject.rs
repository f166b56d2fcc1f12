//! What is measured of a group: a strategy or one of the references.

use std::fmt;
use std::str::FromStr;

use crate::gpu::plan::Products;
use crate::strategy;

/// What a group's strategies are held against, measured in the same rounds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reference {
    /// One rank's GEMM in one piece, the slowest rank's.
    Gemm,
    /// The operator's bytes, copied from GPU to GPU in one piece, all ranks at once.
    Copy,
    /// The strategy `sequential` with its collective by copy engines.
    SequentialCopies,
    /// As [`Self::Gemm`], by Duet's own kernel with the tile that it takes for the shape: where the group's
    /// products are its own.
    GemmOwn,
}

impl Reference {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Gemm,
        Self::Copy,
        Self::SequentialCopies,
        Self::GemmOwn,
    ];

    /// Whether groups with such products have it.
    pub fn is_of(self, products: Products) -> bool {
        self != Self::GemmOwn || products == Products::Own
    }

    /// As the column `strategy` names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gemm => "reference:gemm",
            Self::Copy => "reference:copy",
            Self::SequentialCopies => "reference:sequential-copies",
            Self::GemmOwn => "reference:gemm-own",
        }
    }
}

/// What is measured of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// As [`strategy::Choice`] prints it.
    Strategy(String),
    Reference(Reference),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Strategy(name) => name,
            Self::Reference(reference) => reference.name(),
        })
    }
}

impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = |reference: &Reference| reference.name() == text;
        match Reference::ALL.into_iter().find(named) {
            Some(reference) => Ok(Self::Reference(reference)),
            None if text.starts_with("reference:") => {
                let known = Reference::ALL.map(Reference::name);
                Err(format!(
                    "`{text}` is no reference: {}",
                    crate::input::did_you_mean(text, known)
                ))
            }
            None => (strategy::parse(text).map(|choice| Self::Strategy(choice.to_string())))
                .map_err(|error| error.to_string()),
        }
    }
}
