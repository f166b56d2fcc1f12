//! Plans with one wait removed.

use rayon::prelude::*;

use super::emulator::emulate;
use super::race::{Order, forks_and_joins, races, works};
use super::{Case, cases, references};
use crate::gpu::plan::{Flags, Library, LowerError, Mode, Options, Path, Plan, What, lower};

/// A plan without one of its waits.
struct Mutant {
    plan: Plan,
    /// Whether what it waited for still happens before what waited.
    implied: bool,
}

/// Every plan with one wait less; of many, about `most`.
fn mutants(plan: &Plan, most: usize) -> Vec<Mutant> {
    let waits = |what: &What| matches!(what, What::Await(_) | What::AwaitFlag(_));
    let inside: Vec<usize> = (0..plan.steps.len())
        .filter(|&i| waits(&plan.steps[i].what))
        .collect();
    let every = (inside.len() / most).max(1);
    let mut all = Vec::new();
    for &i in inside.iter().step_by(every) {
        let mut mutant = plan.clone();
        let removed = mutant.steps.remove(i);
        // The step awaited is the last that works before the signal in the signal's stream.
        let signal = plan
            .steps
            .iter()
            .position(|step| match (&step.what, &removed.what) {
                (What::Record(a), What::Await(b)) => a == b,
                (What::WriteFlag(a), What::AwaitFlag(b)) => a == b,
                _ => false,
            });
        let signal = signal.expect("signalled");
        let stream = plan.steps[signal].stream;
        let awaited = (0..signal)
            .rev()
            .find(|&s| plan.steps[s].stream == stream && works(&plan.steps[s].what));
        let waiter = (i..mutant.steps.len())
            .find(|&s| mutant.steps[s].stream == removed.stream && works(&mutant.steps[s].what));
        // What a kernel brings begins with it, and that may be the first of its stream.
        let (Some(awaited), Some(waiter)) = (awaited, waiter) else {
            continue;
        };
        let implied = Order::new(&mutant).ordered(awaited, waiter);
        all.push(Mutant {
            plan: mutant,
            implied,
        });
    }
    for i in 0..plan.fork.streams.len() {
        let mut mutant = plan.clone();
        mutant.fork.streams.remove(i);
        let implied = forks_and_joins(&mutant).is_ok();
        all.push(Mutant {
            plan: mutant,
            implied,
        });
    }
    for i in 0..plan.join.len() {
        let mut mutant = plan.clone();
        mutant.join.remove(i);
        let implied = forks_and_joins(&mutant).is_ok();
        all.push(Mutant {
            plan: mutant,
            implied,
        });
    }
    all
}

/// By fate: caught, a race that no interleaving showed, no race.
pub(super) fn fates(case: &Case, options: &Options) -> [usize; 3] {
    let plan = match lower(&case.schedule, options, None) {
        Err(LowerError::Epilogue { .. } | LowerError::Loader { .. })
            if !super::stores(&case.schedule, options) =>
        {
            return [0; 3];
        }
        plan => super::apart(&plan.expect("lowers")),
    };
    let references = references(&case.schedule, 3);
    let mut fates = [0; 3];
    for (i, mutant) in mutants(&plan, 12).into_iter().enumerate() {
        assert!(!mutant.implied, "{}: a wait that others imply", case.name);
        let wrong = forks_and_joins(&mutant.plan).is_err() || !races(&mutant.plan).is_empty();
        let caught = (0..63).any(|seed| {
            let seed = seed + 100 * i as u64;
            emulate(&mutant.plan, &case.schedule, &references, seed).is_err()
        });
        assert!(wrong || !caught, "{}: a race not found", case.name);
        fates[match (caught, wrong) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        }] += 1;
    }
    fates
}

/// No wait is implied by the others, and the emulator sees most of those that are missing. What it
/// misses is a race that the search for races finds. A missing wait without a race is one that the
/// schedule asks for and the data do not.
#[test]
fn a_missing_wait_is_noticed() {
    let settings = [
        (Path::P2p, Mode::Stream, Flags::Value, Library::Copies),
        (
            Path::Host { chunk: 40 },
            Mode::Graph,
            Flags::Value,
            Library::Nccl,
        ),
        (
            Path::Hybrid {
                host_share: 0.5,
                chunk: 60,
            },
            Mode::Stream,
            Flags::Event,
            Library::Copies,
        ),
    ];
    let settings = settings.map(|(path, mode, flags, library)| Options {
        path,
        mode,
        flags,
        library,
        ..Options::default()
    });
    let mut all: Vec<Case> = cases(2);
    all.extend(cases(4));
    let total = all
        .par_iter()
        .enumerate()
        .filter(|(c, _)| c % 7 == 0)
        .map(|(c, case)| fates(case, &settings[c / 7 % settings.len()]))
        .reduce(|| [0; 3], |a, b| std::array::from_fn(|i| a[i] + b[i]));
    let [caught, missed, harmless] = total;
    println!("{caught} missing waits caught, {missed} missed, {harmless} without a race");
    assert!(caught > 500 && caught >= 9 * missed, "{total:?}");
}
