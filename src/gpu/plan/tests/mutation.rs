//! Plans with one wait removed.

use rayon::prelude::*;

use super::emulator::emulate;
use super::race::{Order, forks_and_joins, races, works};
use super::{Case, apart, cases, circle, own, references};
use crate::device::DType;
use crate::gpu::plan::{Flags, Library, LowerError, Mode, Options, Path, Plan, Step, What, lower};
use crate::operator::{Kind, Operator};
use crate::strategy;

/// A plan without one of its waits.
struct Mutant {
    plan: Plan,
    /// Whether what it waited for still happens before what waited.
    implied: bool,
}

/// The last step that works before step `at` in its stream; events from `events` on stand for what kernels do
/// inside.
fn last_before(plan: &Plan, events: usize, at: usize) -> Option<usize> {
    let here = |&s: &usize| plan.steps[s].stream == plan.steps[at].stream;
    for s in (0..at).rev().filter(here) {
        match plan.steps[s].what {
            What::Await(event) if event.index() >= events => {
                let record = |step: &Step| step.what == What::Record(event);
                return last_before(plan, events, plan.steps.iter().position(record)?);
            }
            ref what if works(what) => return Some(s),
            _ => {}
        }
    }
    None
}

/// Every plan with one wait less, of those by flags and by the first `events` events; of many, about `most`.
fn mutants(plan: &Plan, events: usize, most: usize) -> Vec<Mutant> {
    let waits = |what: &What| match what {
        What::Await(event) => event.index() < events,
        what => matches!(what, What::AwaitFlag(_)),
    };
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
        let awaited = last_before(plan, events, signal);
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
    let (events, plan) = match lower(&case.schedule, options, None) {
        Err(LowerError::Epilogue { .. } | LowerError::Loader { .. })
            if !super::stores(&case.schedule, options) =>
        {
            return [0; 3];
        }
        plan => {
            let plan = plan.expect("lowers");
            (plan.events.len(), apart(&plan))
        }
    };
    let references = references(&case.schedule, 3);
    let mut fates = [0; 3];
    for (i, mutant) in mutants(&plan, events, 12).into_iter().enumerate() {
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

/// A group of a kernel that no longer waits for its own rows is noticed, though those before it wait.
#[test]
fn a_group_that_lost_its_flags_is_noticed() {
    let operator = Operator::gemm(Kind::AgGemm, 64, 48, 20, 2, DType::Bf16).unwrap();
    let choice = strategy::parse("fusion-alltoall:chunks=2").unwrap();
    let schedule = choice.build(&operator, &circle(2), &[0, 1]).unwrap();
    let plan = lower(&schedule, &own(), None).unwrap();
    let references = references(&schedule, 3);
    let wrong = |plan: &Plan| {
        let plan = apart(plan);
        let caught = (0..63).any(|seed| emulate(&plan, &schedule, &references, seed).is_err());
        (!races(&plan).is_empty(), caught)
    };
    assert_eq!(wrong(&plan), (false, false));
    let mut lost = 0;
    for (at, step) in plan.steps.iter().enumerate() {
        let What::Gated { groups, .. } = &step.what else {
            continue;
        };
        for group in (0..groups.len()).filter(|&group| !groups[group].flags.is_empty()) {
            let mut mutant = plan.clone();
            if let What::Gated { groups, .. } = &mut mutant.steps[at].what {
                groups[group].flags.clear();
            }
            assert_eq!(wrong(&mutant), (true, true), "step {at}, group {group}");
            lost += 1;
        }
    }
    // The two chunks that come, on each GPU.
    assert_eq!(lost, 4);
}
