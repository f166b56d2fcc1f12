//! No strategy beats a lower bound, on any shipped machine.

use duet::device::DType;
use duet::operator::{Kind, Operator};
use duet::sim::{Options, simulate};
use duet::strategy;
use duet::topology;
use duet::topology::bound::{self, bounds};
use duet::units::Bytes;

#[test]
fn makespan_is_at_least_every_bound() {
    let kinds = [
        (Kind::AllGather, bound::Kind::AllGather),
        (Kind::ReduceScatter, bound::Kind::ReduceScatter),
        (Kind::AllReduce, bound::Kind::AllReduce),
        (Kind::AllToAll, bound::Kind::AllToAll),
        (Kind::PointToPoint, bound::Kind::PointToPoint),
    ];
    let mut checked = 0;
    for name in topology::names() {
        let topology = topology::load(name, &[]).unwrap();
        let all = topology.gpus.len() as u32;
        for tp in [2, all.min(8)] {
            let gpus: Vec<u32> = (0..tp).collect();
            for (kind, bound_kind) in kinds {
                if kind == Kind::PointToPoint && tp != 2 {
                    continue;
                }
                for mib in [1, 64] {
                    let bytes = mib << 20;
                    let op =
                        Operator::collective(kind, Bytes::new(bytes), tp, DType::Fp16).unwrap();
                    let least = bounds(&topology, bound_kind, bytes as f64, &gpus)
                        .into_iter()
                        .map(|b| b.seconds.get())
                        .fold(0.0, f64::max);
                    assert!(least > 0.0, "{name} {kind:?}: no bound");
                    for candidate in strategy::candidates(&op) {
                        let Ok(schedule) = candidate.build(&op, &topology, &gpus) else {
                            continue;
                        };
                        let time = simulate(&schedule, &topology, &Options::default())
                            .unwrap_or_else(|e| panic!("{name} {candidate}: {e}"))
                            .makespan;
                        assert!(
                            time >= least * (1.0 - 1e-9),
                            "{name} {kind:?} {candidate}: {time} beats the bound {least}"
                        );
                        checked += 1;
                    }
                }
            }
        }
    }
    assert!(checked > 500, "{checked}");
}
