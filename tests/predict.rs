//! Closed forms against the simulator, and what a choice costs.

#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::LazyLock;

use duet::device::DType;
use duet::operator::{Kind, Operator};
use duet::predict::{Machine, Parameters, Pick, Selection, Selector, Terms};
use duet::sim::{LaunchMode, Options, simulate};
use duet::strategy;
use duet::topology::{self, Topology};
use proptest::prelude::*;

/// The system's allocator, counting what each thread asks for.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn machine(name: &str, tp: u32) -> (Topology, Machine) {
    let topology = topology::load(name, &[]).unwrap();
    let machine = Machine::new(&topology, &(0..tp).collect::<Vec<_>>());
    (topology, machine)
}

#[test]
fn a_choice_allocates_nothing() {
    for (name, tp) in [
        ("a6000-pairs-8", 8),
        ("h200-nvswitch-8", 8),
        ("h200-pair-calibrated", 2),
        ("v100-dgx1-8", 4),
    ] {
        let dtype = if name.starts_with("v100") {
            DType::Fp16
        } else {
            DType::Bf16
        };
        let (_, machine) = machine(name, tp);
        for kind in [Kind::AgGemm, Kind::GemmRs, Kind::GemmAr] {
            let selector = Selector::new(
                &machine,
                kind,
                dtype,
                &Terms::default(),
                &Parameters::default(),
            );
            let before = ALLOCATIONS.with(Cell::get);
            let mut sum = 0.0;
            for m in [8, 512, 1000, 4096, 65536, 1 << 20] {
                for (n, k) in [(1024, 1024), (16384, 4096), (49152, 12288), (7, 3)] {
                    sum += selector.choose(m, n, k).margin;
                }
            }
            assert_eq!(ALLOCATIONS.with(Cell::get), before, "{name} {kind}");
            assert!(sum > 0.0);
        }
    }
}

/// (predicted, simulated) seconds.
fn both(
    topology: &Topology,
    machine: &Machine,
    operator: &Operator,
    text: &str,
    launch: LaunchMode,
) -> (f64, f64) {
    let choice = strategy::parse(text).unwrap();
    let terms = Terms::default().launched_as_graph(launch == LaunchMode::Graph);
    let predicted = machine.predict(operator, &choice, &terms, &Parameters::default());
    let placement: Vec<u32> = (0..operator.tp).collect();
    let schedule = choice.build(operator, topology, &placement).unwrap();
    let options = Options {
        launch,
        ..Options::default()
    };
    let timeline = simulate(&schedule, topology, &options).unwrap();
    (predicted.unwrap().seconds, timeline.makespan)
}

/// Shapes off any grid that was looked at while the forms were written.
const SHAPES: [(u64, u64); 6] = [
    (768, 3584),
    (1536, 7168),
    (2560, 5632),
    (5120, 2560),
    (7168, 8704),
    (10240, 6656),
];

#[test]
fn without_a_fit_the_forms_are_near_the_simulator() {
    // Mean and largest relative error allowed. On fast links small shapes are bound by what the host
    // hands over, in an order that the forms know only roughly.
    let (stream, graph) = (LaunchMode::Stream, LaunchMode::Graph);
    for (name, tp, launch, mean, largest) in [
        ("a6000-pairs-4", 4, stream, 0.01, 0.08),
        ("a6000-pairs-8", 8, stream, 0.01, 0.08),
        ("h200-nvswitch-8", 8, stream, 0.04, 0.30),
        ("a100-nvswitch-8", 8, stream, 0.03, 0.30),
        ("a6000-pairs-8", 8, graph, 0.01, 0.08),
        ("h200-nvswitch-8", 8, graph, 0.04, 0.30),
    ] {
        let (topology, machine) = machine(name, tp);
        let (mut sum, mut count) = (0.0, 0.0);
        for kind in [Kind::AgGemm, Kind::GemmRs] {
            for (m, hidden) in SHAPES {
                let (n, k) = match kind {
                    Kind::AgGemm => (4 * hidden, hidden),
                    _ => (hidden, 4 * hidden),
                };
                let operator = Operator::gemm(kind, m, n, k, tp, DType::Bf16).unwrap();
                for text in [
                    "sequential",
                    "interdecom:d=2",
                    "interdecom:d=4",
                    "fusion-ring",
                    "fusion-alltoall",
                ] {
                    let (predicted, simulated) = both(&topology, &machine, &operator, text, launch);
                    let error = (predicted / simulated - 1.0).abs();
                    assert!(
                        error <= largest,
                        "{name} {operator} {text}: {predicted} for {simulated}"
                    );
                    sum += error;
                    count += 1.0;
                }
            }
        }
        let found = sum / count;
        assert!(
            found <= mean,
            "{name}, {}: mean error {found}",
            launch.name()
        );
        println!("{name}, {}: mean error {found:.4}", launch.name());
    }
}

