//! Mutants of every strategy's schedules: what the oracle finds wrong, the verifier must refuse.

use std::fmt::Write as _;

use duet::device::DType;
use duet::operator::{Kind, Operator};
use duet::schedule::verify::{Limits, Verified, verify};
use duet::schedule::{Schedule, interpret};
use duet::strategy::{self, Site};
use duet::topology::Topology;
use duet::topology::build::Builder;
use duet::units::Bytes;
use rayon::prelude::*;

use crate::mutate::{MUTATIONS, Random};
use crate::samples;

/// Settings beyond those that comparisons try, for the strategies that have them.
const SETTINGS: [&str; 7] = [
    "mover=sm:2",
    "issue=pull",
    "chunks=2",
    "chunks=2,mover=sm:2",
    "group=2",
    "d=2,comm=direct,issue=pull",
    "d=2,margin=yes",
];

/// Random places tried for each kind of mutation in each schedule.
const PLACES: u64 = 24;
/// Orders in which the oracle performs a mutant.
const ORDERS: u32 = 42;

/// GPUs on one switch, in pairs with a bridge each where `bridged`.
fn machine(gpus: u32, bridged: bool) -> Topology {
    let mut b = Builder::new(if bridged { "bridges" } else { "switch" });
    let ids = b.gpus(gpus as usize);
    let hub = b.switch("s");
    for &gpu in &ids {
        b.link(gpu, hub, "pcie", 24e9, 1e-6);
    }
    for pair in ids.chunks_exact(if bridged { 2 } else { ids.len() + 1 }) {
        b.link(pair[0], pair[1], "nvlink", 52e9, 1e-6);
    }
    b.build()
}

fn operator(kind: Kind, tp: u32) -> Operator {
    let width = u64::from(tp);
    if kind.is_fused() {
        Operator::gemm(kind, 4 * width, 2 * width, 2 * width, tp, DType::Bf16)
    } else {
        // Seven rows or more to a share: two rings can each cut theirs, into unequal chunks.
        Operator::collective(kind, Bytes::new(width * width * 56), tp, DType::Bf16)
    }
    .expect("a valid operator")
}

/// Schedules of everything that comparisons try and of [`SETTINGS`], on small shapes: on a plain
/// switch, or where that offers no second ring and no groups, on bridged pairs.
pub fn of_registry(tp: u32) -> Vec<(String, Schedule)> {
    let machines = [machine(tp, false), machine(tp, true)];
    let sites = machines
        .each_ref()
        .map(|machine| Site::new(machine, (0..tp).collect()));
    let mut schedules = Vec::new();
    for kind in Kind::ALL {
        let operator = operator(kind, tp);
        let mut choices = strategy::candidates(&operator);
        for strategy in strategy::registry() {
            for setting in SETTINGS {
                let choice = strategy::parse(&format!("{}:{setting}", strategy.name()));
                choices.extend(choice.ok().filter(|choice| !choices.contains(choice)));
            }
        }
        for choice in choices {
            let mut built = sites.iter().map(|site| choice.build_at(&operator, site));
            if let Some(Ok(schedule)) = built.find(Result::is_ok) {
                schedules.push((format!("{operator} by {choice}"), schedule));
            }
        }
    }
    schedules
}

fn all() -> Vec<(String, Schedule)> {
    let mut schedules: Vec<(String, Schedule)> = [2, 4].into_iter().flat_map(of_registry).collect();
    let samples = samples::all(3).into_iter();
    schedules.extend(samples.map(|(name, schedule)| (name.to_owned(), schedule)));
    schedules
}

#[test]
fn schedules_of_the_registry_verify_and_compute_the_product() {
    for tp in [2, 3, 4, 8] {
        for (name, schedule) in of_registry(tp) {
            match verify(&schedule, &Limits::default()) {
                Ok(Verified::Yes { .. }) => {}
                other => panic!("{name}: {other:?}"),
            }
            if let Err(error) = interpret(&schedule, u64::from(tp), 14) {
                panic!("{name}: {error}");
            }
        }
    }
}

#[derive(Copy, Clone, Default)]
struct Count {
    mutants: u32,
    wrong: u32,
    harmless_refused: u32,
}

