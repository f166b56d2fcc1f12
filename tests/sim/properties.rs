//! Properties of the fluid model and of the event engine on random systems.

use std::collections::BTreeSet;

use duet::operator::Kind;
use duet::schedule::{Schedule, Task, Work};
use duet::sim::flows::{Flow, run};
use duet::sim::fluid::{FlowId, Fluid, Usage};
use duet::topology::build::Builder;
use duet::topology::{ExplicitRoute, Leg, NodeId, Path, Topology};
use duet::units::{Bytes, Seconds};
use proptest::prelude::*;

use crate::naive;
use crate::support::{self, assert_close, collective};

/// Random capacities and flows: sizes, starts, latencies and weights, some of them equal.
fn system() -> impl Strategy<Value = (Vec<f64>, Vec<Flow>)> {
    let grid = |n: u32| (0..=n).prop_map(move |k| f64::from(k) / f64::from(n));
    (2usize..8).prop_flat_map(move |resources| {
        let capacity = (1u32..20).prop_map(|c| f64::from(c) * 1e9);
        let flow = (
            grid(4),
            grid(3),
            1u32..50,
            1u32..4,
            proptest::collection::btree_set(0..resources as u32, 1..=resources.min(4)),
        )
            .prop_map(
                |(start, latency, bytes, weight, resources): (_, _, _, _, BTreeSet<u32>)| Flow {
                    start: start * 1e-3,
                    latency: latency * 1e-4,
                    bytes: f64::from(bytes) * 1e5,
                    weight: f64::from(weight),
                    resources: resources.into_iter().collect(),
                },
            );
        (
            proptest::collection::vec(capacity, resources),
            proptest::collection::vec(flow, 1..24),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Fast against naive: all finish times agree to 1e-9.
    #[test]
    fn event_engine_equals_the_naive_stepper((capacities, flows) in system()) {
        let fast = run(&capacities, &flows);
        let slow = naive::run(&capacities, &flows);
        for (a, b) in fast.iter().zip(&slow) {
            prop_assert!(((a - b) / b).abs() <= 1e-9, "{fast:?} {slow:?}");
        }
    }

    /// After every solve, whatever was added, removed or bounded since the last one.
    #[test]
    fn certificate_holds_at_every_solve(
        (capacities, flows) in system(),
        bounds in proptest::collection::vec(1u32..40, 24),
        removals in proptest::collection::vec(0usize..24, 24),
        curve in proptest::collection::vec(1u32..=10, 1..4),
    ) {
        let mut fluid = Fluid::new(&capacities);
        let factors: Vec<f64> = curve.iter().map(|&f| f64::from(f) / 10.0).collect();
        fluid.set_curve(0, factors.clone().into());
        let mut running: Vec<FlowId> = Vec::new();
        for (k, flow) in flows.iter().enumerate() {
            let usages: Vec<Usage> = (flow.resources.iter())
                .map(|&resource| Usage { resource, per_unit: 1.0 + f64::from(resource % 3) })
                .collect();
            let bound = match bounds[k] % 3 {
                0 => f64::INFINITY,
                _ => f64::from(bounds[k]) * 2e8,
            };
            running.push(fluid.add(1e12, flow.weight, bound, &usages, k as u32));
            fluid.solve(k as f64 * 1e-6);
            prop_assert_eq!(fluid.certificate_of_all(), Ok(()));
            if removals[k] % 3 == 0 {
                let gone = running.remove(removals[k] % running.len());
                fluid.remove(gone);
                fluid.solve(k as f64 * 1e-6);
                prop_assert_eq!(fluid.certificate_of_all(), Ok(()));
            }
            if removals[k] % 4 == 1 && !running.is_empty() {
                fluid.set_bound(running[removals[k] % running.len()], 5e8);
                fluid.solve(k as f64 * 1e-6);
                prop_assert_eq!(fluid.certificate_of_all(), Ok(()));
            }
        }
    }

    /// ∫ rate dt over every flow's life is its size: summed over the flows of one resource, the
    /// bytes that crossed it never exceed capacity × time, and a lone resource is never idle.
    #[test]
    fn work_is_conserved((capacities, mut flows) in system()) {
        for flow in &mut flows {
            flow.resources = vec![0];
            flow.start = 0.0;
            flow.latency = 0.0;
        }
        let finish = run(&capacities, &flows).into_iter().fold(0.0, f64::max);
        let bytes: f64 = flows.iter().map(|f| f.bytes).sum();
        assert_close(finish, bytes / capacities[0], 1e-12);
    }

    /// More bandwidth on its route never slows a flow that runs alone.
    #[test]
    fn a_lone_flow_is_never_slowed_by_bandwidth(
        (capacities, flows) in system(), extra in 1.0f64..10.0, which in 0usize..4,
    ) {
        let alone = &flows[..1];
        let before = run(&capacities, alone)[0];
        let mut more = capacities.clone();
        more[alone[0].resources[which % alone[0].resources.len()] as usize] *= extra;
        prop_assert!(run(&more, alone)[0] <= before * (1.0 + 1e-12));
    }

    /// Whole schedules, with their lanes and dependencies, end as the naive stepper says, task by
    /// task; and every byte of every transfer leaves over its sender's port.
    #[test]
    fn schedules_equal_the_naive_stepper(
        seed in any::<u64>(), n in 2usize..6, strategy in 0usize..2, kind in 0usize..2,
    ) {
        let kind = [Kind::AllGather, Kind::AllToAll][kind];
        let strategy = ["ring", "direct"][strategy];
        let identity: Vec<usize> = (0..n).collect();
        let mut topology = machine(n, &identity, seed);
        topology.explicit.clear();
        let schedule = collective(kind, (n as u64) << 20, n as u32, strategy, &topology);
        let timeline = support::run(&schedule, &topology);
        let naive = naive::perform(&schedule, &topology);
        for (span, end) in timeline.spans.iter().zip(&naive) {
            prop_assert!((span.end - end).abs() <= 1e-9 * end, "{} is not {end}", span.end);
        }
        let sent: u64 = (schedule.tasks.iter())
            .map(|task| match task.work {
                Work::Transfer { from, .. } if crosses(&schedule, task) => schedule.bytes(&from),
                _ => 0,
            })
            .sum();
        let ports = topology.graph.edge_indices().filter(|&edge| {
            let (from, _) = topology.graph.edge_endpoints(edge).unwrap();
            topology.gpus.contains(&from)
        });
        let left: f64 = ports.map(|edge| timeline.links[edge.index()].bytes).sum();
        prop_assert!((left - sent as f64).abs() <= 1e-9 * sent as f64);
    }

    /// Names do not matter: shuffling GPUs together with placement and explicit routes gives every
    /// task the same end.
    #[test]
    fn permuting_gpus_changes_nothing(
        seed in any::<u64>(), n in 3usize..7, strategy in 0usize..3, kind in 0usize..3,
    ) {
        let kind = [Kind::AllGather, Kind::ReduceScatter, Kind::AllToAll][kind];
        let strategy = ["ring", "direct", "library"][strategy];
        let permutation = shuffled(n, seed);
        let identity: Vec<usize> = (0..n).collect();
        let (a, b) = (machine(n, &identity, seed), machine(n, &permutation, seed));
        let bytes = (n as u64) << 20;
        let plain = collective(kind, bytes, n as u32, strategy, &a);
        let mut moved = plain.clone();
        // Rank r sits on the GPU that plays the part of GPU r.
        moved.placement = permutation.iter().map(|&p| p as u32).collect();
        let (x, y) = (support::run(&plain, &a), support::run(&moved, &b));
        for (p, q) in x.spans.iter().zip(&y.spans) {
            prop_assert!((p.end - q.end).abs() <= 1e-12 * p.end);
        }
    }
}

/// Whether a task moves bytes between ranks.
fn crosses(schedule: &Schedule, task: &Task) -> bool {
    match task.work {
        Work::Transfer { from, to, .. } => schedule.rank_of(&from) != schedule.rank_of(&to),
        _ => false,
    }
}

/// 0..n in an order that depends on `seed`.
fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    let mut state = seed | 1;
    for i in (1..n).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(i, (state % (i as u64 + 1)) as usize);
    }
    order
}

/// GPUs on two switches joined by a slower link; part p is played by GPU `gpu_of[p]`. Bandwidths
/// depend on the part and the seed only. Parts 0 and 1 have an explicit route: two paths, one over
/// a third switch.
fn machine(n: usize, gpu_of: &[usize], seed: u64) -> Topology {
    let mut b = Builder::new("random");
    let gpus = b.gpus(n);
    let switches = [b.switch("s0"), b.switch("s1"), b.switch("s2")];
    b.link(switches[0], switches[1], "trunk", 7e9, 2e-6);
    b.link(switches[0], switches[2], "detour", 3e9, 2e-6);
    b.link(switches[2], switches[1], "detour", 3e9, 2e-6);
    for part in 0..n {
        let bandwidth = 1e9 * (1.0 + ((seed >> (part * 5)) % 16) as f64);
        let latency = 1e-7 * (1.0 + ((seed >> (part * 3)) % 4) as f64);
        let (gpu, switch) = (gpus[gpu_of[part]], switches[part % 2]);
        b.link(gpu, switch, "port", bandwidth, latency);
    }
    let mut topology = b.build();
    let (from, to) = (gpus[gpu_of[0]], gpus[gpu_of[1]]);
    let path = |share: f64, middle: &[NodeId]| {
        let nodes: Vec<NodeId> = [&[from], middle, &[to]].concat();
        let links: Vec<_> = (nodes.windows(2))
            .map(|pair| topology.graph.find_edge(pair[0], pair[1]).unwrap())
            .collect();
        let latency = links.iter().map(|&l| topology.graph[l].latency.get()).sum();
        Path {
            share,
            legs: vec![Leg {
                from,
                to,
                links,
                latency: Seconds::of(latency),
            }],
            chunk: Bytes::ZERO,
            slots: 0,
        }
    };
    let [s0, s1, s2] = switches;
    let paths = vec![path(0.7, &[s0, s1]), path(0.3, &[s0, s2, s1])];
    topology.explicit.push(ExplicitRoute { from, to, paths });
    topology
}

/// A resource whose last flow leaves and that is taken up again before the next solve has changed
/// once, so that traces get one sample of it.
#[test]
fn a_resource_is_touched_once_per_solve() {
    let mut fluid = Fluid::new(&[1e9]);
    let on = [Usage {
        resource: 0,
        per_unit: 1.0,
    }];
    let first = fluid.add(1e6, 1.0, f64::INFINITY, &on, 0);
    fluid.solve(0.0);
    fluid.remove(first);
    let second = fluid.add(1e6, 1.0, f64::INFINITY, &on, 1);
    fluid.solve(1e-3);
    assert_eq!(fluid.touched(), [0]);
    fluid.remove(second);
    fluid.solve(2e-3);
    assert_eq!(fluid.touched(), [0]);
}
