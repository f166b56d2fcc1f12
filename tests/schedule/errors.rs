//! One fault of each kind, and the words it is reported in.

use duet::operator::Kind;
use duet::schedule::interpret;
use duet::schedule::verify::{GpuSms, Limits, Verified, verify};
use duet::schedule::{
    Builder, CollectiveKind, CollectiveLibrary, Compute, ComputeId, Dep, Extent, GemmKernel, Mover,
    Rank, Role, Schedule, Slice, Task, TaskId, TensorId, Via, Work,
};

use crate::samples;

pub fn message(schedule: &Schedule) -> String {
    verify(schedule, &Limits::default())
        .unwrap_err()
        .to_string()
}

/// Removes the dependencies of `task` on `on`.
pub fn drop_dep(schedule: &mut Schedule, task: usize, on: u32) {
    let mut deps = Vec::new();
    let mut start = vec![0];
    for t in 0..schedule.tasks.len() {
        let kept = schedule.deps(TaskId(t as u32)).iter();
        deps.extend(kept.filter(|d| t != task || d.task.0 != on).copied());
        start.push(deps.len() as u32);
    }
    (schedule.deps, schedule.dep_start) = (deps, start);
}

fn add_dep(schedule: &mut Schedule, task: usize, on: u32) {
    let at = schedule.dep_start[task + 1] as usize;
    let dep = (TaskId(on), Via::Event).into();
    schedule.deps.insert(at, dep);
    schedule.dep_start[task + 1..]
        .iter_mut()
        .for_each(|s| *s += 1);
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

fn gemm_of(schedule: &mut Schedule, c: usize) -> (&mut Slice, &mut Slice, &mut Slice) {
    match &mut schedule.computes[c] {
        Compute::Gemm { a, b, out, .. } => (a, b, out),
        other => panic!("compute {c} is {other:?}"),
    }
}

fn sum_of(schedule: &mut Schedule, c: usize) -> (&mut Vec<Slice>, &mut Slice) {
    match &mut schedule.computes[c] {
        Compute::Reduce { inputs, out } => (inputs, out),
        other => panic!("compute {c} is {other:?}"),
    }
}

/// The dependencies of a task.
fn deps_of(schedule: &mut Schedule, task: usize) -> &mut [Dep] {
    let range = schedule.dep_start[task] as usize..schedule.dep_start[task + 1] as usize;
    &mut schedule.deps[range]
}

/// Faults of structure: of one object at a time.
fn structure() -> Vec<Fault> {
    use samples::{direct, gemm_rs, ring_all_gather, sequential};
    vec![
        ("ranks", ring_all_gather(3), |s| s.placement.truncate(2)),
        ("dependency table", ring_all_gather(3), |s| {
            s.dep_start[1] = 9
        }),
        ("tensor size", ring_all_gather(3), |s| s.tensors[0].cols = 0),
        ("buffer rank", ring_all_gather(3), |s| {
            s.buffers[1].rank = Rank(3);
        }),
        ("buffer tensor", ring_all_gather(3), |s| {
            s.buffers[1].tensor = TensorId(1);
        }),
        ("buffer slots", ring_all_gather(3), |s| {
            s.buffers[1].slots = 0
        }),
        ("piece outside", ring_all_gather(3), |s| {
            s.buffers[1].pieces[2].global_row = u32::MAX;
        }),
        ("initial contributions", ring_all_gather(3), |s| {
            s.buffers[1].pieces[1].initial = Extent::new(1, 1);
        }),
        ("pieces overlap", ring_all_gather(3), |s| {
            s.buffers[1].pieces[2] = s.buffers[1].pieces[1];
        }),
        ("task rank", ring_all_gather(3), |s| {
            s.tasks[1].rank = Rank(7)
        }),
        ("compute id", gemm_rs(3), |s| {
            s.tasks[0].work = Work::Compute(ComputeId(99));
        }),
        ("dependency id", ring_all_gather(3), |s| {
            deps_of(s, 3)[0].task = TaskId(6);
        }),
        ("slice outside", ring_all_gather(3), |s| {
            transfer(s, 4).1.rows.start = u32::MAX;
        }),
        ("slice buffer", ring_all_gather(3), |s| {
            transfer(s, 4).1.buffer.0 = 3;
        }),
        ("transfer shapes", ring_all_gather(3), |s| {
            transfer(s, 4).1.cols.len = 7;
        }),
        ("transfer in place", ring_all_gather(3), |s| {
            let from = *transfer(s, 4).0;
            *transfer(s, 4).1 = from;
        }),
        ("transfer of others", ring_all_gather(3), |s| {
            s.tasks[0].rank = Rank(2);
        }),
        ("mover without blocks", ring_all_gather(3), |s| {
            if let Work::Transfer { mover, .. } = &mut s.tasks[0].work {
                *mover = Mover::Sm { blocks: 0 };
            }
        }),
        ("gemm shapes", gemm_rs(3), |s| gemm_of(s, 0).2.cols.len = 3),
        ("gemm elsewhere", gemm_rs(3), |s| {
            *gemm_of(s, 0).0 = *gemm_of(s, 1).0;
        }),
        ("gemm in place", gemm_rs(3), |s| {
            let out = *gemm_of(s, 0).2;
            *gemm_of(s, 0).0 = out.rows(0, 6);
            gemm_of(s, 0).0.cols.len = 3;
        }),
        ("sum of nothing", gemm_rs(3), |s| sum_of(s, 3).0.clear()),
        ("flops", gemm_rs(3), |s| {
            let (inputs, out) = sum_of(s, 3);
            s.computes[3] = Compute::Pointwise {
                inputs: inputs.clone(),
                out: *out,
                bytes: 0,
                flops: f64::NAN,
            };
        }),
        ("no member", sequential(3), |s| {
            s.collectives[0].members.pop();
        }),
        ("member twice", sequential(3), |s| {
            s.collectives[0].members[1].rank = Rank(0);
        }),
        ("member of another rank", sequential(3), |s| {
            s.collectives[0].members[1].task = TaskId(4);
        }),
        ("member's memory", sequential(3), |s| {
            s.collectives[0].members[1].output = s.collectives[0].members[0].output;
        }),
        ("member's shape", sequential(3), |s| {
            s.collectives[0].members[1].output.rows.len = 5;
        }),
        ("not in place", sequential(3), |s| {
            s.collectives[0].members[1].input.rows.start = 0;
        }),
        ("lane order between lanes", ring_all_gather(3), |s| {
            deps_of(s, 3)[0].via = Via::Lane;
        }),
        ("launch order outside a launch", ring_all_gather(3), |s| {
            deps_of(s, 3)[0].via = Via::Launch;
        }),
        ("kernel flag for a copy engine", ring_all_gather(3), |s| {
            deps_of(s, 3)[0].via = Via::KernelFlag;
        }),
        ("kernel flag for a library's kernel", direct(3), |s| {
            for compute in &mut s.computes {
                if let Compute::Gemm { kernel, .. } = compute {
                    *kernel = GemmKernel::Library;
                }
            }
        }),
        ("launch of another rank", direct(3), |s| {
            s.launches[0].rank = Rank(1)
        }),
        ("launch in two parts", direct(3), |s| {
            s.tasks[7].launch = None
        }),
        ("event into a kernel", direct(3), |s| {
            deps_of(s, 8)[0].via = Via::Event;
        }),
    ]
}

/// Tensors and shares that are not the operator's.
fn contract() -> Vec<Fault> {
    use samples::{all_to_all, direct, gemm_rs, ring_all_gather};
    vec![
        ("no tensor", direct(2), |s| s.tensors[2].name = "D".into()),
        ("another k", direct(2), |s| s.tensors[2].contributions = 2),
        ("another size", ring_all_gather(3), |s| {
            s.tensors[0].cols = 16
        }),
        ("input twice", direct(2), |s| {
            s.buffers[0].pieces[0].global_row = 2;
        }),
        ("input missing", direct(2), |s| {
            s.buffers[0].pieces[0].rows.len = 1;
        }),
        ("output missing", gemm_rs(3), |s| {
            s.buffers[4].pieces.clear()
        }),
        ("another contribution", all_reduce(), |s| {
            s.buffers[1].pieces[0].initial = Extent::new(0, 1);
        }),
        ("unequal exchange", all_to_all(2), |s| {
            // Rank 0 keeps its own block and the one that it should send.
            s.buffers[1].pieces[1].global_row = 1;
            s.buffers[3].pieces[0].global_row = 2;
        }),
    ]
}

/// In place, over two ranks.
fn all_reduce() -> Schedule {
    let operator = samples::bare_operator(Kind::AllReduce, 16, 2);
    let mut b = Builder::new(operator, "library", vec![0, 1]);
    let x = b.tensor("X", 1, 8, 2);
    let mut members: Vec<(Rank, Slice, Slice, &[Dep])> = Vec::new();
    for rank in b.ranks() {
        let own = samples::piece((0, 1), (0, 8), (0, 0), (rank.0.into(), 1));
        let buffer = samples::buffer(&mut b, "X", x, rank, (1, 8), Role::InputOutput, vec![own]);
        members.push((rank, b.whole(buffer), b.whole(buffer), &[]));
    }
    let library = CollectiveLibrary::Ring;
    b.collective(
        CollectiveKind::AllReduce,
        library,
        0,
        samples::COMM,
        &members,
    );
    b.finish()
}

/// Faults that show when the tasks are performed.
fn meaning() -> Vec<Fault> {
    use samples::{direct, gemm_rs, ring_all_gather, sequential, two_slots};
    vec![
        ("circle", ring_all_gather(3), |s| {
            deps_of(s, 3)[0].task = TaskId(5);
            deps_of(s, 5)[0].task = TaskId(4);
            deps_of(s, 4)[0].task = TaskId(3);
        }),
        ("lane deadlock", ring_all_gather(3), |s| {
            drop_dep(s, 4, 0);
            add_dep(s, 0, 4);
            add_dep(s, 1, 3);
        }),
        ("collective deadlock", sequential(2), |s| {
            // Rank 0 multiplies first, in the lane of the collective it waits for.
            s.tasks[2].lane = samples::COMM;
            s.tasks.swap(0, 2);
            s.collectives[0].members[0].task = TaskId(2);
            s.dep_start = vec![0, 1, 1, 1, 2];
            s.deps[0].task = TaskId(2);
        }),
        // Task 3 forwards what task 2 delivered.
        ("read unordered with write", ring_all_gather(3), |s| {
            drop_dep(s, 3, 2);
        }),
        ("write unordered with write", direct(3), |s| {
            *transfer(s, 5).1 = *transfer(s, 0).1;
        }),
        // Task 15 refills the slot that task 16 reads.
        ("slot reused early", two_slots(4), |s| {
            let waits: Vec<u32> = s.deps(TaskId(16)).iter().map(|d| d.task.0).collect();
            waits.into_iter().for_each(|on| drop_dep(s, 16, on));
        }),
        ("read of nothing", ring_all_gather(3), |s| {
            transfer(s, 0).0.rows.start = 1;
        }),
        ("read of half", direct(3), |s| {
            transfer(s, 0).0.rows = Extent::new(1, 2);
        }),
        ("read of what nobody writes", gemm_rs(3), |s| {
            sum_of(s, 3).0[1].slot = 0;
        }),
        ("wrong tensor", gemm_rs(3), |s| {
            s.tensors.push(s.tensors[2].clone());
            s.tensors[3].name = "D".into();
            s.buffers[2].tensor = TensorId(3);
        }),
        ("wrong part of k", gemm_rs(3), |s| {
            s.buffers[1].pieces[0].global_row = 3;
            s.buffers[6].pieces[0].global_row = 0;
        }),
        ("product of partial sums", gemm_rs(3), |s| {
            // Two rows of the unfinished C times B.
            let (_, b, partial) = gemm_of(s, 0);
            let (b, mut a) = (*b, partial.rows(0, 2));
            a.cols.len = 3;
            let out = *sum_of(s, 3).1;
            s.computes[3] = samples::gemm(a, b, out, false);
        }),
        ("another shape", gemm_rs(3), |s| {
            s.tensors.push(s.tensors[2].clone());
            s.tensors[3].name = "D".into();
            s.tensors[3].contributions = 8;
            s.buffers[2].tensor = TensorId(3);
        }),
        ("sum of different parts", gemm_rs(3), |s| {
            sum_of(s, 3).0[0].rows.start = 2;
        }),
        ("sum counted twice", gemm_rs(3), |s| {
            let (inputs, _) = sum_of(s, 3);
            inputs.push(inputs[1]);
        }),
        ("product counted twice", gemm_rs(3), |s| {
            let (a, b, out) = gemm_of(s, 0);
            let again = samples::gemm(*a, *b, *out, true);
            let task = Task {
                work: Work::Compute(ComputeId(s.computes.len() as u32)),
                ..s.tasks[0]
            };
            s.computes.push(again);
            s.tasks.insert(1, task);
            s.dep_start.insert(1, 0);
            s.deps
                .iter_mut()
                .filter(|d| d.task.0 > 0)
                .for_each(|d| d.task.0 += 1);
        }),
        ("output not written", direct(3), |s| {
            s.buffers[2].pieces[0].rows.len = 6;
            s.tasks.truncate(14);
            s.dep_start.truncate(15);
            s.deps.truncate(s.dep_start[14] as usize);
        }),
        ("output incomplete", gemm_rs(3), |s| {
            sum_of(s, 3).0.pop();
        }),
        ("output of another place", ring_all_gather(3), |s| {
            s.buffers[0].pieces[1].global_row = 2;
            s.buffers[0].pieces[2].global_row = 1;
        }),
    ]
}

fn messages(faults: Vec<Fault>) -> String {
    let mut text = String::new();
    for (name, mut schedule, change) in faults {
        change(&mut schedule);
        text += &format!("# {name}\n{}\n\n", message(&schedule));
    }
    text
}

#[test]
fn every_fault_of_structure_is_named() {
    insta::assert_snapshot!(messages(structure()));
}

#[test]
fn every_fault_against_the_operator_is_named() {
    let verified = verify(&all_reduce(), &Limits::default());
    assert!(matches!(verified, Ok(Verified::Yes { .. })), "{verified:?}");
    insta::assert_snapshot!(messages(contract()));
}

#[test]
fn every_fault_of_meaning_is_named() {
    insta::assert_snapshot!(messages(meaning()));
}

/// Pushes by SM copies into gated kernels: ranks 0 and 1 share a GPU of 132 SMs.
#[test]
fn kernels_that_wait_must_fit_their_gpu() {
    let mut schedule = samples::direct(2);
    schedule.placement = vec![5, 5];
    for task in &mut schedule.tasks {
        if let Work::Transfer { mover, .. } = &mut task.work {
            *mover = Mover::Sm { blocks: 8 };
        }
    }
    let sms = |gpu: u32| {
        assert_eq!(gpu, 5);
        GpuSms {
            total: 132,
            collective: 16,
        }
    };
    let limits = Limits {
        sms: Some(&sms),
        ..Limits::default()
    };
    let error = verify(&schedule, &limits).unwrap_err().to_string();
    insta::assert_snapshot!(error);
    // 62 + 62 + 8 = 132 just fit.
    for (launch, fits) in [(62, true), (63, false)] {
        schedule.launches.iter_mut().for_each(|l| l.sms = launch);
        assert_eq!(
            verify(&schedule, &limits).is_ok(),
            fits,
            "{launch} SMs each"
        );
    }
    // All free SMs for a kernel that waits leave none for the copies.
    schedule.launches.iter_mut().for_each(|l| l.sms = 0);
    assert!(verify(&schedule, &limits).is_err());
    // On a GPU of its own no kernel waits for its own rank's copy.
    schedule.launches.iter_mut().for_each(|l| l.sms = 132);
    schedule.placement = vec![0, 1];
    let sms = |_| GpuSms {
        total: 132,
        collective: 16,
    };
    let limits = Limits {
        sms: Some(&sms),
        ..Limits::default()
    };
    assert!(verify(&schedule, &limits).is_ok());
}

/// Members of one collective on one GPU wait for one another.
#[test]
fn members_of_a_collective_must_fit_their_gpu() {
    let mut schedule = samples::sequential(4);
    schedule.placement = vec![0; 4];
    for (total, fits) in [(64, true), (63, false)] {
        let sms = |_| GpuSms {
            total,
            collective: 16,
        };
        let limits = Limits {
            sms: Some(&sms),
            ..Limits::default()
        };
        assert_eq!(verify(&schedule, &limits).is_ok(), fits, "{total} SMs");
    }
}

#[test]
fn a_budget_that_runs_out_is_said() {
    let limits = Limits {
        budget: 20,
        sms: None,
    };
    let verified = verify(&samples::direct(4), &limits).unwrap();
    let Verified::NotVerified { reason } = verified else {
        panic!("{verified:?}");
    };
    assert_eq!(
        reason,
        "the budget of 20 steps ran out; raise it to verify this schedule"
    );
}
