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

/// A shape of the operator.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Global GEMM shape [elements].
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
