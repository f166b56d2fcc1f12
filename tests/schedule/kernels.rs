//! What fused kernels order and what they do not: their tasks overlap.

use duet::operator::Kind;
use duet::schedule::verify::{Limits, Verified, verify};
use duet::schedule::{
    Builder, Dep, Extent, Lane, LaunchId, Mover, Rank, Schedule, Slice, TaskId, Via, interpret,
};

use crate::errors::message;
use crate::samples::{AgGemm, COMM, COMPUTE, ag_gemm, flag, gemm, gemm_operator};

/// Every rank pushes its shard to every other; one kernel per rank multiplies each shard in two
/// halves of k, the second added to the first.
pub fn split_k(tp: u32) -> Schedule {
    let (m, n, k) = (2 * tp, 2 * tp, 4);
    let operator = gemm_operator(Kind::AgGemm, m, n, k, tp);
    let mut b = Builder::new(operator, "split k", (0..tp).collect());
    let x = ag_gemm(&mut b, m, n, k, tp);
    for r in 0..tp as usize {
        let rank = Rank(r as u16);
        let launch = b.launch("gemm", rank, 0);
        for part in (0..tp as usize).map(|i| (r + i) % tp as usize) {
            let shard = |of| b.rows(of, 0, 2 * part as u32, 2);
            let (own, here) = (shard(x.a[part]), shard(x.a[r]));
            let mut after = Vec::new();
            if part != r {
                let from = Rank(part as u16);
                let lane = Lane(COMM.0 + r as u16);
                after.push(flag(b.transfer(
                    from,
                    lane,
                    own,
                    here,
                    Mover::CopyEngine,
                    &[],
                )));
            }
            let first = half(&mut b, &x, launch, (r, part, 0), &after);
            after.push((first, Via::Launch).into());
            half(&mut b, &x, launch, (r, part, 1), &after);
        }
    }
    b.finish()
}

/// Half of k of a part of C, in the kernel of rank r.
fn half(
    b: &mut Builder,
    x: &AgGemm,
    launch: LaunchId,
    (r, part, half): (usize, usize, u32),
    after: &[Dep],
) -> TaskId {
    let k = Extent::new(2 * half, 2);
    let [mut a, out] = [x.a[r], x.c[r]].map(|of| b.rows(of, 0, 2 * part as u32, 2));
    a.cols = k;
    let columns = Slice {
        rows: k,
        ..b.whole(x.b[r])
    };
    let work = gemm(a, columns, out, half > 0);
    b.compute(Rank(r as u16), COMPUTE, Some(launch), work, after)
}

/// A part of C (rows 0 and 1, or 2 and 3), a half of k, and what the task waits for.
type Group<'a> = (usize, u32, &'a [Dep]);

