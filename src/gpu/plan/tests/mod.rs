//! Plans of all strategies, performed by an emulator and searched for races.

mod apart;
mod emulator;
mod epilogue;
mod fused;
mod loader;
mod machine;
mod mutation;
mod race;
mod special;
mod streams;

use rayon::prelude::*;

use super::*;
use crate::device::DType;
use crate::operator::{Kind, Operator};
use crate::schedule::Schedule;
use crate::schedule::interpret::reference::Reference;
use crate::strategy::{self, Choice};
use crate::topology::Topology;
use crate::topology::build::Builder;
use crate::units::Bytes;
use apart::apart;
use emulator::emulate;

/// Pairs of GPUs with a bridge each, all on one switch: one ring, groups, and for two ranks a pair
/// of rings.
fn bridges(gpus: usize) -> Topology {
    let mut b = Builder::new("bridges");
    let ids = b.gpus(gpus);
    let hub = b.switch("s");
    for &gpu in &ids {
        b.link(gpu, hub, "pcie", 24e9, 1e-6);
    }
    for pair in ids.chunks_exact(2) {
        b.link(pair[0], pair[1], "nvlink", 52e9, 1e-6);
    }
    b.build()
}

/// GPUs in a ring of links, with two rings.
fn circle(gpus: usize) -> Topology {
    let mut b = Builder::new("circle");
    let ids = b.gpus(gpus);
    for (i, &gpu) in ids.iter().enumerate() {
        b.link(gpu, ids[(i + 1) % gpus], "nvlink", 50e9, 500e-9);
    }
    b.build()
}

/// `ranks` ranks on GPUs of their own, on two and on one.
fn placements(ranks: u32) -> Vec<Vec<u32>> {
    let on = |gpus: u32| (0..ranks).map(|r| r * gpus / ranks).collect::<Vec<_>>();
    let mut all = vec![on(ranks), on(2), on(1)];
    all.dedup();
    all
}

/// Shapes that are no multiples of anything but what the cuts need.
fn operators(kind: Kind, tp: u32) -> Vec<Operator> {
    let t = u64::from(tp);
    let gemm = |m, n, k| Operator::gemm(kind, m, n, k, tp, DType::Bf16).expect("valid");
    match kind {
        Kind::AgGemm => vec![gemm(16 * t, 3 * t, 5), gemm(6 * t, 67 * t, 3)],
        Kind::GemmRs | Kind::GemmAr => vec![gemm(16 * t, 7, 3 * t), gemm(6 * t, 65, 3 * t)],
        _ => vec![Operator::collective(kind, Bytes::new(t * 24), tp, DType::Bf16).expect("valid")],
    }
}

/// Every setting that comparisons try and some more.
fn choices(operator: &Operator) -> Vec<Choice> {
    let mut choices = strategy::candidates(operator);
    for text in [
        "fusion-ring:mover=sm:2",
        "fusion-alltoall:mover=sm:2,issue=pull",
        "fusion-ring:mover=epilogue",
        "fusion-ring:mover=epilogue,chunks=1",
        "fusion-alltoall:mover=epilogue",
        "fusion-alltoall:mover=epilogue,chunks=3",
        "fusion-alltoall:mover=loader",
        "fusion-alltoall:mover=loader,slabs=3",
        "fusion-alltoall:mover=loader,chunks=2,slabs=2",
        "fusion-alltoall:slabs=3",
        "fusion-alltoall:slabs=2,chunks=2,issue=pull",
        "interdecom:d=2,comm=direct,issue=pull",
        "ring:chunks=2,mover=sm:2",
        "direct:issue=pull",
    ] {
        let choice = strategy::parse(text).expect("a strategy");
        if choice.strategy().applies(operator.kind) {
            choices.push(choice);
        }
    }
    choices
}

const PATHS: [Path; 3] = [
    Path::P2p,
    Path::Host { chunk: 40 },
    Path::Hybrid {
        host_share: 0.4,
        chunk: 30,
    },
];

