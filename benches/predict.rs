//! Speed of the closed forms: one GEMM time, and the selector's whole path from shape to choice.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use duet::device::{DType, gemm};
use duet::operator::Kind;
use duet::predict::{Machine, Parameters, Selector, Terms};
use duet::topology;

fn selector(c: &mut Criterion) {
    for (name, ranks) in [
        ("a6000-pairs-8", 8),
        ("h200-nvswitch-8", 8),
        // Lists the GEMM library's choices.
        ("h200-pair-calibrated", 2),
    ] {
        let machine = topology::load(name, &[]).expect("shipped");
        let device = machine.device(0);
        c.bench_function(&format!("predict/gemm/{name}"), |b| {
            b.iter(|| {
                gemm::gemm(
                    device,
                    DType::Bf16,
                    black_box(4096),
                    12288,
                    6144,
                    device.sms,
                )
            });
        });
        let machine = Machine::new(&machine, &(0..ranks).collect::<Vec<_>>());
        for kind in [Kind::AgGemm, Kind::GemmRs, Kind::GemmAr] {
            let fitted = Parameters::default();
            let selector = Selector::new(&machine, kind, DType::Bf16, &Terms::default(), &fitted);
            // Shapes of different winners, so that no branch is learned by heart.
            let shapes: Vec<[u64; 3]> = (0..64u64)
                .map(|i| {
                    let hidden = [2048, 3072, 4096, 5120, 6144, 8192, 10240, 12288][i as usize / 8];
                    let (n, k) = match kind {
                        Kind::AgGemm => (4 * hidden, hidden),
                        _ => (hidden, 4 * hidden),
                    };
                    [512 << (i % 6), n, k]
                })
                .collect();
            let mut at = 0;
            c.bench_function(&format!("predict/selector/{name}/{kind}"), |b| {
                b.iter(|| {
                    at = (at + 1) % shapes.len();
                    let [m, n, k] = black_box(shapes[at]);
                    selector.choose(m, n, k)
                });
            });
        }
    }
}

fn building(c: &mut Criterion) {
    let topology = topology::load("a6000-pairs-8", &[]).expect("shipped");
    c.bench_function("predict/machine/a6000-pairs-8", |b| {
        b.iter(|| Machine::new(black_box(&topology), &[0, 1, 2, 3, 4, 5, 6, 7]));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30).measurement_time(std::time::Duration::from_secs(2)).warm_up_time(std::time::Duration::from_millis(500));
    targets = selector, building
}
criterion_main!(benches);