/// A GEMM on one rank as one kernel of four groups; the second half of k is added to the first.
fn kernel(groups: [Group<'_>; 4]) -> Schedule {
    let operator = gemm_operator(Kind::AgGemm, 4, 2, 4, 1);
    let mut b = Builder::new(operator, "kernel", vec![0]);
    let x = ag_gemm(&mut b, 4, 2, 4, 1);
    let launch = b.launch("gemm", Rank(0), 0);
    for (part, of_k, after) in groups {
        half(&mut b, &x, launch, (0, part, of_k), after);
    }
    b.finish()
}

fn after(task: u32, via: Via) -> Dep {
    (TaskId(task), via).into()
}

/// Moves a task out of its kernel, into another lane if given.
fn alone(mut schedule: Schedule, task: usize, lane: Option<Lane>) -> Schedule {
    schedule.tasks[task].launch = None;
    if let Some(lane) = lane {
        schedule.tasks[task].lane = lane;
    }
    schedule
}

fn accepted(schedule: &Schedule) {
    let verified = verify(schedule, &Limits::default());
    assert!(matches!(verified, Ok(Verified::Yes { .. })), "{verified:?}");
    assert_eq!(interpret(schedule, 1, 80), Ok(()));
}

/// The oracle finds it wrong too.
fn race(schedule: &Schedule) -> String {
    assert!(interpret(schedule, 1, 80).is_err());
    message(schedule)
}

#[test]
fn tasks_of_a_kernel_are_ordered_by_their_own_waits_only() {
    let [zero, one, two] = [0, 1, 2].map(|task| [after(task, Via::Launch)]);
    let flag = [after(2, Via::KernelFlag)];
    let second = |waits| kernel([(0, 0, &[]), (0, 1, waits), (1, 0, &[]), (1, 1, &flag)]);
    accepted(&second(&zero));
    insta::assert_snapshot!(race(&second(&[])));
    // Through another group.
    let last = |third, waits| kernel([(0, 0, &[]), (1, 0, &zero), (1, 1, third), (0, 1, waits)]);
    accepted(&last(&one, &two));
    accepted(&last(&one, &one));
    // Group 0 comes before both, which are in no order.
    let apart = kernel([(0, 0, &[]), (1, 0, &zero), (0, 1, &zero), (1, 1, &zero)]);
    insta::assert_snapshot!(race(&apart));
}

#[test]
fn a_kernel_ends_before_the_next_task_of_its_lane() {
    let zero = [after(0, Via::Launch)];
    let groups = [(0, 0, &[][..]), (1, 0, &[]), (0, 1, &zero), (1, 1, &[])];
    accepted(&alone(kernel(groups), 3, None));
}

#[test]
fn an_event_follows_the_whole_kernel() {
    // The task behind the kernel, in another lane, adds to what group 1 made.
    let with = |dep: Dep| {
        let zero = [after(0, Via::Launch)];
        let groups = [(0, 0, &[][..]), (1, 0, &[]), (0, 1, &zero), (1, 1, &[dep])];
        alone(kernel(groups), 3, Some(Lane(7)))
    };
    accepted(&with(after(2, Via::Event)));
    accepted(&with(after(1, Via::StreamFlag)));
    // A flag of the last group tells nothing of the others.
    insta::assert_snapshot!(race(&with(after(2, Via::StreamFlag))));
    insta::assert_snapshot!(message(&with(after(1, Via::Event))));
}

#[test]
fn what_the_first_task_waits_for_comes_before_the_whole_kernel_but_for_flags() {
    // Task 0 has a lane of its own; the last group adds to what it made.
    let with = |via| {
        let [zero, one] = [after(0, via), after(1, Via::Launch)];
        let groups = [
            (0, 0, &[][..]),
            (1, 0, &[zero]),
            (1, 1, &[one]),
            (0, 1, &[]),
        ];
        alone(kernel(groups), 0, Some(Lane(7)))
    };
    accepted(&with(Via::Event));
    accepted(&with(Via::StreamFlag));
    insta::assert_snapshot!(race(&with(Via::KernelFlag)));
}

#[test]
fn only_kernel_order_and_flags_work_inside_a_kernel() {
    let text = [Via::Lane, Via::Event, Via::StreamFlag].map(|via| {
        let zero = [after(0, via)];
        message(&kernel([
            (0, 0, &[]),
            (0, 1, &zero),
            (1, 0, &[]),
            (1, 1, &[]),
        ]))
    });
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn a_kernel_that_waits_for_a_later_part_of_itself_deadlocks() {
    let [one, two] = [after(1, Via::KernelFlag), after(2, Via::Launch)];
    let schedule = kernel([(0, 1, &[one]), (0, 0, &[]), (1, 0, &[]), (1, 1, &[two])]);
    let error = interpret(&schedule, 1, 4).unwrap_err().to_string();
    assert!(error.contains("all wait"), "{error}");
    insta::assert_snapshot!(message(&schedule));
}

/// The steps per task hardly grow with the number of groups in a kernel.
#[test]
fn the_cost_is_near_linear_in_the_groups_of_a_kernel() {
    let per_task = |tp| {
        let schedule = split_k(tp);
        match verify(&schedule, &Limits::default()) {
            Ok(Verified::Yes { steps }) => steps as f64 / schedule.tasks.len() as f64,
            other => panic!("{other:?}"),
        }
    };
    let (few, many) = (per_task(8), per_task(64));
    assert!(many < 1.5 * few, "{few} steps per task, then {many}");
}
