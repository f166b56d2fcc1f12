//! Lower bounds that every schedule of an operator is held against.

use super::{Trial, settled};
use crate::operator::Kind;
use crate::topology::bound;

impl Trial<'_, '_> {
    /// No strategy can be faster \[s\]: the larger of the arithmetic and memory traffic of each GPU and the network's
    /// bound for the operator's collective.
    pub fn lower_bound(&self) -> Option<f64> {
        let network = self.network_bound();
        let compute = self.compute_bound();
        let bounds = [network, compute].into_iter().flatten();
        bounds.reduce(f64::max).map(settled)
    }

    /// The arithmetic of each GPU at its peak, and its memory traffic with every element moved
    /// once \[s\].
    fn compute_bound(&self) -> Option<f64> {
        let operator = &self.operator;
        let (m, n, k) = operator.rank_gemm()?;
        let (m, n, k) = (m as f64, n as f64, k as f64);
        let flops = 2.0 * m * n * k;
        let bytes = (m * k + k * n + m * n) * operator.dtype.size() as f64;
        let mut slowest = 0f64;
        for gpu in 0..self.topology().gpus.len() as u32 {
            let ranks = self.site.placement.iter().filter(|&&g| g == gpu).count();
            let device = self.topology().device(gpu);
            let mut peaks = device.peak.iter();
            let (_, peak) = peaks.find(|(dtype, _)| *dtype == operator.dtype)?;
            let one = (flops / peak.get()).max(bytes / device.hbm.get());
            slowest = slowest.max(ranks as f64 * one);
        }
        Some(slowest)
    }

    /// The network's bound for the operator's collective \[s\]; `None` where ranks share a GPU,
    /// because what they exchange crosses no link.
    fn network_bound(&self) -> Option<f64> {
        let mut gpus = self.site.placement.clone();
        gpus.sort_unstable();
        gpus.dedup();
        if gpus.len() < self.site.placement.len() {
            return None;
        }
        let kind = match self.operator.kind {
            Kind::AgGemm | Kind::AllGather => bound::Kind::AllGather,
            Kind::GemmRs | Kind::ReduceScatter => bound::Kind::ReduceScatter,
            Kind::GemmAr | Kind::AllReduce => bound::Kind::AllReduce,
            Kind::AllToAll => bound::Kind::AllToAll,
            Kind::PointToPoint => bound::Kind::PointToPoint,
        };
        let bytes = self.operator.message_bytes() as f64;
        let bounds = bound::bounds(self.topology(), kind, bytes, &self.site.placement);
        bounds.first().map(|bound| bound.seconds.get())
    }
}
