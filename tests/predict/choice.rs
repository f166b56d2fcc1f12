//! The selector against the evaluation of everything.

use std::sync::LazyLock;

use duet::device::DType;
use duet::operator::{Kind, Operator};
use duet::predict::{Key, Machine, Overhead, Parameters, Pick, Selection, Selector, Terms};
use duet::sim::{Options, simulate};
use duet::strategy;
use duet::topology;
use proptest::prelude::*;

use super::{SHAPES, machine};

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
            let all = naive(&machine, &operator, &terms, &none);
            let least = &all[0];
            agrees(&chosen, &all).unwrap_or_else(|why| panic!("{operator}: {why}"));
            let choice = strategy::parse(&least.1).unwrap();
            assert!(Pick::offers(kind, &choice), "{choice}");
        }
    }
}

/// Every strategy's best setting by evaluating each in full: (seconds, name), the fastest first.
fn naive(
    machine: &Machine,
    operator: &Operator,
    terms: &Terms,
    parameters: &Parameters,
) -> Vec<(f64, String)> {
    let fused = |name: &str| -> Vec<String> {
        let pieces: &[u32] = match (name, operator.kind) {
            ("fusion-ring", Kind::AgGemm) => &[1, 2, 4],
            ("fusion-ring", _) => &[2, 4],
            _ => &[1, 4],
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
    let best = |settings: &Vec<String>| {
        let times = settings.iter().filter_map(|text| {
            let choice = strategy::parse(text).unwrap();
            let found = machine.predict(operator, &choice, terms, parameters).ok()?;
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

/// What overheads are fitted to.
const FAMILIES: [&str; 8] = [
    "interdecom",
    "fusion-ring",
    "fusion-ring:chunks=1",
    "fusion-ring:chunks=4",
    "fusion-double-ring",
    "fusion-double-ring:chunks=4",
    "fusion-alltoall",
    "fusion-alltoall:chunks=4",
];

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
        graph in any::<bool>(),
        fitted in prop::collection::vec((0.0..30e-6f64, 0.0..2e-12f64), FAMILIES.len()),
    ) {
        let (_, machine) = MACHINES.iter().find(|(known, _)| *known == name).unwrap();
        let ranks = machine.ranks();
        let whole = |x: u64| x * grain * u64::from(ranks);
        let (m, n, k) = (m * u64::from(ranks), whole(n), whole(k));
        let operator = Operator::gemm(kind, m, n, k, ranks, DType::Bf16).unwrap();
        let terms = Terms::default().launched_as_graph(graph);
        // A third of the families, none for the others.
        let mut parameters = Parameters::default();
        for (strategy, (alpha, beta)) in FAMILIES.iter().zip(fitted) {
            if alpha < 10e-6 {
                let key = Key {
                    topology: machine.name().to_owned(),
                    operator: kind,
                    tp: ranks,
                    strategy: (*strategy).to_owned(),
                };
                let overhead = Overhead {
                    alpha,
                    beta,
                    ..Overhead::default()
                };
                parameters.insert(key, overhead);
            }
        }
        let selector = Selector::new(machine, kind, DType::Bf16, &terms, &parameters);
        let all = naive(machine, &operator, &terms, &parameters);
        let found = agrees(&selector.choose(m, n, k), &all);
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

/// Where rows are few, waves and start-ups rule and nothing is hidden for long: on every shipped machine, for 2 to 16
/// ranks, what the selector chooses is, simulated, as fast as the sequence. A thousandth more is allowed, what
/// decompositions that the forms hold level with it may take.
#[test]
fn a_choice_for_few_rows_is_not_slower_than_the_sequence() {
    let shapes = [
        (8192, 8192),
        (8192, 28672),
        (28672, 8192),
        (16384, 4096),
        (4096, 11008),
    ];
    let none = Parameters::default();
    let mut cases = 0;
    for name in topology::names() {
        let shipped = topology::load(name, &[]).unwrap();
        let peaks = &shipped.device(0).peak;
        let dtype = match peaks.iter().any(|(known, _)| *known == DType::Bf16) {
            true => DType::Bf16,
            false => DType::Fp16,
        };
        for tp in [2u32, 4, 8, 16] {
            if tp as usize > shipped.gpus.len() {
                continue;
            }
            let placement: Vec<u32> = (0..tp).collect();
            let machine = Machine::new(&shipped, &placement);
            for kind in [Kind::AgGemm, Kind::GemmRs, Kind::GemmAr] {
                let selector = Selector::new(&machine, kind, dtype, &Terms::default(), &none);
                for ((n, k), m) in shapes
                    .into_iter()
                    .flat_map(|s| [64, 128, 256].map(|m| (s, m)))
                {
                    let operator = Operator::gemm(kind, m, n, k, tp, dtype).unwrap();
                    let chosen = selector.choose(m, n, k).pick.to_string();
                    let time = |text: &str| {
                        let choice = strategy::parse(text).unwrap();
                        let schedule = choice.build(&operator, &shipped, &placement).unwrap();
                        let timeline = simulate(&schedule, &shipped, &Options::default());
                        timeline.unwrap().makespan
                    };
                    let ratio = time(&chosen) / time("sequential");
                    assert!(ratio < 1.001, "{chosen} of {operator} on {name}: {ratio}");
                    cases += 1;
                }
            }
        }
    }
    assert!(cases > 2500, "{cases}");
}
