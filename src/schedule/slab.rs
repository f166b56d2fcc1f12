//! Slabs: products cut along k.

use super::{Compute, Slice};

impl Compute {
    /// Whether `next` adds the next slab to this product: the columns of A behind this one's, times the
    /// rows of B behind this one's, onto the same part of C.
    pub fn continued_by(&self, next: &Self) -> bool {
        match (self, next) {
            (
                Self::Gemm { a, b, out, .. },
                Self::Gemm {
                    a: next_a,
                    b: next_b,
                    out: next_out,
                    accumulate: true,
                    ..
                },
            ) => follows([a, b, out], [next_a, next_b, next_out]),
            _ => false,
        }
    }
}

/// Whether the second of two products, each by its A, B and C, is the next slab of the same part of C.
pub(super) fn follows([a, b, out]: [&Slice; 3], [next_a, next_b, next_out]: [&Slice; 3]) -> bool {
    let rows = |s: &Slice| (s.buffer, s.slot, s.rows);
    let cols = |s: &Slice| (s.buffer, s.slot, s.cols);
    out == next_out
        && rows(a) == rows(next_a)
        && cols(b) == cols(next_b)
        && a.cols.end() == u64::from(next_a.cols.start)
        && b.rows.end() == u64::from(next_b.rows.start)
}
