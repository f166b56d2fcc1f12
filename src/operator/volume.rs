//! Arithmetic and communication volume of an operator.
//!
//! Let S be the message (nccl-tests' size) and n the ranks. A collective that takes t seconds has
//! `algbw = S / t`. Over a ring every rank sends, in each of n − 1 steps, S/n bytes, so
//!
//! * all-gather, reduce-scatter, all-to-all put `S·(n−1)/n` on every rank's link:
//!   `busbw = algbw·(n−1)/n`;
//! * all-reduce = reduce-scatter + all-gather puts twice that: `busbw = algbw·2(n−1)/n`;
//! * point-to-point puts S: `busbw = algbw`.
//!
//! No algorithm without reduction inside the network can put less on the busiest link, so busbw is
//! comparable with the link's bandwidth whatever n.

use super::{Kind, Operator, Shape};
use crate::units::Flops;

impl Operator {
    /// `(m, n, k)` of a fused operator, global \[elements\]; `None` for a bare collective.
    pub const fn mnk(&self) -> Option<(u64, u64, u64)> {
        match self.shape {
            Shape::Gemm { m, n, k } => Some((m, n, k)),
            Shape::Bytes(_) => None,
        }
    }

    /// The GEMM that one rank computes, unsplit: `(m, n, k)` \[elements\]. AG+GEMM: `m × k` times
    /// `k × n/tp`; GEMM+RS and GEMM+AR: `m × k/tp` times `k/tp × n`.
    pub const fn rank_gemm(&self) -> Option<(u64, u64, u64)> {
        let tp = self.tp as u64;
        match (self.kind, self.shape) {
            (Kind::AgGemm, Shape::Gemm { m, n, k }) => Some((m, n / tp, k)),
            (_, Shape::Gemm { m, n, k }) => Some((m, n, k / tp)),
            (_, Shape::Bytes(_)) => None,
        }
    }

    /// Floating-point operations over all ranks: 2·m·n·k; 0 for a bare collective (its additions
    /// are not counted, as elementwise work is limited by memory).
    pub fn flops(&self) -> Flops {
        Flops::of(
            self.mnk()
                .map_or(0.0, |(m, n, k)| 2.0 * m as f64 * n as f64 * k as f64),
        )
    }

    /// Bytes of the global A (`m × k`); 0 for a bare collective.
    pub fn a_bytes(&self) -> u64 {
        self.mnk().map_or(0, |(m, _, k)| self.bytes_of(m, k))
    }

    /// Bytes of the global B (`k × n`); 0 for a bare collective.
    pub fn b_bytes(&self) -> u64 {
        self.mnk().map_or(0, |(_, n, k)| self.bytes_of(k, n))
    }

    /// Bytes of the global C (`m × n`); 0 for a bare collective.
    pub fn c_bytes(&self) -> u64 {
        self.mnk().map_or(0, |(m, n, _)| self.bytes_of(m, n))
    }

    fn bytes_of(&self, rows: u64, cols: u64) -> u64 {
        rows.saturating_mul(cols).saturating_mul(self.dtype.size())
    }

    /// The message S in nccl-tests' sense \[bytes\]: the gathered A for AG+GEMM, the whole partial C
    /// for GEMM+RS and GEMM+AR, the stated size for a bare collective.
    pub fn message_bytes(&self) -> u64 {
        match (self.kind, self.shape) {
            (_, Shape::Bytes(bytes)) => bytes.get(),
            (Kind::AgGemm, _) => self.a_bytes(),
            _ => self.c_bytes(),
        }
    }

    /// `busbw / algbw`; see the module's derivation. 0 on one rank.
    pub fn bus_factor(&self) -> f64 {
        let n = f64::from(self.tp);
        match self.kind {
            Kind::PointToPoint => 1.0,
            Kind::GemmAr | Kind::AllReduce => 2.0 * (n - 1.0) / n,
            _ => (n - 1.0) / n,
        }
    }

    /// Bytes that each rank must send at least (sends, for a point-to-point message): `S · busbw /
    /// algbw`.
    pub fn bytes_per_rank(&self) -> f64 {
        self.message_bytes() as f64 * self.bus_factor()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DType;
    use crate::units::Bytes;

    #[test]
    fn volumes_of_a_published_shape() {
        // Flux, GPT-3 175B fc1 at m = 4096: 2·4096·49152·12288 = 4.9478e12 operations.
        let op = Operator::gemm(Kind::AgGemm, 4096, 49152, 12288, 8, DType::Bf16).unwrap();
        assert_eq!(op.flops().get(), 4_947_802_324_992.0);
        assert_eq!(op.rank_gemm(), Some((4096, 6144, 12288)));
        assert_eq!(op.a_bytes(), 100_663_296);
        assert_eq!(op.b_bytes(), 1_207_959_552);
        assert_eq!(op.c_bytes(), 402_653_184);
        assert_eq!(op.message_bytes(), op.a_bytes());
        assert_eq!(op.bytes_per_rank(), 88_080_384.0); // 7/8 of A.
    }

    #[test]
    fn messages_of_gemm_first_operators_are_c() {
        for (kind, factor) in [(Kind::GemmRs, 0.75), (Kind::GemmAr, 1.5)] {
            let op = Operator::gemm(kind, 64, 32, 128, 4, DType::Fp8).unwrap();
            assert_eq!(op.message_bytes(), 64 * 32);
            assert_eq!(op.rank_gemm(), Some((64, 32, 32)));
            assert_eq!(op.bytes_per_rank(), 2048.0 * factor);
        }
    }

    #[test]
    fn bare_sizes_are_messages() {
        let op = Operator::collective(Kind::AllReduce, Bytes::new(1 << 20), 8, DType::Fp32);
        let op = op.unwrap();
        assert_eq!(op.message_bytes(), 1 << 20);
        assert_eq!(op.bus_factor(), 1.75);
        assert_eq!((op.flops().get(), op.a_bytes()), (0.0, 0));
        assert_eq!(op.rank_gemm(), None);
    }
}
