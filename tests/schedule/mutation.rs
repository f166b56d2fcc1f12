//! Mutants of every strategy's schedules: what the oracle finds wrong, the verifier must refuse.

use std::fmt::Write as _;

use duet::device::DType;
use duet::operator::{Kind, Operator};
use duet::schedule::verify::{Limits, Verified, verify};
use duet::schedule::{Schedule, interpret};
use duet::strategy;
use duet::topology::build::Builder;
use duet::units::Bytes;
use rayon::prelude::*;

use crate::mutate::{MUTATIONS, Random};
use crate::samples;

const KINDS: [Kind; 8] = [
    Kind::AgGemm,
    Kind::GemmRs,
    Kind::GemmAr,
    Kind::AllGather,
    Kind::ReduceScatter,
    Kind::AllReduce,
    Kind::AllToAll,
    Kind::PointToPoint,
];

/// Random places tried for each kind of mutation in each schedule.
const PLACES: u64 = 24;
/// Orders in which the oracle performs a mutant.
const ORDERS: u32 = 42;

/// Schedules of everything that comparisons try, on small shapes.
pub fn of_registry(tp: u32) -> Vec<(String, Schedule)> {
    let mut b = Builder::new("switch");
    let gpus = b.gpus(tp as usize);
    let hub = b.switch("s");
    for gpu in gpus {
        b.link(gpu, hub, "nvlink", 50e9, 500e-9);
    }
    let topology = b.build();
    let placement: Vec<u32> = (0..tp).collect();
    let mut schedules = Vec::new();
    for kind in KINDS {
        let width = u64::from(tp);
        let operator = if kind.is_fused() {
            Operator::gemm(kind, 4 * width, 2 * width, 2 * width, tp, DType::Bf16)
        } else {
            Operator::collective(kind, Bytes::new(width * width * 8), tp, DType::Bf16)
        };
        let operator = operator.expect("a valid operator");
        for choice in strategy::candidates(&operator) {
            if let Ok(schedule) = choice.build(&operator, &topology, &placement) {
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
    let results: Vec<(usize, Count, Vec<String>)> = jobs
        .par_iter()
        .map(|&(s, m)| {
            let (count, missed) = mutants(&schedules[s], m);
            (m, count, missed)
        })
        .collect();
    let mut counts = [Count::default(); MUTATIONS.len()];
    for (m, count, _) in &results {
        counts[*m].mutants += count.mutants;
        counts[*m].wrong += count.wrong;
        counts[*m].harmless_refused += count.harmless_refused;
    }
    println!("{} schedules", schedules.len());
    println!("{}", table(&counts));
    let missed: Vec<&String> = results.iter().flat_map(|r| &r.2).collect();
    assert!(missed.is_empty(), "accepted but wrong: {missed:#?}");
    for ((name, _), count) in MUTATIONS.iter().zip(&counts) {
        assert!(count.wrong > 0, "`{name}` breaks nothing");
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
