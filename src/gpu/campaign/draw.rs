//! Cases drawn from a seed.

use super::Case;
use crate::device::DType;
use crate::gpu::plan::{Flags, Library, Mode, Path, Products};
use crate::operator::{Kind, Operator};
use crate::strategy;
use crate::units::Bytes;

/// Settings that comparisons do not try and real GPUs should.
const MORE: [&str; 14] = [
    "fusion-alltoall:slabs=3",
    "fusion-alltoall:slabs=2,chunks=2,issue=pull",
    "fusion-ring:mover=epilogue",
    "fusion-ring:mover=epilogue,chunks=1",
    "fusion-alltoall:mover=epilogue",
    "fusion-alltoall:mover=epilogue,chunks=3",
    "fusion-ring:mover=sm:2",
    "fusion-alltoall:mover=sm:2,issue=pull",
    "fusion-alltoall:mover=loader",
    "fusion-alltoall:mover=loader,chunks=2,slabs=3",
    "interdecom:d=2,comm=direct,issue=pull",
    "ring:chunks=2,mover=sm:2",
    "direct:issue=pull",
    "sequential",
];

/// What there is to draw from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// GPUs; ranks are spread over 1 to all of them.
    pub gpus: u32,
    /// Numbers of ranks.
    pub ranks: Vec<u32>,
    /// Whether GPUs reach each other's memory.
    pub peers: bool,
    /// Who multiplies; with Duet's own products only operators with a product are drawn.
    pub products: Products,
}

/// `count` cases; the same for the same seed.
pub fn draw(space: &Space, seed: u64, count: u32) -> Vec<Case> {
    (0..count)
        .map(|i| {
            // Each case has a generator of its own, so that the n-th is the same for any count.
            let mut random = fastrand::Rng::with_seed(seed.wrapping_add(u64::from(i) << 20));
            // Fused operators and bare collectives in turn, each kind equally often.
            let fused = |kind: &&Kind| space.products == Products::Library || kind.is_fused();
            let kinds: Vec<Kind> = Kind::ALL.iter().filter(fused).copied().collect();
            one(space, kinds[i as usize % kinds.len()], &mut random)
        })
        .collect()
}

fn one(space: &Space, kind: Kind, random: &mut fastrand::Rng) -> Case {
    let ranks = match kind {
        Kind::PointToPoint => 2,
        _ => *random.choice(&space.ranks).unwrap_or(&2),
    };
    let operator = operator(kind, ranks, random);
    let mut strategies: Vec<String> = strategy::candidates(&operator)
        .iter()
        .map(ToString::to_string)
        .collect();
    for text in MORE {
        let applies = strategy::parse(text).is_ok_and(|c| c.strategy().applies(kind));
        if applies && !strategies.iter().any(|known| known == text) {
            strategies.push(text.to_owned());
        }
    }
    let strategy = random.choice(&strategies).cloned().unwrap_or_default();
    // Stores by epilogues are seldom possible otherwise.
    let epilogue = strategy.contains("mover=epilogue") && space.peers && ranks <= space.gpus;
    let on = match random.u32(..4) {
        _ if epilogue => ranks,
        // Mostly all of them.
        0 => random.u32(1..=space.gpus.max(1)),
        _ => space.gpus.max(1),
    }
    .min(ranks);
    let placement = match random.bool() {
        true => (0..ranks).map(|r| r * on / ranks).collect(),
        false => (0..ranks).map(|r| r % on).collect(),
    };
    let chunk = *random
        .choice(&[1000, 4096, 65_536, 1 << 20])
        .unwrap_or(&4096);
    let path = match (on, random.u32(..3)) {
        (1, _) => Path::P2p,
        _ if epilogue => Path::P2p,
        (_, 0) if space.peers => Path::P2p,
        (_, 1) if space.peers => Path::Hybrid {
            host_share: f64::from(random.u32(1..10)) / 10.0,
            chunk,
        },
        _ => Path::Host { chunk },
    };
    let mode = *random
        .choice(&[Mode::Stream, Mode::Graph])
        .unwrap_or(&Mode::Stream);
    Case {
        strategy,
        operator,
        placement,
        path,
        mode,
        library: match random.u32(..3) {
            0 => Library::Copies,
            _ => Library::Nccl,
        },
        products: space.products,
        // Without peers no GPU writes a flag of another.
        flags: match (space.peers, random.u32(..3)) {
            (true, 0) => Flags::Value,
            (true, 2) if epilogue => Flags::Value,
            (true, 1) => Flags::ValueAndEvent,
            _ => Flags::Event,
        },
        seed: random.u64(..1 << 32),
    }
}