#[test]
fn the_selector_is_the_least_of_the_forms() {
    let (_, machine) = machine("a6000-pairs-8", 8);
    let (terms, none) = (Terms::default(), Parameters::default());
    // Also rows that are too few for pieces of shards, or that only GEMM+AR can cut.
    let odd = [
        (8, 4096, 1 << 20),
        (8, 1 << 20, 4096),
        (24, 1 << 20, 4096),
        (100, 65536, 8192),
        (1032, 65536, 65536),
        (7, 65536, 8192),
    ];
    let all = SHAPES.map(|(m, hidden)| (m, 4 * hidden, hidden));
    for kind in [Kind::AgGemm, Kind::GemmRs, Kind::GemmAr] {
        let selector = Selector::new(&machine, kind, DType::Bf16, &terms, &none);
        for (m, n, k) in all.into_iter().chain(odd) {
            let chosen = selector.choose(m, n, k);
            let Ok(operator) = Operator::gemm(kind, m, n, k, 8, DType::Bf16) else {
                assert_eq!(chosen.seconds, f64::INFINITY);
                continue;
            };
            let all = naive(&machine, &operator);
            let least = &all[0];
            agrees(&chosen, &all).unwrap_or_else(|why| panic!("{operator}: {why}"));
            let choice = strategy::parse(&least.1).unwrap();
            assert!(Pick::offers(kind, &choice), "{choice}");
        }
    }
}

