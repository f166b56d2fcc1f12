//! Closed forms against the simulator, and what a choice costs.

#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

mod choice;

use duet::device::DType;
use duet::operator::{Kind, Operator};
use duet::predict::{Machine, Parameters, Selector, Terms};
use duet::sim::{LaunchMode, Options, simulate};
use duet::strategy;
use duet::topology::{self, Topology};

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
fn pieces_take_turns_at_the_engines() {
    // Mean and largest relative error allowed, of shards in four pieces.
    for (name, tp, mean, largest) in [
        ("a6000-pairs-4", 4, 0.06, 0.25),
        ("a6000-pairs-8", 8, 0.12, 0.40),
        ("h200-nvswitch-8", 8, 0.05, 0.30),
        ("a100-nvswitch-8", 8, 0.05, 0.30),
    ] {
        let (topology, machine) = machine(name, tp);
        let kinds = [Kind::AgGemm, Kind::GemmRs, Kind::GemmAr];
        let (mut sum, mut count, mut worst) = (0.0, 0.0, 0f64);
        for (kind, (m, hidden)) in kinds.into_iter().flat_map(|kind| SHAPES.map(|s| (kind, s))) {
            let (n, k) = match kind {
                Kind::AgGemm => (4 * hidden, hidden),
                _ => (hidden, 4 * hidden),
            };
            let operator = Operator::gemm(kind, m, n, k, tp, DType::Bf16).unwrap();
            let text = "fusion-alltoall:chunks=4";
            let mode = LaunchMode::Stream;
            let (predicted, simulated) = both(&topology, &machine, &operator, text, mode);
            let error = (predicted / simulated - 1.0).abs();
            (sum, count, worst) = (sum + error, count + 1.0, worst.max(error));
        }
        let found = sum / count;
        println!("{name}: mean error {found:.4}, largest {worst:.4}");
        assert!(
            found <= mean && worst <= largest,
            "{name}: {found}, {worst}"
        );
    }
}

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
        ("fusion-alltoall:slabs=2", "no slabs along k"),
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
