//! Sequential operators against measured and published totals: GEMM and library collective as the
//! profiles have them, added up by the simulator.

use duet::device::DType;
use duet::operator::{Kind, Operator};
use duet::sim::{self, Options};
use duet::{strategy, topology};

/// The makespan [us] of `sequential` on a shipped machine.
fn sequential(machine: &str, kind: Kind, (m, n, k): (u64, u64, u64), tp: u32, dtype: DType) -> f64 {
    let machine = topology::load(machine, &[]).unwrap_or_else(|error| panic!("{error}"));
    let operator = Operator::gemm(kind, m, n, k, tp, dtype).unwrap();
    let ranks: Vec<u32> = (0..tp).collect();
    let schedule = strategy::parse("sequential")
        .unwrap()
        .build(&operator, &machine, &ranks)
        .unwrap();
    let timeline = sim::simulate(&schedule, &machine, &Options::default()).unwrap();
    timeline.makespan * 1e6
}

/// Asserts the mean and the largest relative error of (simulated, published) pairs.
fn within(pairs: &[(f64, f64)], mean: f64, worst: f64) {
    let errors: Vec<f64> = pairs
        .iter()
        .map(|(ours, real)| (ours / real - 1.0).abs())
        .collect();
    let average = errors.iter().sum::<f64>() / errors.len() as f64;
    let largest = errors.iter().copied().fold(0.0, f64::max);
    println!(
        "mean {:.1} %, largest {:.1} %: {pairs:.0?}",
        average * 100.0,
        largest * 100.0
    );
    assert!(
        average <= mean && largest <= worst,
        "{average} {largest}: {pairs:?}"
    );
}

/// NCCL then GEMM, and GEMM then NCCL, on two H200 [us]; per rank B is k × n for all-gather, and
/// A is m × k for reduce-scatter. The GEMM table and NCCL's constants were measured apart from
/// these totals.
#[test]
fn measured_pair_of_h200() {
    let mut pairs = Vec::new();
    for ((m, k, n), gather, scatter) in [
        ((2048, 8192, 8192), 507.0, 516.0),
        ((8192, 8192, 8192), 1800.0, 1852.0),
        ((16384, 8192, 3584), 1887.0, 1599.0),
        ((8192, 12288, 6144), 2132.0, 1992.0),
        ((32768, 8192, 3584), 3745.0, 3378.0),
    ] {
        let run = |kind, n, k| sequential("h200-pair", kind, (m, n, k), 2, DType::Bf16);
        pairs.push((run(Kind::AgGemm, 2 * n, k), gather));
        pairs.push((run(Kind::GemmRs, n, 2 * k), scatter));
    }
    within(&pairs, 0.05, 0.10);
}

/// PyTorch with NCCL on 8 GPUs, 4096 × 12288 × 49152, from the Flux repository [us]. GEMM and
/// all-gather of the same source calibrate the profiles, the reduce-scatter is predicted.
#[test]
fn published_boxes_of_eight() {
    let mut pairs = Vec::new();
    for (machine, gather, scatter) in [
        ("a800-nvswitch-8", 3099.0, 3100.0),
        ("h800-nvswitch-8", 1429.0, 1408.0),
        ("l20-pcie-8", 16946.0, 17664.0),
    ] {
        let run = |kind, n, k| sequential(machine, kind, (4096, n, k), 8, DType::Fp16);
        pairs.push((run(Kind::AgGemm, 49152, 12288), gather));
        pairs.push((run(Kind::GemmRs, 12288, 49152), scatter));
    }
    within(&pairs, 0.04, 0.08);
}

/// Flux on 8 A100 with few rows (64 and 512): overlap efficiencies from 14 to 88 % (arXiv
/// 2406.06858), because what arrives last still costs a whole wave.
#[test]
fn few_rows_hide_less() {
    let machine = topology::load("a100-nvswitch-8", &[]).unwrap_or_else(|error| panic!("{error}"));
    for m in [64, 512] {
        for (kind, n, k) in [(Kind::AgGemm, 49152, 12288), (Kind::GemmRs, 12288, 49152)] {
            let operator = Operator::gemm(kind, m, n, k, 8, DType::Bf16).unwrap();
            let ranks: Vec<u32> = (0..8).collect();
            let evaluate = |name| {
                let choice = strategy::parse(name).unwrap();
                let schedule = choice.build(&operator, &machine, &ranks).unwrap();
                sim::evaluate(&schedule, &machine, &Options::default()).unwrap()
            };
            let [fused, baseline] = ["fusion-alltoall", "sequential"].map(evaluate);
            let ect = |e: &sim::Evaluation| e.timeline.makespan - e.unsplit_gemm;
            let efficiency = 1.0 - ect(&fused) / ect(&baseline);
            println!("{kind:?} {m}: {efficiency:.2}");
            assert!(
                (0.14..=0.90).contains(&efficiency),
                "{kind:?} {m}: {efficiency}"
            );
        }
    }
}
