//! One fault of each kind, and the words it is reported in.

use duet::schedule::interpret;
use duet::schedule::verify::{Limits, Verified, verify};
use duet::schedule::{Schedule, Slice, TaskId, Work};

use crate::samples;

fn message(schedule: &Schedule) -> String {
    verify(schedule, &Limits::default())
        .unwrap_err()
        .to_string()
}

/// Removes the dependencies of `task` on `on`.
fn drop_dep(schedule: &mut Schedule, task: usize, on: u32) {
    let mut deps = Vec::new();
    let mut start = vec![0];
    for t in 0..schedule.tasks.len() {
        let kept = schedule.deps(TaskId(t as u32)).iter();
        deps.extend(kept.filter(|d| t != task || d.task.0 != on).copied());
        start.push(deps.len() as u32);
    }
    (schedule.deps, schedule.dep_start) = (deps, start);
}

fn transfer(schedule: &mut Schedule, task: usize) -> (&mut Slice, &mut Slice) {
    match &mut schedule.tasks[task].work {
        Work::Transfer { from, to, .. } => (from, to),
        other => panic!("task {task} is {other:?}"),
    }
}

#[test]
fn samples_verify() {
    for tp in [1, 2, 3, 4, 8] {
        for (name, schedule) in samples::all(tp) {
            let interpreted = interpret(&schedule, 1, 20);
            assert_eq!(interpreted, Ok(()), "{name} over {tp}");
            let verified = verify(&schedule, &Limits::default());
            assert!(
                matches!(verified, Ok(Verified::Yes { .. })),
                "{name} over {tp}: {}",
                verified.unwrap_err()
            );
        }
    }
}

/// A change to a sample that breaks it, by name.
type Fault = (&'static str, Schedule, fn(&mut Schedule));

fn faults() -> Vec<Fault> {
    vec![
        // Task 3 forwards what task 2 delivered.
        (
            "read unordered with write",
            samples::ring_all_gather(3),
            |s| drop_dep(s, 3, 2),
        ),
        ("read of nothing", samples::ring_all_gather(3), |s| {
            transfer(s, 0).0.rows.start = 1;
        }),
    ]
}

#[test]
fn every_fault_is_named() {
    let mut text = String::new();
    for (name, mut schedule, change) in faults() {
        change(&mut schedule);
        text += &format!("# {name}\n{}\n\n", message(&schedule));
    }
    insta::assert_snapshot!(text);
}