/// A shape of any size up to a few hundred per rank, now and then a larger one, seldom round.
fn operator(kind: Kind, ranks: u32, random: &mut fastrand::Rng) -> Operator {
    let tp = u64::from(ranks);
    let dtype = match (kind.is_fused(), random.u32(..8)) {
        (_, 0 | 1) => DType::Fp16,
        (false, 2) => DType::Fp32,
        _ => DType::Bf16,
    };
    let mut size = |most: u64| match random.u32(..8) {
        // Multiples of what most kernels like.
        0 | 1 => 64 * random.u64(1..=(most / 64).max(1)),
        2 => 1 + random.u64(..8),
        _ => random.u64(1..=most) | 1,
    };
    if kind.is_fused() {
        // d = 16 pieces can be cut from every other m.
        let (rows, n, k) = (size(320), size(320), size(192));
        let m = if rows % 2 == 0 {
            rows * tp
        } else {
            rows.min(96) * 16 * tp
        };
        let odd = |m: u64| if rows % 4 == 1 { rows * tp } else { m };
        let (m, n, k) = match kind {
            Kind::AgGemm => (odd(m), n * tp, k),
            Kind::GemmRs => (odd(m), n, k * tp),
            // GEMM+AR may have any m.
            _ => (if rows % 4 == 1 { rows } else { m }, n, k * tp),
        };
        if let Ok(operator) = Operator::gemm(kind, m, n, k, ranks, dtype) {
            return operator;
        }
    } else {
        let share = size(40_000) * dtype.size();
        let parts = if kind == Kind::PointToPoint { 1 } else { tp };
        let bytes = Bytes::new(share * parts);
        if let Ok(operator) = Operator::collective(kind, bytes, ranks, dtype) {
            return operator;
        }
    }
    // Nothing above is refused by the operator's check; a plain shape keeps this total.
    Operator {
        kind,
        shape: match kind.is_fused() {
            true => crate::operator::Shape::Gemm {
                m: tp,
                n: tp,
                k: tp,
            },
            false => crate::operator::Shape::Bytes(Bytes::new(tp * dtype.size())),
        },
        tp: ranks,
        dtype,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::Shape;

    fn space() -> Space {
        Space {
            gpus: 2,
            ranks: vec![2, 4, 8],
            peers: true,
            products: Products::Library,
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_cases_and_a_longer_list_begins_alike() {
        let cases = draw(&space(), 7, 60);
        assert_eq!(cases[..20], draw(&space(), 7, 20)[..]);
        assert_ne!(cases, draw(&space(), 8, 60));
    }

    #[test]
    fn every_setting_is_covered() {
        let cases = draw(&space(), 1, 600);
        let count = |f: &dyn Fn(&Case) -> bool| cases.iter().filter(|c| f(c)).count();
        for kind in Kind::ALL {
            assert_eq!(count(&|c| c.operator.kind == kind), 75);
        }
        for strategy in strategy::registry() {
            let named = |c: &Case| c.strategy.split(':').next() == Some(strategy.name());
            assert!(count(&named) > 5, "{}", strategy.name());
        }
        for ranks in [2, 4, 8] {
            assert!(count(&|c| c.operator.tp == ranks) > 100);
        }
        assert!(count(&|c| c.path == Path::P2p) > 100);
        assert!(count(&|c| matches!(c.path, Path::Host { .. })) > 50);
        assert!(count(&|c| matches!(c.path, Path::Hybrid { .. })) > 50);
        for mode in [Mode::Stream, Mode::Graph] {
            assert!(count(&|c| c.mode == mode) > 200);
        }
        for flags in [Flags::Value, Flags::ValueAndEvent, Flags::Event] {
            assert!(count(&|c| c.flags == flags) > 100);
        }
        assert!(count(&|c| c.library == Library::Copies) > 100);
        let one = |c: &Case| c.placement.iter().all(|&gpu| gpu == 0);
        assert!(count(&one) > 30 && count(&|c| !one(c)) > 300);
        // Odd in each dimension, per rank where it is cut among ranks.
        let odd = |f: &dyn Fn(u64, u64, u64, u64) -> bool| {
            count(&|c| match c.operator.shape {
                Shape::Gemm { m, n, k } => f(m, n, k, c.operator.tp.into()),
                Shape::Bytes(_) => false,
            })
        };
        assert!(odd(&|m, _, _, tp| m / tp % 2 == 1) > 20);
        assert!(odd(&|_, n, _, tp| n % 2 == 1 || n / tp % 2 == 1) > 60);
        assert!(odd(&|_, _, k, tp| k % 2 == 1 || k / tp % 2 == 1) > 60);
        for case in &cases {
            case.operator.check().unwrap();
            strategy::parse(&case.strategy).unwrap();
        }
    }

    #[test]
    fn own_products_are_tested_where_there_are_any() {
        let space = Space {
            products: Products::Own,
            ..space()
        };
        let cases = draw(&space, 3, 90);
        for kind in [Kind::AgGemm, Kind::GemmRs, Kind::GemmAr] {
            assert_eq!(cases.iter().filter(|c| c.operator.kind == kind).count(), 30);
        }
        assert!(cases.iter().all(|c| c.products == Products::Own));
    }

    #[test]
    fn without_peers_nothing_reaches_across() {
        let space = Space {
            peers: false,
            ..space()
        };
        for case in draw(&space, 3, 200) {
            let alone = case.placement.iter().all(|&gpu| gpu == 0);
            assert!(alone || matches!(case.path, Path::Host { .. }));
            assert_eq!(case.flags, Flags::Event);
        }
    }
}
