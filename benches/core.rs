//! Speed of the parts: the solver, a large ring built and simulated, the verifier, a comparison.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use duet::device::DType;
use duet::operator::{Kind, Operator, Shape};
use duet::schedule::Schedule;
use duet::schedule::verify::{Limits, verify};
use duet::sim::flows::{Flow, run};
use duet::sim::{Options, simulate};
use duet::strategy;
use duet::topology::{self, Topology, build::Builder as Machine};
use duet::units::Bytes;

/// All-to-all through a switch, sizes without symmetry: every end changes the shares of others.
fn solver(c: &mut Criterion) {
    for ranks in [8u32, 32] {
        let flows: Vec<Flow> = (0..ranks * (ranks - 1))
            .map(|i| {
                let from = i / (ranks - 1);
                let to = (from + 1 + i % (ranks - 1)) % ranks;
                Flow {
                    start: 0.0,
                    latency: 1e-6,
                    bytes: 5e5 + f64::from(i.wrapping_mul(2_654_435_761) >> 12),
                    weight: 1.0,
                    resources: vec![from, ranks + to],
                }
            })
            .collect();
        let capacities = vec![50e9; 2 * ranks as usize];
        c.bench_function(&format!("solver/all-to-all-{ranks}"), |b| {
            b.iter(|| run(black_box(&capacities), black_box(&flows)));
        });
    }
}

fn ring(gpus: u32) -> Topology {
    let mut machine = Machine::new("ring");
    let nodes = machine.gpus(gpus as usize);
    for (i, &node) in nodes.iter().enumerate() {
        machine.link(node, nodes[(i + 1) % nodes.len()], "cable", 50e9, 500e-9);
    }
    machine.build()
}

fn placement(operator: &Operator) -> Vec<u32> {
    (0..operator.tp).collect()
}

fn big_ring(c: &mut Criterion) {
    let machine = ring(1024);
    let operator = Operator {
        kind: Kind::AllGather,
        shape: Shape::Bytes(Bytes::new(1 << 30)),
        tp: 1024,
        dtype: DType::Bf16,
    };
    let choice = strategy::parse("ring").expect("registered");
    let build = || {
        choice
            .build(&operator, &machine, &placement(&operator))
            .unwrap_or_else(|skip| panic!("{}", skip.reason))
    };
    let mut group = c.benchmark_group("ring-1024");
    group.sample_size(10);
    group.bench_function("build", |b| b.iter(build));
    let built = build();
    group.bench_function("simulate", |b| {
        b.iter(|| simulate(black_box(&built), &machine, &Options::default()));
    });
    group.finish();
}

fn layer() -> Operator {
    Operator {
        kind: Kind::AgGemm,
        shape: Shape::Gemm {
            m: 8192,
            n: 49152,
            k: 12288,
        },
        tp: 8,
        dtype: DType::Bf16,
    }
}

/// The schedules of everything that a comparison tries.
fn schedules(machine: &Topology) -> Vec<Schedule> {
    let operator = layer();
    strategy::candidates(&operator)
        .iter()
        .filter_map(|choice| choice.build(&operator, machine, &placement(&operator)).ok())
        .collect()
}

fn comparison(c: &mut Criterion) {
    let machine = topology::load("h200-nvswitch-8", &[]).expect("built in");
    let mut group = c.benchmark_group("compare-8");
    group.bench_function("build", |b| b.iter(|| schedules(&machine)));
    let built = schedules(&machine);
    group.bench_function("verify", |b| {
        b.iter(|| {
            let verified = |s| verify(black_box(s), &Limits::default()).is_ok();
            assert!(built.iter().all(verified));
        });
    });
    group.bench_function("simulate", |b| {
        b.iter(|| {
            let makespan = |s| simulate(s, &machine, &Options::default()).map(|t| t.makespan);
            built.iter().map(makespan).collect::<Result<Vec<_>, _>>()
        });
    });
    group.finish();
}

criterion_group!(benches, solver, big_ring, comparison);
criterion_main!(benches);
