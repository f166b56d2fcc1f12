//! Whether a run's outputs are right: against the library's unsplit product, and element by
//! element against float64 on the host.
//!
//! Before every run its half of the arenas is filled with 0xff bytes (NaN in every element type)
//! and its inputs with numbers drawn from (seed, tensor, contribution, global row, global column),
//! anew for each run. What a rank gets is therefore a function of its place in the global tensor
//! alone, and the reference needs nothing that was moved.
//!
//! # Bound
//! Let u = 2⁻⁸ (bf16), 2⁻¹¹ (fp16) or 2⁻²⁴ (fp32) be the unit roundoff of the element type and R
//! the number of times that an output may be rounded on its way. A tensor that is not a sum is
//! copied, R = 0, and must be the same bits. A product computed in one piece is rounded once, R = 1. A
//! sum of P parts (P distinct k-intervals, or P ranks' contributions) travels in the element type:
//! the parts, whose squared norms add up to that of the sum (independent inputs of mean 0), are
//! rounded once, and a running sum, whose norm is at most that of the whole, at most P − 1 times;
//! R = P. The reference is rounded once. Roundings are independent and each is at most u, so that
//!
//! ```text
//! ‖x − y‖ / max(‖y‖, σ √N) ≤ u · √(1 + R) · (1 + √(8 / N))      Frobenius, over the N elements of a buffer
//! |xᵢ − yᵢ|     ≤ u · (1 + R) · 7 · σ                every element, σ its standard deviation
//! ```
//!
//! The last factor of the first line lets few elements be as unlucky as the triangle inequality
//! allows; the 7 covers the largest of 10⁹ normal numbers. σ² is k · (4/3)² for a product and
//! P · 4/3 for a sum, as the variance of an input is 4/3. Sums inside a GEMM are in fp32, whose
//! error √k · 2⁻²⁴ is added. What is rounded are the terms, whose norm is σ √N: where there are few
//! elements, a sum may be much less than its terms. A true rounding is 0.4 u in the mean square, so that right results keep
//! away from the bound, and a missing or doubled part of P is off by 1/√P, a stale or poisoned
//! tile by 100 % of its elements. A comparison with NaN is never true, so NaN never passes.

mod bound;
mod fill;
mod layout;
mod reference;
mod source;
mod verdict;

pub use bound::Bound;
pub use fill::{fill, fill_all};
pub use reference::Checker;
pub use source::{Source, seed_of, sources};
pub use verdict::{Verdict, exact};