#[test]
fn every_wrong_mutant_is_refused() {
    let schedules = all();
    let jobs: Vec<(usize, usize)> = (0..schedules.len())
        .flat_map(|s| (0..MUTATIONS.len()).map(move |m| (s, m)))
        .collect();
    let results: Vec<(Count, Vec<String>)> = jobs
        .par_iter()
        .map(|&(s, m)| mutants(&schedules[s], m))
        .collect();
    let mut counts = [Count::default(); MUTATIONS.len()];
    let mut wrong = vec![0; schedules.len()];
    for (&(s, m), (count, _)) in jobs.iter().zip(&results) {
        counts[m].mutants += count.mutants;
        counts[m].wrong += count.wrong;
        counts[m].harmless_refused += count.harmless_refused;
        wrong[s] += count.wrong;
    }
    println!("{} schedules", schedules.len());
    println!("{}", table(&counts));
    let missed: Vec<&String> = results.iter().flat_map(|r| &r.1).collect();
    assert!(missed.is_empty(), "accepted but wrong: {missed:#?}");
    for ((name, _), count) in MUTATIONS.iter().zip(&counts) {
        assert!(count.wrong > 0, "`{name}` breaks nothing");
    }
    let broken: Vec<&Schedule> = (schedules.iter().zip(&wrong))
        .filter(|(_, wrong)| **wrong > 0)
        .map(|((_, schedule), _)| schedule)
        .collect();
    every_strategy_is_among(&broken);
}

/// Every strategy for every kind of operator that it performs, and every one of [`SETTINGS`].
fn every_strategy_is_among(schedules: &[&Schedule]) {
    let seen: Vec<(Kind, strategy::Choice)> = schedules
        .iter()
        .filter_map(|s| Some((s.operator.kind, strategy::parse(&s.strategy).ok()?)))
        .collect();
    for strategy in strategy::registry() {
        let name = strategy.name();
        for kind in Kind::ALL.into_iter().filter(|kind| strategy.applies(*kind)) {
            let there = |(k, choice): &(Kind, strategy::Choice)| {
                *k == kind && choice.strategy().name() == name
            };
            assert!(seen.iter().any(there), "no mutants of `{name}` for {kind}");
        }
        for setting in SETTINGS {
            let Ok(choice) = strategy::parse(&format!("{name}:{setting}")) else {
                continue;
            };
            let there = seen.iter().any(|(_, other)| *other == choice);
            assert!(there, "no mutants of `{choice}`");
        }
    }
}

/// Mutants of one kind of one schedule, and those that were wrong and accepted.
fn mutants((name, schedule): &(String, Schedule), kind: usize) -> (Count, Vec<String>) {
    let (label, mutation) = MUTATIONS[kind];
    let mut count = Count::default();
    let mut missed = Vec::new();
    for place in 0..PLACES {
        let mut mutant = schedule.clone();
        let seed = place << 32 | (kind as u64) << 16 | schedule.tasks.len() as u64;
        if mutation(&mut mutant, &mut Random::new(seed)).is_none() || mutant == *schedule {
            continue;
        }
        count.mutants += 1;
        let accepted = matches!(
            verify(&mutant, &Limits::default()),
            Ok(Verified::Yes { .. })
        );
        let mut oracle = interpret(&mutant, seed, ORDERS);
        if !accepted && oracle.is_ok() {
            // A narrow race shows in few orders; look longer before calling it harmless.
            oracle = interpret(&mutant, seed + 1, 4 * ORDERS);
        }
        match (accepted, oracle) {
            (true, Err(error)) => {
                count.wrong += 1;
                missed.push(format!("{name}, {label}, place {place}: {error}"));
            }
            (false, Err(_)) => count.wrong += 1,
            (false, Ok(())) => count.harmless_refused += 1,
            (true, Ok(())) => {}
        }
    }
    (count, missed)
}

fn table(counts: &[Count]) -> String {
    let mut text = String::from(
        "| mutation | mutants | wrong, all refused | harmless | harmless but refused |\n|---|---|---|---|---|\n",
    );
    let mut row = |name: &str, count: Count| {
        let harmless = count.mutants - count.wrong;
        let (mutants, wrong, refused) = (count.mutants, count.wrong, count.harmless_refused);
        writeln!(
            text,
            "| {name} | {mutants} | {wrong} | {harmless} | {refused} |"
        )
        .unwrap();
    };
    let mut sum = Count::default();
    for ((name, _), count) in MUTATIONS.iter().zip(counts) {
        sum.mutants += count.mutants;
        sum.wrong += count.wrong;
        sum.harmless_refused += count.harmless_refused;
        row(name, *count);
    }
    row("all", sum);
    text
}