/// Every strategy's best setting by evaluating each in full: (seconds, name), the fastest first.
fn naive(machine: &Machine, operator: &Operator) -> Vec<(f64, String)> {
    let fused = |name: &str| -> Vec<String> {
        let pieces: &[u32] = match (name, operator.kind) {
            ("fusion-ring", Kind::AgGemm) => &[1, 2, 4],
            ("fusion-ring", _) => &[2, 4],
            ("fusion-double-ring", _) => &[1, 4],
            _ => &[1],
        };
        let written = |chunks| format!("{name}:chunks={chunks}");
        pieces.iter().map(written).collect()
    };
    let cut = (1..=12).map(|power| format!("interdecom:d={}", 1u32 << power));
    let strategies = [
        vec!["sequential".to_owned()],
        fused("fusion-ring"),
        fused("fusion-double-ring"),
        fused("fusion-alltoall"),
        cut.collect(),
    ];
    let (terms, none) = (Terms::default(), Parameters::default());
    let best = |settings: &Vec<String>| {
        let times = settings.iter().filter_map(|text| {
            let choice = strategy::parse(text).unwrap();
            let found = machine.predict(operator, &choice, &terms, &none).ok()?;
            Some((found.seconds, choice.to_string()))
        });
        times.min_by(|a, b| a.0.total_cmp(&b.0))
    };
    let mut all: Vec<_> = strategies.iter().filter_map(best).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

/// Whether the selector names the first two of `all` with their times and margin; of those that
/// differ by rounding only it may name either.
fn agrees(chosen: &Selection, all: &[(f64, String)]) -> Result<(), String> {
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs();
    let same = |found: Option<(Pick, f64)>, place: usize| {
        let want = all.get(place);
        let name = found.map(|(pick, _)| pick.to_string());
        let ties = |time: f64| all.iter().filter(|(other, _)| near(*other, time)).count() > 1;
        let right = match (found, want) {
            (None, None) => true,
            (Some((_, time)), Some((least, strategy))) => {
                near(time, *least)
                    && (name.as_deref() == Some(strategy)
                        || ties(time)
                        || settings_tie(name.as_deref(), strategy))
            }
            _ => false,
        };
        match right {
            true => Ok(()),
            false => Err(format!("{name:?} {found:?} for {want:?} among {all:?}")),
        }
    };
    same(Some((chosen.pick, chosen.seconds)), 0)?;
    same(chosen.runner_up, 1)?;
    let margin = all.get(1).map_or(0.0, |next| next.0 / all[0].0 - 1.0);
    match (chosen.margin - margin).abs() <= 1e-11 {
        true => Ok(()),
        false => Err(format!("margin {} for {margin}", chosen.margin)),
    }
}

/// Whether both are one strategy, whose settings then take equally long.
fn settings_tie(name: Option<&str>, other: &str) -> bool {
    let strategy = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
    name.map(strategy) == Some(strategy(other))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Bounds and short cuts leave out nothing that would have been named.
    #[test]
    fn a_choice_is_that_of_evaluating_everything(
        name in prop::sample::select(vec![
            "a6000-pairs-8", "h200-nvswitch-8", "h200-pair-calibrated", "rtx4090-pcie-8",
        ]),
        kind in prop::sample::select(vec![Kind::AgGemm, Kind::GemmRs, Kind::GemmAr]),
        m in (1u64..64, 0u32..11).prop_map(|(rows, power)| rows << power),
        n in 1u64..400,
        k in 1u64..400,
        grain in prop::sample::select(vec![1, 8, 64]),
    ) {
        let (_, machine) = MACHINES.iter().find(|(known, _)| *known == name).unwrap();
        let ranks = machine.ranks();
        let whole = |x: u64| x * grain * u64::from(ranks);
        let (m, n, k) = (m * u64::from(ranks), whole(n), whole(k));
        let operator = Operator::gemm(kind, m, n, k, ranks, DType::Bf16).unwrap();
        let (terms, none) = (Terms::default(), Parameters::default());
        let selector = Selector::new(machine, kind, DType::Bf16, &terms, &none);
        let found = agrees(&selector.choose(m, n, k), &naive(machine, &operator));
        prop_assert!(found.is_ok(), "{name} {operator}: {}", found.unwrap_err());
    }
}

/// Machines of the property, built once.
static MACHINES: LazyLock<Vec<(&str, Machine)>> = LazyLock::new(|| {
    let names = [
        ("a6000-pairs-8", 8),
        ("h200-nvswitch-8", 8),
        ("h200-pair-calibrated", 2),
        ("rtx4090-pcie-8", 8),
    ];
    let built = |(name, tp)| (name, machine(name, tp).1);
    names.into_iter().map(built).collect()
});

#[test]
fn what_has_no_closed_form_says_why() {
    let (_, machine) = machine("h200-nvswitch-8", 8);
    let operator = Operator::gemm(Kind::AgGemm, 4096, 4096, 4096, 8, DType::Bf16).unwrap();
    for (text, reason) in [
        ("fusion-double-ring", "no pair beats one ring"),
        (
            "interdecom:d=1024",
            "m = 4096 cannot be cut into 1024 chunks for 8 ranks",
        ),
        ("fusion-ring:mover=sm", "copies by copy engines only"),
        ("tree", "does not perform ag-gemm"),
    ] {
        let choice = strategy::parse(text).unwrap();
        let error = machine.predict(
            &operator,
            &choice,
            &Terms::default(),
            &Parameters::default(),
        );
        let error = error.unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
    let shared = Machine::new(&topology::load("h200-nvswitch-8", &[]).unwrap(), &[0, 0]);
    let operator = Operator::gemm(Kind::AgGemm, 4096, 4096, 4096, 2, DType::Bf16).unwrap();
    let choice = strategy::parse("sequential").unwrap();
    let error = shared.predict(
        &operator,
        &choice,
        &Terms::default(),
        &Parameters::default(),
    );
    assert!(error.unwrap_err().to_string().contains("GPUs of their own"));
}