/// Every combination of options.
fn settings() -> Vec<Options> {
    let mut all = Vec::new();
    for path in PATHS {
        for library in [Library::Nccl, Library::Copies] {
            for (mode, flags) in [
                (Mode::Stream, Flags::Value),
                (Mode::Stream, Flags::ValueAndEvent),
                (Mode::Stream, Flags::Event),
                (Mode::Graph, Flags::Value),
            ] {
                all.push(Options {
                    path,
                    mode,
                    library,
                    flags,
                    ..Options::default()
                });
            }
        }
        for (mode, flags) in [
            (Mode::Stream, Flags::Value),
            (Mode::Stream, Flags::ValueAndEvent),
            (Mode::Graph, Flags::Value),
        ] {
            all.push(Options {
                path,
                mode,
                flags,
                products: Products::Own,
                ..Options::default()
            });
        }
    }
    all
}

/// Products of Duet's own.
fn own() -> Options {
    Options {
        products: Products::Own,
        ..Options::default()
    }
}

/// Whether transfers by epilogues can be performed.
fn stores(schedule: &Schedule, options: &Options) -> bool {
    let mut gpus = schedule.placement.clone();
    gpus.sort_unstable();
    gpus.dedup();
    gpus.len() == schedule.placement.len()
        && options.path == Path::P2p
        && options.products == Products::Own
}

struct Case {
    schedule: Schedule,
    name: String,
}

/// Schedules of all strategies for all operators on `tp` ranks.
fn cases(tp: u32) -> Vec<Case> {
    let mut cases = Vec::new();
    let topologies = [bridges(tp as usize), circle(tp as usize)];
    for kind in Kind::ALL {
        if kind == Kind::PointToPoint && tp != 2 {
            continue;
        }
        for operator in operators(kind, tp) {
            for choice in choices(&operator) {
                for placement in placements(tp) {
                    let built = topologies
                        .iter()
                        .find_map(|t| choice.build(&operator, t, &placement).ok());
                    let Some(schedule) = built else { continue };
                    let name = format!("{operator} {choice} on {placement:?}");
                    cases.push(Case { schedule, name });
                }
            }
        }
    }
    cases
}

fn references(schedule: &Schedule, runs: u64) -> Vec<Reference> {
    (0..runs)
        .map(|run| Reference::new(schedule, 77 + run).expect("small"))
        .collect()
}

/// Lowers and performs every case with the settings that `pick` chooses by the case's number.
fn perform(tp: u32, interleavings: u64, pick: impl Fn(usize, usize) -> bool + Sync) {
    let settings = settings();
    let cases = cases(tp);
    for strategy in strategy::registry() {
        let named = |case: &Case| case.schedule.strategy.starts_with(strategy.name());
        // Two GPUs have one ring and no groups.
        let none = tp == 2
            && ["double-ring", "hierarchical"]
                .iter()
                .any(|n| strategy.name().contains(n));
        assert!(none || cases.iter().any(named), "{}", strategy.name());
    }
    cases.par_iter().enumerate().for_each(|(c, case)| {
        let references = references(&case.schedule, 3);
        for (s, options) in settings.iter().enumerate().filter(|&(s, _)| pick(c, s)) {
            let context = || format!("{} with {options:?}", case.name);
            let plan = match lower(&case.schedule, options, None) {
                Ok(plan) => plan,
                // What an epilogue cannot do is said.
                Err(LowerError::Epilogue { .. } | LowerError::Loader { .. })
                    if !stores(&case.schedule, options) =>
                {
                    continue;
                }
                Err(error) => panic!("{}: {error}", context()),
            };
            assert!(plan.verified, "{}", context());
            let plan = apart(&plan);
            assert_eq!(race::races(&plan), [], "{}", context());
            assert_eq!(race::forks_and_joins(&plan), Ok(()), "{}", context());
            for seed in 0..interleavings {
                let seed = seed + (c * 7 + s) as u64;
                let done = emulate(&plan, &case.schedule, &references, seed);
                assert_eq!(done, Ok(()), "{}, seed {seed}", context());
            }
        }
    });
}

#[test]
fn two_ranks_compute_the_plain_product_in_every_setting() {
    perform(2, 2, |_, _| true);
}

#[test]
fn four_ranks_compute_the_plain_product() {
    perform(4, 2, |case, setting| (case + setting) % 5 == 0);
}

#[test]
fn eight_ranks_compute_the_plain_product() {
    perform(8, 1, |case, setting| (case + setting) % 8 == 0);
}

#[test]
#[ignore = "takes minutes: every setting and more interleavings"]
fn all_ranks_compute_the_plain_product_in_every_setting() {
    for tp in [2, 4, 8] {
        perform(tp, 7, |_, _| true);
    }
}
