//! What the elements of each tensor are.

use crate::gpu::GpuError;
use crate::schedule::{Compute, Schedule, Slice, TensorId};

/// How a tensor comes about.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Drawn; a sum of as many drawn numbers as it has contributions.
    Drawn { contributions: u32 },
    /// A product of two drawn tensors, computed in `parts` distinct intervals of k.
    Product {
        a: TensorId,
        b: TensorId,
        parts: u32,
    },
}

/// The seed of a contribution to a tensor in a run.
pub fn seed_of(seed: u64, tensor: TensorId, contribution: u32) -> u64 {
    let place = (u64::from(tensor.0) + 1) << 32 | u64::from(contribution);
    // SplitMix64's increment and first round, so that neighbours get seeds far apart.
    let x = seed ^ place.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (x ^ (x >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// By tensor.
///
/// # Errors
/// [`GpuError::Argument`] for a tensor made by anything but one product of drawn tensors.
pub fn sources(schedule: &Schedule) -> Result<Vec<Source>, GpuError> {
    let mut sources: Vec<Source> = schedule
        .tensors
        .iter()
        .map(|tensor| Source::Drawn {
            contributions: tensor.contributions,
        })
        .collect();
    let tensor = |slice: &Slice| schedule.buffers[slice.buffer.index()].tensor;
    let mut intervals: Vec<Vec<(u32, u32)>> = vec![Vec::new(); sources.len()];
    for compute in &schedule.computes {
        let (a, b, out) = match compute {
            Compute::Gemm { a, b, out, .. } => (a, b, out),
            Compute::Reduce { .. } => continue,
            Compute::Pointwise { .. } => {
                return Err(GpuError::Argument(
                    "real GPUs have no kernel for pointwise work; choose a strategy without it"
                        .to_owned(),
                ));
            }
        };
        let to = tensor(out).index();
        // The columns of A are rows of B; the rank keeps intervals of different ranks apart.
        let rank = schedule.buffers[a.buffer.index()].pieces.first();
        let first = rank.map_or(0, |piece| piece.global_col) + a.cols.start;
        intervals[to].push((first, a.cols.len));
        let new = Source::Product {
            a: tensor(a),
            b: tensor(b),
            parts: 1,
        };
        match sources[to] {
            Source::Drawn { .. } => sources[to] = new,
            Source::Product { a: x, b: y, .. } if (x, y) == (tensor(a), tensor(b)) => {}
            Source::Product { .. } => {
                return Err(GpuError::Argument(format!(
                    "tensor {} is made of different products; real runs of it cannot be checked",
                    schedule.tensors[to].name
                )));
            }
        }
    }
    for (source, intervals) in sources.iter_mut().zip(&mut intervals) {
        intervals.sort_unstable();
        intervals.dedup();
        if let Source::Product { parts, .. } = source {
            *parts = intervals.len() as u32;
        }
    }
    let drawn = |tensor: TensorId| matches!(sources[tensor.index()], Source::Drawn { .. });
    let chain = sources.iter().find(|source| match source {
        Source::Drawn { .. } => false,
        Source::Product { a, b, .. } => !drawn(*a) || !drawn(*b),
    });
    match chain {
        None => Ok(sources),
        Some(_) => Err(GpuError::Argument(
            "a product of a product; real runs of it cannot be checked".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DType;
    use crate::operator::{Kind, Operator};
    use crate::topology::build::Builder;
    use crate::units::Bytes;

    fn schedule(operator: Operator, strategy: &str) -> Schedule {
        let mut b = Builder::new("pair");
        let gpus = b.gpus(4);
        let hub = b.switch("s");
        for gpu in gpus {
            b.link(gpu, hub, "nvlink", 50e9, 0.0);
        }
        let choice = crate::strategy::parse(strategy).unwrap();
        choice.build(&operator, &b.build(), &[0, 1, 2, 3]).unwrap()
    }

    fn of(schedule: &Schedule, name: &str) -> Source {
        let at = schedule.tensors.iter().position(|t| t.name == name);
        sources(schedule).unwrap()[at.unwrap()]
    }

    #[test]
    fn products_know_in_how_many_parts_they_are_summed() {
        let gemm = |kind| Operator::gemm(kind, 64, 32, 16, 4, DType::Bf16).unwrap();
        let parts = |kind, strategy| match of(&schedule(gemm(kind), strategy), "C") {
            Source::Product { parts, .. } => parts,
            Source::Drawn { .. } => 0,
        };
        assert_eq!(parts(Kind::AgGemm, "interdecom:d=4"), 1);
        assert_eq!(parts(Kind::GemmRs, "sequential"), 4);
        assert_eq!(parts(Kind::GemmAr, "fusion-ring"), 4);
    }

    #[test]
    fn bare_tensors_are_drawn() {
        let bare = |kind| Operator::collective(kind, Bytes::new(4096), 4, DType::Bf16).unwrap();
        let of = |kind| of(&schedule(bare(kind), "library"), "X");
        assert_eq!(of(Kind::AllGather), Source::Drawn { contributions: 1 });
        assert_eq!(of(Kind::AllReduce), Source::Drawn { contributions: 4 });
    }

    #[test]
    fn seeds_differ_by_tensor_and_contribution() {
        let mut seeds: Vec<u64> = (0..8)
            .flat_map(|t| (0..8).map(move |c| seed_of(5, TensorId(t), c)))
            .collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 64);
    }
}
