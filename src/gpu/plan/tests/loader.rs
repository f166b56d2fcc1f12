//! Products that bring rows of A themselves.

use super::mutation::fates;
use super::*;
use crate::schedule::{Dep, Mover, Rank, TaskId, Via, Work, lowered};

fn built(text: &str, (m, n, k): (u64, u64, u64), placement: &[u32]) -> Schedule {
    let tp = placement.len() as u32;
    let operator = Operator::gemm(Kind::AgGemm, m, n, k, tp, DType::Bf16).expect("valid");
    let choice = strategy::parse(text).expect("a strategy");
    choice
        .build(&operator, &circle(tp as usize), placement)
        .expect("builds")
}

#[test]
fn a_launch_for_each_rank_is_all_there_is() {
    let text = "fusion-alltoall:mover=loader,slabs=2";
    let gpus = [0, 1, 2, 3];
    for placement in [gpus, [0, 0, 1, 1]] {
        let schedule = built(text, (64, 48, 256), &placement);
        for mode in [Mode::Stream, Mode::Graph] {
            let options = Options { mode, ..own() };
            let plan = lower(&schedule, &options, None).expect("lowers");
            let mut kernels = 0;
            for step in &plan.steps {
                let What::Gated { groups, loads, .. } = &step.what else {
                    let signals = matches!(step.what, What::Record(_) | What::Await(_));
                    assert!(signals, "{:?}", step.what);
                    continue;
                };
                kernels += 1;
                let here = plan.streams[step.stream.index()].gpu;
                // Of each of three others both halves of its columns, in the order in which they are awaited.
                assert_eq!(loads.len(), 6);
                for load in loads {
                    assert_eq!((load.to.gpu, load.to.rows, load.to.cols), (here, 16, 128));
                    let flag = &plan.flags[load.sets.index()];
                    assert_eq!((flag.gpu, &flag.readers[..]), (here, &[step.stream][..]));
                }
                let awaited: Vec<FlagId> = groups.iter().flat_map(|g| g.flags.clone()).collect();
                let brought: Vec<FlagId> = loads.iter().map(|load| load.sets).collect();
                assert_eq!(awaited, brought);
            }
            assert_eq!(kernels, 4);
        }
    }
}

fn said(schedule: &Schedule, options: &Options) -> String {
    let refused = lower(schedule, options, None).expect_err("is refused");
    assert!(matches!(refused, LowerError::Loader { .. }), "{refused}");
    refused.to_string()
}

#[test]
fn what_loaders_cannot_do_is_said() {
    let text = "fusion-alltoall:mover=loader";
    let schedule = || built(text, (64, 48, 32), &[0, 1]);
    // Two groups of own rows, then what each rank brings, then the groups of the others'.
    let first = "task 2 (rank 0, lane peer +1, transfer) cannot be performed by the product that reads it: ";
    let own_kernels = "task 4 (rank 0, lane compute, gemm) waits for it, and not inside a kernel of Duet's own; use --gemm duet, bf16 or fp16, and flags that are words";
    let host = Options {
        path: Path::Host { chunk: 100 },
        ..own()
    };
    let events = Options {
        flags: Flags::Event,
        ..own()
    };
    let lowered = first.replace("task 2", "task 0");
    for (options, why) in [(Options::default(), own_kernels), (events, own_kernels)] {
        let text = said(&schedule(), &options);
        assert!(text.ends_with(&why["task 4".len()..]), "{text}");
    }
    assert_eq!(
        said(&schedule(), &host),
        format!("{lowered}the path between GPUs is not p2p; use mover=ce")
    );
    // What waits for another task cannot begin whenever the kernel does.
    let mut waits = schedule();
    let at = waits.dep_start[2] as usize;
    waits.deps.insert(
        at,
        Dep {
            task: TaskId(0),
            via: Via::KernelFlag,
        },
    );
    waits.dep_start[3..]
        .iter_mut()
        .for_each(|start| *start += 1);
    assert!(
        said(&waits, &own()).contains("it waits for task"),
        "{}",
        said(&waits, &own())
    );
    // What is pushed is not brought.
    let mut pushed = schedule();
    let to = pushed.tasks[3];
    pushed.tasks[2].work = match (pushed.tasks[2].work, to.work) {
        (Work::Transfer { from, to, .. }, _) => {
            pushed.tasks[2].rank = pushed.rank_of(&from);
            Work::Transfer {
                from,
                to,
                mover: Mover::Loader,
            }
        }
        other => panic!("{other:?}"),
    };
    let text = said(&pushed, &own());
    assert!(
        text.ends_with("it brings nothing to its own rank"),
        "{text}"
    );
}

#[test]
fn what_products_bring_is_in_no_order() {
    let text = "fusion-alltoall:mover=loader,slabs=2";
    let schedule = built(text, (64, 48, 256), &[0, 1]);
    let alone = lowered::lower(&schedule, &own().lowered());
    let ids = || (0..alone.schedule.tasks.len() as u32).map(TaskId);
    let here = ids().filter(|&id| {
        lowered::by_loader(&alone.schedule, id) && alone.schedule.task(id).rank == Rank(0)
    });
    let [first, second] = here.collect::<Vec<_>>()[..] else {
        panic!("not two slabs");
    };
    let slices = |id: TaskId| match alone.schedule.task(id).work {
        Work::Transfer { from, to, .. } => (from, to),
        other => panic!("{other:?}"),
    };
    let why = |from, to, mover| {
        let mut changed = alone.clone();
        changed.schedule.tasks[second.index()].work = Work::Transfer { from, to, mover };
        let no = lowered::loaded(&changed).expect_err("is refused");
        (no.transfer, no.why)
    };
    let said = |id: TaskId| alone.schedule.describe(id);
    let (from, to) = slices(second);
    let touches = format!(
        "it touches rows that {} brings, and nothing orders what products bring; use mover=ce",
        said(first)
    );
    let place = slices(first).1;
    assert_eq!(why(place, to, Mover::Loader), (second, touches.clone()));
    assert_eq!(why(from, place, Mover::Loader), (second, touches));
    let follows = format!(
        "{} follows it in its lane, but nothing there waits for what a product brings; use another lane",
        said(second)
    );
    assert_eq!(why(from, to, Mover::CopyEngine), (first, follows));
}

#[test]
fn a_missing_wait_for_what_is_brought_is_noticed() {
    let mut total = [0; 3];
    for text in [
        "fusion-alltoall:mover=loader",
        "fusion-alltoall:mover=loader,slabs=3",
        "fusion-alltoall:mover=loader,chunks=2",
    ] {
        for placement in [&[0, 1][..], &[0, 1, 2, 3], &[0, 0, 1, 1]] {
            let case = Case {
                schedule: built(text, (24, 8, 5), placement),
                name: text.to_owned(),
            };
            for mode in [Mode::Stream, Mode::Graph] {
                let options = Options { mode, ..own() };
                let found = fates(&case, &options);
                (0..3).for_each(|i| total[i] += found[i]);
            }
        }
    }
    let [caught, missed, _] = total;
    assert!(caught > 20 && missed <= 3, "{total:?}");
}
