//! What is to be computed: fused operators of tensor parallelism and bare collectives.
//!
//! Shapes are global: `m × k` times `k × n` over `tp` ranks.
//!
//! * AG+GEMM: each rank holds `m/tp` rows of A and `n/tp` columns of B, gathers A and computes
//!   `m × n/tp` (k full).
//! * GEMM+RS: each rank holds `m × k/tp` of A and `k/tp × n` of B, computes a partial `m × n` and
//!   keeps `m/tp` summed rows.
//! * GEMM+AR: the same, and every rank ends with all `m` rows.
//! * Bare collectives move `bytes` with nccl-tests' meaning of size.
//!
//! ```
//! use duet::device::DType;
//! use duet::operator::{Kind, Operator};
//! let op = Operator::gemm("ag-gemm".parse()?, 8192, 49152, 12288, 8, DType::Bf16)?;
//! assert_eq!(op.kind, Kind::AgGemm);
//! assert_eq!(op.message_bytes(), 8192 * 12288 * 2); // the gathered A
//! assert_eq!(op.bus_factor(), 7.0 / 8.0);
//! assert!(Operator::gemm(Kind::AgGemm, 8193, 49152, 12288, 8, DType::Bf16).is_err());
//! # Ok::<(), duet::operator::OperatorError>(())
//! ```

mod check;
pub mod models;
mod volume;

pub use check::OperatorError;

use crate::device::DType;
use crate::units::Bytes;

/// The operators.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// All-gather A, then GEMM.
    AgGemm,
    /// GEMM, then reduce-scatter C.
    GemmRs,
    /// GEMM, then all-reduce C.
    GemmAr,
    /// Bare all-gather; bytes = the gathered output.
    AllGather,
    /// Bare reduce-scatter; bytes = the whole input.
    ReduceScatter,
    /// Bare all-reduce; bytes = the buffer.
    AllReduce,
    /// Bare all-to-all; bytes = each rank's whole send buffer, its own share included.
    AllToAll,
    /// One message from rank 0 to rank 1; bytes = the message.
    PointToPoint,
}

impl Kind {
    /// All operators, fused ones first.
    pub const ALL: [Self; 8] = [
        Self::AgGemm,
        Self::GemmRs,
        Self::GemmAr,
        Self::AllGather,
        Self::ReduceScatter,
        Self::AllReduce,
        Self::AllToAll,
        Self::PointToPoint,
    ];

    /// The name on the command line and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AgGemm => "ag-gemm",
            Self::GemmRs => "gemm-rs",
            Self::GemmAr => "gemm-ar",
            Self::AllGather => "all-gather",
            Self::ReduceScatter => "reduce-scatter",
            Self::AllReduce => "all-reduce",
            Self::AllToAll => "all-to-all",
            Self::PointToPoint => "point-to-point",
        }
    }

    /// Whether a GEMM is part of it (its shape is [`Shape::Gemm`], else [`Shape::Bytes`]).
    pub const fn is_fused(self) -> bool {
        matches!(self, Self::AgGemm | Self::GemmRs | Self::GemmAr)
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for Kind {
    type Err = OperatorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| OperatorError::UnknownKind(text.to_owned()))
    }
}

/// A shape of the operator.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Global GEMM shape \[elements\].
    Gemm { m: u64, n: u64, k: u64 },
    /// Size of a bare collective.
    Bytes(Bytes),
}

/// An operator on `tp` ranks.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operator {
    pub kind: Kind,
    pub shape: Shape,
    /// Ranks.
    pub tp: u32,
    pub dtype: DType,
}

impl Operator {
    /// A fused operator on the global shape `m × k` times `k × n` \[elements\], checked.
    ///
    /// # Errors
    /// [`OperatorError`], see [`Self::check`].
    pub fn gemm(
        kind: Kind,
        m: u64,
        n: u64,
        k: u64,
        tp: u32,
        dtype: DType,
    ) -> Result<Self, OperatorError> {
        let shape = Shape::Gemm { m, n, k };
        Self::checked(kind, shape, tp, dtype)
    }

    /// A bare collective of `bytes` (nccl-tests' meaning, see [`Kind`]), checked.
    ///
    /// # Errors
    /// [`OperatorError`], see [`Self::check`].
    pub fn collective(
        kind: Kind,
        bytes: Bytes,
        tp: u32,
        dtype: DType,
    ) -> Result<Self, OperatorError> {
        Self::checked(kind, Shape::Bytes(bytes), tp, dtype)
    }

    fn checked(kind: Kind, shape: Shape, tp: u32, dtype: DType) -> Result<Self, OperatorError> {
        let operator = Self {
            kind,
            shape,
            tp,
            dtype,
        };
        operator.check()?;
        Ok(operator)
    }
}

impl std::fmt::Display for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.shape {
            Shape::Gemm { m, n, k } => write!(f, "{} m={m} n={n} k={k}", self.kind)?,
            Shape::Bytes(bytes) => write!(f, "{} {bytes}", self.kind)?,
        }
        write!(f, " tp={} {}", self.tp, self.dtype.name())
    }
}
